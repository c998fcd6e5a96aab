#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>
#include <normscope/results/documents.hpp>

#include "apply_rows.hpp"
#include "command.hpp"
#include "inputs.hpp"

namespace normscope::cli {
namespace {

struct ApplyOptions {
  std::string input;
  std::string output;
  std::string step;
  NormOptions norm;
};

/// The numbers of a row: all, or the first and the last.
std::string line_of(std::span<const double> row) {
  constexpr std::size_t most = 10;
  std::string line = "[";
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row.size() > most && i == most / 2) {
      line += "  ...";
      i = row.size() - most / 2;
    }
    line += fmt::format(" {:>10.5g}", row[i]);
  }
  return line + " ]";
}

/// Prints the first rows.
void print_rows(const Session& session, const NormSpec& spec, const std::string& step, StoredRows x) {
  constexpr std::size_t most = 10;
  const std::size_t given = x.rows;
  x.rows = std::min(given, most);
  x.bytes = x.bytes.first(x.rows * x.width * (bits(x.dtype) / 8));
  std::vector<std::byte> bytes;
  apply_rows(
      spec, step, x,
      [&](std::span<const std::byte> block) { bytes.insert(bytes.end(), block.begin(), block.end()); },
      session.threads);
  std::vector<double> values(x.rows * x.width);
  decode(files::npy_dtype(x.dtype), bytes, values);
  for (std::size_t row = 0; row < x.rows; ++row) {
    session.say(line_of(std::span(values).subspan(row * x.width, x.width)));
  }
  if (given > most) {
    session.say(fmt::format("... and {}; -o Y.npy writes all", counted(given - most, "more row")));
  }
}

int run_apply(const Session& session, const ApplyOptions& options) {
  expect_writable({options.output});
  Inputs inputs;
  const NormInput norm = options.norm.open(inputs);
  const std::vector<std::filesystem::path> files_of_norm = inputs.files();
  const files::OpenedArray x = inputs.array(options.input);
  // Writing in place is allowed for a separate array file, but not for a tensor inside a checkpoint.
  keep_apart(x.fills_file() ? files_of_norm : inputs.files(), {options.output});
  inputs.expect_outside_models({options.output});
  if (!options.output.empty()) inputs.add_file(options.output);
  inputs.keep_apart({session.json});
  if (x.shape().empty() || x.shape().back() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: has no features, expected rows x width", printable(options.input)));
  }
  const std::size_t width = x.shape().back();
  const std::size_t rows = x.elements() / width;
  const GivenNorm spec = norm.of_width(width);
  const Dtype dtype = files::npy_dtype(x.dtype());

  const bool is_written = !options.output.empty();
  const nlohmann::ordered_json json = results::applied({options.output, dtype, rows, width, spec.source()});
  std::vector<std::byte> buffer;
  const StoredRows stored{x.dtype(), x.bytes(buffer), rows, width};
  if (!is_written) {
    session.write_json(json_text(json));
    spec.say_source(session);
    print_rows(session, spec, options.step, stored);
    return ok;
  }
  AtomicGroup outputs;
  files::NpyWriter output(options.output, dtype, x.shape());
  apply_rows(
      spec, options.step, stored, [&output](std::span<const std::byte> block) { output.write(block); },
      session.threads);
  output.commit();
  session.write_json(json_text(json));
  outputs.commit();
  spec.say_source(session);
  session.say(fmt::format("{}: {} of width {}, {}", printable(options.output), counted(rows, "row"), width,
                          to_string(dtype)));
  return ok;
}

}  // namespace

void add_apply(CLI::App& root, Session& session) {
  const auto options = std::make_shared<ApplyOptions>();
  CLI::App* command =
      add_command(root, session, "apply", "Apply a norm, or one of its four steps, to an array",
                  [&session, options] { return run_apply(session, *options); });
  command->add_option("X", options->input, "Rows to normalize, along the last axis")->required();
  command
      ->add_option("-o,--output", options->output,
                   "File to write, with X's shape and precision (default: print the first rows)")
      ->type_name("Y.npy");
  options->norm.declare(*command);
  command->add_option("--step", options->step, "Apply only this step of the norm")
      ->check(CLI::IsMember({"project", "scale", "stretch", "shift"}));
  add_examples(*command, {"normscope apply '1,2,6;0,0,3'",
                          "normscope apply models/wordlist_gpt:transformer.wte.weight -o y.npy --gain "
                          "models/wordlist_gpt:transformer.ln_f.weight"});
}

}  // namespace normscope::cli
