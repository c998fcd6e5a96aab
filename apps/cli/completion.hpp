#pragma once

#include <string>

#include "parser_facts.hpp"

/// Completion scripts for `normscope`, made from the parser: subcommands, their options, and the values of
/// options that have a fixed set. Other values are completed as files, or not at all where they are numbers
/// or names.
namespace normscope::cli {

[[nodiscard]] std::string bash_completion(const CommandFacts& root);
[[nodiscard]] std::string zsh_completion(const CommandFacts& root);
[[nodiscard]] std::string fish_completion(const CommandFacts& root);

}  // namespace normscope::cli
