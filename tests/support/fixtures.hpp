#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/files/source.hpp>
#include <normscope/files/zip.hpp>

#include "support/scratch.hpp"

/// The cases of the model oracle (scripts/model_oracle/README.md), one zip each.
namespace normscope::test {

/// tests/models/fixtures, or another folder of such cases (scripts/model_oracle/variants.py).
inline std::filesystem::path fixture_folder() {
  const char* const stated = std::getenv("NORMSCOPE_FIXTURES");
  return stated != nullptr ? stated : std::string(NORMSCOPE_SOURCE_DIR) + "/tests/models/fixtures";
}

/// Calls `use(archive, member)` for each file of NAME.zip.
template <class Use>
void for_each_fixture_file(const std::string& name, Use use) {
  const std::string path = (fixture_folder() / (name + ".zip")).string();
  const std::unique_ptr<files::Source> source = files::map_file(path);
  const files::StoredBytes archive(*source);
  std::vector<std::byte> directory;
  for (const files::ZipMember& member : files::read_zip_directory(archive, directory, path)) {
    use(archive, member);
  }
}

/// The cases that have a file of this name, in alphabetic order.
inline std::vector<std::string> fixtures_with(std::string_view file) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture_folder())) {
    const std::string name = entry.path().stem().string();
    for_each_fixture_file(name, [&](const files::StoredBytes&, const files::ZipMember& member) {
      if (member.name == file) names.push_back(name);
    });
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A folder with the files of a case, for reading until the program ends.
inline std::filesystem::path fixture(const std::string& name) {
  static const Scratch scratch;
  const std::filesystem::path folder = scratch / name;
  if (!std::filesystem::create_directory(folder)) return folder;
  for_each_fixture_file(name, [&](const files::StoredBytes& archive, const files::ZipMember& member) {
    std::vector<std::byte> content(member.size);
    files::ZipStream stream(archive, member, name);
    stream.read(content);
    stream.finish();
    std::ofstream file(folder / std::string(member.name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    if (!file) throw std::runtime_error("cannot unpack " + name);
  });
  return folder;
}

}  // namespace normscope::test
