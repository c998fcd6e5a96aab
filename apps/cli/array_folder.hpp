#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace normscope::cli {

/// Files that arrays of these names in `folder` are; none for an empty folder's name.
[[nodiscard]] std::vector<std::string> array_files(const std::string& folder,
                                                   std::initializer_list<const char*> names);

/// A folder that .npy files are written into. Errors    Io
class ArrayFolder {
 public:
  explicit ArrayFolder(const std::string& folder);

  /// Writes NAME.npy: float64, rows of `width`, or one row where it is 0.
  void write(const char* name, std::vector<double> values, std::size_t width = 0) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace normscope::cli
