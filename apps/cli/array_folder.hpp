#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace normscope::cli {

/// The files of arrays with these names in `folder`; none if the folder's name is empty.
[[nodiscard]] std::vector<std::string> array_files(const std::string& folder,
                                                   std::initializer_list<const char*> names);

/// A folder to which .npy files are written.
///
/// Errors    Io
class ArrayFolder {
 public:
  explicit ArrayFolder(const std::string& folder);

  /// Writes NAME.npy: float64, rows of `width`, or a single row if it is 0.
  void write(const char* name, std::vector<double> values, std::size_t width = 0) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace normscope::cli
