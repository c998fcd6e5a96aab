#include <cstdint>
#include <optional>

#include <emscripten/bind.h>
#include <nlohmann/json.hpp>

#include <normscope/nets/answers.hpp>
#include <normscope/nets/circle.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/nets/train_runs.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

/// {width, depth, activation, norm, groups, eps, affine, optimizer, rate, schedule, steps, batch, seed}; what
/// is left out is TrainSpec's.
nets::TrainSpec train_spec(const val& spec) {
  nets::TrainSpec result;
  result.width = size(spec, "width", result.width);
  result.depth = size(spec, "depth", result.depth);
  result.activation = nets::activation(get<std::string>(spec, "activation", "norm"));
  result.norm = norm_kind(get<std::string>(spec, "norm", "spherical"));
  result.groups = size(spec, "groups", result.groups);
  result.eps = get<double>(spec, "eps", result.eps);
  result.affine = get<bool>(spec, "affine", result.affine);
  result.optimizer = nets::optimizer(get<std::string>(spec, "optimizer", "adam"));
  result.rate = get<double>(spec, "rate", result.rate);
  result.schedule = nets::schedule(get<std::string>(spec, "schedule", "constant"));
  result.steps = size(spec, "steps", result.steps);
  result.batch = size(spec, "batch", result.batch);
  result.seed = size(spec, "seed", 1);
  return result;
}

const nets::Task& task_named(const std::string& name) {
  for (const nets::Task& task : nets::tasks()) {
    if (task.name == name) return task;
  }
  throw Error(ErrorCode::Argument, "training: there is no task " + name);
}

/// Samples of a task, {task, rows, seed, noise}, or a reader's own, {width, x, labels}, and perhaps those to
/// test on as {held: {x, labels}}.
nets::TrainData train_data(const val& data) {
  const std::string name = get<std::string>(data, "task", "");
  if (!name.empty()) {
    const nets::Task& task = task_named(name);
    return nets::with_noise(nets::data_of(task, size(data, "rows", task.rows)),
                            get<double>(data, "noise", 0.0));
  }
  const auto points = [&](const char* what, const val& part) {
    return nets::dataset(what, size(data, "width"), numbers(part["x"]), numbers(part["labels"]));
  };
  nets::TrainData own = nets::data_of(points("points", data));
  const val held = data["held"];
  if (!held.isUndefined() && !held.isNull()) {
    own.test = [rows = points("points held out", held)](std::uint64_t) { return rows; };
  }
  return own;
}

/// The seed that a task's samples are drawn from.
std::uint64_t seed_of(const val& data) { return size(data, "seed", 1); }

nets::Grid grid(const val& value) {
  return {.left = get<double>(value, "left", 0.0),
          .right = get<double>(value, "right", 1.0),
          .bottom = get<double>(value, "bottom", 0.0),
          .top = get<double>(value, "top", 1.0),
          .columns = size(value, "columns", 1),
          .rows = size(value, "rows", 1)};
}

val answers_of(const nets::Answers& found) {
  const std::vector<std::int32_t> classes(found.classes.begin(), found.classes.end());
  val result = val::object();
  result.set("classes", int32_array(classes));
  result.set("probabilities", float32_array(found.probabilities));
  return result;
}

val marks_of(std::span<const nets::Transition> transitions) {
  val list = val::array();
  for (const nets::Transition& one : transitions) {
    val mark = val::object();
    mark.set("step", one.step);
    mark.set("gain", one.gain);
    list.call<void>("push", mark);
  }
  return list;
}

/// A training that goes on when told to and can be looked at as it was.
class Training {
 public:
  static Training* make(const val& spec, const val& data) {
    return guarded([&] { return new Training(train_spec(spec), train_data(data), seed_of(data)); });
  }

  /// Trains on → {steps, loss, accuracy, distance}, loss and accuracy of the last record.
  val advance(double steps) {
    recording_.advance(static_cast<std::size_t>(steps));
    const nets::Trainer& trainer = recording_.trainer();
    const bool any = !trainer.loss().empty();
    val result = val::object();
    result.set("steps", recording_.steps());
    result.set("loss", any ? val(trainer.loss().back()) : val::null());
    result.set("accuracy", any ? val(trainer.accuracy().back()) : val::null());
    result.set("distance", recording_.distance());
    return result;
  }

  /// {step, loss, accuracy, held} on the samples at the step kept nearest before `step`; held: accuracy on
  /// samples that are not trained on, null where there are none.
  val score(double step) const {
    const nets::Score found = recording_.score(static_cast<std::size_t>(step));
    val result = val::object();
    result.set("step", recording_.kept(static_cast<std::size_t>(step)));
    result.set("loss", found.loss);
    result.set("accuracy", found.accuracy);
    result.set("held",
               held_ ? val(recording_.score(static_cast<std::size_t>(step), *held_).accuracy) : val::null());
    return result;
  }

  /// {classes, probabilities} of rows as wide as the samples.
  val answers(const val& points, double step) const {
    return guarded([&] {
      const std::vector<double> x = numbers(points);
      const std::size_t width = recording_.trainer().data().width;
      if (x.size() % width != 0) throw Error(ErrorCode::Shape, "answers: expected whole rows");
      return answers_of(
          nets::answers(recording_.net(static_cast<std::size_t>(step)), {x.data(), x.size() / width, width}));
    });
  }

  /// Outputs at a grid's cells.
  val field(const val& cells, double step) const {
    return guarded([&] {
      const nets::Grid where = grid(cells);
      const std::vector<double> x = where.centers();
      return answers_of(
          nets::answers(recording_.net(static_cast<std::size_t>(step)), {x.data(), x.size() / 2, 2}));
    });
  }

  /// Rows after every layer: {width, states: [rows × width]}; without points the samples.
  val states(const val& points, double step) const { return morph(nets::morph_states, points, step); }

  /// The frames between layers with two entries a layer: its linear map, then its activation.
  val steps(const val& points, double step) const { return morph(nets::morph_steps, points, step); }

  /// Softmax over the classes for each row.
  val probabilities(const val& points, double step) const {
    return guarded([&] {
      const std::vector<double> x = numbers(points);
      return float32_array(
          nets::class_probabilities(recording_.net(static_cast<std::size_t>(step)), rows(x), 1));
    });
  }

  /// Outputs of every layer, without the input: {width, states: [rows × width]}; without points the samples.
  val layers(const val& points, double step) const {
    return guarded([&] {
      const std::vector<double> x = points.isNull() ? recording_.trainer().data().x : numbers(points);
      val list = val::array();
      for (const std::vector<double>& state :
           nets::trace(recording_.net(static_cast<std::size_t>(step)), rows(x), 1)) {
        list.call<void>("push", float32_array(state));
      }
      val result = val::object();
      result.set("width", recording_.trainer().spec().width);
      result.set("states", list);
      return result;
    });
  }

  /// {weight (outputs, width), bias (outputs)} of the last linear map.
  val head(double step) const {
    const nets::Layer layer = recording_.net(static_cast<std::size_t>(step)).head;
    val result = val::object();
    result.set("weight", float64_array(layer.weight));
    result.set("bias", float64_array(layer.bias));
    return result;
  }

  /// Weights of every linear map, the last one included: [{in, out, weight (out, in)}].
  val weights(double step) const {
    const nets::Net net = recording_.net(static_cast<std::size_t>(step));
    val result = val::array();
    const auto add = [&](const nets::Layer& layer) {
      val map = val::object();
      map.set("in", layer.in);
      map.set("out", layer.out);
      map.set("weight", float64_array(layer.weight));
      result.call<void>("push", map);
    };
    for (const nets::Layer& layer : net.layers) add(layer);
    add(net.head);
    return result;
  }

  /// {step, loss, accuracy, transitions: [{step, gain}]}, thinned out to about `most` records.
  val curves(double most) const {
    const nets::Trainer& trainer = recording_.trainer();
    const nets::Curves shown = nets::thinned(trainer.loss(), trainer.accuracy(), trainer.spec().record_every,
                                             static_cast<std::size_t>(most));
    val result = val::object();
    result.set("step", float64_array(shown.step));
    result.set("loss", float64_array(shown.loss));
    result.set("accuracy", float64_array(shown.accuracy));
    result.set("transitions", marks_of(nets::transitions(trainer.accuracy(), trainer.spec().record_every)));
    return result;
  }

 private:
  Training(const nets::TrainSpec& spec, const nets::TrainData& data, std::uint64_t seed)
      : recording_(spec, *data.samples(seed)),
        held_(data.test ? std::optional(data.test(seed)) : std::nullopt) {}

  using States = nets::MorphStates (*)(const nets::Net&, MatrixView<const double>);

  [[nodiscard]] val morph(States states, const val& points, double step) const {
    return guarded([&] {
      const std::vector<double> x = points.isNull() ? recording_.trainer().data().x : numbers(points);
      const nets::MorphStates found = states(recording_.net(static_cast<std::size_t>(step)), rows(x));
      val list = val::array();
      for (const std::vector<double>& state : found.list) list.call<void>("push", float32_array(state));
      val result = val::object();
      result.set("width", found.width);
      result.set("states", list);
      return result;
    });
  }

  [[nodiscard]] MatrixView<const double> rows(const std::vector<double>& x) const {
    const std::size_t width = recording_.trainer().data().width;
    if (x.size() % width != 0) throw Error(ErrorCode::Shape, "samples: expected whole rows");
    return {x.data(), x.size() / width, width};
  }

  nets::Recording recording_;
  std::optional<nets::Dataset> held_;
};

/// {x, labels, width, classes, grid}: the samples, and for two features the rectangle around them.
val samples(const val& data, double cells) {
  return guarded([&] {
    const nets::Dataset found = *train_data(data).samples(seed_of(data));
    const std::vector<std::int32_t> labels(found.labels.begin(), found.labels.end());
    val result = val::object();
    result.set("x", float64_array(found.x));
    result.set("labels", int32_array(labels));
    result.set("width", found.width);
    result.set("classes", found.classes);
    result.set("conflicts", nets::conflicts(found).rows);
    if (found.width == 2 && found.rows() > 0) {
      const nets::Grid around = nets::grid_around(found, static_cast<std::size_t>(cells));
      val where = val::object();
      where.set("left", around.left);
      where.set("right", around.right);
      where.set("bottom", around.bottom);
      where.set("top", around.top);
      where.set("columns", around.columns);
      where.set("rows", around.rows);
      result.set("grid", where);
    }
    return result;
  });
}

val centers(const val& cells) {
  return guarded([&] { return float64_array(grid(cells).centers()); });
}

val on_sphere(const val& places) {
  const std::vector<double> values = numbers(places);
  return float64_array(nets::on_sphere({values.data(), values.size() / 2, 2}));
}

val on_map(const val& points) {
  const std::vector<double> values = numbers(points);
  return float64_array(nets::on_map({values.data(), values.size() / 3, 3}));
}

/// Loss and accuracy as a chart without records, to be given those of `curves`.
std::string curves_figure(double steps) {
  return json_text(figures::training_curves({}, {}, 1, {}, static_cast<std::size_t>(steps)));
}

/// [{name, claim, rows, depth, rate, schedule, steps}]: what the tasks are trained with unless told
/// otherwise.
val tasks() {
  val list = val::array();
  for (const nets::Task& task : nets::tasks()) {
    val entry = val::object();
    entry.set("name", task.name);
    entry.set("claim", task.claim);
    entry.set("rows", task.rows);
    entry.set("depth", task.spec.depth);
    entry.set("rate", task.spec.rate);
    entry.set("schedule", std::string(nets::to_string(task.spec.schedule)));
    entry.set("steps", task.spec.steps);
    list.call<void>("push", entry);
  }
  return list;
}

}  // namespace

EMSCRIPTEN_BINDINGS(playground) {
  emscripten::class_<Training>("Training")
      .constructor(&Training::make, emscripten::allow_raw_pointers())
      .function("advance", &Training::advance)
      .function("score", &Training::score)
      .function("answers", &Training::answers)
      .function("field", &Training::field)
      .function("states", &Training::states)
      .function("steps", &Training::steps)
      .function("probabilities", &Training::probabilities)
      .function("layers", &Training::layers)
      .function("head", &Training::head)
      .function("weights", &Training::weights)
      .function("curves", &Training::curves);
  emscripten::function("playgroundSamples", &samples);
  emscripten::function("playgroundCenters", &centers);
  emscripten::function("playgroundOnSphere", &on_sphere);
  emscripten::function("playgroundOnMap", &on_map);
  emscripten::function("playgroundCurvesFigure", &curves_figure);
  emscripten::function("playgroundTasks", &tasks);
}

}  // namespace normscope::wasm
