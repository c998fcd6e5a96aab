#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/version.hpp>

#include "command.hpp"

namespace {

using namespace normscope;

int run(int argc, char** argv) {
  cli::Session session;
  CLI::App root(
      "See, measure and rewrite what normalization layers do.\n\n"
      "  normscope report MODEL        everything about every norm, as one HTML page\n",
      "normscope");
  root.set_version_flag("--version", version);
  root.require_subcommand(1);
  root.get_formatter()->column_width(34);
  cli::add_report(root, session);
  cli::add_inspect(root, session);
  cli::add_geometry(root, session);
  cli::add_apply(root, session);
  cli::add_build(root, session);
  cli::add_run(root, session);
  cli::add_curvature(root, session);
  cli::add_separate(root, session);
  cli::add_train(root, session);
  cli::add_count(root, session);
  cli::add_lab(root, session);
  cli::add_select(root, session);
  cli::add_heads(root, session);
  cli::add_reach(root, session);
  cli::add_explore(root, session);
  root.footer(
      "MODEL is a .safetensors, .onnx or .pt file, a sharded .safetensors.index.json or a Hugging\n"
      "Face folder. ARRAY is X.npy, X.npz:NAME, MODEL:TENSOR (TENSOR[i]: its\n"
      "i-th slice) or numbers: 1,2,0.5 is a row, 0,0;1,0;0,1 are three.\n"
      "Exit status: 0 ok, 1 negative answer, 2 usage, 3 bad input, 70 bug, 130 interrupted.");
  try {
    root.parse(argc, argv);
    return session.run();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return root.exit(error);
    fmt::print(stderr, "normscope: {} (see normscope --help)\n", cli::printable(error.what()));
    return cli::usage;
  }
}

/// A mapped file that somebody cuts short while it is read ends the program here.
extern "C" void note_lost_file(int) {
  constexpr char text[] = "normscope: a file grew shorter while it was read, expected it to stay as it is\n";
  static_cast<void>(!write(STDERR_FILENO, text, sizeof text - 1));
  _exit(cli::bad_input);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN);  // a reader that went away is a failed write, cleaned up after like any other
  std::signal(SIGBUS, note_lost_file);
  try {
    return run(argc, argv);
  } catch (const normscope::Error& error) {
    fmt::print(stderr, "normscope: {}\n", cli::printable(error.what()));
    return error.code() == ErrorCode::Cancelled ? cli::cancelled : cli::bad_input;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "normscope: out of memory\n");
    return cli::bad_input;
  } catch (const std::exception& error) {
    fmt::print(stderr, "normscope: internal error: {}\n", cli::printable(error.what()));
    return cli::bug;
  }
}
