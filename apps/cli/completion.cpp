#include "completion.hpp"

#include <memory>
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

std::vector<std::string> names_of(const std::vector<CommandFacts>& commands) {
  std::vector<std::string> names;
  for (const CommandFacts& command : commands) names.push_back(command.name);
  return names;
}

std::string zsh_argument(const OptionFacts& option, const std::vector<CommandFacts>& commands) {
  const auto action = [&]() -> std::string {
    switch (option.kind) {
      case Value::choice: return fmt::format("({})", fmt::join(option.choices, " "));
      case Value::command: return fmt::format("({})", fmt::join(names_of(commands), " "));
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
    case Value::command: line += fmt::format(" -x -a '{}'", fmt::join(names_of(commands), " ")); break;
    case Value::file: line += option.positional() ? " -F" : " -r -F"; break;
    case Value::text: line += " -x"; break;
    case Value::none: break;
  }
  return fmt::format("{} -d '{}'\n", line, escaped(option.text, "'\\"));
}

}  // namespace

std::string bash_completion(const std::vector<CommandFacts>& commands) {
  std::string options;
  std::string values;
  for (const CommandFacts& command : commands) {
    std::vector<std::string> names;
    for (const OptionFacts& option : command.options) {
      std::vector<std::string> places;
      for (const std::string& name : option.names)
        places.push_back(fmt::format("{}\\ {}", command.name, name));
      if (option.positional()) places.push_back(command.name + "\\ *");
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.kind == Value::choice || option.kind == Value::command) {
        values +=
            fmt::format("    {}) words=\"{}\" ;;\n", fmt::join(places, "|"),
                        fmt::join(option.kind == Value::choice ? option.choices : names_of(commands), " "));
      } else if (option.kind == Value::text && !option.positional()) {
        values += fmt::format("    {}) compopt +o default; return ;;\n", fmt::join(places, "|"));
      } else if (option.kind == Value::file && !option.positional()) {
        values += fmt::format("    {}) return ;;\n", fmt::join(places, "|"));
      }
    }
    options += fmt::format("    {}) options=\"{}\" ;;\n", command.name, fmt::join(names, " "));
  }
  return fmt::format(R"(# bash completion for normscope, made from its parser by `normscope completion bash`.
_normscope() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words="" options=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  # Readline splits --option=value into three words.
  if [ "$word" = "=" ]; then
    word=""
  elif [ "$before" = "=" ]; then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}} $before" in
{}  esac
  # Without candidates readline completes files.
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _normscope normscope
)",
                     fmt::join(names_of(commands), " "), options, values);
}

std::string zsh_completion(const std::vector<CommandFacts>& commands) {
  std::string described;
  std::string cases;
  for (const CommandFacts& command : commands) {
    described += fmt::format("    {}\n",
                             single_quoted(escaped(command.name, ":") + ":" + escaped(command.text, "\\")));
    std::string arguments;
    for (const OptionFacts& option : command.options)
      arguments += " \\\n        " + zsh_argument(option, commands);
    cases += fmt::format("      {})\n        _arguments -S{} ;;\n", command.name, arguments);
  }
  return fmt::format(R"(#compdef normscope
# zsh completion for normscope, made from its parser by `normscope completion zsh`.
_normscope() {{
  local context state state_descr line
  typeset -A opt_args
  local -a commands
  commands=(
{})
  _arguments -C '--help[Print the help]' '--version[Print the version]' '1: :->command' '*:: :->arguments'
  case $state in
    command) _describe -t commands 'normscope subcommand' commands ;;
    arguments) case $words[1] in
{}    esac ;;
  esac
}}
if [ "$funcstack[1]" = "_normscope" ]; then
  _normscope "$@"
else
  compdef _normscope normscope
fi
)",
                     described, cases);
}

std::string fish_completion(const std::vector<CommandFacts>& commands) {
  std::string result =
      R"(# fish completion for normscope, made from its parser by `normscope completion fish`.
function __normscope_runs
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end
complete -c normscope -f
complete -c normscope -n '__fish_is_nth_token 1' -l help -d 'Print the help'
complete -c normscope -n '__fish_is_nth_token 1' -l version -d 'Print the version'
)";
  for (const CommandFacts& command : commands) {
    result += fmt::format("complete -c normscope -n '__fish_is_nth_token 1' -a {} -d '{}'\n", command.name,
                          escaped(command.text, "'\\"));
  }
  for (const CommandFacts& command : commands) {
    for (const OptionFacts& option : command.options) result += fish_option(command.name, option, commands);
  }
  return result;
}

}  // namespace normscope::cli
