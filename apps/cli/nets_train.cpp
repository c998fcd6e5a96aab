#include <cmath>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/nets/train_runs.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "command.hpp"

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
  if (!options.precision.empty()) spec.precision = options.precision == "float32" ? Dtype::F32 : Dtype::F64;
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

/// Samples that a morph moves; more are no clearer to see.
constexpr std::size_t most_moving = 4000;

/// Writes the figures curves, boundary, seeds, groups and morph into `folder`, those that the runs have
/// data for.
void write_train_figures(Outputs& outputs, const std::string& folder,
                         const std::vector<nets::TrainRun>& runs) {
  const auto write = [&](const std::string& name, const nlohmann::ordered_json& json) {
    outputs.write_text_into(folder, name, [&] { return json_text(json) + "\n"; });
  };
  for (const auto& [name, specification] : figures::training_charts(runs)) {
    write(name + ".vl.json", specification);
  }
  const nets::TrainRun& best = nets::best_of(runs);
  const nets::Dataset& data = best.trainer.data();
  if (data.width <= 3 && best.spec().width <= 3 && data.rows() <= most_moving) {
    write("morph.json", results::morph(best.trainer.net(), data));
  }
}

/// One line of text about a run.
std::string run_line(const nets::TrainRun& run, bool with_groups) {
  const std::string kind = run.linear() ? "linear, " : counted(run.spec().groups, "group") + ", ";
  return fmt::format("{}seed {}: loss {:.4g}, accuracy {:.2f} %{}", with_groups ? kind : "", run.spec().seed,
                     run.score.loss, 100.0 * run.score.accuracy,
                     run.test ? fmt::format(", on new samples {:.2f} %", 100.0 * run.test->accuracy) : "");
}

int run_train(const Session& session, Inputs& inputs, Outputs& outputs, const TrainOptions& options) {
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
  std::optional<Samples> samples;
  if (known == nullptr) samples = open_samples_and_labels(options, inputs);
  const std::vector<nets::TrainRun> runs =
      nets::train_all(plan(options, known),
                      known != nullptr ? with_noise(data_of(*known, options.rows), options.noise)
                                       : data_of(read_data(options, *samples)),
                      session.threads, session.progress());
  const nets::TrainRun& best = nets::best_of(runs);
  if (!options.figures.empty()) write_train_figures(outputs, options.figures, runs);
  const results::TrainedOn on{options.what, known != nullptr ? std::string(known->claim) : "",
                              options.output};
  outputs.write(options.output, [&](const std::string& path) {
    const nets::Net net = best.trainer.net();
    nets::save_net(path, known != nullptr ? nets::for_unscaled(net, known->shift, known->scale) : net);
  });
  outputs.commit([&] { return json_text(results::training(on, runs)); });
  say_conflicts(session, best.trainer.data());
  for (const nets::TrainRun& one : runs) session.say(run_line(one, options.groups.size() > 1));
  return ok;
}

}  // namespace

Command train_command() {
  const auto options = std::make_shared<TrainOptions>();
  return {
      .name = "train",
      .text = "Train an LN-Net: linear layers with a norm as the only nonlinearity",
      .inputs = {input("WHAT", options->what, "Task (see below), or ARRAY of samples along its first axis")
                     .required(),
                 input("LABELS", options->labels, "With samples: an ARRAY with the integer class of each")},
      .outputs = {output("-o,--output", options->output)
                      .typed("NET.safetensors")
                      .says("the net, the most accurate if several are trained"),
                  output("--figures", options->figures, Role::folder)
                      .says("the course of the training, and samples' positions layer by layer (JSON),"),
                  output("--resume", options->state).excludes({"--seeds"})},
      .options = {option("--width", options->width).says("of each layer").usually("the task's, else 3"),
                  option("--depth", options->depth),
                  option("--activation", options->activation)
                      .says("after each layer")
                      .usually("norm")
                      .one_of({"norm", "relu", "gelu", "none"}),
                  option("--norm", options->norm)
                      .usually("the task's, else spherical")
                      .one_of(normalizing_kind_names()),
                  option("--groups", options->groups)
                      .typed("K1,K2,...")
                      .says("; several train one net each")
                      .usually("the task's"),
                  option("--eps", options->eps).usually("1e-5"), option("--affine", options->affine),
                  option("--optimizer", options->optimizer).one_of({"adam", "sgd"}),
                  option("--lr", options->rate).usually("the task's, else 0.01"),
                  option("--schedule", options->schedule).one_of({"constant", "cosine", "linear", "step"}),
                  option("--steps", options->steps), option("--batch", options->batch),
                  option("--precision", options->precision)
                      .usually("the task's, else float64")
                      .one_of({"float64", "float32"}),
                  option("--record-every", options->record_every),
                  option("--rows", options->rows).says("for a task").usually("the task's"),
                  option("--noise", options->noise),
                  option("--seed", options->seed).says("of the weights, the batches and a task's samples"),
                  option("--seeds", options->seeds)},
      .footer = "Tasks: " + nets::task_names(),
      .examples = {"normscope nets train xor --steps 200 -o xor.safetensors"},
      .run = with(run_train, options)};
}

}  // namespace normscope::cli
