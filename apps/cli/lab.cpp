#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

constexpr std::pair<const char*, const char*> subcommands[] = {
    {"list", "List the experiments"},
    {"run", "Run an experiment; interrupted runs continue"},
    {"plan", "Show what the runs of an experiment will take: runs, core hours, memory"},
    {"show", "Show the results of an experiment's runs"},
    {"export", "Write every number of an experiment's runs as a table"},
    {"import", "Add exported rules and runs to a store"}};

/// Replaces the process by the program that links torch and MPI. If that program is not built, prints `help`
/// where the arguments ask for it, and throws otherwise.
int hand_over(const Session& session, const std::string& help, const std::vector<std::string>& arguments) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string program = (self.parent_path() / "normscope-lab").string();
  if (!std::filesystem::exists(program)) {
    if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end()) {
      session.say(help +
                  "\nThe lab is not built; scripts/lab builds it, with the options of each subcommand.");
      return ok;
    }
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("lab: {} does not exist; rebuild with -DNORMSCOPE_BUILD_LAB=ON (scripts/lab does so)",
                    printable(program)));
  }
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(program.c_str(), words.data());
  throw Error(ErrorCode::Io, fmt::format("lab: {}: {}", printable(program), std::strerror(errno)));
}

}  // namespace

void add_lab(CLI::App& root, Session& session, const std::string& group) {
  CLI::App* lab = root.add_subcommand("lab", "Reproduce the papers' experiments");
  lab->group(group);
  // All following arguments, including --help, belong to the other program; its subcommands are named for
  // completion.
  const auto hands_over = [](CLI::App* command) {
    command->set_help_flag();
    command->prefix_command();
  };
  hands_over(lab);
  for (const auto& [name, text] : subcommands) {
    CLI::App* below = lab->add_subcommand(name, text);
    below->group("Subcommands");
    hands_over(below);
  }
  lab->callback([&session, lab] {
    session.run = [&session, lab] {
      std::vector<std::string> arguments;
      for (const CLI::App* chosen : lab->get_subcommands()) {
        arguments.push_back(chosen->get_name());
        const std::vector<std::string> rest = chosen->remaining();
        arguments.insert(arguments.end(), rest.begin(), rest.end());
      }
      const std::vector<std::string> rest = lab->remaining();
      arguments.insert(arguments.end(), rest.begin(), rest.end());
      return hand_over(session, lab->help("normscope"), arguments);
    };
  });
}

}  // namespace normscope::cli
