#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/selectability/logits.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/signature/extract.hpp>
#include <normscope/signature/outputs.hpp>

namespace normscope::signature {

enum class Verdict { consistent, not_this_model, undecided };

/// Why a row has its verdict.
enum class Reason {
  on_surface,    ///< consistent: on the ellipse within the noise expected
  off_subspace,  ///< not this model: no hidden state gives these logits, whatever its length
  outside,       ///< not this model: only a state longer than any output of the norm gives these logits
  inside,        ///< the state is shorter than outputs of the norm, unless its input was tiny compared to eps
  beyond_noise,  ///< undecided: further away than typical noise, but within its bound
  few_values,    ///< undecided: too few values to determine the state; they do not contradict the model
  filled,        ///< undecided: outputs fill this model's ellipsoid; the row does not contradict the model
  capped,        ///< undecided: log-probabilities behind a soft cap
};

/// "consistent", "not this model" or "cannot tell".
[[nodiscard]] std::string_view to_string(Verdict verdict);
/// "on_surface", ...
[[nodiscard]] std::string_view to_string(Reason reason);

/// The parts of a model's head that verification uses.
struct Head {
  selectability::Logits logits{};
  std::vector<double> sizes{};  ///< as `selectability::VocabularyHead::sizes`
  double eps = 0.0;             ///< of the norm, as an addition to the mean square of its input
  double soft_cap = 0.0;
};

struct VerifyOptions {
  /// A lower bound of the mean square of the norm's inputs, if it is known. Rows that require less are then
  /// not this model's; without it, rows that require less than 100 eps are undecided.
  double least_mean_square = 0.0;
  unsigned threads = 0;
  Progress progress{};
};

/// The result for one row. Distances are those of logits with mean 0.
struct RowResult {
  Verdict verdict = Verdict::undecided;
  Reason reason = Reason::few_values;
  bool proved = false;        ///< not this model, and `weights` prove it
  std::size_t values = 0;     ///< that were used
  double off = 0.0;           ///< distance from the subspace
  double off_units = 0.0;     ///< the same in units of the expected rounding error
  double length = 0.0;        ///< |u| of the shortest u whose logits are nearest
  double length_units = 0.0;  ///< |u| − 1 in units of the expected rounding error, signed
  double mean_square = 0.0;   ///< of the norm's input that gives |u|; infinity for |u| >= 1
  /// Certificate: Σ w = 0 exactly and w·(ℓ − a₀) > |Aᵀw| + Σ |w_i| slack_i.
  std::vector<double> weights{};
  std::vector<std::size_t> tokens{};  ///< of the weights; empty for all in order
  std::vector<double> logits{};       ///< as they were used
  std::vector<double> slack{};
  double margin = 0.0;  ///< left side minus right side, rounded down, over Σ |w_i| slack_i
};

struct Verification {
  std::vector<RowResult> rows{};  ///< certificates are kept for the first `kept` refuted rows
  Verdict verdict = Verdict::undecided;
  Reason reason = Reason::few_values;  ///< the most frequent among the rows with that verdict
  bool proved = false;
  [[nodiscard]] std::size_t with(Verdict asked) const;
};

/// Number of rows whose certificates are kept.
inline constexpr std::size_t kept_certificates = 64;

/// Decides for every row whether the model can have produced it. The overall verdict is consistent if all
/// rows are, and not this model if any row is not this model's.
///
/// A row is refuted with a proof if no u with |u| <= 1, hence no input of the norm for any eps, has logits
/// A u + a₀ + (one number) within `slack` of the row. The slack is the rounding of the outputs, and
///     (4 units of the precision + (width + 16) units of its sums) · size
/// for the model's own arithmetic: gain, bias, hidden state and logit rounded once each in the outputs'
/// precision, sums in any order in float32 or better. The proof is that w·ℓ exceeds its maximum over the
/// ball, with w the step from the nearest point of the solid ellipsoid to the row; all rounding of the
/// computation is included.
///
/// Errors    as `Outputs::row`; Cancelled
///
/// Accuracy  proved (tests: Verify.NoOutputOfTheModelIsRefuted,
///           Verify.OtherModelsAreRefutedWithCertificatesThatHoldInLongDouble,
///           test_certificates_hold_in_rational_arithmetic)
///
/// Cost      one decomposition of A, and 4 tokens width a row; ids of their own a decomposition each
[[nodiscard]] Verification verify(const Head& head, const Outputs& outputs,
                                  const VerifyOptions& options = {});

/// Compares outputs with an ellipse that was estimated from outputs. Nothing is proved: the ellipse has
/// errors, which count as noise, and eps is not known.
[[nodiscard]] Verification verify(const Ellipse& ellipse, const Outputs& outputs,
                                  const VerifyOptions& options = {});

/// The head of a model, in the form that signatures need.
[[nodiscard]] Head head_of(selectability::VocabularyHead head);

}  // namespace normscope::signature
