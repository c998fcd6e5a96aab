#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "list_command.hpp"

/// normscope-lab: prints the list of experiments, and starts normscope-lab-run for everything else. Loading
/// libtorch takes half a second, too long for printing a list.
namespace normscope::lab {

/// What `normscope-lab-run list` writes, recorded when the program is built.
extern const char* const list_text;
extern const char* const list_json;

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

/// Replaces the process. Returns only by throwing.
int start(char** argv) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string program = (self.parent_path() / "normscope-lab-run").string();
  execv(program.c_str(), argv);
  throw Error(ErrorCode::Io, fmt::format("{}: {}", cli::printable(program), std::strerror(errno)));
}

}  // namespace
}  // namespace normscope::lab

int main(int argc, char** argv) {
  const bool lists = argc > 1 && std::string_view(argv[1]) == "list";
  return normscope::cli::guarded("normscope-lab", [&] {
    return lists ? normscope::lab::print_list(argc, argv) : normscope::lab::start(argv);
  });
}
