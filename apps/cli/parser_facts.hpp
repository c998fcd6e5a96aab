#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

/// What the parser knows of its subcommands and options, from which completions, the manual page and
/// the reference on the site are made.
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
  std::string name{};  ///< "geometry", or "signature verify" of a subcommand of a subcommand
  std::string text{};
  std::string group{};  ///< the heading under which help lists it
  std::string footer{};
  std::vector<OptionFacts> options{};
  std::vector<CommandFacts> commands{};  ///< its own subcommands

  /// The last word of the name.
  [[nodiscard]] std::string word() const { return name.substr(name.rfind(' ') + 1); }
};

/// The program with its subcommands, hidden ones aside, in the order of the help.
[[nodiscard]] CommandFacts facts_of(const CLI::App& root);
/// All commands, each before its subcommands.
[[nodiscard]] std::vector<CommandFacts> all_commands(const std::vector<CommandFacts>& commands);

/// Completion scripts: subcommands, their options, and the values of options that have a fixed set. Other
/// values are completed as files, or not at all where they are numbers or names.
[[nodiscard]] std::string bash_completion(const CommandFacts& root);
[[nodiscard]] std::string zsh_completion(const CommandFacts& root);
[[nodiscard]] std::string fish_completion(const CommandFacts& root);
/// The manual page normscope(1), as roff.
[[nodiscard]] std::string manual_page(const CommandFacts& root);
/// The reference of the commands as Markdown: a page that lists them, then one for each, which begins with
/// "# normscope NAME".
[[nodiscard]] std::string markdown_reference(const CommandFacts& root);

}  // namespace normscope::cli
