#include <memory>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "command.hpp"
#include "inputs.hpp"
#include "samples.hpp"

namespace normscope::cli {
namespace {

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
  std::string trace;
  std::string figure;
};

std::vector<std::int64_t> wanted_labels(const BuildOptions& options,
                                        const std::optional<files::OpenedArray>& given, std::size_t rows) {
  if (given) return read_labels(*given);
  return nets::random_labels(rows, options.random_labels, options.seed);
}

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

int run_build(const Session& session, const BuildOptions& options) {
  expect_writable({options.output, options.resume, options.trace, options.figure});
  if (options.labels.empty() == (options.random_labels == 0)) {
    throw Error(ErrorCode::Argument, "build: expected exactly one of LABELS and --random-labels");
  }
  Inputs inputs;
  const files::OpenedArray array = inputs.array(options.samples);
  const std::optional<files::OpenedArray> labels = inputs.optional_array(options.labels);
  inputs.keep_apart({options.output, options.resume, options.trace, options.figure, session.json});
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
  AtomicGroup outputs;
  write_text(options.trace, results::fold_lines(made.folds));
  write_text(options.figure, json_text(figures::folds(made.folds)) + "\n");
  nets::save_net(options.output, made.net);
  session.write_json(json_text(results::construction(made, how.mode, options.output)));
  outputs.commit();
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

}  // namespace

void add_build(CLI::App& root, Session& session) {
  const auto options = std::make_shared<BuildOptions>();
  CLI::App* command = add_command(root, session, "build",
                                  "Construct an LN-Net (linear layers and norms only) that fits every label",
                                  [&session, options] { return run_build(session, *options); });
  command->add_option("X", options->samples, "Samples along the first axis")->required();
  command->add_option("LABELS", options->labels, "Integer label of each sample");
  command->add_option("-o,--output", options->output, "File to write the net to")
      ->type_name("NET.safetensors")
      ->required();
  command
      ->add_option(
          "--mode", options->mode,
          "Fold as published (paper), or as a variant that is robust to rounding (stable, the default)")
      ->check(CLI::IsMember({"paper", "stable"}));
  command
      ->add_option("--random-labels", options->random_labels,
                   "Draw random labels of C classes, instead of LABELS")
      ->type_name("C")
      ->check(counts(1, largest_count));
  command->add_option("--seed", options->seed, "Random seed of labels and projections (default 1)")
      ->type_name("S")
      ->check(seeds());
  command
      ->add_option("--precision", options->precision,
                   "Arithmetic (default auto: float64, then double-double if that fails)")
      ->check(CLI::IsMember({"auto", "float64", "double-double"}));
  command->add_option("--eps", options->eps, "eps of the net's norms (default 0)")
      ->type_name("E")
      ->check(numbers(0.0, 1.0));
  command->add_flag("--drop-conflicts", options->drop_conflicts,
                    "Give equal rows with different labels the label of the first");
  command
      ->add_option("--resume", options->resume,
                   "Save unfinished work in FILE and continue from it; Ctrl-C saves it too")
      ->type_name("FILE");
  command->add_option("--trace", options->trace, "Write what each layer folds, one line of JSON per layer")
      ->type_name("FILE");
  command
      ->add_option(
          "--figure", options->figure,
          "Write a figure (Vega-Lite) of the smallest gap and the number of label runs, layer by layer")
      ->type_name("FILE");
  add_examples(*command, {"normscope nets build '0,0;0,1;1,0;1,1' 0,1,1,0 -o xor.safetensors"});
}

}  // namespace normscope::cli
