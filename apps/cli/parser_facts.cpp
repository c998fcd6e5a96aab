#include "parser_facts.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include <normscope/core/version.hpp>

#include "command.hpp"
#include "help.hpp"

namespace normscope::cli {
namespace {

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
  facts.text = option.get_description();
  facts.required = option.get_required();
  if (option.get_items_expected_max() == 0) return facts;
  facts.choices = values_of(option);
  facts.value = facts.positional() ? option.get_single_name() : type_of(option);
  facts.kind = !facts.choices.empty()                       ? Value::choice
               : facts.value == "SUBCOMMAND"                ? Value::command
               : facts.positional() || is_file(facts.value) ? Value::file
                                                            : Value::text;
  facts.repeats = option.get_items_expected_max() > 1;
  return facts;
}

/// `prefix` stands before the names of its subcommands.
CommandFacts command_facts(const CLI::App& command, const std::string& name, const std::string& prefix) {
  CommandFacts facts{.name = name,
                     .text = command.get_description(),
                     .group = command.get_group(),
                     .footer = command.get_footer()};
  for (const CLI::Option* option : command.get_options()) facts.options.push_back(option_facts(*option));
  // The parser has --help first; readers look for it last.
  std::stable_partition(facts.options.begin(), facts.options.end(), [](const OptionFacts& option) {
    return option.names.empty() || option.names.back() != "--help";
  });
  for (const CLI::App* below : command.get_subcommands({})) {
    if (below->get_group().empty()) continue;
    const std::string full = prefix + below->get_name();
    facts.commands.push_back(command_facts(*below, full, full + " "));
  }
  return facts;
}

// The manual page

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

/// The meaning of an option, with the values that it takes.
std::string meaning(const OptionFacts& option) {
  return with_values(option.text, option.choices) +
         (option.required && !option.positional() ? " (required)" : "");
}

std::string option_entry(const OptionFacts& option) {
  std::vector<std::string> forms;
  const std::string value = option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", plain(option.value));
  for (const std::string& name : option.names)
    forms.push_back(fmt::format("\\fB{}\\fR{}", plain(name), value));
  if (option.positional()) forms.push_back(value.substr(1));
  return fmt::format(".TP\n{}\n{}\n", fmt::join(forms, ", "), plain(meaning(option)));
}

/// How words that are typed as they are, and those that stand for something, are set.
struct Setting {
  std::string (*word)(std::string_view);
  std::string (*value)(std::string_view);
};

std::string synopsis(const CommandFacts& command, const Setting& set) {
  std::string line = set.word("normscope " + command.name);
  for (const OptionFacts& option : command.options) {
    const std::string value = set.value(option.value);
    if (option.positional()) {
      const std::string argument = value + (option.repeats ? "..." : "");
      line += option.required ? " " + argument : " [" + argument + "]";
    } else if (option.required) {
      line += fmt::format(" {} {}", set.word(option.names.front()), value);
    }
  }
  if (!command.commands.empty())
    return line + fmt::format(" {} [{}]", set.value("SUBCOMMAND"), set.value("arguments"));
  return line + fmt::format(" [{}]", set.value("options"));
}

/// Text in which nothing is an emphasis, a link or a tag of Markdown.
std::string plain_markdown(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
      continue;
    }
    if (std::string_view("\\`*_[]|").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// A page's file among the others.
std::string page_of(const CommandFacts& command) {
  std::string name = command.name;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name + ".md";
}

/// Columns of such lines, which man indents.
constexpr std::size_t literal_columns = 72;

/// Lines that roff does not fill, as for examples.
std::string literal(std::string_view text) { return fmt::format(".nf\n{}\n.fi\n", plain(text)); }

struct TextOptions {
  std::string shell;
  std::string format;
  std::string output;
};

/// Prints the text unless it was written to a file.
int print_text(const Session& session, Outputs& outputs, const std::string& output, std::string text) {
  outputs.write_text(output, [&] { return text; });
  outputs.commit([] { return std::string(); });
  if (!output.empty()) return ok;
  text.pop_back();  // `say` ends the line
  session.say(text);
  return ok;
}

/// Shared options that commands which print texts do not have.
const std::vector<std::string> not_shared{"--json", "--threads", "--quiet"};

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

std::string manual_page(const CommandFacts& root) {
  std::string page = fmt::format(".TH NORMSCOPE 1 \"\" \"normscope {}\" \"User Commands\"\n", version);
  page += ".SH NAME\nnormscope \\- see, measure and rewrite what normalization layers do\n";
  page += ".SH SYNOPSIS\n\\fBnormscope\\fR \\fISUBCOMMAND\\fR [\\fIarguments\\fR]\n";
  page += fmt::format(".SH DESCRIPTION\n{}", literal(wrapped(root.footer, 0, literal_columns)));
  page += ".SH SUBCOMMANDS\n";
  const Setting roff{[](std::string_view word) { return fmt::format("\\fB{}\\fR", plain(word)); },
                     [](std::string_view value) { return fmt::format("\\fI{}\\fR", plain(value)); }};
  for (const CommandFacts& command : all_commands(root.commands)) {
    page += fmt::format(".SS {}\n{}.\n.PP\n{}\n", plain(command.name), plain(command.text),
                        synopsis(command, roff));
    for (const OptionFacts& option : command.options) page += option_entry(option);
    if (!command.footer.empty()) page += ".PP\n" + literal(wrapped(command.footer, 0, literal_columns));
  }
  return page;
}

std::string markdown_reference(const CommandFacts& root) {
  std::string pages = fmt::format("# Commands\n\n{}\n", plain_markdown(root.text));
  std::string group;
  for (const CommandFacts& command : root.commands) {
    if (command.group != group) {
      group = command.group;
      pages += fmt::format("\n## {}\n\n| command | does |\n|---|---|\n", group);
    }
    for (const CommandFacts& row : command.commands.empty() ? std::vector{command} : command.commands) {
      pages += fmt::format("| [`{}`]({}) | {} |\n", row.name, page_of(row), plain_markdown(row.text));
    }
  }
  pages += fmt::format("\n## All commands\n\n```text\n{}\n```\n", wrapped(root.footer));
  const Setting as_they_are{[](std::string_view word) { return std::string(word); },
                            [](std::string_view value) { return std::string(value); }};
  for (const CommandFacts& command : all_commands(root.commands)) {
    if (!command.commands.empty()) continue;
    pages += fmt::format("# normscope {}\n\n{}.\n\n```text\n{}\n```\n", command.name,
                         plain_markdown(command.text), synopsis(command, as_they_are));
    for (const OptionFacts& option : command.options) {
      pages += fmt::format("\n`{}{}{}`\n:   {}\n", fmt::join(option.names, ", "),
                           option.positional() || option.value.empty() ? "" : " ", option.value,
                           plain_markdown(meaning(option)));
    }
    if (!command.footer.empty()) pages += fmt::format("\n```text\n{}\n```\n", wrapped(command.footer));
  }
  return pages;
}

Command completion_command(const CLI::App& root) {
  const auto options = std::make_shared<TextOptions>();
  return {.name = "completion",
          .text = "Print the completion script of a shell",
          .inputs = {input("SHELL", options->shell, "Shell that completes the command")
                         .required()
                         .one_of({"bash", "zsh", "fish"})},
          .outputs = {output("-o,--output", options->output).says("the script").usually("standard output")},
          .without = not_shared,
          .examples = {"source <(normscope completion bash)"},
          .run = [&root, options](const Session& session, Inputs& /*inputs*/, Outputs& outputs) {
            const CommandFacts facts = facts_of(root);
            return print_text(session, outputs, options->output,
                              options->shell == "bash"  ? bash_completion(facts)
                              : options->shell == "zsh" ? zsh_completion(facts)
                                                        : fish_completion(facts));
          }};
}

Command manual_command(const CLI::App& root) {
  const auto options = std::make_shared<TextOptions>();
  return {.name = "manual",
          .text = "Print the manual page, or the reference of which scripts/docs makes pages",
          .inputs = {input("FORMAT", options->format, "roff of one page, or Markdown of several")
                         .one_of({"roff", "markdown"})
                         .usually("roff")},
          .outputs = {output("-o,--output", options->output).says("the page").usually("standard output")},
          .without = not_shared,
          .run = [&root, options](const Session& session, Inputs& /*inputs*/, Outputs& outputs) {
            const CommandFacts facts = facts_of(root);
            return print_text(session, outputs, options->output,
                              options->format == "markdown" ? markdown_reference(facts) : manual_page(facts));
          }};
}

}  // namespace normscope::cli
