#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/analysis/norm_reading.hpp>
#include <normscope/analysis/ranges.hpp>
#include <normscope/analysis/share_range.hpp>
#include <normscope/analysis/subsets.hpp>
#include <normscope/core/dtype.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/models/model.hpp>

/// What each addend of the residual stream contributes to a logit through the final norm.
///
/// If x = Σ x_k, then v·Πx_k/s is the share of x_k (see `NormReading`), and ℓ − c the sum of the shares. They
/// are exact for this x; a reader who removes x_k and keeps s ("freezes" it) predicts the change −v·Πx_k/s,
/// but the norm divides what is left by another s'. The difference is the price of freezing.
namespace normscope::analysis {

/// What stands in place of a component that is removed.
enum class Removal {
  zero,
  mean,  ///< its mean over the positions of the text up to the one that is read
  given
};

struct AttributeOptions {
  std::size_t target = 0;
  std::optional<std::size_t> against{};  ///< the reading is the target's logit less this token's
  std::optional<std::size_t> at{};       ///< position, the last by default
  Removal removal = Removal::zero;
  /// Rows that add up to the stream at that position, in place of the model's own components.
  std::optional<MatrixView<const double>> components{};
  /// How far their sum may miss the stream, as `Attribution::miss`: the rounding of the type that they were
  /// stored in.
  double tolerance = 0.0;
  /// What replaces each component; needed if `removal` is `given`.
  std::optional<MatrixView<const double>> replacements{};
  /// Multiplications for running the model again without each component, those of the largest direct effects
  /// first, and without the others of `kept`.
  double budget = 1e11;
  SubsetOptions subsets{};
  /// Names of components: a circuit, of which all others are removed together. They are replaced by their
  /// means over the positions; rows of a file as `removal` says.
  std::vector<std::string> kept{};
  bool anywhere = false;  ///< whether `ComponentEffect::anywhere` is wanted
  unsigned threads = 0;
};

struct ComponentEffect {
  std::string name{};
  std::optional<forward::Component> component{};  ///< empty for rows of a file
  double share = 0.0;
  /// Its share of the reading at each position up to the one that is read; empty for rows of a file.
  std::vector<double> shares{};
  std::array<double, rule_count> credits{};  ///< by each of `rules`
  Effect effect{};                           ///< of removing it at the final norm alone: the direct effect
  /// Change of the reading when it is removed at every position and the rest of the model runs again: the
  /// total effect. A component with a norm of its own is removed before that norm.
  /// Empty beyond the budget.
  std::optional<double> rerun{};
  /// `rerun` with the weights of attention, the divisors of all norms and the outputs of MLPs kept:
  /// the sum over all paths through values of heads, one factor a norm. Empty without `rerun`, whose
  /// difference from it is what that leaves out, and where a norm on the way has no one divisor.
  std::optional<double> paths{};
  /// Bounds of its share in every context whose final norm divides by `Attribution::divisor` or more; if
  /// asked for and known.
  std::optional<ShareRange> anywhere{};
};

/// All components but some removed together.
struct Circuit {
  std::vector<std::size_t> kept{};  ///< indices of components
  Effect effect{};                  ///< at the final norm alone
  std::optional<double> rerun{};    ///< as `ComponentEffect::rerun`
};

/// What runs of the model show of its freezes and replacements.
struct RunCheck {
  /// Change of the reading when each component is replaced by itself and the model runs again: exactly 0.
  double null_patch = 0.0;
  /// Components that a second run of the same text computes with other bits: none.
  std::size_t differing = 0;
  /// Change of the reading when random rows are added to each component at each position while the weights of
  /// attention, the divisors of norms and the outputs of MLPs are kept: by the derivatives of `paths`, and by
  /// a run. They differ by rounding if the freeze holds.
  struct Freeze {
    double by_paths = 0.0, by_run = 0.0;
  };
  std::optional<Freeze> freeze{};  ///< empty where there are no path sums
};

/// A row that is so short before a norm that eps is a part of what divides it.
struct NearFold {
  std::size_t norm = 0;  ///< index in `model.norms`
  std::size_t position = 0;
  double radius = 0.0;  ///< |u|/(R s): 1 far from the origin
};

/// Rows of smaller radius are listed as near a fold.
inline constexpr double fold_radius = 0.9;

struct Attribution {
  const models::Model* model = nullptr;
  std::vector<std::size_t> tokens{};
  std::size_t at = 0;
  std::size_t target = 0;
  std::optional<std::size_t> against{};
  Removal removal = Removal::zero;
  std::size_t norm = 0;  ///< index of the final norm
  double divisor = 0.0;
  double value = 0.0;     ///< the reading, before the model's soft cap
  double constant = 0.0;  ///< its part that no component has
  double miss = 0.0;      ///< largest |Σ x_k − x| of a feature over the largest |x| + Σ|x_k| of one
  std::vector<ComponentEffect> components{};
  std::vector<SubsetBound> bounds{};
  std::optional<Circuit> circuit{};  ///< if `kept` names any
  std::optional<RunCheck> check{};   ///< if the model was run again without any component
  /// What `bounds` were computed from: the reading, and what removing each component adds to the row.
  std::optional<NormReading> reading{};
  std::vector<double> changes{};
  std::vector<NearFold> folds{};
};

/// `AttributeOptions::tolerance` of rows that were stored in that type: several of its roundings, as they are
/// computed in it too.
[[nodiscard]] double sum_tolerance(Dtype dtype);

/// Errors    as `forward::Decoder` and its functions; Argument for a target, token or position that is not
///           there, and for components that do not add up to the stream, with the miss; Shape for rows of
///           another width; Unsupported for a final norm that is elementwise or has groups
///
/// Cost      a forward pass; one more from its layer on for each component in `budget`, and about two for all
///           path sums of these and `check`; memory of the rows that enter each norm; as `bound_subsets`
[[nodiscard]] Attribution attribute(const files::Checkpoint& checkpoint, const models::Model& model,
                                    std::span<const std::size_t> tokens, const AttributeOptions& options,
                                    const Progress& progress = {});

}  // namespace normscope::analysis
