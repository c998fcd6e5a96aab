#include "parser_facts.hpp"

#include <string_view>

#include <fmt/format.h>

#include "command.hpp"

namespace normscope::cli {
namespace {

/// `text` with `backslash` before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// A word in single quotes, as bash and zsh read it.
std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> words_of(const std::vector<CommandFacts>& commands) {
  std::vector<std::string> words;
  for (const CommandFacts& command : commands) words.push_back(command.word());
  return words;
}

std::string zsh_argument(const OptionFacts& option, const std::vector<CommandFacts>& commands) {
  const auto action = [&]() -> std::string {
    switch (option.kind) {
      case Value::choice: return fmt::format("({})", fmt::join(option.choices, " "));
      case Value::command: return fmt::format("({})", fmt::join(words_of(commands), " "));
      case Value::file: return "_files";
      case Value::text:
      case Value::none: break;
    }
    return " ";
  };
  const std::string text = escaped(option.text, "[]:\\");
  const std::string value = escaped(option.value, ":\\");
  if (option.positional()) {
    return single_quoted(fmt::format("{}:{}:{}", option.repeats ? "*" : "", value, action()));
  }
  const std::string rest =
      fmt::format("[{}]{}", text, option.kind == Value::none ? "" : fmt::format(":{}:{}", value, action()));
  std::string result;
  for (const std::string& name : option.names) {
    // A long option takes its value after a space or an equals sign.
    const char* sign = option.kind == Value::none ? "" : name.starts_with("--") ? "=" : "";
    const std::string others =
        option.names.size() > 1 ? fmt::format("({})", fmt::join(option.names, " ")) : "";
    result += (result.empty() ? "" : " ") +
              single_quoted(others + (option.repeats ? "*" : "") + name + sign + rest);
  }
  return result;
}

std::string fish_option(const std::string& command, const OptionFacts& option,
                        const std::vector<CommandFacts>& commands) {
  std::string line = fmt::format("complete -c normscope -n '__normscope_runs {}'", command);
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  switch (option.kind) {
    case Value::choice: line += fmt::format(" -x -a '{}'", fmt::join(option.choices, " ")); break;
    case Value::command: line += fmt::format(" -x -a '{}'", fmt::join(words_of(commands), " ")); break;
    case Value::file: line += option.positional() ? " -F" : " -r -F"; break;
    case Value::text: line += " -x"; break;
    case Value::none: break;
  }
  return fmt::format("{} -d '{}'\n", line, escaped(option.text, "'\\"));
}

/// A function of zsh that completes the words behind `command`, which has subcommands, and those of its
/// subcommands. `own` are the program's.
std::string zsh_functions(const std::string& name, const CommandFacts& command,
                          const std::vector<CommandFacts>& own) {
  std::string described;
  std::string cases;
  std::string below;
  for (const CommandFacts& sub : command.commands) {
    described +=
        fmt::format("    {}\n", single_quoted(escaped(sub.word(), ":") + ":" + escaped(sub.text, "\\")));
    std::string action = "_arguments -S";
    if (sub.commands.empty()) {
      for (const OptionFacts& option : sub.options) action += " \\\n        " + zsh_argument(option, own);
    } else {
      action = fmt::format("{}_{}", name, sub.word());
      below += zsh_functions(action, sub, own);
    }
    cases += fmt::format("      {})\n        {} ;;\n", sub.word(), action);
  }
  std::string options;
  for (const OptionFacts& option : command.options) {
    if (!option.positional()) options += " " + zsh_argument(option, own);
  }
  return below + fmt::format(R"({0}() {{
  local context state state_descr line
  typeset -A opt_args
  local -a commands
  commands=(
{1})
  _arguments -C{2} '1: :->command' '*:: :->arguments'
  case $state in
    command) _describe -t commands 'normscope subcommand' commands ;;
    arguments) case $words[1] in
{3}    esac ;;
  esac
}}
)",
                             name, described, options, cases);
}

std::string fish_commands(const std::vector<CommandFacts>& commands, const std::string& place,
                          const std::vector<CommandFacts>& own) {
  std::string lines;
  for (const CommandFacts& command : commands) {
    lines += fmt::format("complete -c normscope -n '{}' -a {} -d '{}'\n", place, command.word(),
                         escaped(command.text, "'\\"));
  }
  for (const CommandFacts& command : commands) {
    for (const OptionFacts& option : command.options) lines += fish_option(command.name, option, own);
    lines += fish_commands(command.commands,
                           fmt::format("__normscope_runs {}; and __fish_is_nth_token 2", command.name), own);
  }
  return lines;
}

}  // namespace

std::string bash_completion(const CommandFacts& root) {
  const std::vector<CommandFacts>& commands = root.commands;
  std::string groups;
  std::string options;
  std::string values;
  for (const CommandFacts& command : all_commands(commands)) {
    const std::string place = escaped(command.name, " ");
    std::vector<std::string> names;
    for (const OptionFacts& option : command.options) {
      std::vector<std::string> places;
      for (const std::string& name : option.names) places.push_back(fmt::format("{}\\ {}", place, name));
      if (option.positional()) places.push_back(place + "\\ *");
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.kind == Value::choice || option.kind == Value::command) {
        values +=
            fmt::format("    {}) words=\"{}\" ;;\n", fmt::join(places, "|"),
                        fmt::join(option.kind == Value::choice ? option.choices : words_of(commands), " "));
      } else if (option.kind == Value::text && !option.positional()) {
        values += fmt::format("    {}) compopt +o default; return ;;\n", fmt::join(places, "|"));
      } else if (option.kind == Value::file && !option.positional()) {
        values += fmt::format("    {}) return ;;\n", fmt::join(places, "|"));
      }
    }
    if (!command.commands.empty()) {
      groups += fmt::format("    {}) words=\"{} {}\" ;;\n", place, fmt::join(words_of(command.commands), " "),
                            fmt::join(names, " "));
    }
    options += fmt::format("    {}) options=\"{}\" ;;\n", place, fmt::join(names, " "));
  }
  return fmt::format(R"(# bash completion for normscope, made from its parser by `normscope completion bash`.
_normscope() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words="" options=""
  local command=${{COMP_WORDS[1]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  # Subcommands that have subcommands.
  case $command in
{}  esac
  if [ -n "$words" ]; then
    if [ "$COMP_CWORD" -eq 2 ]; then
      COMPREPLY=($(compgen -W "$words" -- "$word"))
      return
    fi
    command="$command ${{COMP_WORDS[2]}}" words=""
  fi
  # Readline splits --option=value into three words.
  if [ "$word" = "=" ]; then
    word=""
  elif [ "$before" = "=" ]; then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  case $command in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
  fi
  case "$command $before" in
{}  esac
  # Without candidates readline completes files.
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _normscope normscope
)",
                     fmt::join(words_of(commands), " "), groups, options, values);
}

std::string zsh_completion(const CommandFacts& root) {
  return fmt::format(R"(#compdef normscope
# zsh completion for normscope, made from its parser by `normscope completion zsh`.
{}if [ "$funcstack[1]" = "_normscope" ]; then
  _normscope "$@"
else
  compdef _normscope normscope
fi
)",
                     zsh_functions("_normscope", root, root.commands));
}

std::string fish_completion(const CommandFacts& root) {
  return R"(# fish completion for normscope, made from its parser by `normscope completion fish`.
function __normscope_runs
    set -l words (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end
complete -c normscope -f
complete -c normscope -n '__fish_is_nth_token 1' -l help -d 'Print the help'
complete -c normscope -n '__fish_is_nth_token 1' -l version -d 'Print the version'
)" + fish_commands(root.commands, "__fish_is_nth_token 1", root.commands);
}

}  // namespace normscope::cli
