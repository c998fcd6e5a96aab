#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <normscope/core/file.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

#include "matrix.hpp"
#include "work_folder.hpp"

/// Common parts of writing a rewrite and undoing one.
namespace normscope::rewrite {

/// The files of the input, and the path of the output.
///
/// Errors    Argument if `output` is the input or in it
struct Places {
  Places(const files::Checkpoint& checkpoint, const std::filesystem::path& output);

  bool is_folder;  ///< a folder, an index of shards or a model in the hub's cache was named, not its file
  std::filesystem::path from;   ///< the folder or the file
  std::filesystem::path index;  ///< name of the index of shards in the folder, if there is one
  std::filesystem::path output;

  /// The name that a file of the input has in the output.
  [[nodiscard]] std::filesystem::path name_of(const std::filesystem::path& file) const;
};

/// Identifies a run by the files of the input, their sizes and times, and `options`.
[[nodiscard]] Digest run_of(const files::Checkpoint& checkpoint, const std::string& options);

/// The files of the input, noted so that a change while they are read is an error before the output appears.
[[nodiscard]] UnchangedFiles files_of(const files::Checkpoint& checkpoint);

/// Writes every file that holds tensors and was not finished before.
struct ShardWriter {
  std::function<std::vector<files::TensorHeader>(const std::filesystem::path& file)> headers;
  std::function<void(const files::TensorHeader& tensor, const Sink& sink, Written& written)> write;
  std::map<std::string, std::string, std::less<>> metadata{};
  std::size_t total = 0;  ///< bytes, for `progress`

  /// Returns the result for every file; sets `names` and `taken_over`.
  [[nodiscard]] Written write_all(const files::Checkpoint& checkpoint, const Places& places, WorkFolder& work,
                                  const Progress& progress);
  std::vector<std::filesystem::path> names{};
  std::size_t taken_over = 0;
};

/// Errors    Io
void write_text(const std::filesystem::path& path, const std::string& text);
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

}  // namespace normscope::rewrite
