#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/dtype.hpp>

namespace normscope::checkpoint {

/// An array of float64 values, row-major, decoded from a file. `dtype` is the type in the file.
struct Array {
  std::vector<std::uint64_t> shape;
  Dtype dtype = Dtype::F64;
  std::vector<double> values;
};

/// Reads an array by its command-line name:
///   X.npy                    NumPy formats 1.0 to 3.0, C or Fortran order, either byte order
///   X-ubyte, X-ubyte.gz, X.idx or X.idx.gz   IDX, as MNIST comes
///   X.npz:NAME               a member of a zip, stored or deflated (NAME with or without ".npy")
///   X.safetensors:TENSOR     a tensor; TENSOR[i] is its i-th slice along the first axis
///   X.safetensors.index.json:TENSOR or FOLDER:TENSOR   likewise
///   X.onnx:TENSOR or X.pt:TENSOR   likewise
///   1,2.5,-3 or 0,0;1,0;0,1  numbers written out: a row, or rows; a file of that name comes first
/// Errors    Io, Format, Shape, Unsupported (object, string and structured dtypes), Argument for a
///           name that is not there; messages name the file
[[nodiscard]] Array read_array(const std::string& name);

/// The same for a vector: at most one axis may be longer than 1, which is checked before a tensor of a
/// checkpoint is read.
/// Errors    as `read_array`; Shape for more axes
[[nodiscard]] std::vector<double> read_row(const std::string& name);

/// The file or folder in an array's name; empty for numbers written out.
/// Errors    Io if it does not exist
[[nodiscard]] std::optional<std::filesystem::path> array_file(const std::string& name);

/// A tensor of a checkpoint, named on the command line.
struct TensorName {
  std::filesystem::path checkpoint;  ///< a file or a folder
  std::string tensor;                ///< its name, or TENSOR[i]
};

/// The tensor that an array's name refers to; empty for arrays of other files and for numbers written out.
/// Does not check that the checkpoint has it.
/// Errors    as `array_file`; Format for a damaged zip
[[nodiscard]] std::optional<TensorName> tensor_name(const std::string& name);

/// Writes a `.npy` file, atomically: F64, F32 and F16 as they are, BF16, which NumPy lacks, as F32, and every
/// other dtype as F64.
/// Errors    Io; Shape if values and shape disagree
void write_npy(const std::filesystem::path& path, const Array& array);

}  // namespace normscope::checkpoint
