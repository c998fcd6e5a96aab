#include "parser_facts.hpp"

#include <algorithm>
#include <string_view>

#include "command.hpp"

namespace normscope::cli {
namespace {

/// The type without what CLI11 appends for validators: "TEXT" for "TEXT:{layer,rms}".
std::string without_validators(const std::string& type) {
  return type.substr(0, std::min(type.find(":{"), type.find(":POSITIVE")));
}

/// The alternatives of "TEXT:{layer,rms}", the type of an option with a fixed set of values.
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

/// Whether the type of an option or the name of a positional argument stands for a file or a folder.
bool is_file(const std::string& type) {
  constexpr std::string_view files[] = {"FILE",   "FOLDER", "ARRAY",  "MODEL",  "NET", "OUT",
                                        "LABELS", "RESULT", "INPUTS", "OLD",    "NEW", "KEYS",
                                        "IN",     "WHAT",   "Y.npy",  "ELLIPSE"};
  return std::any_of(std::begin(files), std::end(files),
                     [&](std::string_view file) { return type.find(file) != std::string::npos; });
}

OptionFacts option_facts(const CLI::Option& option) {
  OptionFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  const std::string type = option.get_type_name();
  facts.text = option.get_description();
  facts.required = option.get_required();
  if (option.get_items_expected_max() == 0) return facts;
  facts.choices = choices_in(type);
  facts.value = facts.positional() ? option.get_single_name() : without_validators(type);
  facts.kind = !facts.choices.empty()                       ? Value::choice
               : facts.value == "SUBCOMMAND"                ? Value::command
               : facts.positional() || is_file(facts.value) ? Value::file
                                                            : Value::text;
  facts.repeats = option.get_items_expected_max() > 1;
  return facts;
}

/// `prefix` stands before the names of its subcommands.
CommandFacts command_facts(const CLI::App& command, const std::string& name, const std::string& prefix) {
  CommandFacts facts{.name = name, .text = command.get_description(), .footer = command.get_footer()};
  for (const CLI::Option* option : command.get_options()) facts.options.push_back(option_facts(*option));
  for (const CLI::App* below : command.get_subcommands({})) {
    if (below->get_group().empty()) continue;
    const std::string full = prefix + below->get_name();
    facts.commands.push_back(command_facts(*below, full, full + " "));
  }
  return facts;
}

}  // namespace

CommandFacts facts_of(const CLI::App& root) { return command_facts(root, root.get_name(), ""); }

std::vector<CommandFacts> all_commands(const std::vector<CommandFacts>& commands) {
  std::vector<CommandFacts> all;
  for (const CommandFacts& command : commands) {
    all.push_back(command);
    const std::vector<CommandFacts> below = all_commands(command.commands);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

}  // namespace normscope::cli
