#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/files/array.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/results/documents.hpp>

#include "command.hpp"
#include "inputs.hpp"
#include "samples.hpp"

namespace normscope::cli {
namespace {

struct RunOptions {
  std::string net;
  std::string samples;
  std::string output;
  std::string trace;
};

/// The outputs of all layers, side by side: rows × (sum of the layers' widths).
files::Array side_by_side(const nets::Net& net, const std::vector<std::vector<double>>& activations,
                          std::size_t rows) {
  std::size_t width = 0;
  for (const nets::Layer& layer : net.layers) width += layer.out;
  files::Array array{{rows, width}, Dtype::F64, {}};
  array.values.reserve(rows * width);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t l = 0; l < net.layers.size(); ++l) {
      const std::size_t out = net.layers[l].out;
      const auto begin = activations[l].begin() + static_cast<std::ptrdiff_t>(row * out);
      array.values.insert(array.values.end(), begin, begin + static_cast<std::ptrdiff_t>(out));
    }
  }
  return array;
}

int run_run(const Session& session, const RunOptions& options) {
  expect_writable({options.output, options.trace});
  Inputs inputs;
  inputs.add_file(options.net);
  const files::OpenedArray array = inputs.array(options.samples);
  inputs.keep_apart({options.output, options.trace, session.json});
  const nets::Net net = nets::load_net(options.net);
  const MatrixInput samples = read_samples(array);
  expect_finite(options.samples, samples.view());
  const std::vector<std::int64_t> given =
      nets::labels(net, samples.view(), session.threads, session.progress(), nets::Overflow::error);
  AtomicGroup outputs;
  if (!options.trace.empty()) {
    files::write_npy(options.trace,
                     side_by_side(net, nets::trace(net, samples.view(), session.threads), samples.rows));
  }
  if (!options.output.empty()) {
    files::write_npy(options.output, {{given.size()}, Dtype::F64, {given.begin(), given.end()}});
  }
  session.write_json(json_text(results::classification(net, given)));
  outputs.commit();
  session.say(fmt::format("{} samples through {} layers", samples.rows, net.layers.size()));
  constexpr std::size_t shown = 10;
  for (std::size_t row = 0; row < given.size() && row < shown; ++row) {
    session.say(fmt::format("{}: {}", row, given[row]));
  }
  if (given.size() > shown) session.say("…");
  return ok;
}

}  // namespace

void add_run(CLI::App& root, Session& session) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command = add_command(root, session, "run", "Classify samples with an LN-Net",
                                  [&session, options] { return run_run(session, *options); });
  command->add_option("NET", options->net, "Net that `nets build` or `nets train` wrote")->required();
  command->add_option("X", options->samples, "Samples along the first axis")->required();
  command->add_option("-o,--output", options->output, "Write the predicted labels (float64)")
      ->type_name("LABELS.npy");
  command
      ->add_option("--trace", options->trace,
                   "Write the output of every layer, concatenated along the columns")
      ->type_name("FILE.npy");
  add_examples(*command, {"normscope nets build '0,0;0,1;1,0;1,1' 0,1,1,0 -o xor.safetensors",
                          "normscope nets run xor.safetensors '0,0;0,1;1,0;1,1'"});
}

}  // namespace normscope::cli
