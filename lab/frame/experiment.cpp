#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "experiment.hpp"

namespace normscope::lab {

Finding weakest(std::string ours, const std::vector<std::vector<double>>& sets) {
  NORMSCOPE_ASSERT(!sets.empty());
  const std::vector<double>* least = &sets.front();
  for (const std::vector<double>& set : sets) {
    if (set.empty()) return {std::move(ours)};
    if (mean(set) < mean(*least)) least = &set;
  }
  return {std::move(ours), *least, sets.size()};
}

std::filesystem::path data_file(std::string_view name) {
  const char* folder = std::getenv("NORMSCOPE_DATA");
  if (folder == nullptr || *folder == '\0') {
    throw Error(ErrorCode::Io,
                fmt::format("lab: {} is needed; set NORMSCOPE_DATA to the folder that contains it", name));
  }
  std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code missing;
  if (!std::filesystem::exists(path, missing)) {
    throw Error(ErrorCode::Io,
                fmt::format("{}: does not exist, expected it in the folder NORMSCOPE_DATA", path.string()));
  }
  return path;
}

}  // namespace normscope::lab
