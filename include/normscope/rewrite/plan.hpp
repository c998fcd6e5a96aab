#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

namespace normscope::rewrite {

/// An orthogonal matrix Q of a residual stream's features.
class Rotation {
 public:
  /// Random, from a seed: Q = (R ⊗ H) diag(s) for width = m 2^k with odd m, where H is the Hadamard matrix of
  /// 2^k features over its length, R a random orthogonal m × m matrix and s random signs; dense where the
  /// width is odd. With `keeps_ones`, a reflection behind it gives Q 1 = 1, so that Q commutes with LayerNorm
  /// too, which subtracts the mean.
  ///
  /// Source    [Ashkboos et al. 2024, QuaRot, randomized Hadamard matrices]
  static Rotation random(std::size_t width, std::uint64_t seed, bool keeps_ones);
  /// The nearest orthogonal matrix of a given one, row-major (width × width).
  ///
  /// Errors    Argument if it is not orthogonal to 1e-3
  static Rotation nearest(std::vector<double> matrix, std::size_t width);

  [[nodiscard]] std::size_t width() const { return width_; }
  /// Whether Q 1 is 1 or -1, to 1e-9: then Q commutes with the subtraction of the mean.
  [[nodiscard]] bool keeps_ones() const { return keeps_ones_; }
  /// |computed - Q x| is at most this times |x|.
  ///
  /// Accuracy  test: RewriteRotation.IsOrthogonalToItsBound
  [[nodiscard]] double error() const;

  /// Replaces every row x of `rows` (n × width) by Q x; the result for a row does not depend on other rows.
  void apply(std::span<double> rows, unsigned threads = 1) const;
  /// By Qᵀ x.
  void apply_transposed(std::span<double> rows, unsigned threads = 1) const;

  /// The numbers from which `from_numbers` makes the same rotation.
  [[nodiscard]] std::vector<double> numbers() const;
  /// Errors    Format for numbers that no rotation of that width has
  static Rotation from_numbers(std::span<const double> numbers, std::size_t width);

 private:
  explicit Rotation(std::size_t width) : width_(width) {}
  void factors(double* row, std::vector<double>& work, bool transposed) const;
  void reflect(double* row) const;
  void apply_all(std::span<double> rows, unsigned threads, bool transposed) const;

  std::size_t width_ = 0;
  std::size_t block_ = 1;             ///< 2^k
  std::vector<double> dense_{};       ///< R (m × m); empty for m = 1
  std::vector<double> signs_{};       ///< empty for a dense matrix alone
  std::vector<double> reflection_{};  ///< unit vector; empty without one
  bool keeps_ones_ = false;
};

// Exact rewrites of a checkpoint: which tensors change, and how, so that the model computes the same
// function.

/// The rotation of residual streams that is asked for.
struct RotationRequest {
  std::uint64_t seed = 0;                    ///< of a random one
  std::shared_ptr<const Rotation> matrix{};  ///< instead of a random one
};

struct Options {
  bool fold_gains = false;  ///< gains and biases into the linear maps that read them
  bool migrate = false;  ///< instead: powers of two from the gains into the readers, which evens the ranges
  bool center = false;   ///< subtract the mean from what writes to a stream that only LayerNorms read
  bool untie = false;    ///< a head of its own for a model whose head is its token embedding
  std::optional<RotationRequest> rotation{};  ///< of streams whose norms have no gain left
};

/// What happens to a norm's gain and bias.
enum class Fold {
  nothing,        ///< left as they are, for the reason given
  neutral,        ///< there is nothing to fold: no parameters, or ones and zeros
  gain,           ///< W' = W G; its bias, if any, stays as bias / gain
  gain_and_bias,  ///< W' = W G, c' = c + W b
  scales,         ///< W' = W S, gain and bias divided by S, a power of two for each feature
};

[[nodiscard]] const char* to_string(Fold fold);

struct NormPlan {
  std::size_t norm = 0;  ///< index in `models::Model::norms`
  Fold fold = Fold::nothing;
  std::string reason{};  ///< why nothing is folded, or why the bias stays
};

/// The norms of one stack, which share a residual stream.
struct StreamPlan {
  std::string stack{};  ///< as `models::Norm::stack`
  bool centered = false;
  std::string reason{};                ///< why not
  std::vector<std::size_t> norms{};    ///< those that read the stream
  std::vector<std::string> writers{};  ///< selectors of the tensors that write to it
};

/// The norms of one stack, whose stream x becomes Q x.
struct RotationPlan {
  std::string stack{};                         ///< as `models::Norm::stack`
  std::shared_ptr<const Rotation> rotation{};  ///< null if it is not rotated
  std::string reason{};                        ///< why not
  std::vector<std::size_t> norms{};            ///< those that read the stream
  std::vector<std::string> writers{};          ///< selectors of the tensors that write to it
};

/// A head of its own, from the token embedding.
struct Untied {
  std::string table;        ///< the token embedding
  std::string head;         ///< the tensor that the head reads afterwards
  std::uint64_t bytes = 0;  ///< that the checkpoint grows by; 0 if it stores the head already
};

/// One change of a stored tensor.
enum class Change {
  scale_inputs,     ///< of a matrix: column j of W times the gain of input feature j
  center_outputs,   ///< of a matrix or table: what it writes loses its mean over the stream's features
  center,           ///< of a bias likewise
  add_folded_bias,  ///< of a reader's bias: c + W b
  neutral_gain,     ///< 1 as the architecture stores it
  zero,             ///< of a norm's bias
  divide_by_gain,   ///< of a norm's bias
  divide_by_scale,  ///< of a norm's gain or bias
  rotate_inputs,    ///< of a matrix: W G becomes W G Qᵀ
  rotate_outputs,   ///< of a matrix or table: what it writes is rotated, centred before if `centers`
  rotate,           ///< of a bias: likewise, or of a norm's that stays
};

[[nodiscard]] const char* to_string(Change change);

struct Edit {
  Change change = Change::zero;
  std::string tensor;    ///< in the output
  models::Slice from;    ///< what is changed, in the input
  models::Linear map{};  ///< the whole stored matrix: of matrices, and the reader of `add_folded_bias`
  std::optional<std::size_t>
      norm{};  ///< index in `norms` of the model: whose gain and bias, or who reads the stream
  std::shared_ptr<const Rotation> rotation{};  ///< of the last three
  bool centers = false;                        ///< before it is rotated
  bool divides = false;                        ///< a norm's bias by its gain, before it is rotated
};

struct Plan {
  Options options;
  bool folded_before = false;    ///< the input's metadata says that its gains are folded
  bool migrated_before = false;  ///< likewise that scales were migrated
  bool centered_before = false;  ///< likewise that its writers are centred
  std::vector<NormPlan> norms{};
  std::vector<StreamPlan> streams{};
  std::vector<RotationPlan> rotations{};
  std::optional<Untied> untied{};
  std::vector<Edit> edits{};
  /// The norms of the model, empty for those that are not folded. Where scales migrate, they are the gain.
  std::vector<NormSpec> specs{};
};

/// Decides which of `options` are exact for this model. Everything else is left unchanged, with the reason.
///
/// Errors    Unsupported for a model whose wiring is not known completely; as `models::read_norm`
[[nodiscard]] Plan make_plan(const files::Checkpoint& checkpoint, const models::Model& model,
                             const Options& options);

/// Throws if one of the requested rewrites is not exact for any norm or any stream.
///
/// Errors    Unsupported, with the first reason
void expect_something(const files::Checkpoint& checkpoint, const Plan& plan);

/// The key of a safetensors file's metadata that says what was rewritten.
inline constexpr const char* marker_key = "normscope.rewrite";
/// Its value after `plan`.
[[nodiscard]] std::string marker(const Plan& plan);

}  // namespace normscope::rewrite
