#pragma once

#include <functional>
#include <utility>

#include "session.hpp"

namespace normscope::lab {

inline constexpr const char* description =
    "Reproduce the papers' experiments and compare our numbers with theirs.";

/// Adds the subcommand `list`, which calls `run`.
inline CLI::App* add_list(CLI::App& root, cli::Session& session, std::function<int()> run) {
  CLI::App* command = cli::add_command(root, session, "list", "List the experiments", std::move(run));
  command->remove_option(command->get_option("--threads"));
  cli::add_examples(*command, {"normscope lab list"});
  return command;
}

}  // namespace normscope::lab
