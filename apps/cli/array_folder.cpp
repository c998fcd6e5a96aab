#include "array_folder.hpp"

#include <normscope/files/array.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

std::filesystem::path file_of(const std::filesystem::path& folder, const char* name) {
  return folder / (std::string(name) + ".npy");
}

}  // namespace

std::vector<std::string> array_files(const std::string& folder, std::initializer_list<const char*> names) {
  std::vector<std::string> result;
  if (folder.empty()) return result;
  for (const char* name : names) result.push_back(file_of(folder, name).string());
  return result;
}

ArrayFolder::ArrayFolder(const std::string& folder) : folder_(folder) { make_folder(folder); }

void ArrayFolder::write(const char* name, std::vector<double> values, std::size_t width) const {
  files::Array array{.shape = {values.size()}, .dtype = Dtype::F64, .values = {}};
  if (width > 0) array.shape = {values.size() / width, width};
  array.values = std::move(values);
  files::write_npy(file_of(folder_, name), array);
}

}  // namespace normscope::cli
