#include "session.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <limits>
#include <new>
#include <span>
#include <system_error>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>

#include "help.hpp"

namespace normscope::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int signal) {
  interrupted = 1;
  // A second signal ends the program immediately.
  std::signal(signal, SIG_DFL);
}

/// Whether the program was started with SIGPIPE ignored; a closed reader is then an error like any other.
bool broken_pipes_are_errors = false;

/// The reader of the text output has closed it, as in `normscope inspect MODEL | head -1`. Thrown, so that
/// unfinished files are removed before `guarded` ends the program.
struct ReaderGone {};

/// 0, or the errno of the failure.
int put(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return 0;
  return errno == 0 ? EIO : errno;
}

[[noreturn]] void fail_to_print(int failure) {
  throw Error(ErrorCode::Io, fmt::format("standard output: write failed: {}", std::strerror(failure)));
}

/// The name that lines of errors begin with.
const char* program_name = "normscope";

/// Writes to standard error without allocating, also in a signal handler.
void write_plainly(std::string_view text) {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

/// Writes the program's name before the text.
void complain_plainly(std::string_view text) {
  write_plainly({program_name, std::strlen(program_name)});
  write_plainly(text);
}

/// Called where `new` finds no memory. Outputs have no name before they are complete, so nothing is left.
[[noreturn]] void end_out_of_memory() {
  complain_plainly(": out of memory\n");
  ::_exit(bad_input);
}

/// Writes to standard error; failures are ignored.
void complain(const std::string& line) { std::fputs(line.c_str(), stderr); }

/// Opens standard streams that were closed at the start, in the direction that is not used; otherwise the
/// first file opened would become standard output.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // The lowest free descriptor is that of the stream.
    if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) return;
  }
}

}  // namespace

Progress Session::progress() const {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // One that is ignored stays so: nohup ignores SIGHUP for the program that it starts, and a shell SIGINT
    // for a job in the background.
    if (std::signal(signal, note_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  const bool show = !quiet && isatty(STDERR_FILENO) != 0;
  return Progress([show](std::string_view what, std::size_t done, std::size_t total) {
    if (show) {
      complain(fmt::format("\r\033[K{} {}/{}{}", what, done, total, done == total ? "\r\033[K" : ""));
      std::fflush(stderr);
    }
    return interrupted == 0;
  });
}

void Session::say(std::string_view line) const {
  inputs_of_process().expect();
  inputs_of_process().clear();  // one look is enough for all lines
  if (quiet || json == "-") return;
  const int failure = put(fmt::format("{}\n", line));
  if (failure == EPIPE && !broken_pipes_are_errors) throw ReaderGone();
  if (failure != 0) fail_to_print(failure);
}

void Session::write_json(std::string text) const {
  inputs_of_process().expect();
  if (json.empty()) return;
  text += '\n';
  if (json == "-") {
    // A truncated document is not a result, so a closed reader is an error here.
    if (const int failure = put(text)) fail_to_print(failure);
  } else {
    AtomicFile file(json);
    file.write(text);
    file.commit();
  }
}

namespace {

/// Whether the option takes the name of a file or a folder, as its type tells: FILE, FILE|-, FOLDER, OUT,
/// Y.npy.
bool names_a_file(const std::string& type) {
  return type == "FILE" || type == "FILE|-" || type == "FOLDER" || type == "OUT" ||
         type.find('.') != std::string::npos;
}

/// Refuses an empty name, which is a shell variable that is not set, and "-", which would be a file of that
/// name.
void check_outputs(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    if (option->get_positional() || !names_a_file(type)) continue;
    for (const std::string& name : option->results()) {
      if (name.empty()) throw CLI::ValidationError(option->get_name(), "is empty, expected " + type);
      if (name == "-" && type != "FILE|-") {
        throw CLI::ValidationError(option->get_name(),
                                   "is -, expected " + type + "; /dev/stdout is standard output");
      }
    }
  }
}

}  // namespace

void add_shared_options(CLI::App& command, Session& session) {
  command
      .add_option("--json", session.json,
                  "Write the machine-readable result to FILE, or - for standard output")
      ->type_name("FILE|-");
  command.add_option("--threads", session.threads, "Number of threads (default: all cores)")
      ->type_name("N")
      ->check(counts(0, 1024));
  command.add_flag("--quiet,-q", session.quiet, "Print errors only");
  for (const char* name : {"--json", "--threads", "--quiet"}) command.get_option(name)->group(shared_options);
}

void set_run(CLI::App& command, Session& session, std::function<int()> run) {
  command.callback([&session, &command, run = std::move(run)] {
    check_outputs(command);
    session.run = run;
  });
}

CLI::App* add_command(CLI::App& root, Session& session, const std::string& name,
                      const std::string& description, std::function<int()> run) {
  CLI::App* command = root.add_subcommand(name, description);
  add_shared_options(*command, session);
  set_run(*command, session, std::move(run));
  return command;
}

void add_examples(CLI::App& command, const std::vector<std::string>& examples) {
  std::string text = command.get_footer();
  text += text.empty() ? "Examples:" : "\n\nExamples:";
  for (const std::string& example : examples) text += "\n  " + example;
  command.footer(text);
}

CLI::Validator counts(std::int64_t least, std::int64_t most) {
  // Signed: an unsigned type would accept -3 as a very large number.
  return CLI::Range(least, most).description("");  // help shows what a value means, and its default
}

CLI::Validator seeds() { return counts(0, std::numeric_limits<std::int64_t>::max()); }

CLI::Validator numbers(double least, double most) {
  return {[least, most](std::string& text) {
            double value = 0.0;
            if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
              return std::string();
            return fmt::format("Value {} not in range {:g} to {:g}", text, least, most);
          },
          ""};
}

std::string printable(std::string_view text) { return normscope::printable(text); }

std::string one_message(std::string_view text) {
  constexpr std::string_view gap = " ... ";
  constexpr std::size_t kept = (longest_message - gap.size()) / 2;
  std::string shown = printable(text);
  if (shown.size() <= longest_message) return shown;
  // UTF-8 continues in bytes 10xxxxxx: neither part may end or begin within a character.
  const auto continues = [&shown](std::size_t at) {
    return (static_cast<unsigned char>(shown[at]) & 0xc0U) == 0x80U;
  };
  std::size_t end = kept;
  while (end > 0 && continues(end)) --end;
  std::size_t begin = shown.size() - kept;
  while (begin < shown.size() && continues(begin)) ++begin;
  return shown.substr(0, end) + std::string(gap) + shown.substr(begin);
}

namespace {

/// Ends the program. Outputs do not appear: they have no name before they are complete. The first thread that
/// notices writes the message; the others wait for the end.
void end_at_shortened_file(std::string_view file) {
  static std::atomic_flag noticed = ATOMIC_FLAG_INIT;
  while (noticed.test_and_set()) pause();
  complain_plainly(": ");
  write_plainly(file);
  write_plainly(" was truncated while it was being read\n");
  _exit(bad_input);
}

/// What the operating system refused: a thread, a folder.
bool is_of_the_system(const std::exception& error) {
  return dynamic_cast<const std::system_error*>(&error) != nullptr;
}

}  // namespace

namespace {

constexpr const char* help_name = "help";

/// `help` is listed and completed like the other subcommands; `parse_and_run` replaces it by --help.
void add_help(CLI::App& root) {
  const std::vector<CLI::App*> others = root.get_subcommands({});
  const std::string group = others.empty() ? "Subcommands" : others.back()->get_group();
  CLI::App* help = root.add_subcommand(help_name, "Show the options of a subcommand, with examples");
  help->group(group);
  help->add_option("SUBCOMMAND", "Name of the subcommand (default: list all)")->expected(0, 1);
}

std::string suggestion(std::string_view wanted, const std::vector<std::string_view>& names) {
  const std::string_view nearest = nearest_name(wanted, names);
  return nearest.empty() ? std::string() : fmt::format("; did you mean {}?", nearest);
}

/// Throws if the first word is neither an option nor a subcommand, and likewise if the next one is not where
/// the subcommand has subcommands. Suggests the subcommands of subcommands too. Errors    CLI::ParseError
void expect_subcommand(const CLI::App& root, std::span<const std::string> words) {
  const std::vector<const CLI::App*> commands = root.get_subcommands({});
  if (commands.empty() || words.empty() || words.front().starts_with('-')) return;
  std::vector<std::pair<std::string, std::string>> names;  // the last word, and all of them
  for (const CLI::App* command : commands) {
    if (command->get_name() == words.front()) return expect_subcommand(*command, words.subspan(1));
    names.emplace_back(command->get_name(), command->get_name());
  }
  for (const CLI::App* command : commands) {
    for (const CLI::App* below : command->get_subcommands({})) {
      names.emplace_back(below->get_name(), command->get_name() + " " + below->get_name());
    }
  }
  std::vector<std::string_view> last_words;
  for (const auto& [last, all] : names) last_words.emplace_back(last);
  const std::string_view nearest = nearest_name(words.front(), last_words);
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.first == nearest; });
  throw CLI::ParseError(
      fmt::format("unknown subcommand \"{}\"{}", words.front(),
                  found == names.end() ? "" : fmt::format("; did you mean {}?", found->second)),
      usage);
}

/// "unknown option --treads; did you mean --threads?", if the chosen subcommand has an option like one that
/// it does not have; else empty.
std::string option_suggestion(const CLI::App& root) {
  for (const CLI::App* command : root.get_subcommands()) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    for (const std::string& word : command->remaining()) {
      if (!word.starts_with("--")) continue;
      const std::string unknown = word.substr(0, word.find('='));
      const std::string found = suggestion(unknown, {names.begin(), names.end()});
      if (!found.empty()) return fmt::format("unknown option {}{}", unknown, found);
    }
    std::string below = option_suggestion(*command);
    if (!below.empty()) return below;
  }
  return {};
}

}  // namespace

int parse_and_run(CLI::App& root, const Session& session, int argc, char** argv) {
  add_help(root);
  format_help(root);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == help_name) {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (words.empty()) words.emplace_back("--help");
  try {
    expect_subcommand(root, words);
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    root.parse(words);
    return session.run();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      errno = 0;
      const int status = root.exit(error);
      if (std::cout.flush()) return status;
      const int failure = errno == 0 ? EIO : errno;
      if (failure == EPIPE && !broken_pipes_are_errors) throw ReaderGone();
      fail_to_print(failure);
    }
    const std::string unknown_option = option_suggestion(root);
    complain(fmt::format("{0}: {1} (see {0} --help)\n", root.get_name(),
                         one_message(unknown_option.empty() ? error.what() : unknown_option)));
    return usage;
  }
}

int guarded(const char* program, const std::function<int()>& work) {
  program_name = program;
  std::set_new_handler(end_out_of_memory);
  hold_standard_streams();
  // A closed reader is a failed write, and is cleaned up after in the same way.
  broken_pipes_are_errors = std::signal(SIGPIPE, SIG_IGN) == SIG_IGN;
  handle_shortened_files(end_at_shortened_file);
  // A file that exceeds the limit of ulimit -f is a failed write, too.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return work();
  } catch (const ReaderGone&) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
    return 128 + SIGPIPE;  // if the signal is blocked
  } catch (const Error& error) {
    complain(fmt::format("{}: {}\n", program, one_message(error.what())));
    return error.code() == ErrorCode::Cancelled ? cancelled : bad_input;
  } catch (const std::bad_alloc&) {
    end_out_of_memory();
  } catch (const std::exception& error) {
    const bool refused = is_of_the_system(error);
    complain(
        fmt::format("{}: {}{}\n", program, refused ? "" : "internal error: ", one_message(error.what())));
    return refused ? bad_input : bug;
  }
}

}  // namespace normscope::cli
