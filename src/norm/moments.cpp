#include <normscope/norm/image.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::norm {
namespace {

/// The fraction that centring subtracts from a diagonal entry: 1/n for layer with blocks of n, 0 otherwise.
double centring(const NormSpec& spec) {
  return spec.centers() ? 1.0 / static_cast<double>(spec.block_width()) : 0.0;
}

/// values · 2^-exponent, with the largest near one, so that their fourth powers stay in range.
struct Scaled {
  std::vector<double> values;
  int exponent;

  explicit Scaled(std::vector<double> given)
      : values(std::move(given)), exponent(BinaryScale::of(values).exponent()) {
    BinaryScale::of_exponent(exponent).divide(values);
  }
};

Scaled scaled_gain(const NormSpec& spec) {
  std::vector<double> gain = spec.gain;
  gain.resize(spec.width, 1.0);
  return Scaled(std::move(gain));
}

/// `rms_radius` divided by the power of two that the gain was divided by.
double scaled_radius(const NormSpec& spec, const Scaled& gain) {
  if (centring(spec) == 1.0) return 0.0;
  return spec.radius() * std::sqrt(sum_of_squares(gain.values) / static_cast<double>(spec.block_width()));
}

/// tr((G_a Π_a G_a)(G_b Π_b G_b)): both are diagonal minus rank one per block, so the trace of the product
/// needs Σ g_a² g_b² and, if two blocks overlap, (Σ g_a g_b)².
double inner_product(const NormSpec& a, const NormSpec& b, const std::vector<double>& ga,
                     const std::vector<double>& gb) {
  // Blocks of one centred entry are points; the difference below would be rounding.
  if (centring(a) == 1.0 || centring(b) == 1.0) return 0.0;
  CompensatedSum squares;
  for (std::size_t i = 0; i < a.width; ++i) squares.add(ga[i] * gb[i] * ga[i] * gb[i]);
  CompensatedSum crossed;
  for (std::size_t begin = 0; begin < a.width;) {
    const std::size_t end_a = (begin / a.block_width() + 1) * a.block_width();
    const std::size_t end = std::min(end_a, (begin / b.block_width() + 1) * b.block_width());
    CompensatedSum overlap;
    for (std::size_t i = begin; i < end; ++i) overlap.add(ga[i] * gb[i]);
    crossed.add(overlap.value() * overlap.value());
    begin = end;
  }
  return squares.value() * (1.0 - centring(a) - centring(b)) + crossed.value() * centring(a) * centring(b);
}

}  // namespace

double energy(const NormSpec& spec) {
  validate(spec);
  const Scaled gain = scaled_gain(spec);
  const double squares = spec.radius() * spec.radius() * (1.0 - centring(spec)) * sum_of_squares(gain.values);
  return std::scalbn(squares, 2 * gain.exponent);
}

double rms_radius(const NormSpec& spec) {
  validate(spec);
  const Scaled gain = scaled_gain(spec);
  return std::scalbn(scaled_radius(spec, gain), gain.exponent);
}

std::optional<double> shift_over_radius(const NormSpec& spec) {
  validate(spec);
  const Scaled gain = scaled_gain(spec);
  const double radius = scaled_radius(spec, gain);
  if (radius == 0.0) return std::nullopt;
  const Scaled bias(spec.bias);
  return std::scalbn(std::sqrt(sum_of_squares(bias.values)) / radius, bias.exponent - gain.exponent);
}

double effective_dimension(const NormSpec& spec) {
  validate(spec);
  const std::vector<double> gain = scaled_gain(spec).values;
  const double trace = (1.0 - centring(spec)) * sum_of_squares(gain);
  const double square = inner_product(spec, spec, gain, gain);
  return square > 0.0 ? trace * trace / square : 0.0;
}

double image_similarity(const NormSpec& a, const NormSpec& b) {
  validate(a);
  validate(b);
  if (a.width != b.width) {
    throw Error(ErrorCode::Shape,
                fmt::format("image_similarity: widths are {} and {}, expected equal", a.width, b.width));
  }
  const std::vector<double> ga = scaled_gain(a).values;
  const std::vector<double> gb = scaled_gain(b).values;
  const double square_a = inner_product(a, a, ga, ga);
  const double square_b = inner_product(b, b, gb, gb);
  if (square_a <= 0.0 || square_b <= 0.0) return 0.0;
  return inner_product(a, b, ga, gb) / (std::sqrt(square_a) * std::sqrt(square_b));
}

}  // namespace normscope::norm
