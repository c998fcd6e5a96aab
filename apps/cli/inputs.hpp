#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "outputs.hpp"

/// Files that the command line names: models, arrays of rows, samples and labels; and arrays that it writes.
namespace normscope::cli {

/// The inputs of a command: each name on the command line is resolved and opened once, and no output may
/// replace a file behind it. Subcommands open their inputs before any work.
class Inputs {
 public:
  explicit Inputs(Outputs& outputs) : outputs_(outputs) {}

  /// The array of that name; a checkpoint that holds several of them is opened once. The output `replaced_by`
  /// may take the place of a file that holds this array alone.
  ///
  /// Errors    as `OpenedArray`; Argument, as for all inputs, if an output would replace one of its files
  [[nodiscard]] files::OpenedArray array(const std::string& name, const std::string& replaced_by = "");
  /// Opens the array that an option names; empty if the option is not given.
  [[nodiscard]] std::optional<files::OpenedArray> optional_array(const std::string& name);

  /// The checkpoint at that path; it stays open as long as this object exists.
  ///
  /// Errors    as `Checkpoint`
  [[nodiscard]] const files::Checkpoint& checkpoint(const std::filesystem::path& path);
  /// The description of `checkpoint` as a model, computed once, with what is stated of it the first time.
  ///
  /// Errors    as `models::describe`
  [[nodiscard]] const models::Model& model_of(const files::Checkpoint& checkpoint,
                                              const models::Stated& stated = {});

  /// Adds a file that is not opened here but that outputs may not replace either.
  void add_file(const std::filesystem::path& file) { outputs_.protect(file); }
  /// Adds all files of a checkpoint that is not opened here.
  void add_checkpoint(const files::Checkpoint& opened);

 private:
  std::shared_ptr<const files::Checkpoint> open(const std::filesystem::path& path);

  Outputs& outputs_;
  std::map<std::string, files::OpenedArray> arrays_{};
  std::map<std::filesystem::path, std::shared_ptr<const files::Checkpoint>> checkpoints_{};
  std::map<const files::Checkpoint*, models::Model> models_{};
};

/// Rows of finite numbers from an ARRAY on the command line: its last axis is the width, all other axes are
/// rows.
struct MatrixInput {
  std::vector<double> values;
  std::size_t rows = 0;
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows, width}; }
};

/// Whether an array without rows is accepted.
enum class Rows { some, any };

/// Reads the rows of an array; error messages contain its name.
[[nodiscard]] MatrixInput read_matrix(const files::OpenedArray& array, Rows rows = Rows::some);

/// Throws unless every number of the array is finite.
///
/// Errors    Argument, naming the first number that is not
void expect_finite(const std::string& name, MatrixView<const double> rows);

/// Samples in an array: its first axis counts them, the others are their features.
///
/// Errors    Io, Format, Shape
[[nodiscard]] MatrixInput read_samples(const files::OpenedArray& array);

/// An array of one axis of integers.
///
/// Errors    Io, Format, Shape; Argument naming the first entry that is not an integer
[[nodiscard]] std::vector<std::int64_t> read_labels(const files::OpenedArray& array);

/// NAME.npy of each name.
[[nodiscard]] std::vector<std::string> npy_files(std::initializer_list<const char*> names);
/// Writes NAME.npy into a folder: float64, rows of `width`, or a single row if it is 0. Does nothing if the
/// folder has no name.
///
/// Errors    Io
void write_array(Outputs& outputs, const std::string& folder, const std::string& name,
                 std::vector<double> values, std::size_t width = 0);

}  // namespace normscope::cli
