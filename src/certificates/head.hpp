#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/certificates/verify.hpp>

#include <normscope/numeric/binary_scale.hpp>

#include "combination.hpp"
#include "leads.hpp"

namespace normscope::certificates {

/// A vocabulary's logits over the norm's ball, worked out again from the weights: with h = r g ⊙ Πu + β,
///   logit_j = W_j h + c_j = A_j u + a_j,  A_j = r Π(g ⊙ W_j),  a_j = W_j β + c_j.
/// All of it is about differences of two tokens, in which what is common to all cancels, in units of what the
/// model multiplies logits by, and of a power of two where they are too large or too small for products.
class Head {
 public:
  /// Errors    Unsupported for several groups; Shape
  explicit Head(const VocabularyHead& head);

  [[nodiscard]] std::size_t tokens() const { return rows_.rows(); }
  [[nodiscard]] std::size_t width() const { return norm_.width; }
  /// Rows (W_j, c_j), as `LeadClaim` is about.
  [[nodiscard]] MatrixView<const double> rows() const { return rows_; }

  [[nodiscard]] double in_units(double logit) const { return scale_.divide(logit / factor_); }
  [[nodiscard]] double from_units(double value) const { return scale_.multiply(value) * factor_; }
  [[nodiscard]] double soft_cap() const { return soft_cap_; }
  /// eps = 0: a point that has a lead or a probability stands for the one of the sphere next to it.
  [[nodiscard]] bool sphere() const { return norm_.eps == 0.0; }
  /// Of the space that hidden states lie in.
  [[nodiscard]] std::size_t dimension() const { return norm_.width - (norm_.centers() ? 1 : 0); }

  /// That token `index` leads all others by `least` where the norm gives the point u.
  [[nodiscard]] LeadClaim claim(std::size_t index, std::span<const double> u, double least) const;
  /// The same at the point u of any length, where the offsets count `height` times.
  [[nodiscard]] LeadClaim far_claim(std::size_t index, std::span<const double> u, double height,
                                    double least) const;
  /// A_i over its length, the mean of all tokens taken out; zero where there is none.
  [[nodiscard]] std::vector<double> own_direction(std::size_t index) const;

  /// Of Σ λ_j (A_i − A_j) at least the length, and of Σ λ_j (a_i − a_j) an interval.
  struct Difference {
    double length = 0.0;
    Bounded offset{};
  };
  [[nodiscard]] Difference difference(std::size_t index, const std::vector<Weight>& weights) const;

  /// Logits less that of token `index`, where the norm gives the point u, or at u itself.
  enum class Where { norm, point };
  [[nodiscard]] std::vector<Bounded> logits_from(std::size_t index, std::span<const double> u,
                                                 Where where) const;
  /// The logits themselves, before a cap and not in units, where the norm gives the point u.
  [[nodiscard]] std::vector<Bounded> logits_at(std::span<const double> u) const;
  /// By how much a token leads another one where the norm gives the point u.
  [[nodiscard]] Bounded lead(std::size_t index, std::size_t other, std::span<const double> u) const;
  /// What the sphere is in a space of one dimension: the point whose first entry is negative, and its
  /// negative.
  [[nodiscard]] std::vector<std::vector<double>> two_points() const;

  /// Sizes of the logits as results state them, to rounding, and of what they are sums of; the mean of all
  /// tokens taken out.
  struct Sizes {
    double scale = 0.0;    ///< largest |A_j| + |a_j|
    double longest = 0.0;  ///< largest |A_j|
    double highest = 0.0;  ///< largest |a_j|
    double terms = 0.0;    ///< largest |r g ⊙ W_j| + Σ |W_jk β_k| + |c_j|
  };
  [[nodiscard]] Sizes sizes() const;
  /// Sizes of one token, which others, however large, do not change: the mean taken out or not, whichever is
  /// less.
  struct Own {
    double size = 0.0;   ///< |A_j| + |a_j|, or the next where that is less
    double terms = 0.0;  ///< |r g ⊙ W_j| + Σ |W_jk β_k| + |c_j|
  };
  [[nodiscard]] Own own(std::size_t index) const;

 private:
  struct Token {
    double length = 0.0;  ///< |A_j|
    double height = 0.0;  ///< |a_j|
    double terms = 0.0;   ///< what they are sums of, see `Sizes`
  };
  [[nodiscard]] Token token(std::size_t index, bool less_mean) const;

  struct Hidden {
    std::vector<double> values{};
    std::vector<double> errors{};
  };
  /// r g ⊙ Πu + height β, and height; with `onto_sphere` Πu over its length.
  [[nodiscard]] Hidden hidden(std::span<const double> u, double height, bool onto_sphere) const;
  [[nodiscard]] Bounded difference_at(const Hidden& at, std::size_t index, std::size_t other) const;
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

/// Whether |u| <= 1.
[[nodiscard]] bool in_ball(std::span<const double> u);

}  // namespace normscope::certificates
