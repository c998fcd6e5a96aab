#include "file_format.hpp"

#include <algorithm>
#include <string>

namespace normscope::files {
namespace {

FileFormat by_content(std::string_view text) {
  using namespace std::string_view_literals;
  const auto begins = [text](std::string_view magic) { return text.substr(0, magic.size()) == magic; };
  // The length before a safetensors header is below 2^27: its lower bytes may equal another format's magic
  // number, but its upper bytes are zero, as in no other format.
  if (text.size() >= 9 && text.substr(4, 5) == "\0\0\0\0{"sv) return FileFormat::safetensors;
  if (begins("GGUF")) return FileFormat::gguf;
  if (text.substr(std::min<std::size_t>(4, text.size()), 4) == "TFL3") return FileFormat::tflite;
  if (begins("\x1f\x8b") || begins("\x28\xb5\x2f\xfd") || begins("7z\xbc\xaf") || begins("BZh") ||
      begins("\xfd"
             "7zXZ") ||
      (text.size() > 262 && text.substr(257, 5) == "ustar")) {
    return FileFormat::compressed;
  }
  if (begins("version https://git-lfs")) return FileFormat::lfs_pointer;
  if (begins("PK\x03\x04") || begins("PK\x05\x06")) return FileFormat::zip;
  if (begins("\x93NUMPY")) return FileFormat::npy;
  if (begins("\x89HDF\r\n\x1a\n")) return FileFormat::hdf5;
  if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) return FileFormat::pickle;
  // A ModelProto: field 1 (ir_version), a small number, then field 2 (producer_name) or 7 (graph).
  if (text.size() >= 3 && text[0] == 0x08 && text[1] >= 1 && text[1] <= 31 &&
      (text[2] == 0x12 || text[2] == 0x3a)) {
    return FileFormat::onnx;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos) {
    std::string start(text.substr(first, 14));
    std::transform(start.begin(), start.end(), start.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    if (start == "<!doctype html" || start.substr(0, 5) == "<html") return FileFormat::html;
  }
  if (first != std::string_view::npos && text[first] == '{') return FileFormat::shard_index;
  return FileFormat::unknown;
}

FileFormat by_name(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".safetensors") return FileFormat::safetensors;
  if (extension == ".json") return FileFormat::shard_index;
  if (extension == ".npy") return FileFormat::npy;
  if (extension == ".npz") return FileFormat::zip;
  if (extension == ".gguf") return FileFormat::gguf;
  if (extension == ".onnx") return FileFormat::onnx;
  const std::string name = path.filename().string();
  if (name == "saved_model.pb") return FileFormat::saved_model;
  if (extension == ".index") return FileFormat::tensorflow_index;
  if (name.find(".data-0") != std::string::npos) return FileFormat::tensorflow_data;
  if (extension == ".tflite") return FileFormat::tflite;
  if (extension == ".msgpack") return FileFormat::msgpack;
  if (extension == ".mlmodel" || extension == ".mlpackage") return FileFormat::core_ml;
  if (extension == ".engine" || extension == ".plan") return FileFormat::tensorrt;
  for (const std::string_view ending : {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}) {
    if (name.size() >= ending.size() &&
        name.compare(name.size() - ending.size(), ending.size(), ending) == 0) {
      return FileFormat::idx;
    }
  }
  const bool is_torch_bin = extension == ".bin" && name.rfind("pytorch_model", 0) == 0;
  if (is_torch_bin || extension == ".pt" || extension == ".pth" || extension == ".ckpt") {
    return FileFormat::pickle;
  }
  if (extension == ".h5" || extension == ".hdf5" || extension == ".keras") return FileFormat::hdf5;
  return FileFormat::unknown;
}

/// The Python package reads some formats by the libraries that write them.
std::string convert_with(const std::string& extra) {
  return "the Python package, normscope[" + extra + "], converts it with normscope.convert";
}

}  // namespace

FileFormat file_format(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const FileFormat named = by_name(path);
  const FileFormat held =
      by_content({reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 4096)});
  if (held == FileFormat::compressed && named == FileFormat::idx) return named;  // read compressed
  // Any text may begin with a brace; only the name identifies an index of shards.
  if (held == FileFormat::shard_index && named != FileFormat::shard_index) return named;
  return held == FileFormat::unknown ? named : held;
}

bool is_keras_archive(std::span<const ZipMember> members) {
  return std::any_of(members.begin(), members.end(),
                     [](const ZipMember& member) { return member.name == "model.weights.h5"; });
}

std::string_view describe(FileFormat format) {
  switch (format) {
    case FileFormat::safetensors: return "safetensors";
    case FileFormat::shard_index: return "index of shards";
    case FileFormat::npy: return "NumPy array";
    case FileFormat::zip: return "PyTorch or NumPy zip";
    case FileFormat::idx: return "IDX array";
    case FileFormat::gguf: return "GGUF";
    case FileFormat::onnx: return "ONNX";
    case FileFormat::pickle: return "PyTorch pickle without a zip, as before PyTorch 1.6";
    case FileFormat::hdf5: return "HDF5 or Keras";
    case FileFormat::lfs_pointer: return "Git LFS pointer";
    case FileFormat::saved_model: return "TensorFlow SavedModel";
    case FileFormat::tensorflow_index: return "TensorFlow checkpoint";
    case FileFormat::tensorflow_data: return "data file of a TensorFlow checkpoint";
    case FileFormat::tflite: return "TensorFlow Lite";
    case FileFormat::msgpack: return "Flax msgpack";
    case FileFormat::core_ml: return "Core ML";
    case FileFormat::tensorrt: return "TensorRT engine";
    case FileFormat::html: return "HTML page";
    case FileFormat::compressed: return "compressed or tar archive";
    case FileFormat::unknown: break;
  }
  return "not known";
}

std::string advice(FileFormat format) {
  switch (format) {
    case FileFormat::hdf5: return convert_with("keras");
    case FileFormat::msgpack: return convert_with("flax");
    case FileFormat::tensorflow_index: return convert_with("tensorflow");
    case FileFormat::tflite: return convert_with("tflite");
    case FileFormat::tensorflow_data: return "convert the .index file beside it";
    case FileFormat::saved_model:
      return "convert its weights, variables/variables.index, or export the model to ONNX or safetensors";
    case FileFormat::core_ml:
    case FileFormat::tensorrt: return "export the model to ONNX or safetensors";
    case FileFormat::lfs_pointer: return "fetch the file with `git lfs pull`";
    case FileFormat::html: return "download the file itself, not its page";
    case FileFormat::compressed: return "unpack it first";
    default: return "";
  }
}

}  // namespace normscope::files
