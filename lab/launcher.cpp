#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "list_command.hpp"

/// normscope-lab: prints the list of experiments, and starts another program for everything else:
/// normscope-lab-torch for runs of experiments whose networks libtorch computes, else normscope-lab-run,
/// since loading libtorch takes nearly a second.
namespace normscope::lab {

/// What `normscope-lab-run list` writes, recorded when the program is built.
extern const char* const list_text;
extern const char* const list_json;
/// Names of the experiments whose networks libtorch computes; the last is null.
extern const char* const torch_experiments[];

namespace {

int print_list(int argc, char** argv) {
  cli::Session session;
  CLI::App root(description, "normscope-lab");
  add_list(root, session, [&session] {
    session.write_json(list_json);
    session.say(list_text);
    return cli::ok;
  });
  return cli::parse_and_run(root, session, argc, argv);
}

bool needs_torch(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "run") return false;
  for (const char* const* name = torch_experiments; *name != nullptr; ++name) {
    if (std::find(argv + 2, argv + argc, std::string_view(*name)) != argv + argc) return true;
  }
  return false;
}

/// Replaces the process. Returns only by throwing.
int start(int argc, char** argv) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const char* name = needs_torch(argc, argv) ? "normscope-lab-torch" : "normscope-lab-run";
  const std::string program = (self.parent_path() / name).string();
  execv(program.c_str(), argv);
  throw Error(ErrorCode::Io, fmt::format("{}: {}", cli::printable(program), std::strerror(errno)));
}

}  // namespace
}  // namespace normscope::lab

int main(int argc, char** argv) {
  const bool lists = argc > 1 && std::string_view(argv[1]) == "list";
  return normscope::cli::guarded("normscope-lab", [&] {
    return lists ? normscope::lab::print_list(argc, argv) : normscope::lab::start(argc, argv);
  });
}
