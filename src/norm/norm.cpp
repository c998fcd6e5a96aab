#include <normscope/norm/norm.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/kernels.hpp>

#include "kernel_jobs.hpp"

/// The plain definitions of the norm and its first two derivatives, block by block in double.
namespace normscope::norm {
namespace {

constexpr std::size_t derivative_rows_per_task = 16;

/// A positive number, possibly outside a double's range, or zero.
class Length {
 public:
  /// `scaled` divided by `balance`, a power of two.
  Length(double scaled, double balance) : length_(scaled / balance), digits_(std::frexp(scaled, &exponent_)) {
    exponent_ -= std::ilogb(balance);
  }
  [[nodiscard]] bool is_zero() const { return digits_ == 0.0; }
  /// value / length, in range whenever the quotient is.
  [[nodiscard]] double divide(double value) const {
    if (std::isnormal(length_)) return value / length_;
    int exponent = 0;
    const double digits = std::frexp(value, &exponent);
    return std::scalbn(digits / digits_, exponent - exponent_);
  }

 private:
  double length_;     ///< infinite, subnormal or zero if a double cannot hold it
  int exponent_ = 0;  ///< length = digits · 2^exponent
  double digits_;
};

/// A power of two that brings the largest entry near one, so that neither mean nor squares over- or
/// underflow. If eps dominates the squares, it must stay in range too.
double balance_of(std::span<const double> x, double eps) {
  double largest = 0.0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  if (largest == 0.0 || std::isinf(largest)) return 1.0;
  return std::scalbn(1.0, -std::max(std::ilogb(largest), eps > 0.0 ? -500 : -1000));
}

/// Computes q = z/s, |q| <= 1, with z = x − mean (layer) or z = x, and returns s = sqrt(|z|² + R² eps). Both
/// are zero if all deviations are zero and eps = 0.
///
/// Shapes    x, q of the same size, a block of `spec`
///
/// Requires  q is x itself or does not overlap it
Length relative_deviations(const NormSpec& spec, std::span<const double> x, std::span<double> q) {
  const double balance = balance_of(x, spec.eps);
  for (std::size_t i = 0; i < x.size(); ++i) q[i] = x[i] * balance;
  if (spec.centers()) center(q);
  const double deviations = euclidean_norm(q);
  const double of_eps = std::sqrt(spec.eps) * spec.radius();
  // Beside no deviation, eps counts in full and must not lose digits to a large row's scaling.
  if (deviations == 0.0) return {of_eps, 1.0};
  const double length = std::hypot(deviations, of_eps * balance);
  for (double& value : q) value /= length;
  return {length, balance};
}

/// Throws unless `vectors` has the shape of `x`.
void require_vectors(std::string_view who, MatrixView<const double> x, MatrixView<const double> vectors) {
  if (vectors.rows() == x.rows() && vectors.width() == x.width()) return;
  throw Error(ErrorCode::Shape, fmt::format("{}: the vectors are {} x {}, expected {} x {}", who,
                                            vectors.rows(), vectors.width(), x.rows(), x.width()));
}

/// to = from times the gain of features `begin` on.
void multiply_by_gain(const NormSpec& spec, std::size_t begin, std::span<const double> from,
                      std::span<double> to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] * spec.gain_at(begin + i);
}

/// One row, before gain and bias.
void normalize(const NormSpec& spec, std::span<const double> x, std::span<double> y) {
  const std::size_t block = spec.block_width();
  for (std::size_t begin = 0; begin < spec.width; begin += block) {
    relative_deviations(spec, x.subspan(begin, block), y.subspan(begin, block));
  }
  for (double& value : y) value *= spec.radius();
}

void require_width(std::string_view what, std::span<const double> gradient, std::size_t width) {
  if (gradient.empty() || gradient.size() == width) return;
  throw Error(ErrorCode::Shape,
              fmt::format("backward: {} has {} entries, width is {}", what, gradient.size(), width));
}

void round(const std::vector<CompensatedSum>& sums, std::span<double> gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = sums[i].value();
}

/// v ← R (v − q (qᵀv))/s, the symmetric Jacobian between centring and gain.
void scale_tangent(const NormSpec& spec, std::span<const double> q, const Length& s, std::span<double> v) {
  if (s.is_zero()) return std::fill(v.begin(), v.end(), 0.0);
  CompensatedSum along;
  for (std::size_t i = 0; i < q.size(); ++i) along.add(q[i] * v[i]);
  for (std::size_t i = 0; i < q.size(); ++i) {
    v[i] = s.divide(v[i] - q[i] * along.value()) * spec.radius();
  }
}

/// J v of each row, or Jᵀ v if `transposed`.
void jacobian_product(std::string_view who, bool transposed, const NormSpec& spec, MatrixView<const double> x,
                      MatrixView<const double> v, MatrixView<double> out, unsigned threads) {
  validate(who, spec, x, out);
  require_vectors(who, x, v);
  if (spec.elementwise()) return detail::elementwise_jacobian(spec, x, v, out, threads);
  const std::size_t block = spec.block_width();
  parallel_for(x.rows(), derivative_rows_per_task, threads, [&](std::size_t first, std::size_t last) {
    std::vector<double> q(block);
    for (std::size_t row = first; row < last; ++row) {
      for (std::size_t begin = 0; begin < spec.width; begin += block) {
        const std::span<const double> from = v.row(row).subspan(begin, block);
        const std::span<double> to = out.row(row).subspan(begin, block);
        const Length s = relative_deviations(spec, x.row(row).subspan(begin, block), q);
        if (transposed) {
          multiply_by_gain(spec, begin, from, to);
        } else {
          std::copy(from.begin(), from.end(), to.begin());
        }
        if (spec.centers()) center(to);
        scale_tangent(spec, q, s, to);
        if (!transposed) multiply_by_gain(spec, begin, to, to);
      }
    }
  });
}

double dot(std::span<const double> a, std::span<const double> b) {
  CompensatedSum sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.add(a[i] * b[i]);
  return sum.value();
}

/// v ← Πv/s.
void bring_to_scale(const NormSpec& spec, const Length& s, std::span<double> v) {
  if (spec.centers()) center(v);
  for (double& value : v) value = s.divide(value);
}

/// out = T(a, b), for a and b already divided by s.
void bend(const NormSpec& spec, std::span<const double> q, std::span<const double> a,
          std::span<const double> b, std::span<double> out) {
  const double along_a = dot(q, a);
  const double along_b = dot(q, b);
  const double along = 3.0 * (along_a * along_b) - dot(a, b);
  for (std::size_t i = 0; i < q.size(); ++i) {
    out[i] = spec.radius() * (q[i] * along - (a[i] * along_b + b[i] * along_a));
  }
}

/// The second derivative along u and v, or, if `transposed`, the Hessian of uᵀ norm(x) times v.
void second_product(std::string_view who, bool transposed, const NormSpec& spec, MatrixView<const double> x,
                    MatrixView<const double> u, MatrixView<const double> v, MatrixView<double> out,
                    unsigned threads) {
  validate(who, spec, x, out);
  require_vectors(who, x, u);
  require_vectors(who, x, v);
  if (spec.elementwise()) return detail::elementwise_second(spec, x, u, v, out, threads);
  const std::size_t block = spec.block_width();
  parallel_for(x.rows(), derivative_rows_per_task, threads, [&](std::size_t first, std::size_t last) {
    std::vector<double> q(block);
    std::vector<double> a(block);
    std::vector<double> b(block);
    for (std::size_t row = first; row < last; ++row) {
      for (std::size_t begin = 0; begin < spec.width; begin += block) {
        const auto part = [&](MatrixView<const double> rows) { return rows.row(row).subspan(begin, block); };
        const std::span<double> to = out.row(row).subspan(begin, block);
        const Length s = relative_deviations(spec, part(x), q);
        if (s.is_zero()) {
          std::fill(to.begin(), to.end(), 0.0);
          continue;
        }
        std::copy_n(part(u).begin(), block, a.begin());
        std::copy_n(part(v).begin(), block, b.begin());
        if (transposed) multiply_by_gain(spec, begin, a, a);
        bring_to_scale(spec, s, a);
        bring_to_scale(spec, s, b);
        bend(spec, q, a, b, to);
        if (!transposed) multiply_by_gain(spec, begin, to, to);
      }
    }
  });
}

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

void forward(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y) {
  validate("norm", spec, x, y);
  if (spec.elementwise()) return normalize<double>(view(spec), x, y, 1);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    normalize(spec, x.row(row), y.row(row));
    for (std::size_t i = 0; i < spec.width; ++i) {
      y.row(row)[i] = y.row(row)[i] * spec.gain_at(i) + spec.bias_at(i);
    }
  }
}

void backward(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> dy,
              MatrixView<double> dx, std::span<double> dgain, std::span<double> dbias) {
  validate("backward", spec, x, dx);
  require_vectors("backward", x, dy);
  require_width("dgain", dgain, spec.width);
  require_width("dbias", dbias, spec.width);
  if (spec.elementwise()) {
    return normalize_backward<double>(view(spec), x, dy, dx, {.gain = dgain, .bias = dbias}, 1);
  }
  std::vector<CompensatedSum> of_gain(spec.width);
  std::vector<CompensatedSum> of_bias(spec.width);
  std::vector<double> normalized(spec.width);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    normalize(spec, x.row(row), normalized);
    for (std::size_t i = 0; i < spec.width; ++i) {
      of_gain[i].add(dy.row(row)[i] * normalized[i]);
      of_bias[i].add(dy.row(row)[i]);
    }
  }
  vector_jacobian(spec, x, dy, dx, 1);
  round(of_gain, dgain);
  round(of_bias, dbias);
}

void jacobian_vector(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> v,
                     MatrixView<double> out, unsigned threads) {
  jacobian_product("jacobian_vector", false, spec, x, v, out, threads);
}

void vector_jacobian(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> w,
                     MatrixView<double> out, unsigned threads) {
  jacobian_product("vector_jacobian", true, spec, x, w, out, threads);
}

void second_derivative(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> u,
                       MatrixView<const double> v, MatrixView<double> out, unsigned threads) {
  second_product("second_derivative", false, spec, x, u, v, out, threads);
}

void hessian_vector(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> w,
                    MatrixView<const double> v, MatrixView<double> out, unsigned threads) {
  second_product("hessian_vector", true, spec, x, w, v, out, threads);
}

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
