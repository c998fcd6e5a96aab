#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include <normscope/core/text.hpp>
#include <normscope/models/model.hpp>

#include "inputs.hpp"
#include "outputs.hpp"
#include "session.hpp"

/// A subcommand is data: a `Command`, which its file returns. Options mean the same in every subcommand:
/// their types, meanings and usual values stand in one table, options.cpp.
namespace normscope::cli {

/// What an argument names.
enum class Role {
  value,
  file,    ///< an output
  folder,  ///< an output
  own      ///< an output that the command creates and checks itself
};

/// An option or a positional argument, and the variable that takes its value.
class Argument {
 public:
  using Add = std::function<CLI::Option*(CLI::App&, const std::string& name, const std::string& text)>;
  Argument(std::string name, std::string text, Add add)
      : name_(std::move(name)), text_(std::move(text)), add_(std::move(add)) {}

  /// Default value in the help, in place of the table's.
  Argument usually(std::string value) &&;
  /// Type in place of the table's.
  Argument typed(std::string type) &&;
  Argument required() &&;
  Argument within(CLI::Validator check) &&;
  Argument one_of(std::vector<std::string> values) &&;
  Argument excludes(std::vector<std::string> names) &&;
  Argument needs(std::vector<std::string> names) &&;
  /// The subcommand's own words: in the place that the table's meaning has for them, or after it.
  Argument says(std::string text) &&;

  void add_to(CLI::App& command) const;
  /// Adds what it excludes and needs; the others have to be there.
  void relate(CLI::App& command) const;
  void add_to(Outputs& outputs) const;

 private:
  friend Argument output(std::string name, std::string& path, Role role, std::vector<std::string> files);

  std::string name_;
  std::string text_;
  Add add_;
  std::optional<std::string> usual_{};
  std::string type_{};
  bool required_ = false;
  std::optional<CLI::Validator> check_{};
  std::vector<std::string> excludes_{};
  std::vector<std::string> needs_{};
  Role role_ = Role::value;
  const std::string* path_ = nullptr;  ///< of an output
  std::vector<std::string> files_{};   ///< of a folder, as far as they are known before the work
};

/// An option as every subcommand means it.
struct Word {
  const char* name;
  const char* type;        ///< empty for a flag
  const char* meaning;     ///< with its unit; {} stands for what the subcommand says itself
  const char* usual = "";  ///< default, in words; may depend on the subcommand
  std::optional<CLI::Validator> check{};
};

/// The option with that name, as the parser takes it ("-o,--output"); null if there is none.
[[nodiscard]] const Word* find_word(const std::string& name);

namespace detail {

template <typename T>
struct is_list : std::false_type {};
template <typename T>
struct is_list<std::vector<T>> : std::true_type {};

}  // namespace detail

/// A positional argument.
template <typename T>
[[nodiscard]] Argument input(std::string name, T& value, std::string text) {
  return {std::move(name), std::move(text), [&value](CLI::App& command, const auto& named, const auto& said) {
            return command.add_option(named, value, said);
          }};
}

/// An option of the table: a flag if `value` is a bool, values apart by commas if it is a list.
template <typename T>
[[nodiscard]] Argument option(std::string name, T& value) {
  return {std::move(name), "", [&value](CLI::App& command, const auto& named, const auto& said) {
            if constexpr (std::is_same_v<T, bool>) {
              return command.add_flag(named, value, said);
            } else {
              CLI::Option* const added = command.add_option(named, value, said);
              if constexpr (detail::is_list<T>::value) added->delimiter(',');
              return added;
            }
          }};
}

/// An option that names an output, of which `Outputs` takes care.
[[nodiscard]] Argument output(std::string name, std::string& path, Role role = Role::file,
                              std::vector<std::string> files = {});

/// One list of arguments after another.
[[nodiscard]] std::vector<Argument> joined(std::vector<Argument> first, std::vector<Argument> second);

using Run = std::function<int(const Session&, Inputs&, Outputs&)>;

struct Command {
  std::string name;
  std::string text;  ///< one line
  std::vector<Argument> inputs{};
  std::vector<Argument> outputs{};
  std::vector<Argument> options{};
  std::vector<std::string> without{};  ///< shared options that it does not have
  std::string footer{};                ///< the columns of a table, exit statuses
  std::vector<std::string> examples{};
  Run run{};
  std::vector<Command> commands{};  ///< its own subcommands; it does not run then
};

/// Calls `run` with options that other arguments of the subcommand refer to.
template <typename Options>
[[nodiscard]] Run with(int (*run)(const Session&, Inputs&, Outputs&, const Options&),
                       std::shared_ptr<Options> options) {
  return [run, options = std::move(options)](const Session& session, Inputs& inputs, Outputs& outputs) {
    return run(session, inputs, outputs, *options);
  };
}

/// The heading of subcommands that help does not list.
inline constexpr const char* hidden = "hidden";
/// Adds the subcommand under a heading of the help.
CLI::App* add(CLI::App& root, Session& session, const Command& command,
              const std::string& group = "Subcommands");

/// A model named on the command line, with what its user states of it.
struct ModelName {
  std::string path{};
  models::Stated stated{};
};

/// --arch and --heads.
[[nodiscard]] std::vector<Argument> stated_options(models::Stated& stated);
/// --arch, --heads and --member, which completes the path of a model to FILE:MEMBER.
[[nodiscard]] std::vector<Argument> model_options(ModelName& model);

/// Prints the assumptions and unknowns of a model's description.
void say_notes(const Session& session, const std::vector<std::string>& notes);

// Every subcommand; main.cpp lists those of the first level in the groups of the help.
[[nodiscard]] Command report_command();
[[nodiscard]] Command inspect_command();
[[nodiscard]] Command geometry_command();
[[nodiscard]] Command trace_command();
[[nodiscard]] Command explore_command();
[[nodiscard]] Command heads_command();
[[nodiscard]] Command reach_command();
[[nodiscard]] Command ranges_command();
[[nodiscard]] Command select_command();
[[nodiscard]] Command separate_command();
[[nodiscard]] Command verify_command();
[[nodiscard]] Command attribute_command();
[[nodiscard]] Command rewrite_command();
[[nodiscard]] Command compare_command();
[[nodiscard]] Command signature_command();
[[nodiscard]] Command signature_extract_command();
[[nodiscard]] Command apply_command();
[[nodiscard]] Command curvature_command();
[[nodiscard]] Command nets_command();
[[nodiscard]] Command train_command();
[[nodiscard]] Command count_command();
/// Hands its arguments to the program that links torch and MPI.
void add_lab(CLI::App& root, Session& session, const std::string& group);
/// Print what the parser knows of `root`.
[[nodiscard]] Command completion_command(const CLI::App& root);
[[nodiscard]] Command manual_command(const CLI::App& root);

}  // namespace normscope::cli
