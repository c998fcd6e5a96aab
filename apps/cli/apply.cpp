#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/bytes/npy_writer.hpp>
#include <normscope/checkpoint/opened_array.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/version.hpp>

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

int run_apply(const Session& session, const ApplyOptions& options) {
  expect_writable({options.output});
  Inputs inputs;
  const NormInput norm = options.norm.open(inputs);
  const std::vector<std::filesystem::path> files_of_norm = inputs.files();
  const checkpoint::OpenedArray x = inputs.array(options.input);
  // Writing in place is allowed for a separate array file, but not for a tensor inside a checkpoint.
  keep_apart(x.fills_file() ? files_of_norm : inputs.files(), {options.output});
  inputs.expect_outside_models({options.output});
  inputs.add_file(options.output);
  inputs.keep_apart({session.json});
  if (x.shape().empty() || x.shape().back() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: has no features, expected rows x width", printable(options.input)));
  }
  const std::size_t width = x.shape().back();
  const std::size_t rows = x.elements() / width;
  const GivenNorm spec = norm.of_width(width);
  const Dtype dtype = bytes::npy_dtype(x.dtype());

  const nlohmann::ordered_json json = {{"schema", "normscope.apply/1"},
                                       {"version", version},
                                       {"output", options.output},
                                       {"dtype", std::string(to_string(dtype))},
                                       {"rows", rows},
                                       {"width", width},
                                       {"source", spec.source()}};
  std::vector<std::byte> buffer;
  const StoredRows stored{x.dtype(), x.bytes(buffer), rows, width};
  AtomicGroup outputs;
  bytes::NpyWriter output(options.output, dtype, x.shape());
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
  command->add_option("-o,--output", options->output, "File to write, with X's shape and precision")
      ->type_name("Y.npy")
      ->required();
  options->norm.declare(*command);
  command->add_option("--step", options->step, "Apply only this step of the norm")
      ->check(CLI::IsMember({"project", "scale", "stretch", "shift"}));
  add_examples(*command, {"normscope apply '1,2,6;0,0,3' -o y.npy",
                          "normscope apply models/wordlist_gpt:transformer.wte.weight -o y.npy --gain "
                          "models/wordlist_gpt:transformer.ln_f.weight"});
}

}  // namespace normscope::cli
