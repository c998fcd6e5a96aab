#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/selectability/logits.hpp>
#include <normscope/signature/ellipse.hpp>
#include <normscope/signature/outputs.hpp>

namespace normscope::signature {

enum class Verdict { consistent, not_this_model, undecided };

/// Why a row has its verdict.
enum class Reason {
  on_surface,    ///< consistent: on the ellipse within the noise expected
  off_subspace,  ///< not this model: no hidden state gives these logits, whatever its length
  outside,       ///< not this model: only a state longer than the norm can make
  inside,        ///< the state is shorter than a norm makes it, unless its input was tiny compared with eps
  beyond_noise,  ///< undecided: further away than noise usually is, nearer than it may be
  few_values,    ///< undecided: too few values to determine the state; nothing speaks against it
  filled,        ///< undecided: outputs fill this model's ellipsoid; nothing speaks against it
  capped,        ///< undecided: log-probabilities behind a soft cap
};

/// "consistent", "not this model" or "cannot tell".
[[nodiscard]] std::string_view to_string(Verdict verdict);
/// "on_surface", ...
[[nodiscard]] std::string_view to_string(Reason reason);

/// A model's head, as far as verifying needs it.
struct Head {
  selectability::Logits logits{};
  std::vector<double> sizes{};  ///< as `audit::VocabularyHead::sizes`
  double eps = 0.0;             ///< of the norm, added to `squared_radius` 1/width times |x|²
  double soft_cap = 0.0;
};

struct VerifyOptions {
  /// What the mean square of the norm's input never falls below, if somebody states it. Rows that need less
  /// are then not this model's; without it they are not decided where less than 100 eps is needed.
  double least_mean_square = 0.0;
  unsigned threads = 0;
  Progress progress{};
};

/// What is known of one row. Distances are those of logits with mean 0.
struct RowResult {
  Verdict verdict = Verdict::undecided;
  Reason reason = Reason::few_values;
  bool proved = false;        ///< not this model, and `weights` prove it
  std::size_t values = 0;     ///< that were used
  double off = 0.0;           ///< distance from the subspace
  double off_units = 0.0;     ///< in units of what rounding explains
  double length = 0.0;        ///< |u| of the least u that comes nearest
  double length_units = 0.0;  ///< (|u| − 1) in units of what rounding explains, signed
  double mean_square = 0.0;   ///< of the norm's input that |u| needs; infinity for |u| >= 1
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

/// Decides for every row whether the model can have given it. All rows consistent is consistent; any that is
/// not this model's is not this model.
///
/// Refuted and proved is a row for which no u with |u| <= 1, so no input of the norm for any eps, has logits
/// A u + a₀ + (one number) within `slack` of the row: what rounding of the outputs explains, and
///     (4 units of the precision + (width + 16) units of its sums) · size
/// for the model's own arithmetic: gain, bias, hidden state and logit rounded once each in the outputs'
/// precision, sums in any order in float32 or better. A lead of w·ℓ over the ball, w = the step from the
/// nearest point of the solid ellipsoid, proves it; every rounding of ours is in it.
///
/// Errors    as `Outputs::row`; Cancelled
/// Accuracy  proved (tests: Verify.NoOutputOfTheModelIsRefuted,
///           Verify.OtherModelsAreRefutedWithCertificatesThatHoldInLongDouble,
///           test_certificates_hold_in_rational_arithmetic)
/// Cost      one decomposition of A, and 4 tokens width a row; ids of their own a decomposition each
[[nodiscard]] Verification verify(const Head& head, const Outputs& outputs,
                                  const VerifyOptions& options = {});

/// The same for an ellipse that was taken from outputs. Nothing is proved: the ellipse has an error of its
/// own, which counts as noise, and eps is not known.
[[nodiscard]] Verification verify(const Ellipse& ellipse, const Outputs& outputs,
                                  const VerifyOptions& options = {});

}  // namespace normscope::signature
