#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

/// The forward pass of decoders whose blocks are causal self-attention and an MLP or a mixture of experts,
/// and of encoders of BERT's kind, as `model` describes them.
namespace normscope::forward {

/// A token that may follow, with its logit and its probability among all tokens.
struct Continuation {
  std::size_t token = 0;
  double logit = 0.0;
  double probability = 0.0;
};

/// The distribution of the token after one position.
struct Prediction {
  std::vector<Continuation> likeliest{};  ///< in order
  std::optional<Continuation> next{};     ///< the token that does follow; empty at the last position
  std::size_t rank = 0;                   ///< of that token, from 0: the number of tokens with larger logits
};

/// Called with the index of a norm in `model.norms` and the rows that enter it, one for each token.
using Observe = std::function<void(std::size_t norm, MatrixView<const double> rows)>;

/// An addend of the residual stream: an embedding, or what one head, all of an MLP, or a bias adds to it.
struct Component {
  enum class Kind { embedding, position, head, attention_bias, mlp, mlp_bias };
  Kind kind = Kind::embedding;
  std::optional<int> layer{};  ///< of heads, MLPs and biases
  std::optional<int> head{};
  /// The norm of its branch's output, or of an embedding, which it goes through before it is added; null if
  /// there is none.
  const models::Norm* after = nullptr;
  /// The norm that its branch reads, and its maps: of a head that of its values, and its columns of the
  /// output map, from `first_input` on. Null where there are none or where more lies between them (a clamp, a
  /// sink), and for mixtures of experts.
  const models::Norm* reads = nullptr;
  const models::Linear* in = nullptr;
  const models::Linear* gate = nullptr;
  const models::Linear* out = nullptr;
  std::size_t first_input = 0;

  /// "embedding", "position", "3.2" (layer 3, head 2), "3.attention_bias", "3.mlp", "3.mlp_bias".
  [[nodiscard]] std::string name() const;
};

/// The activation function of MLPs.
[[nodiscard]] double activated(models::Activation activation, double x);

/// What `Decoder::run_apart` calls with the index of a component and its rows, one for each token.
struct Apart {
  /// May change what a component computes, before the norm of its branch's output and before the model's
  /// factor of branches.
  std::function<void(std::size_t component, MatrixView<double> rows)> change{};
  /// Takes what it adds to the stream. Behind a norm of the branch's output that is its part of the output,
  /// which is linear in it while the norm's divisor is kept; the bias of that norm counts as a bias.
  std::function<void(std::size_t component, MatrixView<const double> rows)> collect{};
  Observe observe{};
  /// The rows that entered each of `Decoder::norms()` in a pass of the same tokens without changes. With
  /// them, the pass begins with the branch of component `first`; no hook is called with what is before.
  const std::vector<std::vector<double>>* entered = nullptr;
  std::size_t first = 0;
  /// Keeps the weights of attention, the divisors of norms and the outputs of MLPs as in the pass of
  /// `entered`: all else is linear. `change` may then add to what a component adds to the stream.
  bool frozen = false;
  /// Whether `change` is for a component, by its index; empty: for all. The others are added together.
  std::vector<bool> changed{};
  /// Whether `change` gives rows of its own whatever it gets, so that what it replaces need not be computed:
  /// it then gets any rows. Without `collect`.
  bool replaces = false;
  /// Whether the last position alone is wanted: what no head reads any more is then computed for it alone,
  /// and hooks get that row.
  bool last_only = false;
};

/// Called with the attention weights of heads, once for each head of the model.
struct AttentionObserver {
  std::size_t first = 0;  ///< position of the first query whose weights are wanted
  /// The index of the head in `model.heads`; row r has the weights of the query at position first + r, one a
  /// position, 0 behind that query and outside of its window.
  std::function<void(std::size_t head, MatrixView<const double> weights)> see{};
};

/// Changes of a matrix, by its selector, relative to the root mean square of each row; and of a norm's gain
/// and bias, by its name. The empty name is that of all others.
using WeightChanges = std::map<std::string, double, std::less<>>;

/// Changes at random of what a pass computes, which show how far rounding may move its results. Each product,
/// norm and attention output is moved up or down by the bound of its own rounding.
struct Disturbance {
  std::uint64_t seed = 0;  ///< 0: none
  WeightChanges changes{};
};

struct PassOptions {
  bool encoders = false;  ///< whether encoders are run too
  Disturbance disturbance{};
};

/// Largest number of tokens of a pass, for models that state no smaller one. Scores take its square.
inline constexpr std::size_t most_tokens = 4096;

/// Computes in double precision, and reads weights as it needs them.
class Decoder {
 public:
  /// Keeps references to both arguments.
  ///
  /// Errors    Unsupported, "not modelled: …", unless everything that the model computes is known: its
  ///           architecture, all its tensors and all fields of its configuration; and for encoders unless
  ///           `options` ask for them
  Decoder(const files::Checkpoint& checkpoint, const models::Model& model, unsigned threads = 0,
          const PassOptions& options = {});
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  /// Number of tokens in the vocabulary, of which the embedding has a row each.
  [[nodiscard]] std::size_t vocabulary() const;
  /// Whether there is a map to the vocabulary. An encoder may have none; then its hidden states, the output
  /// of its last norm, stand in place of logits.
  [[nodiscard]] bool has_logits() const;
  /// Number of logits, or of features of a hidden state.
  [[nodiscard]] std::size_t outputs() const;
  /// The largest number of tokens of a context.
  [[nodiscard]] std::size_t positions() const;
  /// What the token embedding gives the stream for a token.
  ///
  /// Errors    as `models::read_weight`
  [[nodiscard]] std::vector<double> embedding(std::size_t token) const;
  /// What the embeddings of positions give it, row-major, for each of `positions()`; empty without any.
  ///
  /// Errors    as `models::read_weight`
  [[nodiscard]] std::vector<double> position_embeddings() const;
  /// The norms on the residual stream, as indices in `model.norms`, in the order of the pass. The last is the
  /// final norm.
  [[nodiscard]] const std::vector<std::size_t>& norms() const;

  /// The output of the final norm for each token, row-major. `observe` is called with each of `norms()`,
  /// `attention` with each head behind the norm that it reads.
  ///
  /// Errors    Argument for no tokens, more than `positions()`, or a token outside the vocabulary; as
  ///           `models::read_weight`; Cancelled
  ///
  /// Accuracy  logits agree with those of transformers to 2e-5 for fixtures of every supported architecture
  ///           (test: Decoder.HasTheLogitsOfTransformers)
  ///
  /// Cost      2 · tokens · parameters operations, and attention; memory: the largest matrix of weights, and
  ///           rows of the stream
  [[nodiscard]] std::vector<double> run(std::span<const std::size_t> tokens, const Observe& observe = {},
                                        const Progress& progress = {},
                                        const AttentionObserver& attention = {}) const;

  /// The addends of the stream, in the order in which they are added.
  [[nodiscard]] const std::vector<Component>& components() const;

  /// As `run`, with every component's rows apart.
  ///
  /// Accuracy  what is collected adds up to the stream that enters the final norm, up to rounding, unless
  ///           `change` is given (test: Decoder.AddsItsComponentsToTheStream); a `change` that changes
  ///           nothing gives the same bits as none, and a pass that begins late those of a whole one (test:
  ///           Decoder.BeginsWhereAComponentChanges)
  ///
  /// Errors    as `run`; Unsupported if `collect` is given and a branch ends in a norm that is elementwise or
  ///           has groups, and if it is frozen for any such norm and for branches that read the stream itself
  ///
  /// Requires  a frozen pass begins at component 0 and has no `collect`
  ///
  /// Cost      as `run`, or `share_behind(first)` of it; memory: the widest output map, and rows of the
  ///           stream for each component of a branch
  [[nodiscard]] std::vector<double> run_apart(std::span<const std::size_t> tokens, const Apart& apart,
                                              const Progress& progress = {}) const;

  /// As that for each of `runs`, one after the other, but each matrix is read once for all of them. None is
  /// frozen, and `last_only` is the same for all.
  [[nodiscard]] std::vector<double> run_apart(std::span<const std::size_t> tokens,
                                              std::span<const Apart> runs,
                                              const Progress& progress = {}) const;

  /// The part of the norms' steps that a pass has left when it begins with that component: 1 for an
  /// embedding.
  [[nodiscard]] double share_behind(std::size_t component) const;

  /// The logits for rows of the final norm's output, before softmax.
  ///
  /// Shapes    hidden (any rows, width), logits (the same rows, outputs())
  ///
  /// Errors    as `models::read_weight`; Cancelled
  void logits(MatrixView<const double> hidden, MatrixView<double> logits,
              const Progress& progress = {}) const;

  /// What follows each of `tokens`, given the result of `run`.
  [[nodiscard]] std::vector<Prediction> predict(std::span<const std::size_t> tokens,
                                                std::span<const double> hidden, std::size_t likeliest,
                                                const Progress& progress = {}) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace normscope::forward
