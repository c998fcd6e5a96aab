#include "command.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>

#include <fmt/core.h>

#include <normscope/checkpoint/array.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

namespace normscope::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int) {
  interrupted = 1;
  // A second Ctrl-C ends the program at once.
  std::signal(SIGINT, SIG_DFL);
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::Io, "standard output: write failed");
  }
}

/// One row of gains or biases.
std::vector<double> read_parameter(const char* option, const std::string& name) {
  if (name.empty()) return {};
  checkpoint::Array array = checkpoint::read_array(name);
  std::size_t long_axes = 0;
  for (const std::uint64_t extent : array.shape) long_axes += extent != 1 ? 1 : 0;
  if (long_axes > 1) {
    throw Error(ErrorCode::Shape,
                fmt::format("{} {}: has {} axes longer than 1, expected one row; TENSOR[i] takes "
                            "the i-th slice",
                            option, printable(name), long_axes));
  }
  return std::move(array.values);
}

}  // namespace

Progress Session::progress() const {
  std::signal(SIGINT, note_interrupt);
  const bool show = !quiet && isatty(STDERR_FILENO) != 0;
  return Progress([show](std::string_view what, std::size_t done, std::size_t total) {
    if (show) {
      fmt::print(stderr, "\r\033[K{} {}/{}{}", what, done, total, done == total ? "\r\033[K" : "");
      std::fflush(stderr);
    }
    return interrupted == 0;
  });
}

void Session::say(std::string_view line) const {
  if (!quiet && json != "-") print(fmt::format("{}\n", line));
}

void Session::write_json(std::string_view text) const {
  if (json.empty()) return;
  if (json == "-") return print(fmt::format("{}\n", text));
  AtomicFile file(json);
  file.write(text);
  file.write("\n");
  file.commit();
}

CLI::App* add_command(CLI::App& root, Session& session, const std::string& name,
                      const std::string& description, std::function<int()> run) {
  CLI::App* command = root.add_subcommand(name, description);
  command
      ->add_option("--json", session.json,
                   "Write the machine-readable result to FILE, or - for standard output")
      ->type_name("FILE|-");
  command->add_option("--threads", session.threads, "Threads to use (default: all)")->type_name("N");
  command->add_flag("--quiet,-q", session.quiet, "Print nothing but errors");
  command->callback([&session, run = std::move(run)] { session.run = run; });
  return command;
}

void NormOptions::declare(CLI::App& command) {
  command.add_option("--norm", kind, "Kind of norm (default layer)")
      ->check(CLI::IsMember({"layer", "rms", "spherical"}));
  command.add_option("--gain", gain, "Gain: G.npy, G.npz:NAME or CHECKPOINT:TENSOR (default: ones)")
      ->type_name("ARRAY");
  command.add_option("--gain-offset", gain_offset, "Added to the gain; 1 for Gemma, which stores gain - 1")
      ->type_name("X");
  command.add_option("--bias", bias, "Bias, given like the gain (default: zeros)")->type_name("ARRAY");
  command.add_option("--groups", groups, "Blocks normalized on their own (default 1)")
      ->type_name("K")
      ->check(CLI::PositiveNumber);
  command.add_option("--eps", eps, fmt::format("Added to the mean square (default {:g})", eps))
      ->type_name("E")
      ->check(CLI::NonNegativeNumber);
}

NormSpec NormOptions::read(std::size_t width) const {
  NormSpec spec{.kind = norm_kind(kind), .width = width, .groups = groups, .eps = eps};
  spec.gain = read_parameter("--gain", gain);
  spec.bias = read_parameter("--bias", bias);
  for (double& g : spec.gain) g += gain_offset;
  if (spec.width == 0) spec.width = std::max(spec.gain.size(), spec.bias.size());
  validate(spec);
  return spec;
}

void keep_apart(const std::vector<std::filesystem::path>& inputs, const std::vector<std::string>& outputs) {
  namespace fs = std::filesystem;
  std::vector<fs::path> taken = inputs;
  for (const std::string& output : outputs) {
    if (output.empty() || output == "-") continue;
    for (const fs::path& other : taken) {
      std::error_code missing;  // a file that is not there yet is no other file
      if (fs::equivalent(output, other, missing) || fs::path(output) == other) {
        throw Error(ErrorCode::Argument,
                    fmt::format("{}: would replace {}, expected another name", output, other.string()));
      }
    }
    taken.emplace_back(output);
  }
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return result;
}

}  // namespace normscope::cli
