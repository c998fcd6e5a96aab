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
#include <normscope/core/progress.hpp>

/// Common code of Normscope's programs: shared options, exit statuses, atomic outputs, signals.
namespace normscope::cli {

/// Exit statuses of the command's contract.
enum Exit : int { ok = 0, negative = 1, usage = 2, bad_input = 3, bug = 70, cancelled = 130 };

/// Options every subcommand takes, and the work it chose.
struct Session {
  std::string json;  ///< --json: a file, "-" for standard output, empty for none
  unsigned threads = 0;
  bool quiet = false;
  std::function<int()> run;

  /// Shows progress on a terminal; stops the work after Ctrl-C.
  [[nodiscard]] Progress progress() const;
  /// A line for people on standard output, unless --quiet or standard output carries the JSON.
  void say(std::string_view line) const;
  /// Whether there is a machine form to make.
  [[nodiscard]] bool wants_json() const { return !json.empty(); }
  /// Writes the machine form where --json wants it.
  void write_json(std::string text) const;
};

/// A JSON document in progress: written to a temporary file at once and renamed by `commit`, so that a
/// command with two outputs leaves both or neither.
class JsonOutput {
 public:
  JsonOutput(const Session& session, std::string text);
  void commit();

 private:
  std::optional<std::string> for_standard_output_{};
  std::optional<AtomicFile> file_{};
};

/// Largest count an option takes.
inline constexpr std::int64_t largest_count = std::int64_t{1} << 24;
/// Whole numbers from `least` to `most`.
[[nodiscard]] CLI::Validator counts(std::int64_t least, std::int64_t most);
/// Numbers from `least` to `most`; CLI::Range takes nan for one.
[[nodiscard]] CLI::Validator numbers(double least, double most);

/// A subcommand with the shared options and `run` as what it does.
CLI::App* add_command(CLI::App& root, Session& session, const std::string& name,
                      const std::string& description, std::function<int()> run);

/// Throws unless every output (empty and "-" aside) is a different file from each input and each other
/// output, so that a mistyped name does not overwrite a model.
/// Errors    Argument
void keep_apart(const std::vector<std::filesystem::path>& inputs, const std::vector<std::string>& outputs);

/// Throws unless a file can be written under every name (empty and "-" aside), so that errors appear before
/// the work and not after it. --json is checked for every command.
/// Errors    Io
void expect_writable(const std::vector<std::string>& outputs);

/// The same for folders that are made when there is something to write into them.
void expect_folders(const std::vector<std::string>& folders);
/// Makes the folder, and those above it, where it is not there.
/// Creates the folder and its parents if they do not exist.
void make_folder(const std::string& folder);

/// Prints text from a file so that no byte of it can move a terminal's cursor or colour.
[[nodiscard]] std::string printable(std::string_view text);

/// Parses the command line and runs what it chose; a wrong one is told in a line.
[[nodiscard]] int parse_and_run(CLI::App& root, const Session& session, int argc, char** argv);

/// The body of `main`: runs `work` and converts exceptions to a line that begins with `program` and an exit
/// status.
[[nodiscard]] int guarded(const char* program, const std::function<int()>& work);

}  // namespace normscope::cli
