#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace normscope::rewrite {

/// A folder that appears under its name complete or not at all: files go to a temporary folder beside it,
/// which `commit` renames. Without `commit`, the destructor removes the temporary folder. Errors    Io;
/// Argument if the name is that of a file, or of a folder that is not empty
class OutputFolder {
 public:
  explicit OutputFolder(const std::filesystem::path& path);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

  /// Where to write the files.
  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

/// Copies the files of `from` that hold no weights and are not in `written` to `to`; returns the names of the
/// others. Errors    Io
std::vector<std::string> copy_small_files(const std::filesystem::path& from, const std::filesystem::path& to,
                                          const std::vector<std::string>& written);

}  // namespace normscope::rewrite
