#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace normscope::cli {

/// The group of the options that every subcommand has; help shows it last.
inline constexpr const char* shared_options = "Shared options";
/// Columns of help texts.
inline constexpr std::size_t help_columns = 80;

/// The text in lines of at most `columns`, except for words that are longer; lines after the first begin with
/// `indent` spaces. Lines that begin with two spaces, such as examples and tables, stay as they are.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t indent = 0,
                                  std::size_t columns = help_columns);

/// The type of an option, and the values of one that has a fixed set: CLI11 has both as "TEXT:{layer,rms}".
[[nodiscard]] std::string type_of(const CLI::Option& option);
[[nodiscard]] std::vector<std::string> values_of(const CLI::Option& option);
/// The text with the values that are allowed, before its default.
[[nodiscard]] std::string with_values(std::string text, const std::vector<std::string>& values);

/// Help of the program and of its subcommands: a program's subcommands by their groups, a subcommand's own
/// options before the shared ones.
void format_help(CLI::App& root);

}  // namespace normscope::cli
