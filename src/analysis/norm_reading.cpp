#include <normscope/analysis/norm_reading.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::analysis {
namespace {

double compensated_dot(std::span<const double> a, std::span<const double> b) {
  CompensatedSum total;
  for (std::size_t i = 0; i < a.size(); ++i) total.add(a[i] * b[i]);
  return total.value();
}

void expect_finite(std::span<const double> row, const char* what) {
  if (std::all_of(row.begin(), row.end(), [](double value) { return std::isfinite(value); })) return;
  throw Error(ErrorCode::Argument, fmt::format("attribute: {} is not finite", what));
}

}  // namespace

const std::array<Rule, rule_count> rules = {{
    {"gradient_input", "grad*input", "gradient × input: (v·u_k − (v·u)(u·u_k)/(R²s²))/s",
     [](double read, double along, const NormReading& x) {
       const double s = x.divisor();
       return (read - (x.value() - x.constant()) * along / (x.squared_radius() * s)) / s;
     }},
    {"half_rule", "half rule",
     "relevance propagation with the half rule for the product u · 1/s: one half by v·u_k/s, the other, of "
     "the "
     "divisor, by the part of the squared length, (v·u)(u·u_k)/(R²s³)",
     [](double read, double along, const NormReading& x) {
       const double s = x.divisor();
       return 0.5 * (read + (x.value() - x.constant()) * along / (x.squared_radius() * s)) / s;
     }},
}};

std::vector<double> reading_direction(const NormSpec& norm, std::span<const double> reader) {
  std::vector<double> direction(norm.width);
  for (std::size_t i = 0; i < norm.width; ++i) direction[i] = norm.gain_at(i) * reader[i];
  if (norm.centers()) center(direction);
  return direction;
}

NormReading::NormReading(const NormSpec& norm, std::span<const double> reader, double constant,
                         std::span<const double> row)
    : centers_(norm.centers()), squared_radius_(norm.squared_radius()), eps_(norm.eps), constant_(constant) {
  validate(norm);
  if (norm.elementwise() || norm.groups != 1) {
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("attribute: the norm {}, expected one that divides all features by one number",
                    norm.elementwise() ? "divides by nothing" : fmt::format("has {} groups", norm.groups)));
  }
  if (reader.size() != norm.width || row.size() != norm.width) {
    throw Error(ErrorCode::Shape, fmt::format("attribute: {} and {} features, expected {} as in the norm",
                                              reader.size(), row.size(), norm.width));
  }
  expect_finite(reader, "the reader");
  expect_finite(row, "the row");
  for (std::size_t i = 0; i < norm.width; ++i) constant_ += norm.bias_at(i) * reader[i];
  direction_ = reading_direction(norm, reader);
  row_ = centered(row);
  direction_length_ = euclidean_norm(direction_);
  row_length_ = euclidean_norm(row_);
  projected_ = compensated_dot(direction_, row_);
  divisor_ = std::sqrt(row_length_ * row_length_ / squared_radius_ + eps_);
  if (!(divisor_ > 0.0) || !std::isfinite(divisor_)) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("attribute: the norm divides the row by {}, expected a positive number", divisor_));
  }
}

std::vector<double> NormReading::centered(std::span<const double> row) const {
  std::vector<double> result(row.begin(), row.end());
  if (centers_) center(result);
  return result;
}

double NormReading::share(std::span<const double> part) const {
  return compensated_dot(direction_, centered(part)) / divisor_;
}

std::array<double, rule_count> NormReading::credits(std::span<const double> part) const {
  const std::vector<double> u = centered(part);
  const double read = compensated_dot(direction_, u), along = compensated_dot(row_, u);
  std::array<double, rule_count> result{};
  for (std::size_t i = 0; i < rule_count; ++i) result[i] = rules[i].credit(read, along, *this);
  return result;
}

double NormReading::value_at(std::span<const double> row) const {
  const std::vector<double> u = centered(row);
  return constant_ + compensated_dot(direction_, u) / std::sqrt(sum_of_squares(u) / squared_radius_ + eps_);
}

Effect NormReading::effect(std::span<const double> change) const {
  expect_finite(change, "a component");
  const std::vector<double> d = centered(change);
  std::vector<double> after(d.size());  // u + d
  std::vector<double> between(d.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    after[i] = row_[i] + d[i];
    between[i] = row_[i] + after[i];
  }
  const double s = divisor_;
  const double length = euclidean_norm(d);
  const double after_length = euclidean_norm(after);
  const double along = compensated_dot(row_, d);
  const double new_s = std::sqrt(after_length * after_length / squared_radius_ + eps_);
  // 1/s' − 1/s = (s² − s'²)/(s s' (s + s')), where s'² − s² = d·(2u + d)/R² does not cancel.
  const double growth = compensated_dot(d, between) / squared_radius_;
  const double factor = growth == 0.0 ? 0.0 : -growth / (s * new_s * (s + new_s));
  Effect effect;
  effect.frozen = compensated_dot(direction_, d) / s;
  const double projected = compensated_dot(direction_, after);
  effect.price = factor == 0.0 ? 0.0 : projected * factor;
  effect.exact = effect.frozen + effect.price;
  effect.gradient = effect.frozen - projected_ * along / (squared_radius_ * s * s * s);
  const double lengths = row_length_ * after_length;
  effect.cosine = lengths > 0.0 ? std::clamp(compensated_dot(row_, after) / lengths, -1.0, 1.0) : 0.0;

  // The least |u + t d|² of t in [0, 1].
  const double step = length > 0.0 ? std::clamp(-along / (length * length), 0.0, 1.0) : 0.0;
  CompensatedSum least;
  for (std::size_t i = 0; i < d.size(); ++i) {
    const double value = row_[i] + step * d[i];
    least.add(value * value);
  }
  constexpr double inverse_root_three = 0.57735026918962576451;
  const double unit = rounding(static_cast<std::ptrdiff_t>(d.size()) + 64);
  const double lengths_sum = row_length_ + length;
  // Its rounding, and that of the place of the least, are within this part of (|u| + |d|)².
  const double least_square =
      std::max(0.0, least.value() - unit * lengths_sum * lengths_sum) / squared_radius_ + eps_;
  effect.remainder = length == 0.0 ? 0.0
                                   : (1.0 + unit) * direction_length_ * length * length * inverse_root_three /
                                         (std::sqrt(squared_radius_) * least_square);

  // Centring and products err by `unit` of the product of the lengths, s' by `spread` of itself.
  const double spread = unit * (1.0 + lengths_sum / (std::sqrt(squared_radius_) * new_s));
  const double of_frozen = unit * direction_length_ * length / s;
  const double of_growth = unit * length * (2.0 * row_length_ + length) / squared_radius_;
  const double of_price = unit * direction_length_ * lengths_sum * std::abs(factor) +
                          direction_length_ * after_length *
                              (of_growth / (s * new_s * (s + new_s)) + 4.0 * spread * std::abs(factor));
  effect.rounding = spread < 0.1 ? 3.0 * (of_frozen + of_price) : infinity;
  return effect;
}

}  // namespace normscope::analysis
