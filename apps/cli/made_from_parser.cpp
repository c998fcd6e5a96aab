#include <memory>
#include <string>

#include <normscope/core/file.hpp>

#include "command.hpp"
#include "completion.hpp"
#include "manual.hpp"

namespace normscope::cli {
namespace {

struct TextOptions {
  std::string shell;
  std::string output;
};

int write_text(const Session& session, const std::string& output, std::string text) {
  if (output.empty()) {
    text.pop_back();  // `say` ends the line
    session.say(text);
    return ok;
  }
  AtomicFile file(output);
  file.write(text);
  file.commit();
  return ok;
}

CLI::App* add_text_command(CLI::App& root, const std::string& name, const std::string& description,
                           std::string& output) {
  CLI::App* command = root.add_subcommand(name, description);
  command->add_option("-o,--output", output, "File to write (default: standard output)")->type_name("FILE");
  return command;
}

}  // namespace

void add_completion(CLI::App& root, Session& session) {
  const auto options = std::make_shared<TextOptions>();
  CLI::App* command =
      add_text_command(root, "completion", "Print the completion script of a shell", options->output);
  command->add_option("SHELL", options->shell, "Shell that completes the command")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_examples(*command, {"source <(normscope completion bash)"});
  command->callback([&root, &session, options] {
    session.run = [&root, &session, options] {
      const CommandFacts facts = facts_of(root);
      return write_text(session, options->output,
                        options->shell == "bash"  ? bash_completion(facts)
                        : options->shell == "zsh" ? zsh_completion(facts)
                                                  : fish_completion(facts));
    };
  });
}

void add_manual(CLI::App& root, Session& session) {
  const auto options = std::make_shared<TextOptions>();
  CLI::App* command = add_text_command(root, "manual", "Print the manual page, as roff", options->output);
  command->group("");  // the page is read with `man normscope`; this makes it when the command is installed
  command->callback([&root, &session, options] {
    session.run = [&root, &session, options] {
      return write_text(session, options->output, manual_page(facts_of(root)));
    };
  });
}

}  // namespace normscope::cli
