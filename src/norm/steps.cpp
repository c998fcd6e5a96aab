#include <normscope/norm/norm.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::norm {
namespace {

/// Calls `map` on each block of each row, after the checks that all steps share.
template <typename Map>
void for_each_block(std::string_view name, const NormSpec& spec, MatrixView<const double> x,
                    MatrixView<double> y, Map map) {
  validate(name, spec, x, y);
  require_normalizing(name, spec);
  const std::size_t block = spec.block_width();
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (std::size_t begin = 0; begin < spec.width; begin += block) {
      map(begin, x.row(row).subspan(begin, block), y.row(row).subspan(begin, block));
    }
  }
}

}  // namespace

Step step(std::string_view name) {
  if (name == "project") return Step::project;
  if (name == "scale") return Step::scale;
  if (name == "stretch") return Step::stretch;
  if (name == "shift") return Step::shift;
  throw Error(ErrorCode::Argument,
              fmt::format("unknown step \"{}\", expected project, scale, stretch or shift", name));
}

void project(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y) {
  for_each_block("project", spec, x, y, [&](std::size_t, std::span<const double> from, std::span<double> to) {
    const BinaryScale size = BinaryScale::of(from);
    std::copy(from.begin(), from.end(), to.begin());
    if (!spec.centers()) return;
    size.divide(to);
    center(to);
    size.multiply(to);
  });
}

void scale(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y) {
  std::vector<double> scaled;
  for_each_block("scale", spec, x, y, [&](std::size_t, std::span<const double> from, std::span<double> to) {
    BinaryScale size = BinaryScale::of(from);
    // If eps dominates the entries, it must stay in range too.
    if (spec.eps > 0.0) size = BinaryScale::of_exponent(std::max(size.exponent(), -500));
    scaled.assign(from.begin(), from.end());
    size.divide(scaled);
    const double length = euclidean_norm(scaled);
    const double reach = std::hypot(length, size.divide(std::sqrt(spec.eps)) * spec.radius());
    // Significand and exponent are separate, so that an underflow rounds only once, after multiplication by
    // the radius.
    int out = 0;
    const double digits = std::frexp(reach, &out);
    for (std::size_t i = 0; i < from.size(); ++i) {
      int in = 0;
      const double value = std::frexp(from[i], &in);
      to[i] = length == 0.0 ? 0.0 : std::scalbn(value * spec.radius() / digits, in - out - size.exponent());
    }
  });
}

void stretch(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y) {
  for_each_block("stretch", spec, x, y,
                 [&](std::size_t begin, std::span<const double> from, std::span<double> to) {
                   for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] * spec.gain_at(begin + i);
                 });
}

void shift(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y) {
  for_each_block("shift", spec, x, y,
                 [&](std::size_t begin, std::span<const double> from, std::span<double> to) {
                   for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] + spec.bias_at(begin + i);
                 });
}

void apply(Step step, const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y) {
  switch (step) {
    case Step::project: return project(spec, x, y);
    case Step::scale: return scale(spec, x, y);
    case Step::stretch: return stretch(spec, x, y);
    case Step::shift: return shift(spec, x, y);
  }
}

}  // namespace normscope::norm
