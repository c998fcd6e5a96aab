#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

/// The majority task: at every position of a sequence, name the most frequent class of the sequence; and the
/// transformer of one block and one head that learns it, with or without a norm before its attention.
namespace normscope::nets::majority {

inline constexpr std::size_t most_classes = 20;

/// The count of each class per sequence, which is all that a network without positions depends on; 0 for
/// classes that a task does not have.
using Counts = std::array<std::uint8_t, most_classes>;

struct Examples {
  std::vector<Counts> counts{};
  std::vector<std::uint8_t> majority{};  ///< the most frequent class, one entry per sequence

  [[nodiscard]] std::size_t size() const { return counts.size(); }
};

struct Task {
  std::size_t classes = most_classes;
  std::size_t length = 50;
  std::size_t sequences = 100000;  ///< at least this many, in whole partitions
  std::size_t lead = 6;            ///< by which the majority exceeds every other class
  std::size_t sequences_each = 10;
};

struct Data {
  Examples training{};
  Examples test{};  ///< a fifth, with the same fraction of every majority
};

/// Partitions of the length into at most as many parts as classes, found by a depth-first search that tries
/// sizes in random order, each with several random assignments of classes. The data contain few branches of
/// the search, and training and test share partitions, as in the released code.
///
/// Source    [Brody, Alon, Yahav 2023, section 4.1], and the authors' code
///
/// Errors    Argument for a task without partitions
[[nodiscard]] Data make_data(const Task& task, std::uint64_t seed);

/// The network of the paper's curves, and that of its figures 1a and 1b.
struct Eight {
  static constexpr std::size_t width = 8;
  static constexpr std::size_t classes = 20;
};
struct Three {
  static constexpr std::size_t width = 3;
  static constexpr std::size_t classes = 10;
};

/// Row-major; a row has the weights of one output.
template <class Size>
using Square = double[Size::width][Size::width];
template <class Size>
using Row = double[Size::width];
template <class Size>
using ClassRows = double[Size::classes][Size::width];

/// Means over all tokens of a batch.
struct Outcome {
  double loss = 0.0;
  double right = 0.0;  ///< accuracy over tokens
};

/// The transformation of tokens before attention: the projection orthogonal to all-ones if `projects`, then
/// scaling to a length whose square this is, unless it is 0. `by_deviation` divides by the length of the
/// projection in either case: without `projects` and at a squared length of the width, x / sigma.
struct InputNorm {
  bool projects = true;
  double squared_length = 8.0;
  bool by_deviation = false;
};

/// One block of a transformer encoder with a head: x = e + W_o attention(norm(e)) + b_o, then
/// x + second relu(first LN(x) + …) + …, logits by the embedding's own rows; eps = 0.
/// Parameters are one vector, in the order of `Layout`.
template <class Size>
struct Layout {
  static constexpr std::size_t square = Size::width * Size::width;
  static constexpr std::size_t embedding = 0;
  static constexpr std::size_t query = embedding + Size::classes * Size::width;
  static constexpr std::size_t key = query + square;
  static constexpr std::size_t value = key + square;
  static constexpr std::size_t out = value + square;
  static constexpr std::size_t out_bias = out + square;
  static constexpr std::size_t first = out_bias + Size::width;
  static constexpr std::size_t first_bias = first + square;
  static constexpr std::size_t second = first_bias + Size::width;
  static constexpr std::size_t second_bias = second + square;
  static constexpr std::size_t gain = second_bias + Size::width;
  static constexpr std::size_t shift = gain + Size::width;
  static constexpr std::size_t count = shift + Size::width;
};
static_assert(Layout<Eight>::count == 584, "the paper's number of parameters");

/// PyTorch's initial values for such a block, drawn from our own numbers.
template <class Size>
[[nodiscard]] std::vector<double> initial_parameters(std::uint64_t seed);

/// The attention-relevant state of the classes, which suffices because equal tokens have equal keys.
template <class Size>
struct AttentionTables {
  ClassRows<Size> key;    ///< output of the norm
  ClassRows<Size> query;  ///< effective, norm(e) W_qᵀ W_k / sqrt(width), for direct products with keys
  double score[Size::classes][Size::classes];
};

template <class Size>
[[nodiscard]] AttentionTables<Size> attention_tables(const InputNorm& norm,
                                                     std::span<const double> parameters);

/// The fraction of a sequence's attention that each class gets, in the mean over the tokens. If attention is
/// uniform, it is the class's fraction of the tokens.
template <class Size>
[[nodiscard]] std::array<double, Size::classes> class_attention(const AttentionTables<Size>& tables,
                                                                const Counts& counts);

template <class Real, class Size>
class Pairs;

/// The whole network, whose loss and gradient are computed class by class in `Real`.
template <class Real, class Size>
class Network {
 public:
  explicit Network(const InputNorm& norm);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  /// Loss on the sequences `rows` of `examples`; fills `gradient` unless it is empty.
  ///
  /// Shapes    parameters (Layout::count), gradient (as many or 0)
  ///
  /// Accuracy  in double, central differences agree to 1e-6 (test: Majority.GradientIsThatOfDifferences), and
  ///           the loss equals the token-by-token loss to 1e-12 (test: Majority.LossIsThatOfEveryToken)
  Outcome evaluate(std::span<const double> parameters, const Examples& examples,
                   std::span<const std::uint32_t> rows, std::span<double> gradient = {});

 private:
  InputNorm norm_;
  std::unique_ptr<Pairs<Real, Size>> pairs_;
};

struct Recipe {
  Task task{};
  InputNorm norm{};
  std::size_t batch = 6000;
  double rate = 1e-3;              ///< Adam's rate at the first step,
  double schedule_epochs = 1e4;    ///< decreasing linearly to zero after this many epochs
  std::size_t read_sequences = 0;  ///< number of test sequences whose attention is analysed
};

/// Statistics of a network's attention.
struct AttentionMeasures {
  double angle = 0.0;  ///< degrees between effective query and ones, folded to 0 … 90, over training tokens
  double query_length = 0.0;  ///< of effective queries, over training tokens
  double key_length = 0.0;    ///< over classes
  double key_spread = 0.0;    ///< standard deviation of their lengths divided by the mean
  double divergence =
      0.0;  ///< Kullback-Leibler, of attention over positions from the uniform, nats, over tokens
};

/// Trains one network as the released code does. `seed` determines data, initial values and orders.
///
/// Source    [Brody, Alon, Yahav 2023, section 4.1], and the authors' code; [Kingma, Ba 2015] Adam
///
/// Cost      about 4 ms per step of 6000 sequences on one core with AVX-512
template <class Size>
class Training {
 public:
  Training(const Recipe& recipe, std::uint64_t seed);

  [[nodiscard]] std::size_t step() const { return step_; }
  [[nodiscard]] std::size_t steps_an_epoch() const;
  void advance();

  /// Mean over the training batches of the last epoch, or of fewer at the start.
  ///
  /// Requires  at least one step
  [[nodiscard]] Outcome trained() const;
  [[nodiscard]] Outcome tested();
  [[nodiscard]] AttentionMeasures attention() const;
  /// Keys, effective queries and scores of the classes.
  [[nodiscard]] AttentionTables<Size> tables() const {
    return attention_tables<Size>(recipe_.norm, parameters_);
  }
  [[nodiscard]] std::span<const double> parameters() const { return parameters_; }
  [[nodiscard]] const Data& data() const { return data_; }

  /// The state that `restore` needs besides the step.
  [[nodiscard]] std::vector<std::byte> progress() const;
  /// Errors    Format for bytes that are not a saved state
  void restore(std::size_t step, std::span<const std::byte> progress);

 private:
  void order_epoch();

  Recipe recipe_;
  std::uint64_t seed_;
  Data data_;
  Network<float, Size> network_;
  std::vector<double> parameters_;
  std::vector<double> first_moments_ = std::vector<double>(Layout<Size>::count, 0.0);
  std::vector<double> second_moments_ = std::vector<double>(Layout<Size>::count, 0.0);
  std::vector<double> losses_{};  ///< of the last epoch's steps, with the accuracy of each
  std::vector<double> rights_{};
  std::vector<double> class_parts_{};   ///< for the training tokens
  std::vector<std::uint32_t> order_{};  ///< of the epoch
  std::vector<std::uint32_t> test_rows_{};
  std::vector<double> gradient_ = std::vector<double>(Layout<Size>::count, 0.0);
  std::size_t step_ = 0;
};

}  // namespace normscope::nets::majority
