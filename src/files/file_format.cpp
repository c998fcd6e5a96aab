#include "file_format.hpp"

#include <algorithm>
#include <string>

#include <normscope/files/checkpoint.hpp>

namespace normscope::files {
namespace {

using Path = std::filesystem::path;

const FileFormat tflite{
    .name = "TensorFlow Lite",
    .begins =
        [](std::string_view text) { return text.substr(std::min<std::size_t>(4, text.size()), 4) == "TFL3"; },
    .named = [](const Path& path) { return has_extension(path, {".tflite"}); },
    .converter = "tflite"};

const FileFormat lfs_pointer{
    .name = "Git LFS pointer",
    .begins = [](std::string_view text) { return text.starts_with("version https://git-lfs"); },
    .advice = "fetch the file with `git lfs pull`"};

const FileFormat html{.name = "HTML page",
                      .begins =
                          [](std::string_view text) {
                            const std::size_t first = text.find_first_not_of(" \t\r\n");
                            if (first == std::string_view::npos) return false;
                            std::string start(text.substr(first, 14));
                            std::transform(start.begin(), start.end(), start.begin(), [](char c) {
                              return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
                            });
                            return start == "<!doctype html" || start.starts_with("<html");
                          },
                      .advice = "download the file itself, not its page"};

const FileFormat saved_model{
    .name = "TensorFlow SavedModel",
    .named = [](const Path& path) { return path.filename() == "saved_model.pb"; },
    .advice = "convert its weights, variables/variables.index, or export the model to ONNX or safetensors"};

const FileFormat tensorflow_index{.name = "TensorFlow checkpoint",
                                  .named = [](const Path& path) { return has_extension(path, {".index"}); },
                                  .converter = "tensorflow"};

const FileFormat tensorflow_data{
    .name = "data file of a TensorFlow checkpoint",
    .named = [](const Path& path) { return path.filename().string().find(".data-0") != std::string::npos; },
    .advice = "convert the .index file beside it"};

const FileFormat msgpack{.name = "Flax msgpack",
                         .named = [](const Path& path) { return has_extension(path, {".msgpack"}); },
                         .converter = "flax"};

const FileFormat core_ml{.name = "Core ML",
                         .named =
                             [](const Path& path) {
                               return has_extension(path, {".mlmodel", ".mlpackage"});
                             },
                         .advice = "export the model to ONNX or safetensors"};

const FileFormat tensorrt{.name = "TensorRT engine",
                          .named =
                              [](const Path& path) {
                                return has_extension(path, {".engine", ".plan"});
                              },
                          .advice = "export the model to ONNX or safetensors"};

}  // namespace

namespace formats {

extern const FileFormat compressed{
    .name = "compressed or tar archive",
    .begins =
        [](std::string_view text) {
          for (const std::string_view magic : {"\x1f\x8b", "\x28\xb5\x2f\xfd", "7z\xbc\xaf", "BZh",
                                               "\xfd"
                                               "7zXZ"}) {
            if (text.starts_with(magic)) return true;
          }
          return text.size() > 262 && text.substr(257, 5) == "ustar";
        },
    .advice = "unpack it first"};

extern const FileFormat hdf5{
    .name = "HDF5 or Keras",
    .begins = [](std::string_view text) { return text.starts_with("\x89HDF\r\n\x1a\n"); },
    .named =
        [](const Path& path) {
          return has_extension(path, {".h5", ".hdf5", ".keras"});
        },
    .converter = "keras"};

extern const FileFormat unknown{.name = "not known"};

extern const FileFormat onnx;

}  // namespace formats

namespace {

/// In the order in which a file is compared with them. The length before a safetensors header is below 2^27:
/// its lower bytes may equal another format's magic number, but its upper bytes are zero, as in no other
/// format.
const FileFormat* const all_formats[] = {&formats::safetensors,
                                         &formats::gguf,
                                         &tflite,
                                         &formats::compressed,
                                         &lfs_pointer,
                                         &formats::zip,
                                         &formats::npy,
                                         &formats::onnx,
                                         &html,
                                         &formats::shard_index,
                                         &saved_model,
                                         &tensorflow_index,
                                         &tensorflow_data,
                                         &msgpack,
                                         &core_ml,
                                         &tensorrt,
                                         &formats::idx,
                                         &formats::hdf5,
                                         &formats::pickle};

}  // namespace

extern const std::string_view formats_read = "safetensors, GGUF, ONNX, PyTorch or NumPy .npz";

const FileFormat& file_format(const Path& path, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 4096));
  const FileFormat* named = &formats::unknown;
  const FileFormat* held = &formats::unknown;
  for (const FileFormat* format : all_formats) {
    if (named == &formats::unknown && format->named != nullptr && format->named(path)) named = format;
    if (held == &formats::unknown && format->begins != nullptr && format->begins(text)) held = format;
  }
  if (held == &formats::compressed && named == &formats::idx) return *named;  // read compressed
  // Any text may begin with a brace; only the name identifies an index of shards.
  if (held == &formats::shard_index && named != &formats::shard_index) return *named;
  return held == &formats::unknown ? *named : *held;
}

bool holds_weights(const Path& path) {
  const FileFormat& format = file_format(path, {});
  return format.open != nullptr || format.stands_alone || !advice(format).empty();
}

bool has_extension(const Path& path, std::initializer_list<std::string_view> extensions) {
  const std::string extension = path.extension().string();
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

bool is_keras_archive(std::span<const ZipMember> members) {
  return std::any_of(members.begin(), members.end(),
                     [](const ZipMember& member) { return member.name == "model.weights.h5"; });
}

std::string advice(const FileFormat& format) {
  if (format.converter.empty()) return std::string(format.advice);
  return "the Python package, normscope[" + std::string(format.converter) +
         "], converts it with normscope.convert";
}

}  // namespace normscope::files
