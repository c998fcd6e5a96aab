#include "help.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <vector>

#include <fmt/format.h>

namespace normscope::cli {
namespace {

/// Column of the texts of arguments and options.
constexpr std::size_t text_column = 24;
/// Columns of the names of groups and of subcommands.
constexpr std::size_t group_columns = 10;
constexpr std::size_t name_columns = 12;

/// Characters, of which UTF-8 may take several bytes.
std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0U) == 0x80U ? 0 : 1;
  return width;
}

std::string padded(const std::string& text, std::size_t columns) {
  const std::size_t width = width_of(text);
  return width < columns ? text + std::string(columns - width, ' ') : text;
}

std::string row(const std::string& left, std::size_t column, const std::string& text) {
  std::string line = padded(left, column);
  if (width_of(left) + 2 > column) line = left + "\n" + std::string(column, ' ');
  return line + wrapped(text, column) + "\n";
}

/// The text, with the values that are allowed.
std::string text_of(const CLI::Option& option) {
  return with_values(option.get_description(), values_of(option)) +
         (option.get_required() && !option.get_positional() ? " (required)" : "");
}

std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) {
    return option.get_name(true, false) + (option.get_items_expected_max() > 1 ? " ..." : "");
  }
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = fmt::format("{}", fmt::join(names, ","));
  if (option.get_items_expected_max() > 0) text += " " + type_of(option);
  return text;
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode /*mode*/) const override {
    std::string text = wrapped(app->get_description()) + "\n\n" + usage(*app, name);
    const auto options = [&](const char* heading, const std::function<bool(const CLI::Option*)>& chosen) {
      std::string rows;
      for (const CLI::Option* option : app->get_options(chosen)) {
        rows += row("  " + names_of(*option), text_column, text_of(*option));
      }
      if (!rows.empty()) text += fmt::format("\n{}:\n{}", heading, rows);
    };
    const CLI::Option* const help = app->get_help_ptr();
    const auto shared = [&](const CLI::Option* option) {
      return option->get_group() == shared_options && option != help;
    };
    options("Arguments", [](const CLI::Option* option) { return option->get_positional(); });
    if (app->get_parent() != nullptr) {
      options("Options", [&](const CLI::Option* option) {
        return option->nonpositional() && !shared(option) && option != help;
      });
      options(shared_options, shared);
      if (help != nullptr) {
        if (app->get_options(shared).empty()) text += "\n";
        text += row("  " + names_of(*help), text_column, "Print this help");
      }
    }
    text += subcommands(*app);
    if (!app->get_footer().empty()) text += "\n" + wrapped(app->get_footer()) + "\n";
    return text;
  }

 private:
  static std::string usage(const CLI::App& app, const std::string& name) {
    std::string line = "Usage: " + name;
    for (const CLI::Option* option :
         app.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
      const std::string argument =
          option->get_name(true, false) + (option->get_items_expected_max() > 1 ? "..." : "");
      line += option->get_required() ? " " + argument : " [" + argument + "]";
    }
    for (const CLI::Option* option :
         app.get_options([](const CLI::Option* o) { return o->nonpositional(); })) {
      if (option->get_required()) line += " " + option->get_name() + " " + type_of(*option);
    }
    line += app.get_subcommands({}).empty() ? " [OPTIONS]" : " SUBCOMMAND [ARGUMENTS]";
    return wrapped(line, 7) + "\n";
  }

  /// Groups with names of their own stand in a column before their subcommands.
  static std::string subcommands(const CLI::App& app) {
    std::string text;
    std::string group;
    for (const CLI::App* command : app.get_subcommands({})) {
      if (command->get_group().empty()) continue;
      const bool has_group = command->get_group() != "Subcommands";
      if (text.empty()) text = has_group ? "\n" : "\nSubcommands:\n";
      std::string left = has_group ? std::string(group_columns, ' ') : "  ";
      if (has_group && command->get_group() != group) left = padded(command->get_group(), group_columns);
      group = command->get_group();
      text += row(left + command->get_name(), (has_group ? group_columns : 2) + name_columns,
                  command->get_description());
    }
    return text;
  }
};

void set_formatter(CLI::App& app, const std::shared_ptr<HelpFormatter>& formatter) {
  app.formatter(formatter);
  if (CLI::Option* const help = app.get_help_ptr()) help->group(shared_options);
  for (CLI::App* command : app.get_subcommands({})) set_formatter(*command, formatter);
}

}  // namespace

std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, std::min(type.find(":{"), type.find(":POSITIVE")));
}

std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

std::string with_values(std::string text, const std::vector<std::string>& values) {
  if (values.empty()) return text;
  text.insert(std::min(text.find(" (default"), text.size()), fmt::format(": {}", fmt::join(values, ", ")));
  return text;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!result.empty()) result += '\n';
    if (line.starts_with("  ")) {
      result += line;
      continue;
    }
    std::size_t used = indent;
    bool begins = true;  // a line, at which no space is needed
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const std::size_t width = width_of(word);
      if (!begins && used + 1 + width > columns) {
        result += "\n" + std::string(indent, ' ');
        used = indent;
        begins = true;
      }
      result += begins ? word : " " + word;
      used += width + (begins ? 0 : 1);
      begins = false;
    }
  }
  return result;
}

void format_help(CLI::App& root) { set_formatter(root, std::make_shared<HelpFormatter>()); }

}  // namespace normscope::cli
