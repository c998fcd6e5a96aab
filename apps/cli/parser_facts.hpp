#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

/// What the parser knows of its subcommands and options, for what is made from it: completions and the manual
/// page.
namespace normscope::cli {

/// What may stand for the value of an option or for a positional argument.
enum class Value { none, choice, command, file, text };

struct OptionFacts {
  std::vector<std::string> names{};  ///< "-o", "--output"; empty for a positional argument
  std::string value{};               ///< "FILE", or the name of a positional argument
  std::vector<std::string> choices{};
  std::string text{};
  Value kind = Value::none;
  bool required = false;
  bool repeats = false;  ///< takes more than one value

  [[nodiscard]] bool positional() const { return names.empty(); }
};

struct CommandFacts {
  std::string name{};
  std::string text{};
  std::string footer{};
  std::vector<OptionFacts> options{};
};

/// The program itself.
[[nodiscard]] CommandFacts facts_of(const CLI::App& command);
/// Its subcommands, hidden ones aside, in the order of the help.
[[nodiscard]] std::vector<CommandFacts> subcommands_of(const CLI::App& root);

}  // namespace normscope::cli
