#include "command.hpp"

#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

namespace normscope::cli {

Argument Argument::usually(std::string value) && {
  usual_ = std::move(value);
  return std::move(*this);
}

Argument Argument::typed(std::string type) && {
  type_ = std::move(type);
  return std::move(*this);
}

Argument Argument::required() && {
  required_ = true;
  return std::move(*this);
}

Argument Argument::within(CLI::Validator check) && {
  check_ = std::move(check);
  return std::move(*this);
}

Argument Argument::one_of(std::vector<std::string> values) && {
  return std::move(*this).within(CLI::IsMember(std::move(values)));
}

Argument Argument::excludes(std::vector<std::string> names) && {
  excludes_ = std::move(names);
  return std::move(*this);
}

Argument Argument::needs(std::vector<std::string> names) && {
  needs_ = std::move(names);
  return std::move(*this);
}

Argument Argument::says(std::string text) && {
  text_ = std::move(text);
  return std::move(*this);
}

void Argument::add_to(CLI::App& command) const {
  const bool positional = !name_.starts_with('-');
  const Word* const word = positional ? nullptr : find_word(name_);
  NORMSCOPE_ASSERT(positional || word != nullptr);
  std::string text = text_;
  std::string usual = usual_.value_or("");
  if (word != nullptr) {
    text = word->meaning;
    if (const std::size_t at = text.find("{}"); at != std::string::npos) {
      text.replace(at, 2, text_);
    } else if (!text_.empty()) {
      text += (text_.find_first_of(",;:") == 0 ? "" : " ") + text_;
    }
    if (!usual_) usual = word->usual;
  }
  if (!usual.empty()) text += fmt::format(" (default: {})", usual);
  CLI::Option* const added = add_(command, name_, text);
  if (word != nullptr && *word->type != '\0') added->type_name(type_.empty() ? word->type : type_);
  if (required_) added->required();
  if (check_) {
    added->check(*check_);
  } else if (word != nullptr && word->check) {
    added->check(*word->check);
  }
}

void Argument::relate(CLI::App& command) const {
  if (excludes_.empty() && needs_.empty()) return;
  const auto find = [&command](const std::string& name) {
    return command.get_option(name.substr(name.find(',') + 1));
  };
  CLI::Option* const own = find(name_);
  for (const std::string& name : excludes_) own->excludes(find(name));
  for (const std::string& name : needs_) own->needs(find(name));
}

void Argument::add_to(Outputs& outputs) const {
  switch (role_) {
    case Role::value: return;
    case Role::file: return outputs.add_file(*path_);
    case Role::folder: return outputs.add_folder(*path_, files_);
    case Role::own: return outputs.add_own(*path_);
  }
}

Argument output(std::string name, std::string& path, Role role, std::vector<std::string> files) {
  Argument argument = option(std::move(name), path);
  argument.role_ = role;
  argument.path_ = &path;
  argument.files_ = std::move(files);
  return argument;
}

std::vector<Argument> joined(std::vector<Argument> first, std::vector<Argument> second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

CLI::App* add(CLI::App& root, Session& session, const Command& command, const std::string& group) {
  CLI::App* const app = root.add_subcommand(command.name, command.text);
  app->group(group == hidden ? "" : group);
  app->footer(command.footer);
  add_examples(*app, command.examples);
  if (!command.commands.empty()) {
    app->require_subcommand(1);
    for (const Command& below : command.commands) add(*app, session, below);
    return app;
  }
  for (const auto* arguments : {&command.inputs, &command.outputs, &command.options}) {
    for (const Argument& argument : *arguments) argument.add_to(*app);
  }
  for (const auto* arguments : {&command.inputs, &command.outputs, &command.options}) {
    for (const Argument& argument : *arguments) argument.relate(*app);
  }
  add_shared_options(*app, session);
  for (const std::string& name : command.without) app->remove_option(app->get_option(name));
  set_run(*app, session, [&session, named = command.outputs, run = command.run] {
    Outputs outputs(session);
    for (const Argument& argument : named) argument.add_to(outputs);
    outputs.expect_writable();
    Inputs inputs(outputs);
    return run(session, inputs, outputs);
  });
  return app;
}

std::vector<Argument> stated_options(models::Stated& stated) {
  return {option("--arch", stated.architecture), option("--heads", stated.heads)};
}

std::vector<Argument> model_options(ModelName& model) {
  Argument member("--member", "", [&model](CLI::App& command, const auto& name, const auto& text) {
    return command.add_option_function<std::string>(
        name, [&model](const std::string& dict) { model.path += ":" + dict; }, text);
  });
  return joined({std::move(member)}, stated_options(model.stated));
}

void say_notes(const Session& session, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) session.say("note: " + printable(note));
}

}  // namespace normscope::cli
