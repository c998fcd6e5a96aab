#include "quadratic_bound.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <normscope/core/rounding.hpp>

/// Units of an MLP, each at most a quadratic polynomial: h·u + uᵀMu + constant over |u| <= 1.
namespace normscope::verify {

double activate(models::Activation activation, double x) {
  switch (activation) {
    case models::Activation::gelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case models::Activation::gelu_tanh: {
      const double root = std::sqrt(2.0 / std::acos(-1.0));
      return 0.5 * x * (1.0 + std::tanh(root * x * (1.0 + 0.044715 * x * x)));
    }
    case models::Activation::silu: return x / (1.0 + std::exp(-x));
    case models::Activation::relu: return x > 0.0 ? x : 0.0;
    case models::Activation::squared_relu: return x > 0.0 ? x * x : 0.0;
  }
  return 0.0;
}

namespace {

/// The largest value on an interval: of a grid's points, each improved between its neighbours.
template <typename Function>
double highest(const Function& f, double low, double high) {
  constexpr int pieces = 256;
  const double step = (high - low) / pieces;
  const auto at = [&](int i) { return f(i == pieces ? high : low + i * step); };
  double best = std::max(at(0), at(pieces));
  double before = at(0), here = at(0);
  for (int i = 0; i <= pieces; ++i) {
    const double after = i < pieces ? at(i + 1) : here;
    if (here >= before && here >= after) {
      double from = low + std::max(0, i - 1) * step, to = low + std::min(pieces, i + 1) * step;
      for (int k = 0; k < 50; ++k) {
        const double third = (to - from) / 3.0;
        if (f(from + third) < f(to - third)) {
          from += third;
        } else {
          to -= third;
        }
      }
      best = std::max(best, f(0.5 * (from + to)));
    }
    before = here;
    here = after;
  }
  return best;
}

double length_of(const Reads& reads, std::size_t j) {
  return euclidean_norm({reads.rows.data() + j * reads.width, reads.width});
}

/// A symmetric matrix, of which the lower half is kept, and what solves with it.
class Symmetric {
 public:
  explicit Symmetric(std::size_t size) : n_(size), entries_(size * size) {}
  [[nodiscard]] double& at(std::size_t i, std::size_t j) { return entries_[i * n_ + j]; }

  /// Adds factor (p qᵀ + q pᵀ)/2.
  void add(double factor, const double* p, const double* q) {
    for (std::size_t i = 0; i < n_; ++i) {
      double* const row = entries_.data() + i * n_;
      const double one = 0.5 * factor * p[i], other = 0.5 * factor * q[i];
      for (std::size_t k = 0; k <= i; ++k) row[k] += one * q[k] + other * p[k];
    }
  }

  [[nodiscard]] std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k <= i; ++k) {
        y[i] += entries_[i * n_ + k] * x[k];
        if (k < i) y[k] += entries_[i * n_ + k] * x[i];
      }
    }
    return y;
  }

  /// Overwrites the matrix by its Cholesky factor; false if it has none.
  bool factor() {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const double left = at(i, j) - plain_dot({&at(i, 0), j}, {&at(j, 0), j});
        if (j < i) {
          at(i, j) = left / at(j, j);
        } else if (left > 0.0) {
          at(i, i) = std::sqrt(left);
        } else {
          return false;
        }
      }
    }
    return true;
  }

  /// Solves with the factor.
  [[nodiscard]] std::vector<double> solved(std::vector<double> x) const {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < i; ++k) x[i] -= entries_[i * n_ + k] * x[k];
      x[i] /= entries_[i * n_ + i];
    }
    for (std::size_t i = n_; i-- > 0;) {
      x[i] /= entries_[i * n_ + i];
      for (std::size_t k = 0; k < i; ++k) x[k] -= entries_[i * n_ + k] * x[i];
    }
    return x;
  }

 private:
  std::size_t n_;
  std::vector<double> entries_;
};

}  // namespace

std::optional<ProvedBound> quadratic_bound(models::Activation activation, const std::vector<double>& a,
                                           const Reads& z, const Reads& x, const Field& proof) {
  const std::size_t count = a.size(), n = z.width;
  const bool gated = !x.centres.empty();
  const std::vector<double> slopes = proof["slopes"].numbers(count);
  const std::vector<double> curvatures = proof["curvatures"].numbers(count);
  const std::vector<double> balances = proof["balances"].numbers(gated ? count : 0);
  const double multiplier = proof["multiplier"].number();
  Symmetric left(n);
  std::vector<double> h(n);
  ProvedBound bound{.size = multiplier};
  double constant = 0.0, sizes = 0.0;
  for (std::size_t j = 0; j < count; ++j) {
    const double* const p = z.rows.data() + j * n;
    const double reach = length_of(z, j), c = z.centres[j], s = slopes[j], t = curvatures[j];
    const auto most = [&](const auto& f) {
      const double middle = std::clamp(0.0, c - reach, c + reach);
      return std::max(highest(f, c - reach, middle), highest(f, middle, c + reach));
    };
    if (!gated) {
      const double rest = most(
          [&](double y) { return a[j] * activate(activation, y) - s * (y - c) - t * (y - c) * (y - c); });
      constant += rest;
      for (std::size_t i = 0; i < n; ++i) h[i] += s * p[i];
      left.add(-t, p, p);
      sizes += std::abs(t) * reach * reach;
      bound.size += std::abs(rest) + std::abs(s) * reach + std::abs(t) * reach * reach;
      continue;
    }
    if (!(balances[j] > 0.0)) return std::nullopt;
    const double rest = most([&](double y) {
      const double r = activate(activation, y) - s * y;
      return r * r - t * (y - c) * (y - c);
    });
    const double* const q = x.rows.data() + j * n;
    const double size = std::abs(a[j]), k = balances[j], own = x.centres[j], its = length_of(x, j);
    constant += a[j] * s * own * c + 0.5 * size * (k * own * own + rest / k);
    for (std::size_t i = 0; i < n; ++i) {
      h[i] += a[j] * s * (own * p[i] + c * q[i]) + size * k * own * q[i];
    }
    left.add(-a[j] * s, p, q);
    left.add(-0.5 * size * k, q, q);
    left.add(-0.5 * size * t / k, p, p);
    const double of_terms =
        size * (std::abs(s) * reach * its + k * its * its + std::abs(t) * reach * reach / k);
    sizes += of_terms;
    bound.size += of_terms + size * (std::abs(s * own * c) + k * own * own + std::abs(rest) / k);
  }
  for (std::size_t i = 0; i < n; ++i) left.at(i, i) += multiplier;
  Symmetric factor = left;
  for (std::size_t i = 0; i < n; ++i) factor.at(i, i) += 1e-10 * (sizes + multiplier);
  if (!(multiplier >= 0.0) || !factor.factor()) return std::nullopt;
  std::vector<double> half(h);
  for (double& value : half) value *= 0.5;
  const std::vector<double> w = factor.solved(std::move(half));
  const std::vector<double> image = left.times(w);
  std::vector<double> miss(h);
  for (std::size_t i = 0; i < n; ++i) miss[i] -= 2.0 * image[i];
  bound.value = constant + multiplier + plain_dot(w, image) + euclidean_norm(miss);
  return bound;
}

}  // namespace normscope::verify
