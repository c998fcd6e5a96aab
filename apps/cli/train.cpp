#include <cmath>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/nets/train_runs.hpp>
#include <normscope/results/documents.hpp>

#include "command.hpp"
#include "inputs.hpp"
#include "samples.hpp"
#include "train_output.hpp"

namespace normscope::cli {
namespace {

/// Options that are not given take the task's defaults.
struct TrainOptions {
  std::string what;
  std::string labels;
  std::string output;
  std::string state;
  std::string figures;
  std::size_t rows = 0;
  double noise = 0.0;
  std::optional<std::size_t> width;
  std::optional<std::size_t> depth;
  std::string activation;
  std::string norm;
  std::vector<std::size_t> groups;
  std::optional<double> eps;
  bool affine = false;
  std::string optimizer;
  std::optional<double> rate;
  std::string schedule;
  std::optional<std::size_t> steps;
  std::optional<std::size_t> batch;
  std::string precision;
  std::optional<std::size_t> record_every;
  std::uint64_t seed = 1;
  std::size_t seeds = 0;
};

nets::TrainSpec train_spec(const TrainOptions& options, nets::TrainSpec spec) {
  const auto take = [](const auto& given, auto& value) {
    if (given) value = *given;
  };
  take(options.width, spec.width);
  take(options.depth, spec.depth);
  take(options.eps, spec.eps);
  take(options.rate, spec.rate);
  take(options.steps, spec.steps);
  take(options.batch, spec.batch);
  take(options.record_every, spec.record_every);
  if (!options.activation.empty()) spec.activation = nets::activation(options.activation);
  if (!options.norm.empty()) spec.norm = norm_kind(options.norm);
  if (!options.optimizer.empty()) spec.optimizer = nets::optimizer(options.optimizer);
  if (!options.schedule.empty()) spec.schedule = nets::schedule(options.schedule);
  if (!options.precision.empty()) spec.precision = options.precision == "F32" ? Dtype::F32 : Dtype::F64;
  spec.affine = options.affine;
  spec.seed = options.seed;
  return spec;
}

nets::TrainPlan plan(const TrainOptions& options, const nets::Task* task) {
  std::size_t seeds = options.seeds;
  if (seeds == 0) seeds = task != nullptr && options.state.empty() ? task->seeds : 1;
  return {.spec = train_spec(options, task != nullptr ? task->spec : nets::TrainSpec{}),
          .groups = options.groups,
          .seeds = seeds,
          .state = options.state};
}

/// Arrays that are trained on instead of a task.
struct Samples {
  files::OpenedArray x;
  files::OpenedArray labels;
};

files::OpenedArray open_samples(const TrainOptions& options, Inputs& inputs) {
  try {
    return inputs.array(options.what);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Io) throw;
    throw Error(error.code(), fmt::format("{}: is neither a task ({}) nor a file that can be read: {}",
                                          printable(options.what), nets::task_names(), error.what()));
  }
}

Samples open_samples_and_labels(const TrainOptions& options, Inputs& inputs) {
  files::OpenedArray x = open_samples(options, inputs);
  if (options.labels.empty()) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: is an array of samples, expected LABELS after it", printable(options.what)));
  }
  return {std::move(x), inputs.array(options.labels)};
}

nets::Dataset read_data(const TrainOptions& options, const Samples& samples) {
  MatrixInput x = read_samples(samples.x);
  const std::vector<std::int64_t> labels = read_labels(samples.labels);
  if (labels.size() != x.rows) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: has {} labels for {} rows of {}", printable(options.labels), labels.size(),
                            x.rows, printable(options.what)));
  }
  return nets::dataset(printable(options.labels), x.width, std::move(x.values),
                       {labels.begin(), labels.end()});
}

void say_conflicts(const Session& session, const nets::Dataset& data) {
  const nets::Conflicts found = nets::conflicts(data);
  if (found.rows == 0) return;
  session.say(fmt::format(
      "{} of {} {} an earlier row with another label, so no net can classify all correctly; the first is row "
      "{}, which equals row {}",
      found.rows, data.rows(), found.rows == 1 ? "rows equals" : "rows equal", found.first, found.of));
}

int run_train(const Session& session, const TrainOptions& options) {
  const std::optional<nets::Task> task = nets::find_task(options.what);
  const nets::Task* const known = task ? &*task : nullptr;
  if (known != nullptr && !options.labels.empty()) {
    throw Error(ErrorCode::Argument, fmt::format("{}: is a task and has its own labels, expected no LABELS",
                                                 printable(options.what)));
  }
  if (known == nullptr && options.rows != 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: --rows applies to tasks only, but this is an array of samples",
                            printable(options.what)));
  }
  if (known == nullptr && options.noise != 0.0) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: --noise applies to tasks only, but this is an array of samples",
                            printable(options.what)));
  }
  expect_writable({options.output, options.state});
  expect_folders({options.figures});
  Inputs inputs;
  std::optional<Samples> samples;
  if (known == nullptr) samples = open_samples_and_labels(options, inputs);
  inputs.keep_apart({options.output, options.state, session.json});
  const std::vector<nets::TrainRun> runs =
      nets::train_all(plan(options, known),
                      known != nullptr ? with_noise(data_of(*known, options.rows), options.noise)
                                       : data_of(read_data(options, *samples)),
                      session.threads, session.progress());
  const nets::TrainRun& best = nets::best_of(runs);
  AtomicGroup outputs;
  if (!options.figures.empty()) write_train_figures(options.figures, runs);
  const results::TrainedOn on{options.what, known != nullptr ? std::string(known->claim) : "",
                              options.output};
  if (!options.output.empty()) {
    const nets::Net net = best.trainer.net();
    nets::save_net(options.output,
                   known != nullptr ? nets::for_unscaled(net, known->shift, known->scale) : net);
  }
  session.write_json(json_text(results::training(on, runs)));
  outputs.commit();
  say_conflicts(session, best.trainer.data());
  for (const nets::TrainRun& one : runs) session.say(run_line(one, options.groups.size() > 1));
  return ok;
}

}  // namespace

void add_train(CLI::App& root, Session& session) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* command = add_command(root, session, "train",
                                  "Train an LN-Net: linear layers with a norm as the only nonlinearity",
                                  [&session, options] { return run_train(session, *options); });
  command->footer("Tasks: " + nets::task_names());
  command->add_option("WHAT", options->what, "Task (see below), or ARRAY of samples along its first axis")
      ->required();
  command->add_option("LABELS", options->labels, "With samples: an ARRAY with the integer class of each");
  command
      ->add_option("-o,--output", options->output,
                   "File to write the net to (the most accurate, if several are trained)")
      ->type_name("NET.safetensors");
  const auto count = [&](const std::string& names, auto& target, const std::string& text,
                         std::int64_t least = 1) {
    command->add_option(names, target, text)->type_name("N")->check(counts(least, largest_count));
  };
  count("--width", options->width, "Features per layer (default: the task's, else 3)");
  count("--depth", options->depth, "Layers before the linear head (default: the task's, else 2)", 0);
  command->add_option("--activation", options->activation, "Activation after each layer (default norm)")
      ->check(CLI::IsMember({"norm", "relu", "gelu", "none"}));
  command->add_option("--norm", options->norm, "Kind of norm (default: the task's, else spherical)")
      ->check(CLI::IsMember(normalizing_kind_names()));
  command
      ->add_option(
          "--groups", options->groups,
          "Groups, each normalized separately; a list trains one net per number (default: the task's)")
      ->delimiter(',')
      ->type_name("K,...")
      ->check(counts(1, largest_count));
  command
      ->add_option("--eps", options->eps,
                   "Added to the mean square, for spherical to the squared length (default 1e-5)")
      ->type_name("E")
      ->check(numbers(0.0, 1.7e308));
  command->add_flag("--affine", options->affine, "Learn a gain and a bias in every norm");
  command->add_option("--optimizer", options->optimizer, "Optimizer (default adam)")
      ->check(CLI::IsMember({"adam", "sgd"}));
  command->add_option("--lr", options->rate, "Learning rate (default: the task's, else 0.01)")
      ->type_name("X")
      ->check(numbers(0.0, 1.7e308));
  command
      ->add_option("--schedule", options->schedule,
                   "Learning-rate schedule (default: the task's, else constant)")
      ->check(CLI::IsMember({"constant", "cosine", "linear", "step"}));
  count("--steps", options->steps, "Training steps (default: the task's, else 8000)");
  count("--batch", options->batch, "Samples per step (default: the task's, else all)");
  command
      ->add_option("--precision", options->precision, "Floating-point type (default: the task's, else F64)")
      ->check(CLI::IsMember({"F64", "F32"}));
  count("--record-every", options->record_every, "Steps between records of loss and accuracy (default 10)");
  count("--rows", options->rows, "Number of samples drawn for a task (default: the task's)");
  command
      ->add_option("--noise", options->noise,
                   "Standard deviation of noise added to every feature of a task's samples (default 0)")
      ->type_name("X")
      ->check(numbers(0.0, 1e6));
  command
      ->add_option("--seed", options->seed,
                   "Random seed of the weights, the batches and a task's samples (default 1)")
      ->type_name("S")
      ->check(cli::seeds());
  CLI::Option* seeds =
      command
          ->add_option("--seeds", options->seeds,
                       "Number of seeds to train with, keeping the best net (default: the task's, else 1)")
          ->type_name("N")
          ->check(counts(1, largest_count));
  command
      ->add_option("--resume", options->state,
                   "Save the training state in FILE and continue from it; Ctrl-C saves it too")
      ->type_name("FILE")
      ->excludes(seeds);
  command
      ->add_option("--figures", options->figures,
                   "Write figures (Vega-Lite), and samples' positions layer by layer (JSON), into FOLDER")
      ->type_name("FOLDER");
  add_examples(*command, {"normscope nets train xor --steps 200 -o xor.safetensors"});
}

}  // namespace normscope::cli
