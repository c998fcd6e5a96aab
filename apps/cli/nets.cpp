#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

// nets build

constexpr const char* folds_file = "folds.vl.json";  ///< of --figures

struct BuildOptions {
  std::string samples;
  std::string labels;
  std::string output;
  std::string mode = "stable";
  std::size_t random_labels = 0;
  std::uint64_t seed = 1;
  std::string precision = "auto";
  double eps = 0.0;
  bool drop_conflicts = false;
  std::string resume;
  std::string folds;
  std::string figures;
};

std::vector<std::int64_t> wanted_labels(const BuildOptions& options,
                                        const std::optional<files::OpenedArray>& given, std::size_t rows) {
  if (given) return read_labels(*given);
  return nets::random_labels(rows, options.random_labels, options.seed);
}

int run_build(const Session& session, Inputs& inputs, Outputs& outputs, const BuildOptions& options) {
  if (options.labels.empty() == (options.random_labels == 0)) {
    throw Error(ErrorCode::Argument, "nets build: expected exactly one of LABELS and --random-labels");
  }
  const files::OpenedArray array = inputs.array(options.samples);
  const std::optional<files::OpenedArray> labels = inputs.optional_array(options.labels);
  const MatrixInput samples = read_samples(array);
  const nets::ConstructOptions how{.mode = options.mode == "paper" ? nets::Mode::paper : nets::Mode::stable,
                                   .seed = options.seed,
                                   // Random labels belong to samples, not to rows.
                                   .first_label_wins = options.drop_conflicts || options.random_labels != 0,
                                   .precision = options.precision == "auto"
                                                    ? std::nullopt
                                                    : std::optional(nets::precision(options.precision)),
                                   .eps = options.eps,
                                   .resume = options.resume,
                                   .threads = session.threads};
  const nets::Construction made =
      nets::construct(samples.view(), wanted_labels(options, labels, samples.rows), how, session.progress());
  outputs.write_text(options.folds, [&] { return results::fold_lines(made.folds); });
  outputs.write_text_into(options.figures, folds_file,
                          [&] { return json_text(figures::folds(made.folds)) + "\n"; });
  outputs.write(options.output, [&](const std::string& path) { nets::save_net(path, made.net); });
  outputs.commit([&] { return json_text(results::construction(made, how.mode, options.output)); });
  if (!options.resume.empty()) {
    std::error_code ignored;
    std::filesystem::remove(options.resume, ignored);
  }
  session.say(made.net.layers.empty()
                  ? fmt::format("{}: one class, a constant head", options.output)
                  : fmt::format("{}: {} LN layers of width 3 in {}, {} of {} samples right", options.output,
                                made.net.layers.size(), to_string(made.net.precision), made.correct,
                                made.total));
  if (made.relabelled > 0) {
    session.say(fmt::format("{} rows equal an earlier row and were given its label", made.relabelled));
  }
  return made.correct == made.total ? ok : negative;
}

// nets run

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

int run_run(const Session& session, Inputs& inputs, Outputs& outputs, const RunOptions& options) {
  inputs.add_file(options.net);
  const files::OpenedArray array = inputs.array(options.samples);
  const nets::Net net = nets::load_net(options.net);
  const MatrixInput samples = read_samples(array);
  expect_finite(options.samples, samples.view());
  const std::vector<std::int64_t> given =
      nets::labels(net, samples.view(), session.threads, session.progress(), nets::Overflow::error);
  outputs.write(options.trace, [&](const std::string& path) {
    files::write_npy(path,
                     side_by_side(net, nets::trace(net, samples.view(), session.threads), samples.rows));
  });
  outputs.write(options.output, [&](const std::string& path) {
    files::write_npy(path, {{given.size()}, Dtype::F64, {given.begin(), given.end()}});
  });
  outputs.commit([&] { return json_text(results::classification(net, given)); });
  session.say(fmt::format("{} samples through {} layers", samples.rows, net.layers.size()));
  constexpr std::size_t shown = 10;
  for (std::size_t row = 0; row < given.size() && row < shown; ++row) {
    session.say(fmt::format("{}: {}", row, given[row]));
  }
  if (given.size() > shown) session.say("…");
  return ok;
}

Command build_command() {
  const auto options = std::make_shared<BuildOptions>();
  return {
      .name = "build",
      .text = "Construct an LN-Net (linear layers and norms only) that fits every label",
      .inputs = {input("X", options->samples, "Samples along the first axis").required(),
                 input("LABELS", options->labels, "Integer label of each sample")},
      .outputs = {output("-o,--output", options->output).typed("NET.safetensors").says("the net").required(),
                  output("--folds", options->folds),
                  output("--figures", options->figures, Role::folder, {folds_file})
                      .says("the smallest gap and the number of label runs, layer by layer,"),
                  output("--resume", options->resume)},
      .options = {option("--mode", options->mode).one_of({"paper", "stable"}),
                  option("--random-labels", options->random_labels),
                  option("--drop-conflicts", options->drop_conflicts),
                  option("--precision", options->precision)
                      .says("; auto takes float64, then double-double if that fails")
                      .usually("auto")
                      .one_of({"auto", "float64", "double-double"}),
                  option("--eps", options->eps).usually("0").within(numbers(0.0, 1.0)),
                  option("--seed", options->seed).says("of labels and projections")},
      .footer = "Exit status 1: some sample is not classified as its label says.",
      .examples = {"normscope nets build '0,0;0,1;1,0;1,1' 0,1,1,0 -o xor.safetensors"},
      .run = with(run_build, options)};
}

Command run_command() {
  const auto options = std::make_shared<RunOptions>();
  return {
      .name = "run",
      .text = "Classify samples with an LN-Net",
      .inputs = {input("NET", options->net, "Net that `nets build` or `nets train` wrote").required(),
                 input("X", options->samples, "Samples along the first axis").required()},
      .outputs =
          {output("-o,--output", options->output).typed("LABELS.npy").says("the predicted labels (float64)"),
           output("--trace", options->trace)},
      .examples = {"normscope nets build '0,0;0,1;1,0;1,1' 0,1,1,0 -o xor.safetensors",
                   "normscope nets run xor.safetensors '0,0;0,1;1,0;1,1'"},
      .run = with(run_run, options)};
}

}  // namespace

Command nets_command() {
  return {.name = "nets",
          .text = "Construct, train, run LN-Nets; networks that count",
          .examples = {"normscope nets build '0,0;0,1;1,0;1,1' 0,1,1,0 -o xor.safetensors",
                       "normscope nets train xor --steps 200 -o trained.safetensors"},
          .commands = {build_command(), train_command(), run_command(), count_command()}};
}

}  // namespace normscope::cli
