#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/checkpoint/array.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/version.hpp>
#include <normscope/lnnet/figures.hpp>
#include <normscope/lnnet/train.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// New points that a task's net is tested on.
constexpr std::size_t test_rows = 4000;
/// Between the seed of a task's samples and that of its test.
constexpr std::uint64_t test_seed_distance = 1'000'000;
/// Reports of progress over a training.
constexpr std::size_t reports = 500;
constexpr std::chrono::seconds between_saves{10};

struct Options {
  std::string what;
  std::string labels;
  std::string norm = "spherical";
  std::string activation = "norm";
  std::string optimizer = "adam";
  std::string schedule = "constant";
  std::string precision = "F64";
  std::string state;
  std::string figures;
  std::size_t rows = 0;
  std::size_t seeds = 1;
  lnnet::TrainSpec spec;
};

struct Run {
  std::uint64_t seed = 0;
  lnnet::Dataset data;
  lnnet::Trainer trainer;
  lnnet::Score score{};
  std::optional<lnnet::Score> test{};

  /// What the best of several is chosen by.
  [[nodiscard]] double accuracy() const { return test ? test->accuracy : score.accuracy; }
  [[nodiscard]] std::vector<lnnet::Transition> transitions() const {
    return lnnet::transitions(trainer.accuracy(), trainer.spec().record_every);
  }
};

lnnet::Dataset read_data(const Options& options) {
  if (options.labels.empty()) {
    throw Error(ErrorCode::Argument, fmt::format("{}: is no task, and a training on samples needs LABELS too",
                                                 printable(options.what)));
  }
  checkpoint::Array x = checkpoint::read_array(options.what);
  const checkpoint::Array y = checkpoint::read_array(options.labels);
  if (x.shape.empty() || x.shape[0] == 0) {
    throw Error(ErrorCode::Shape, fmt::format("{}: has no rows", printable(options.what)));
  }
  if (y.values.size() != x.shape[0]) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: has {} labels for {} rows of {}", printable(options.labels), y.values.size(),
                            x.shape[0], printable(options.what)));
  }
  const std::size_t width = x.values.size() / x.shape[0];
  return lnnet::dataset(printable(options.labels), width, std::move(x.values), y.values);
}

void advance(lnnet::Trainer& trainer, const Progress& progress, const std::string& state) {
  if (!state.empty() && fs::exists(state)) trainer.resume(state);
  const std::size_t total = trainer.spec().steps;
  const std::size_t every = std::max<std::size_t>(1, total / reports);
  auto saved = std::chrono::steady_clock::now();
  try {
    while (!trainer.done()) {
      trainer.step();
      if (trainer.steps_done() % every == 0 || trainer.done()) progress("step", trainer.steps_done(), total);
      if (!state.empty() && std::chrono::steady_clock::now() - saved >= between_saves) {
        trainer.save(state);
        saved = std::chrono::steady_clock::now();
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled && !state.empty()) trainer.save(state);
    throw;
  }
  if (!state.empty()) trainer.save(state);
}

Json score_json(const lnnet::Score& score) { return {{"loss", score.loss}, {"accuracy", score.accuracy}}; }

Json transitions_json(const std::vector<lnnet::Transition>& found) {
  Json result = Json::array();
  for (const lnnet::Transition& t : found) result.push_back({{"step", t.step}, {"gain", t.gain}});
  return result;
}

Json run_json(const Run& run) {
  const lnnet::TrainSpec& spec = run.trainer.spec();
  const std::size_t reached =
      lnnet::first_step_at(run.trainer.accuracy(), spec.record_every, 0.95, spec.steps);
  return {{"seed", run.seed},
          {"train", score_json(run.score)},
          {"test", run.test ? score_json(*run.test) : Json()},
          {"step_at_95", reached < spec.steps ? Json(reached) : Json()},
          {"transitions", transitions_json(run.transitions())}};
}

Json document(const Options& options, const lnnet::Task* task, const std::vector<Run>& runs,
              const Run& best) {
  const lnnet::TrainSpec& spec = best.trainer.spec();
  Json all = Json::array();
  for (const Run& run : runs) all.push_back(run_json(run));
  return {{"schema", "normscope.train/1"},
          {"version", version},
          {"data", options.what},
          {"claim", task != nullptr ? Json(std::string(task->claim)) : Json()},
          {"rows", best.data.rows()},
          {"features", best.data.width},
          {"classes", best.data.classes},
          {"net",
           {{"width", spec.width},
            {"depth", spec.depth},
            {"activation", std::string(lnnet::to_string(spec.activation))},
            {"norm", std::string(to_string(spec.norm))},
            {"groups", spec.groups},
            {"eps", spec.eps},
            {"affine", spec.affine},
            {"parameters", best.trainer.parameters().size()}}},
          {"steps", spec.steps},
          {"batch", spec.batch},
          {"seed", best.seed},
          {"train", score_json(best.score)},
          {"test", best.test ? score_json(*best.test) : Json()},
          {"record_every", spec.record_every},
          {"loss", best.trainer.loss()},
          {"accuracy", best.trainer.accuracy()},
          {"transitions", transitions_json(best.transitions())},
          {"runs", all}};
}

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.write("\n");
  file.commit();
}

void write_figures(const std::string& folder, const Run& run) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw Error(ErrorCode::Io, fmt::format("{}: {}", printable(folder), failure.message()));
  const lnnet::Net net = run.trainer.net();
  write_text(fs::path(folder) / "curves.vl.json",
             lnnet::curves_figure(run.trainer.loss(), run.trainer.accuracy(), run.trainer.spec().record_every,
                                  run.transitions()));
  if (run.data.width == 2)
    write_text(fs::path(folder) / "boundary.vl.json", lnnet::boundary_figure(net, run.data));
  if (run.data.width <= 3 && run.trainer.spec().width <= 3) {
    write_text(fs::path(folder) / "morph.json", lnnet::morph(net, run.data));
  }
}

int run(const Session& session, Options options) {
  expect_writable({options.state});
  keep_apart({}, {options.state, session.json});
  options.spec.norm = norm_kind(options.norm);
  options.spec.activation = lnnet::activation(options.activation);
  options.spec.optimizer = lnnet::optimizer(options.optimizer);
  options.spec.schedule = lnnet::schedule(options.schedule);
  options.spec.precision = options.precision == "F32" ? Dtype::F32 : Dtype::F64;
  const lnnet::Task* task = lnnet::find_task(options.what);
  const std::size_t rows = task != nullptr && options.rows == 0 ? task->rows : options.rows;
  std::optional<lnnet::Dataset> given;
  if (task == nullptr) given = read_data(options);

  const Progress progress = session.progress();
  std::vector<Run> runs;
  for (std::size_t i = 0; i < options.seeds; ++i) {
    lnnet::TrainSpec spec = options.spec;
    spec.seed += i;
    lnnet::Dataset data = given ? *given : task->make(rows, spec.seed);
    lnnet::Trainer trainer(spec, data, session.threads);
    advance(trainer, progress, options.state);
    runs.push_back({.seed = spec.seed, .data = std::move(data), .trainer = std::move(trainer)});
    runs.back().score = runs.back().trainer.score();
    if (task != nullptr && task->fresh_test) {
      runs.back().test = runs.back().trainer.score(task->make(test_rows, spec.seed + test_seed_distance));
    }
  }
  const Run& best = *std::max_element(runs.begin(), runs.end(),
                                      [](const Run& a, const Run& b) { return a.accuracy() < b.accuracy(); });
  if (!options.figures.empty()) write_figures(options.figures, best);
  session.write_json(document(options, task, runs, best).dump());
  for (const Run& one : runs) {
    session.say(fmt::format(
        "seed {}: loss {:.4g}, accuracy {:.2f} %{}", one.seed, one.score.loss, 100.0 * one.score.accuracy,
        one.test ? fmt::format(", on new points {:.2f} %", 100.0 * one.test->accuracy) : ""));
  }
  return ok;
}

}  // namespace

void add_train(CLI::App& root, Session& session) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(root, session, "train",
                                  "Train an LN-Net: linear layers with a norm as the only nonlinearity",
                                  [&session, options] { return run(session, *options); });
  std::string names;
  for (const lnnet::Task& task : lnnet::tasks())
    names += (names.empty() ? "" : ", ") + std::string(task.name);
  lnnet::TrainSpec& spec = options->spec;
  command->add_option("WHAT", options->what, "A task (" + names + ") or samples, an ARRAY of rows x features")
      ->required();
  command->add_option("LABELS", options->labels, "For samples: an ARRAY with a class number a row");
  command->add_option("--width", spec.width, "Features of a layer (default 3)")->type_name("W");
  command->add_option("--depth", spec.depth, "Layers before the head (default 2)")->type_name("D");
  command->add_option("--activation", options->activation, "After each layer (default norm)")
      ->check(CLI::IsMember({"norm", "relu", "gelu", "none"}));
  command->add_option("--norm", options->norm, "Kind of norm (default spherical)")
      ->check(CLI::IsMember({"layer", "rms", "spherical"}));
  command->add_option("--groups", spec.groups, "Blocks normalized on their own (default 1)")->type_name("K");
  command->add_option("--eps", spec.eps, "Added to the mean square (default 1e-5)")->type_name("E");
  command->add_flag("--affine", spec.affine, "Learn gain and bias of the norms");
  command->add_option("--optimizer", options->optimizer, "Default adam")
      ->check(CLI::IsMember({"adam", "sgd"}));
  command->add_option("--lr", spec.rate, "Learning rate (default 0.01)")->type_name("X");
  command->add_option("--schedule", options->schedule, "Of the learning rate (default constant)")
      ->check(CLI::IsMember({"constant", "cosine", "linear", "step"}));
  command->add_option("--steps", spec.steps, "Steps (default 8000)")->type_name("N");
  command->add_option("--batch", spec.batch, "Rows a step (default: all)")->type_name("N");
  command->add_option("--precision", options->precision, "Of the arithmetic (default F64)")
      ->check(CLI::IsMember({"F64", "F32"}));
  command->add_option("--record-every", spec.record_every, "Steps between two records (default 10)")
      ->type_name("N");
  command->add_option("--rows", options->rows, "Samples of a task (default: the task's)")->type_name("N");
  command->add_option("--seed", spec.seed, "Of the weights, the order and a task's samples (default 1)")
      ->type_name("S");
  CLI::Option* seeds =
      command
          ->add_option("--seeds", options->seeds, "Train with this many seeds and keep the best (default 1)")
          ->type_name("N")
          ->check(CLI::PositiveNumber);
  command
      ->add_option("--resume", options->state,
                   "Keep the training's state in FILE and go on from it; Ctrl-C saves it too")
      ->type_name("FILE")
      ->excludes(seeds);
  command
      ->add_option("--figures", options->figures,
                   "Write figures (Vega-Lite) and the morph's data into FOLDER")
      ->type_name("FOLDER");
}

}  // namespace normscope::cli
