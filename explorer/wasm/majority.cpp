#include <cstdint>
#include <variant>

#include <emscripten/bind.h>

#include <normscope/nets/majority.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

namespace majority = nets::majority;

/// {width, length, sequences, batch, rate, project, squaredLength}
majority::Recipe recipe(const val& spec, std::size_t classes) {
  return {.task = {.classes = classes,
                   .length = size(spec, "length", 50),
                   .sequences = size(spec, "sequences", 10000)},
          .norm = {.projects = get<bool>(spec, "project", true),
                   .squared_length = get<double>(spec, "squaredLength", 8.0)},
          .batch = size(spec, "batch", 6000),
          .rate = get<double>(spec, "rate", 1e-3),
          .read_sequences = 100};
}

template <class Rows>
val flat(const Rows& rows) {
  const auto* values = reinterpret_cast<const double*>(&rows);
  return float64_array({values, sizeof(Rows) / sizeof(double)});
}

/// A training of the majority task, of vectors of three numbers or eight.
class MajorityTraining {
 public:
  static MajorityTraining* make(const val& spec, double seed) {
    return guarded([&] { return new MajorityTraining(spec, static_cast<std::uint64_t>(seed)); });
  }

  /// Trains on → what `look` returns.
  val advance(double steps) {
    std::visit(
        [&](auto& training) {
          for (double step = 0.0; step < steps; ++step) training.advance();
        },
        training_);
    return look();
  }

  /// {step, loss, accuracy, angle, queryLength, divergence, keys, queries, attention}: loss and accuracy over
  /// the tokens of sequences held out; keys and queries (classes × width); attention, the fraction that each
  /// class gets in the example.
  val look() {
    return std::visit(
        [](auto& training) {
          const majority::Outcome tested = training.tested();
          const majority::AttentionMeasures measures = training.attention();
          const auto tables = training.tables();
          val result = val::object();
          result.set("step", training.step());
          result.set("loss", tested.loss);
          result.set("accuracy", tested.right);
          result.set("angle", measures.angle);
          result.set("queryLength", measures.query_length);
          result.set("divergence", measures.divergence);
          result.set("keys", flat(tables.key));
          result.set("queries", flat(tables.query));
          result.set("attention",
                     float64_array(majority::class_attention(tables, training.data().test.counts.front())));
          return result;
        },
        training_);
  }

  /// The number of tokens of each class in the example, the first of the sequences held out.
  val example() const {
    return std::visit(
        [](const auto& training) {
          const majority::Counts& counts = training.data().test.counts.front();
          return float64_array(std::vector<double>(counts.begin(), counts.end()));
        },
        training_);
  }

 private:
  using Any = std::variant<majority::Training<majority::Three>, majority::Training<majority::Eight>>;

  MajorityTraining(const val& spec, std::uint64_t seed)
      : training_(
            size(spec, "width", 8) == majority::Three::width
                ? Any(majority::Training<majority::Three>(recipe(spec, majority::Three::classes), seed))
                : Any(majority::Training<majority::Eight>(recipe(spec, majority::Eight::classes), seed))) {}

  Any training_;
};

}  // namespace

EMSCRIPTEN_BINDINGS(majority) {
  emscripten::class_<MajorityTraining>("MajorityTraining")
      .constructor(&MajorityTraining::make, emscripten::allow_raw_pointers())
      .function("advance", &MajorityTraining::advance)
      .function("look", &MajorityTraining::look)
      .function("example", &MajorityTraining::example);
}

}  // namespace normscope::wasm
