#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <normscope/core/error.hpp>

#include "network.hpp"
#include "outputs.hpp"
#include "training.hpp"

namespace {

using namespace normscope;

volatile std::sig_atomic_t stopped = 0;

/// A second Ctrl-C ends the program at once.
void stop(int signal) {
  stopped = 1;
  std::signal(signal, SIG_DFL);
}

struct Options {
  std::filesystem::path text;
  std::vector<std::filesystem::path> besides;
  std::filesystem::path recipe;
  std::filesystem::path out;
  bool resume = false;
  int threads = 1;
};

bool show(std::string_view what, std::size_t done, std::size_t total) {
  if (isatty(STDERR_FILENO) != 0) {
    fmt::print(stderr, "\r{}: {} of {}{}", what, done, total, done == total || stopped != 0 ? "\n" : "");
    std::fflush(stderr);
  }
  return stopped == 0;
}

void run(const Options& options) {
  lab::Job job;
  job.recipe = lab::read_recipe(options.recipe);
  job.text = lab::read_text(options.text, options.besides, job.recipe);
  job.threads = options.threads;
  const std::filesystem::path state_path = options.out / "training_state.safetensors";
  lab::TrainingState state =
      options.resume ? lab::load_state(state_path, job) : lab::initial_state(job.recipe);
  std::error_code failed;
  std::filesystem::create_directories(options.out, failed);
  if (failed) {
    throw Error(ErrorCode::Io,
                fmt::format("{}: {}, expected a folder to write to", options.out.string(), failed.message()));
  }
  lab::Network network(job.recipe, job.threads);
  lab::train(job, network, state, state_path, Progress(show));
  lab::write_model(options.out, job, state.values);
  lab::write_text(options.out / "README.md", lab::model_card(job, network, state));
  std::filesystem::remove(state_path);
  fmt::print("wrote {}\n", options.out.string());
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
  Options options;
  CLI::App app("Trains a small GPT-2 on a text, with a byte-level BPE of its own.");
  app.add_option("--text", options.text, "Text to train on")->required();
  app.add_option("--tokenizer-text", options.besides, "Texts that the tokenizer is made of besides");
  app.add_option("--recipe", options.recipe, "Size, seed and training, as JSON")->required();
  app.add_option("--out", options.out, "Folder to write the model and its card to")->required();
  app.add_flag("--resume", options.resume, "Go on where an interrupted run stopped");
  app.add_option("--threads", options.threads, "Threads to compute with; the weights depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    run(options);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n",
               error.code() == ErrorCode::Cancelled ? "interrupted; the same command with --resume goes on"
                                                    : error.what());
    return error.code() == ErrorCode::Cancelled ? 130 : 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 70;
  }
}
