#include <normscope/results/documents.hpp>

#include <utility>
#include <vector>

#include <normscope/core/rounding.hpp>
#include <normscope/nets/circle.hpp>

#include "shared.hpp"

namespace normscope::results {

template <>
inline constexpr auto last_value<nets::Activation> = nets::Activation::none;
template <>
inline constexpr auto last_value<nets::Precision> = nets::Precision::double_double;

struct RunFields {
  const nets::Net& net;
  std::span<const std::int64_t> labels;
};

template <class V>
void fields(V& v, const RunFields& x) {
  begin(v, "run");
  v("layers", x.net.layers.size());
  v("rows", x.labels.size());
  v("labels", x.labels);
}

Json classification(const nets::Net& net, std::span<const std::int64_t> labels) {
  return json_of(RunFields{net, labels});
}
Json describe_run(SchemaMaker& maker) { return maker.schema_of(RunFields{{}, {}}); }

struct BuildFields {
  const nets::Construction& made;
  nets::Mode mode;
  const std::string& output;
};

template <class V>
void fields(V& v, const BuildFields& x) {
  const nets::Net& net = x.made.net;
  begin(v, "build");
  v("output", text_or_null(x.output), "The file of the net, null where it was not written");
  v("mode", one_of<"paper", "stable">(x.mode));
  v("precision", net.precision, "Precision in which the net is to be evaluated");
  v("layers", net.layers.size(), "LN layers; 0 for a single class");
  v("width", net.layers.empty() ? 0U : 3U, "Neurons per layer; 0 without layers");
  v("classes", net.classes, "Label of each output of the head");
  v("correct", x.made.correct, "Rows that the finished net classifies correctly");
  v("total", x.made.total, "Rows");
  v("distinct", x.made.distinct, "Distinct rows");
  v("relabelled", x.made.relabelled, "Rows that were given the label of an equal earlier row");
  v("attempts", positive(x.made.attempts), "Number of combinations of kappa, projection and precision tried");
}

Json construction(const nets::Construction& made, nets::Mode mode, const std::string& output) {
  return json_of(BuildFields{made, mode, output});
}
Json describe_build(SchemaMaker& maker) { return maker.schema_of(BuildFields{{}, {}, {}}); }

struct FoldFields {
  std::size_t layer;
  const nets::Fold& fold;
};

template <class V>
void fields(V& v, const FoldFields& x) {
  v("layer", x.layer);
  v("pair", nullable(x.fold.first != nets::no_row, std::array{x.fold.first, x.fold.second}),
    "Rows whose clusters, of one class, become one; null where the layer only breaks a tie");
  v("midpoint", x.fold.midpoint);
  v("radius", above_zero(x.fold.radius));
  v("gap", not_negative(finite_or_null(x.fold.gap)),
    "Smallest distance that the fold leaves between two classes, in units of half the pair's; 0 where it "
    "folds nothing or in paper mode, null where no other class lies across");
  v("runs", positive(x.fold.runs), "Runs of equal labels along the line after the layer");
}

std::string fold_lines(const std::vector<nets::Fold>& folds) {
  std::string lines;
  for (std::size_t l = 0; l < folds.size(); ++l) lines += json_of(FoldFields{l, folds[l]}).dump() + "\n";
  return lines;
}
Json describe_build_trace(SchemaMaker& maker) { return maker.schema_of(FoldFields{0, {}}); }

struct MorphFields {
  const nets::MorphStates& states;
  const nets::Dataset& data;
};

template <class V>
void fields(V& v, const MorphFields& x) {
  using Points = std::vector<std::vector<double>>;
  std::vector<Points> states;
  for (const std::vector<double>& entries : x.states.list) {
    Points points(x.data.rows(), std::vector<double>(x.states.width));
    for (std::size_t i = 0; i < x.data.rows() * x.states.width; ++i) {
      points[i / x.states.width][i % x.states.width] = rounded_to_four_decimals(entries[i]);
    }
    states.push_back(std::move(points));
  }
  name_schema(v, "morph");
  v("width", positive(x.states.width), "Coordinates of a point: the widest layer's");
  v("labels", at_least_items(1, x.data.labels), "Class of each sample");
  v("states", at_least_items(1, states),
    "The samples, filled up with zeros, then what every layer gives, to four decimals");
}

Json morph(const nets::Net& net, const nets::Dataset& data) {
  return json_of(MorphFields{morph_states(net, data.view()), data});
}
Json describe_morph(SchemaMaker& maker) { return maker.schema_of(MorphFields{{}, {}}); }

template <class V>
void fields(V& v, const nets::Score& score) {
  v.define("score");
  v("loss", finite_or_null(score.loss));
  v("accuracy", score.accuracy);
}

template <class V>
void fields(V& v, const nets::Transition& transition) {
  v("step", transition.step);
  v("gain", transition.gain);
}

namespace {

auto score_or_null(const std::optional<nets::Score>& score) { return defined("score_or_null", score); }

auto transitions(const std::vector<nets::Transition>& found) {
  return defined(
      "transitions", found,
      "Windows of 100 steps, from step 200 on, that end at least 0.15 above the best accuracy before");
}

}  // namespace

/// One run of several.
struct TrainedRun {
  nets::TrainSpec spec{};
  nets::Score score{};
  std::optional<nets::Score> test{};
  std::size_t step_at_95 = 0;
  std::vector<nets::Transition> found{};
};

template <class V>
void fields(V& v, const TrainedRun& x) {
  v("seed", x.spec.seed);
  v("groups", nullable(x.spec.depth > 0, x.spec.groups),
    "Number of groups of the norms, null for a linear classifier");
  v("train", x.score);
  v("test", score_or_null(x.test));
  v("step_at_95", nullable(x.step_at_95 < x.spec.steps, x.step_at_95),
    "First recorded step with 95 % accuracy");
  v("transitions", transitions(x.found));
}

struct TrainFields {
  const TrainedOn& on;
  nets::TrainSpec spec{};  ///< of the best run, as what follows
  const nets::Dataset& data;
  std::size_t parameters = 0;
  nets::Score score{};
  std::optional<nets::Score> test{};
  std::span<const double> loss{};
  std::span<const double> accuracy{};
  std::vector<nets::Transition> found{};
  std::vector<TrainedRun> runs{};
};

template <class V>
void fields(V& v, const TrainFields& x) {
  const nets::TrainSpec& spec = x.spec;
  begin(v, "train");
  v("data", x.on.data, "Task or samples, as given");
  v("claim", text_or_null(x.on.claim), "What the paper says about the task");
  v("rows", positive(x.data.rows()));
  v("features", positive(x.data.width));
  v("classes", at_least(2, x.data.classes));
  v("conflicts", x.data.rows() == 0 ? 0 : nets::conflicts(x.data).rows,
    "Rows equal to an earlier row with another label, so that no net can classify all correctly");
  v("net", object([&](auto& net) {
      net("width", positive(spec.width));
      net("depth", spec.depth);
      net("activation", spec.activation);
      net("norm", DividingKind{spec.norm});
      net("groups", positive(spec.groups));
      net("eps", spec.eps);
      net("affine", spec.affine);
      net("parameters", x.parameters);
    }));
  v("steps", spec.steps);
  v("batch", positive(spec.batch));
  v("seed", spec.seed, "Random seed of the best run");
  v("train", x.score);
  v("test", score_or_null(x.test));
  v("record_every", positive(spec.record_every));
  v("loss", each(x.loss, finite_or_null));
  v("accuracy", x.accuracy);
  v("transitions", transitions(x.found));
  v("runs", at_least_items(1, x.runs));
  v("output", text_or_null(x.on.output), "The net that was written");
}

Json training(const TrainedOn& on, const std::vector<nets::TrainRun>& runs) {
  const nets::TrainRun& best = nets::best_of(runs);
  TrainFields document{on,
                       best.spec(),
                       best.trainer.data(),
                       best.trainer.parameters().size(),
                       best.score,
                       best.test,
                       best.trainer.loss(),
                       best.trainer.accuracy(),
                       best.transitions()};
  for (const nets::TrainRun& run : runs) {
    const nets::TrainSpec& spec = run.spec();
    const std::size_t reached =
        nets::first_step_at(run.trainer.accuracy(), spec.record_every, 0.95, spec.steps);
    document.runs.push_back({spec, run.score, run.test, reached, run.transitions()});
  }
  return json_of(document);
}
Json describe_train(SchemaMaker& maker) { return maker.schema_of(TrainFields{.on = {}, .data = {}}); }

}  // namespace normscope::results
