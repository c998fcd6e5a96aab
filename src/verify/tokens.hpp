#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/verify/verify.hpp>

#include "arithmetic.hpp"
#include "exact_numbers.hpp"
#include "leads.hpp"

namespace normscope::verify {

/// The logits of a vocabulary over the norm's ball, recomputed from the weights: with h = r g ⊙ Πu + β,
///   logit_j = W_j h + c_j = A_j u + a_j,  A_j = r Π(g ⊙ W_j),  a_j = W_j β + c_j.
/// Only differences of two tokens are used, in which common terms cancel. Units are the factor by which the
/// model multiplies logits and, if numbers are too large or too small for products, a power of two.
class Head {
 public:
  /// Errors    Unsupported for several groups; Shape
  explicit Head(const VocabularyHead& head);

  [[nodiscard]] std::size_t tokens() const { return rows_.rows(); }
  [[nodiscard]] std::size_t width() const { return norm_.width; }
  /// Rows (W_j, c_j) in the form that `LeadClaim` uses.
  [[nodiscard]] MatrixView<const double> rows() const { return rows_; }

  [[nodiscard]] double in_units(double logit) const { return scale_.divide(logit / factor_); }
  [[nodiscard]] double from_units(double value) const { return scale_.multiply(value) * factor_; }
  [[nodiscard]] double soft_cap() const { return soft_cap_; }
  /// eps = 0: a point stands for the nearest point of the sphere.
  [[nodiscard]] bool sphere() const { return norm_.eps == 0.0; }
  [[nodiscard]] double radius() const { return norm_.radius(); }

  /// The claim that token `index` leads all others by `least` at the output of the norm for the point u.
  [[nodiscard]] LeadClaim claim(std::size_t index, std::span<const double> u, double least) const;
  /// The lead at a point u of any length, with the offsets multiplied by `height`.
  [[nodiscard]] LeadClaim far_claim(std::size_t index, std::span<const double> u, double height,
                                    double least) const;
  /// Whether token `index` leads token `other` by at least `least` logits at the point u, whose offsets are
  /// multiplied by `height`, without rounding: the lead is √q X + Y with numbers q, X and Y that sums of
  /// products of the inputs give exactly. Numbers beyond the range of products prove nothing.
  enum class Where { norm, point };
  [[nodiscard]] bool leads_by(std::size_t index, std::size_t other, std::span<const double> u, double height,
                              Where where, double least) const;
  /// Whether |Σ λ_j (A_i − A_j)| + Σ λ_j (a_i − a_j) <= most Σ λ_j logits, without rounding.
  [[nodiscard]] bool is_lead_at_most(std::size_t index, const std::vector<Weight>& weights,
                                     double most) const;
  /// Π (g ⊙ W_i), which is A_i over the radius, with the mean of all tokens subtracted.
  [[nodiscard]] std::vector<double> turned(std::size_t index) const;
  /// That divided by its length; zero if there is no direction.
  [[nodiscard]] std::vector<double> own_direction(std::size_t index) const;
  /// The offset W_i·β + c_i less that of the mean, and the sizes of the terms of it and of `turned`, before
  /// the mean is subtracted from them.
  struct Turned {
    double shift = 0.0;
    double length = 0.0;  ///< | |g| ⊙ (|W_i| + |mean|) |
    double offset = 0.0;
  };
  [[nodiscard]] Turned turned_sizes(std::size_t index) const;

  /// An upper bound of |Σ λ_j (A_i − A_j)|, and an interval that contains Σ λ_j (a_i − a_j).
  struct Difference {
    double length = 0.0;
    Enclosure offset{};
  };
  [[nodiscard]] Difference difference(std::size_t index, const std::vector<Weight>& weights) const;

  /// Logits minus the logit of token `index`, at the norm's output for the point u, or at u itself.
  [[nodiscard]] std::vector<Enclosure> logits_from(std::size_t index, std::span<const double> u,
                                                   Where where) const;
  /// The logits themselves, before a soft cap and without scaling of units, at the norm's output for the
  /// point u.
  [[nodiscard]] std::vector<Enclosure> logits_at(std::span<const double> u) const;
  /// Sizes of the logits as results state them, up to rounding, and of the terms they are sums of, with the
  /// mean of all tokens subtracted.
  struct Sizes {
    double scale = 0.0;    ///< largest |A_j| + |a_j|
    double longest = 0.0;  ///< largest |A_j|
    double highest = 0.0;  ///< largest |a_j|
    double terms = 0.0;    ///< largest |r g ⊙ W_j| + Σ |W_jk β_k| + |c_j|
    double stored = 0.0;   ///< the same without subtracting the mean
  };
  [[nodiscard]] Sizes sizes() const;
  /// Sizes of one token, which do not depend on the other tokens' sizes: with the mean subtracted or not,
  /// whichever is smaller.
  struct Own {
    double size = 0.0;   ///< |A_j| + |a_j|, or `terms` if that is smaller
    double terms = 0.0;  ///< |r g ⊙ W_j| + Σ |W_jk β_k| + |c_j|
  };
  [[nodiscard]] Own own(std::size_t index) const;

 private:
  /// Σ λ_j (row_i − row_j) split into the numbers that the norm multiplies, N Π(g ⊙ ·) or g ⊙ · without a
  /// mean, and the offset with the norm's bias.
  struct ExactDifference {
    std::vector<Exact> turned{};
    Exact offset{};
  };
  [[nodiscard]] ExactDifference exact_difference(std::size_t index, const std::vector<Weight>& weights) const;

  struct Token {
    double length = 0.0;  ///< |A_j|
    double height = 0.0;  ///< |a_j|
    double terms = 0.0;   ///< size of the terms, see `Sizes`
  };
  [[nodiscard]] Token token(std::size_t index, bool less_mean) const;

  /// In about twice the precision of float64.
  struct Hidden {
    std::vector<double> values{};
    std::vector<double> rests{};
    std::vector<double> errors{};
  };
  /// r g ⊙ Πu + height β, and height; with `onto_sphere`, Πu is divided by its length.
  [[nodiscard]] Hidden hidden(std::span<const double> u, double height, bool onto_sphere) const;
  [[nodiscard]] static LeadClaim claim_at(Hidden at, std::size_t index, double least);
  [[nodiscard]] Enclosure difference_at(const Hidden& at, std::size_t index, std::size_t other) const;
  [[nodiscard]] std::span<const double> weights_of(std::size_t index) const {
    return rows_.row(index).first(norm_.width);
  }

  NormSpec norm_;
  BinaryScale scale_{};
  double factor_ = 1.0;
  double soft_cap_ = 0.0;
  std::vector<double> values_{};
  MatrixView<const double> rows_{};
  std::vector<double> mean_{};  ///< of all rows
};

/// The claim that a token leads all others by at least `least`, in the units of the head, at its own
/// direction.
struct OwnLead {
  std::size_t token = 0;
  double least = 0.0;
};

/// What float32 leaves open of such a claim.
struct OpenRivals {
  std::vector<std::size_t> tokens{};  ///< over which it does not prove the lead, in order
  bool all = false;                   ///< whether every token is open: too many are, or there is no direction
};

/// For each claim, the tokens over which a product in float32 does not prove the lead. With B_j = Π (g ⊙ W_j)
/// less its mean, the own direction of token i is B_i over its length, so that its lead over j is
///   r B_i·(B_i − B_j)/|B_i| + b_i − b_j,  b_j = β·W_j + c_j,
/// and one product of each two tokens serves the claims of both.
///
/// Requires  a norm with eps > 0
///
/// Errors    Cancelled
///
/// Cost      tokens² width
[[nodiscard]] std::vector<OpenRivals> open_rivals(const Head& head, const std::vector<OwnLead>& claims,
                                                  unsigned threads, const Progress& progress);

/// Whether |u| <= 1.
[[nodiscard]] bool in_ball(std::span<const double> u);

/// Bounds of a token's largest probability, if its lead is at least `lower` at some point and at most `upper`
/// everywhere:
///   1/(1 + (tokens − 1) e^−lower) <= p <= 1/(1 + e^−upper).
[[nodiscard]] Ends probability_from_leads(double lower, double upper, std::size_t tokens);

/// A lower bound of the token's probability at the norm's output for the point u of the ball; 0 for a point
/// outside.
[[nodiscard]] double probability_at(const Head& head, std::size_t index, const std::vector<double>& u);

/// That probability after the head's soft cap.
[[nodiscard]] double capped_probability_at(const Head& head, std::size_t index, const std::vector<double>& u);

/// An upper bound of its probability over the ball, with positive weights p of different tokens, divided by
/// their sum; 1 with others:
///   log softmax_i <= |Σ p_j (A_i − A_j)| + Σ p_j (a_i − a_j) − H(p),  H(p) = −Σ p_j log p_j.
[[nodiscard]] double probability_by_weights(const Head& head, std::size_t index,
                                            const std::vector<Weight>& weights);

/// That bound with the probabilities at the point u.
[[nodiscard]] double probability_by_tangent(const Head& head, std::size_t index,
                                            const std::vector<double>& u);

}  // namespace normscope::verify
