#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>

#include <normscope/results/documents.hpp>

// Writes the schema of every kind of document into a folder, and the table of them into its README.md:
// `write_schemas FOLDER`. With --check it writes nothing and fails where a file would change.
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string with_table(const std::string& page, const std::vector<normscope::results::Schema>& schemas) {
  const std::string head = "|---|---|---|\n";
  const std::size_t begin = page.find(head);
  if (begin == std::string::npos) return page;
  std::size_t end = begin + head.size();
  while (page.compare(end, 1, "|") == 0) end = page.find('\n', end) + 1;
  std::string rows;
  for (const auto& schema : schemas) {
    const std::string file = schema.name + ".schema.json";
    rows += "| " + schema.id + " | " + schema.written_by + " | [" + file + "](" + file + ") |\n";
  }
  return page.substr(0, begin) + head + rows + page.substr(end);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::filesystem::path folder = argv[1];
  const bool is_check = argc > 2 && std::string(argv[2]) == "--check";
  int changes = 0;
  const auto update = [&](const std::string& name, const std::string& text) {
    if (read(folder / name) == text) return;
    ++changes;
    std::cout << (folder / name).string() << (is_check ? ": is not what the fields say" : ": written")
              << '\n';
    if (!is_check) std::ofstream(folder / name, std::ios::binary) << text;
  };
  const auto schemas = normscope::results::schemas();
  std::set<std::string> names;
  for (const auto& schema : schemas) {
    names.insert(schema.name + ".schema.json");
    update(schema.name + ".schema.json", schema.text);
  }
  update("README.md", with_table(read(folder / "README.md"), schemas));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".json" || names.count(name) > 0) continue;
    ++changes;
    std::cout << entry.path().string() << ": is of no kind of document\n";
  }
  return is_check && changes > 0 ? 1 : 0;
}
