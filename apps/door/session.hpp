#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <normscope/core/file.hpp>
#include <normscope/core/parallel.hpp>

/// Common code of Normscope's programs: shared options, exit statuses, atomic outputs, signals.
namespace normscope::cli {

/// Exit statuses of the command's contract.
enum Exit : int { ok = 0, negative = 1, usage = 2, bad_input = 3, undecided = 4, bug = 70, cancelled = 130 };

/// What they mean, for help.
inline constexpr std::string_view exit_statuses =
    "Exit status: 0 success, 1 a negative answer where one was asked for, 2 usage error, 3 bad input, 4 an "
    "answer that was asked for is undecided or unproved, 70 bug, 130 interrupted.";

/// Options of every subcommand, and the function it runs.
struct Session {
  std::string json;  ///< --json: a file, "-" for standard output, empty if not given
  unsigned threads = 0;
  bool quiet = false;
  std::function<int()> run;
  const Team* team = &alone();  ///< processes that share the work; the first one writes the outputs

  /// Shows progress on a terminal, and stops the work after Ctrl-C.
  [[nodiscard]] Progress progress() const;
  /// Prints a line of text on standard output, unless --quiet or standard output carries the JSON.
  void say(std::string_view line) const;
  /// Whether a JSON document is requested.
  [[nodiscard]] bool wants_json() const { return !json.empty(); }
  /// Writes the JSON document to the destination of --json. `Outputs` writes it after all files, because
  /// standard output cannot be taken back.
  void write_json(std::string text) const;
};

/// Largest count that an option accepts.
inline constexpr std::int64_t largest_count = std::int64_t{1} << 24;
/// Appends examples to a subcommand's help; each is a command line that can be run on the bundled model.
void add_examples(CLI::App& command, const std::vector<std::string>& examples);

/// Integers from `least` to `most`.
[[nodiscard]] CLI::Validator counts(std::int64_t least, std::int64_t most);
/// Seeds of random numbers.
[[nodiscard]] CLI::Validator seeds();
/// Numbers from `least` to `most`; CLI::Range would accept nan.
[[nodiscard]] CLI::Validator numbers(double least, double most);

/// Adds --json, --threads and --quiet.
void add_shared_options(CLI::App& command, Session& session);
/// Makes the subcommand call `run`, after its outputs' names were checked.
void set_run(CLI::App& command, Session& session, std::function<int()> run);
/// Adds a subcommand with the shared options, which calls `run`.
CLI::App* add_command(CLI::App& root, Session& session, const std::string& name,
                      const std::string& description, std::function<int()> run);

/// Text from a file, escaped so that it cannot control a terminal.
[[nodiscard]] std::string printable(std::string_view text);
/// Escapes a message, whatever was quoted in it, and leaves out the middle of more than `longest_message`
/// bytes.
[[nodiscard]] std::string one_message(std::string_view text);
inline constexpr std::size_t longest_message = 1000;

/// Parses the command line and runs the chosen subcommand; errors are reported in one line. Adds
/// `help SUBCOMMAND`, the same as `SUBCOMMAND --help`.
[[nodiscard]] int parse_and_run(CLI::App& root, const Session& session, int argc, char** argv);

/// The body of `main`: runs `work` and converts exceptions to a line that begins with `program` and an exit
/// status.
[[nodiscard]] int guarded(const char* program, const std::function<int()>& work);

}  // namespace normscope::cli
