#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>

/// A logit, or a difference of two, as a function of the row x that enters a norm: ℓ(x) = v·u/s + c with
/// u = Πx, s² = |u|²/R² + eps, v = ΠGw, for the row w of the unembedding.
///
/// Source    [Riechers 2024, eq. 6] for the norm; docs/design/attribution.md derives what follows
namespace normscope::analysis {

/// A change of ℓ when x becomes x + δ, d = Πδ.
struct Effect {
  double frozen = 0.0;    ///< v·d/s
  double price = 0.0;     ///< v·(u + d)(1/s' − 1/s)
  double exact = 0.0;     ///< ℓ(x + δ) − ℓ(x) = frozen + price
  double gradient = 0.0;  ///< ∇ℓ·d = (v·d − (v·u)(u·d)/(R²s²))/s, as attribution patching has it
  /// A bound of |exact − gradient|: |v||d|²/(√3 R m²), m the least s between x and x + δ, since no second
  /// derivative of ℓ along a unit vector exceeds 2|v|/(√3 R s²). Infinite if the segment meets a zero
  /// divisor.
  double remainder = 0.0;
  double cosine = 1.0;  ///< between u and u + d: negative where the row turns over; 0 if either vanishes
  /// A bound of the rounding errors of `frozen`, `price` and `exact`, for u, v and δ as float64 has them.
  double rounding = 0.0;
};

class NormReading;

/// A rule by which others credit a part u_k of u with a part of ℓ − c; none is exact for its removal.
struct Rule {
  const char* name;
  const char* title;  ///< of a column
  const char* about;
  /// The credit of a component u_k, from v·u_k, u·u_k and the reading.
  double (*credit)(double read, double along, const NormReading& reading);
};
inline constexpr std::size_t rule_count = 2;
/// Attribution patching is `Effect::gradient`.
extern const std::array<Rule, rule_count> rules;

/// v = ΠGw of a reader w.
///
/// Shapes    reader (norm.width)
[[nodiscard]] std::vector<double> reading_direction(const NormSpec& norm, std::span<const double> reader);

/// One logit, or a difference of two, as a function of the row that enters the norm, at one row.
class NormReading {
 public:
  /// `reader` is w, `constant` what is added to w·y.
  ///
  /// Shapes    reader, row (norm.width)
  ///
  /// Errors    Shape; Argument for entries that are not finite, or a divisor that is zero; Unsupported for
  ///           elementwise norms, which divide by nothing, and for several groups
  NormReading(const NormSpec& norm, std::span<const double> reader, double constant,
              std::span<const double> row);

  [[nodiscard]] double divisor() const { return divisor_; }    ///< s
  [[nodiscard]] double constant() const { return constant_; }  ///< c
  [[nodiscard]] double value() const { return constant_ + projected_ / divisor_; }
  /// v·Πx/s.
  [[nodiscard]] double share(std::span<const double> part) const;
  /// What each of `rules` credits Πx_k with.
  [[nodiscard]] std::array<double, rule_count> credits(std::span<const double> part) const;
  /// ℓ at another row.
  [[nodiscard]] double value_at(std::span<const double> row) const;
  /// What adding `change` to the row does.
  ///
  /// Accuracy  within `Effect::rounding` (test: NormReading.StaysWithinItsBoundOfRounding)
  ///
  /// Cost      O(width)
  [[nodiscard]] Effect effect(std::span<const double> change) const;

  [[nodiscard]] bool centers() const { return centers_; }
  [[nodiscard]] double squared_radius() const { return squared_radius_; }
  [[nodiscard]] double eps() const { return eps_; }
  /// u and v.
  [[nodiscard]] const std::vector<double>& row() const { return row_; }
  [[nodiscard]] const std::vector<double>& direction() const { return direction_; }
  /// Π of a row of that norm.
  [[nodiscard]] std::vector<double> centered(std::span<const double> row) const;

 private:
  bool centers_ = false;
  double squared_radius_ = 1.0, eps_ = 0.0, constant_ = 0.0;
  std::vector<double> row_{}, direction_{};
  double row_length_ = 0.0, direction_length_ = 0.0, projected_ = 0.0, divisor_ = 0.0;
};

}  // namespace normscope::analysis
