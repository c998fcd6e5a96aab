#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/core/norm_spec.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/core/view.hpp>
#include <normscope/nets/net.hpp>

namespace normscope::nets {

/// Labelled samples: row i of `x` belongs to class `labels[i]` < `classes`.
///
/// Shapes    x (labels.size(), width)
struct Dataset {
  std::size_t width = 0;
  std::size_t classes = 0;
  std::vector<double> x{};
  std::vector<std::uint32_t> labels{};

  [[nodiscard]] std::size_t rows() const { return labels.size(); }
  [[nodiscard]] MatrixView<const double> view() const { return {x.data(), rows(), width}; }
};

/// Throws unless `data` has at least one row and one feature, finite entries, two classes or more, and labels
/// below the number of classes; the message begins with `who`.
///
/// Errors    Shape, Argument
void validate(std::string_view who, const Dataset& data);

/// Samples with labels given as numbers, as in an array file.
///
/// Errors    Shape; Argument for a label that is not an integer in [0, 2^24), naming its row
[[nodiscard]] Dataset dataset(std::string_view who, std::size_t width, std::vector<double> x,
                              const std::vector<double>& labels);

/// Rows equal to an earlier row with another label, which no net can fit both.
struct Conflicts {
  std::size_t rows = 0;   ///< number of such rows
  std::size_t first = 0;  ///< the first of them
  std::size_t of = 0;     ///< the row that it equals
};

/// Cost      O(rows · width)
[[nodiscard]] Conflicts conflicts(const Dataset& data);

enum class Optimizer { adam, sgd };

/// The schedule of the learning rate over T steps; at step t the rate is lr times
///   constant  1
///   cosine    (1 + cos(π t/T)) / 2
///   linear    1 in the first half, then down to 0 on a line
///   step      2^-floor(8 t/T)
enum class Schedule { constant, cosine, linear, step };

/// How weights and biases begin:
///   uniform     all uniform in ±1/sqrt(inputs)
///   orthogonal  weights with orthonormal rows or columns, whichever are fewer; biases normal of deviation
///   1/2
enum class Initialization { uniform, orthogonal };

/// The value of that name; the names are those above.
///
/// Errors    Argument if there is none
[[nodiscard]] Optimizer optimizer(std::string_view name);
[[nodiscard]] Schedule schedule(std::string_view name);
[[nodiscard]] Initialization initialization(std::string_view name);
[[nodiscard]] std::string_view to_string(Optimizer value);
[[nodiscard]] std::string_view to_string(Schedule value);
[[nodiscard]] std::string_view to_string(Initialization value);

/// The architecture of a net and its training: `depth` times a linear map to `width` features and
/// `activation`, then a linear map to one logit (two classes) or to one logit per class.
///
/// Source    [Winsor 2022]; [Ni et al. 2024, LN-Net]
struct TrainSpec {
  std::size_t width = 3;
  std::size_t depth = 2;
  Activation activation = Activation::norm;
  NormKind norm = NormKind::spherical;
  std::size_t groups = 1;
  double eps = 1e-5;
  bool affine = false;  ///< learn gain and bias of the norms
  Initialization initialization = Initialization::uniform;
  Optimizer optimizer = Optimizer::adam;
  double rate = 0.01;
  double momentum = 0.9;  ///< sgd
  double beta1 = 0.9;     ///< adam
  double beta2 = 0.999;
  Schedule schedule = Schedule::constant;
  std::size_t steps = 8000;
  std::size_t batch = 0;  ///< rows per step, in a new order every epoch; 0 for all
  std::uint64_t seed = 1;
  std::size_t record_every = 10;
  Dtype precision = Dtype::F64;  ///< F64 or F32

  bool operator==(const TrainSpec&) const = default;
};

/// Throws unless every number is in its domain, the groups divide the width, and a layer norm has at least
/// two features per group, since it is constant for one.
///
/// Errors    Argument
void validate(const TrainSpec& spec);

/// Learning rate of step `step`.
[[nodiscard]] double rate_at(const TrainSpec& spec, std::size_t step);

/// Mean loss, and fraction of rows whose largest logit is that of their label.
struct Score {
  double loss = 0.0;
  double accuracy = 0.0;
};

/// Everything needed to continue a training bitwise.
struct TrainState {
  std::size_t step = 0;
  std::vector<double> parameters{};
  std::vector<double> first{};  ///< first moments of the optimizer; `second` likewise
  std::vector<double> second{};
  std::vector<double> loss{};  ///< the records so far; `accuracy` likewise
  std::vector<double> accuracy{};
};

/// A training in progress.
///
/// The backward pass is written by hand: for a norm u = Πz/s the transposed Jacobian is Jᵀd = (Πd − u
/// (u·d)/n)/s, O(width) per row.
///
/// Source    [Winsor 2022]; [Kingma, Ba 2015] Adam; Jacobian: [Riechers 2024, eq. 6] differentiated
///
/// Accuracy  float64 gradients agree with central differences to 1e-7 relative
///           (test: Train.GradientsMatchFiniteDifferences)
///
/// Cost      a step is 6 · rows · parameters flops; on one thread it allocates nothing after the first
///           (tests/nets/train_memory.cpp)
///
/// Limits    results are bitwise independent of the number of threads (test: Train.ThreadsDoNotChangeABit);
///           the last bits depend on the machine's vector width
class Trainer {
 public:
  /// Errors    Argument, Shape: see `validate` of the spec and of the data
  Trainer(const TrainSpec& spec, std::shared_ptr<const Dataset> data, unsigned threads = 0);
  /// Trains on a copy of `data`.
  Trainer(const TrainSpec& spec, const Dataset& data, unsigned threads = 0);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// One step of the optimizer.
  ///
  /// Requires  !done()
  void step();
  [[nodiscard]] bool done() const { return steps_done() >= spec().steps; }
  [[nodiscard]] std::size_t steps_done() const;
  [[nodiscard]] const TrainSpec& spec() const;
  [[nodiscard]] const Dataset& data() const;

  /// Loss and accuracy of the batch of every `record_every`-th step, before that step.
  [[nodiscard]] std::span<const double> loss() const;
  [[nodiscard]] std::span<const double> accuracy() const;

  /// On the training data, or on `data` of the same width.
  [[nodiscard]] Score score() const;
  [[nodiscard]] Score score(const Dataset& data) const;

  /// Layer by layer: weights, bias, and with `affine` gain and shift.
  [[nodiscard]] std::vector<double> parameters() const;
  /// Requires  as many values as `parameters` has
  void set_parameters(std::span<const double> values);
  /// Gradient of the mean loss over the training data by `parameters`.
  [[nodiscard]] std::vector<double> gradient() const;

  /// The current net, with two classes as two logits 0 and z.
  [[nodiscard]] Net net() const;

  [[nodiscard]] TrainState state() const;
  /// Continues from a state of the same spec and data, bitwise as without the interruption (test:
  /// Train.ResumesFromAStateBitwise).
  ///
  /// Errors    Format if its sizes do not match the spec or it has values that are not finite
  void resume(const TrainState& state);

  /// Writes `state` as a snapshot that belongs to spec and data.
  ///
  /// Errors    Io
  void save(const std::filesystem::path& path) const;
  /// Continues from a saved state, bitwise as without the interruption (test: Train.ResumesBitwise).
  ///
  /// Errors    Io; Format for a file that is no state or is damaged; Argument if the state is of another spec
  ///           or of other data
  void resume(const std::filesystem::path& path);

 private:
  [[nodiscard]] const Digest& fingerprint() const;

  class Engine;
  template <typename T>
  class EngineOf;
  std::unique_ptr<Engine> engine_;
};

/// A sudden gain of accuracy.
struct Transition {
  std::size_t step = 0;  ///< start of its steepest window
  double gain = 0.0;
};

/// Phase transitions by a rule: a window of 100 steps, starting at step 200 or later, at whose end the
/// accuracy is at least 0.15 above the best before the window; overlapping windows are one transition. The
/// best before is used, not the value at the start, so that recovering from a spike does not count.
///
/// Source    [Winsor 2022] names the phenomenon; the rule is ours
[[nodiscard]] std::vector<Transition> transitions(std::span<const double> accuracy, std::size_t record_every);

/// First recorded step with at least `level` accuracy; `steps` if none.
[[nodiscard]] std::size_t first_step_at(std::span<const double> accuracy, std::size_t record_every,
                                        double level, std::size_t steps);

}  // namespace normscope::nets
