#include "manual.hpp"

#include <string_view>

#include <fmt/format.h>

#include <normscope/core/version.hpp>

namespace normscope::cli {
namespace {

/// Text in which nothing is a request or an escape of roff.
std::string plain(std::string_view text) {
  std::string result;
  bool starts = true;
  for (const char c : text) {
    if (starts && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";  // an ASCII minus, that can be copied to a shell
    } else {
      result += c;
    }
    starts = c == '\n';
  }
  return result;
}

std::string option_entry(const OptionFacts& option) {
  std::vector<std::string> forms;
  const std::string value = option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", plain(option.value));
  for (const std::string& name : option.names)
    forms.push_back(fmt::format("\\fB{}\\fR{}", plain(name), value));
  if (option.positional()) forms.push_back(value.substr(1));
  std::string text = option.text;
  if (!option.choices.empty()) text += fmt::format(": {}", fmt::join(option.choices, ", "));
  if (option.required && !option.positional()) text += " (required)";
  return fmt::format(".TP\n{}\n{}\n", fmt::join(forms, ", "), plain(text));
}

std::string synopsis(const CommandFacts& command) {
  std::string line = fmt::format("\\fBnormscope {}\\fR", plain(command.name));
  for (const OptionFacts& option : command.options) {
    const std::string value = fmt::format("\\fI{}\\fR", plain(option.value));
    if (option.positional()) {
      const std::string argument = value + (option.repeats ? "..." : "");
      line += option.required ? " " + argument : " [" + argument + "]";
    } else if (option.required) {
      line += fmt::format(" \\fB{}\\fR {}", plain(option.names.front()), value);
    }
  }
  if (!command.commands.empty()) return line + " \\fISUBCOMMAND\\fR [\\fIarguments\\fR]";
  return line + " [\\fIoptions\\fR]";
}

/// Lines that roff does not fill, as for examples.
std::string literal(std::string_view text) { return fmt::format(".nf\n{}\n.fi\n", plain(text)); }

}  // namespace

std::string manual_page(const CommandFacts& root) {
  std::string page = fmt::format(".TH NORMSCOPE 1 \"\" \"normscope {}\" \"User Commands\"\n", version);
  page += ".SH NAME\nnormscope \\- see, measure and rewrite what normalization layers do\n";
  page += ".SH SYNOPSIS\n\\fBnormscope\\fR \\fISUBCOMMAND\\fR [\\fIarguments\\fR]\n";
  page += fmt::format(".SH DESCRIPTION\n{}", literal(root.footer));
  page += ".SH SUBCOMMANDS\n";
  for (const CommandFacts& command : all_commands(root.commands)) {
    page +=
        fmt::format(".SS {}\n{}.\n.PP\n{}\n", plain(command.name), plain(command.text), synopsis(command));
    for (const OptionFacts& option : command.options) page += option_entry(option);
    if (!command.footer.empty()) page += ".PP\n" + literal(command.footer);
  }
  return page;
}

}  // namespace normscope::cli
