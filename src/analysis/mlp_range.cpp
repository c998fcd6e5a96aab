#include "mlp_range.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/forward/decoder.hpp>

// Each unit of an MLP is at most a quadratic polynomial of what it reads of u, |u| <= 1. The sum of these is
// one quadratic function of u, whose maximum over the ball is found and proved exactly:
// docs/design/attribution.md.
namespace normscope::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// A bound of the second derivative's size for all inputs that far from 0 or farther.
double curvature_beyond(models::Activation activation, double x) {
  switch (activation) {
    case models::Activation::gelu:
      // (2 − x²) times the density of a normal number: largest at 0; it falls in size beyond 2.
      return x < 2.0 ? 0.8 : 0.4 * (x * x - 2.0) * std::exp(-0.5 * x * x);
    case models::Activation::gelu_tanh: {
      // x σ(v): 2 σ'v' + x (σ''v'² + σ'v''), where σ' and σ'' are at most exp(-v).
      if (x < 3.0) return 0.8;
      const double v = 1.6 * (x + 0.0447 * x * x * x), slope = 1.6 * (1.0 + 0.135 * x * x);
      return (2.0 * slope + x * (slope * slope + 0.44 * x)) * std::exp(-0.995 * v);
    }
    case models::Activation::silu: return std::min(0.5, (x + 2.0) * std::exp(-x));
    case models::Activation::relu: return 0.0;          // on either side of 0
    case models::Activation::squared_relu: return 2.0;  // likewise
  }
  NORMSCOPE_ASSERT(false);
  return infinity;
}

/// A polynomial value + slope (z − centre) + curvature (z − centre)² of a unit.
struct Quadratic {
  double slope = 0.0, curvature = 0.0;
};

/// A unit's function: φ itself, or (φ(z) − slope·z)², less a polynomial.
struct Remainder {
  models::Activation activation{};
  double factor = 1.0;  ///< of φ
  double centre = 0.0;
  Quadratic less{};
  bool is_square = false;

  [[nodiscard]] double at(double z) const {
    const double y = forward::activated(activation, z), d = z - centre;
    if (!is_square) return factor * y - (less.slope + less.curvature * d) * d;
    const double r = y - less.slope * z;
    return r * r - less.curvature * d * d;
  }

  /// A bound of −f'' between two inputs of the same sign, of which f is given.
  [[nodiscard]] double concavity(double low, double high) const {
    const double nearest = std::min(std::abs(low), std::abs(high));
    const double curvature = curvature_beyond(activation, nearest);
    const double own = 2.0 * less.curvature;
    if (!is_square) return std::max(0.0, std::abs(factor) * curvature + own);
    // For r²: −2 r'² − 2 r r'', r within its ends by its own second derivative.
    const double ends = std::max(std::abs(forward::activated(activation, low) - less.slope * low),
                                 std::abs(forward::activated(activation, high) - less.slope * high));
    const double most = ends + 0.125 * curvature * (high - low) * (high - low);
    return std::max(0.0, 2.0 * most * curvature + own);
  }
};

/// An upper bound of a remainder on an interval, to a part 1e-12 of `size`: by chords, whose distance from
/// the function the second derivative bounds, where halving may still improve it.
double most_of(const Remainder& f, const Interval& on, double size) {
  struct Cell {
    double low, high, at_low, at_high;
  };
  double best = std::max(f.at(on.lower), f.at(on.upper));
  std::vector<Cell> cells;
  const auto add = [&](double low, double high) {
    constexpr int pieces = 16;
    double from = low, value = f.at(low);
    for (int i = 1; i <= pieces && low < high; ++i) {
      const double to = i == pieces ? high : low + (high - low) * i / pieces, next = f.at(to);
      best = std::max(best, next);
      cells.push_back({from, to, value, next});
      from = to;
      value = next;
    }
  };
  add(on.lower, std::clamp(0.0, on.lower, on.upper));
  add(std::clamp(0.0, on.lower, on.upper), on.upper);
  const double tolerance = 1e-12 * size;
  double bound = best;
  for (std::size_t steps = 0; !cells.empty(); ++steps) {
    const Cell cell = cells.back();
    cells.pop_back();
    const double width = cell.high - cell.low;
    const double above =
        std::max(cell.at_low, cell.at_high) + 0.125 * f.concavity(cell.low, cell.high) * width * width;
    if (above <= best + tolerance) continue;
    constexpr std::size_t most_steps = 20'000;
    if (steps > most_steps || width < 1e-9) {
      bound = std::max(bound, above);
      continue;
    }
    const double middle = 0.5 * (cell.low + cell.high), value = f.at(middle);
    best = std::max(best, value);
    cells.push_back({cell.low, middle, cell.at_low, value});
    cells.push_back({middle, cell.high, value, cell.at_high});
  }
  return std::max(bound, best) + tolerance;
}

/// h·u + uᵀMu + constant, with a bound of what rounding adds and of the sizes of M's terms.
struct BallForm {
  double constant = 0.0, error = 0.0, sizes = 0.0;
  VectorXd linear{};
  MatrixXd matrix{};
};

/// The terms of a unit in p·u and q·u, for z = z0 + p·u and x = x0 + q·u.
struct UnitTerms {
  double constant = 0.0, p = 0.0, q = 0.0, pp = 0.0, qq = 0.0, pq = 0.0;
};

/// Means over some vectors of the ball: of p·u, q·u and their products.
struct UnitMoments {
  double p = 0.0, q = 0.0, pp = 0.0, qq = 0.0, pq = 0.0;
};

class UnitsBound {
 public:
  UnitsBound(const BallUnits& units, double sign, unsigned threads)
      : units_(units), sign_(sign), threads_(threads), count_(units.reads.size()) {
    candidates_.resize(count_);
    parallel_for(count_, 8, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t j = begin; j < end; ++j) candidates_[j] = candidates_of(j);
    });
  }

  std::optional<BallBound> best() {
    // Vectors u that the best polynomials so far leave most room are added to those that choose the next.
    std::vector<UnitMoments> moments(count_);
    const double directions = static_cast<double>(units_.width);
    for (std::size_t j = 0; j < count_; ++j) {
      moments[j].pp = squared(units_.z.lengths[j]) / directions;
      if (!units_.gated()) continue;
      moments[j].qq = squared(units_.x.lengths[j]) / directions;
      moments[j].pq = plain_dot(row(units_.z, j), row(units_.x, j)) / directions;
    }
    double least = infinity, before = infinity;
    QuadraticProof chosen;
    constexpr int most_steps = 12;
    for (int step = 0; step < most_steps; ++step) {
      if (step % 4 == 0 && step > 0) {
        if (least > before - 1e-2 * std::abs(before)) break;
        before = least;
      }
      const QuadraticProof proof = choose(moments);
      const BallForm form = form_of(proof, false);
      const Highest highest = highest_of(form);
      if (form.constant + highest.value < least) {
        least = form.constant + highest.value;
        chosen = proof;
        chosen.multiplier = highest.multiplier;
      }
      add(moments, highest.at, 2.0 / (step + 3));
    }
    if (!(least < infinity)) return std::nullopt;
    return proved(std::move(chosen));
  }

 private:
  /// A polynomial with a bound of what it leaves, both as far as a grid shows them.
  struct Candidate {
    Quadratic of{};
    double rest = 0.0;
  };
  struct Highest {
    double value = 0.0, multiplier = 0.0;
    VectorXd at{};
  };

  static double squared(double x) { return x * x; }
  [[nodiscard]] std::span<const double> row(const BallReads& of, std::size_t j) const {
    return {of.rows.data() + j * units_.width, units_.width};
  }
  [[nodiscard]] double read(std::size_t j) const { return sign_ * units_.reads[j]; }

  [[nodiscard]] std::vector<Candidate> candidates_of(std::size_t j) const {
    constexpr std::size_t places = 65;
    const Interval& on = units_.z.intervals[j];
    const double reach = 0.5 * (on.upper - on.lower), centre = units_.z.centres[j];
    std::array<double, places> d{}, y{};
    for (std::size_t i = 0; i < places; ++i) {
      const double z = on.lower + (on.upper - on.lower) * static_cast<double>(i) / (places - 1);
      d[i] = z - centre;
      y[i] = forward::activated(units_.activation, z);
    }
    const double chord = reach > 0.0 ? (y.back() - y.front()) / (2.0 * reach) : 0.0;
    double least = infinity, most = -infinity;
    for (std::size_t i = 0; i < places; ++i) {
      least = std::min(least, y[i] - chord * d[i]);
      most = std::max(most, y[i] - chord * d[i]);
    }
    const double spread = most - least;
    std::vector<Candidate> found;
    if (units_.gated()) {
      double largest = 0.0;
      for (std::size_t i = 0; i < places; ++i) {
        largest = std::max(largest, squared(y[i] - chord * (d[i] + centre)));
      }
      for (const double part : {0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0}) {
        const double curvature = reach > 0.0 ? part * largest / (reach * reach) : 0.0;
        double rest = 0.0;
        for (std::size_t i = 0; i < places; ++i) {
          const double r = y[i] - chord * (d[i] + centre);
          rest = std::max(rest, r * r - curvature * d[i] * d[i]);
        }
        found.push_back({{chord, curvature}, rest});
      }
      return found;
    }
    const double size = std::abs(read(j)) * spread;
    for (const double aside : {0.0, -0.5, -0.25, 0.25, 0.5}) {
      const double slope = read(j) * chord + (reach > 0.0 ? aside * size / reach : 0.0);
      for (const double part :
           {0.0, -2.0, -1.5, -1.0, -0.7, -0.4, -0.2, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 8.0}) {
        const double curvature = reach > 0.0 ? part * size / (reach * reach) : 0.0;
        double rest = -infinity;
        for (std::size_t i = 0; i < places; ++i) {
          rest = std::max(rest, read(j) * y[i] - (slope + curvature * d[i]) * d[i]);
        }
        found.push_back({{slope, curvature}, rest});
      }
    }
    return found;
  }

  /// The mean of x².
  [[nodiscard]] double square_of_input(std::size_t j, const UnitMoments& of) const {
    const double centre = units_.x.centres[j];
    return centre * centre + 2.0 * centre * of.q + of.qq;
  }

  /// The polynomials that are least for vectors with these means.
  [[nodiscard]] QuadraticProof choose(const std::vector<UnitMoments>& moments) const {
    QuadraticProof proof;
    for (std::size_t j = 0; j < count_; ++j) {
      const UnitMoments& m = moments[j];
      const Candidate* best = nullptr;
      double least = infinity;
      for (const Candidate& one : candidates_[j]) {
        const double value = units_.gated() ? one.rest + one.of.curvature * m.pp
                                            : one.rest + one.of.slope * m.p + one.of.curvature * m.pp;
        if (value < least) least = value, best = &one;
      }
      if (best == nullptr) best = &candidates_[j].front();
      proof.slopes.push_back(best->of.slope);
      proof.curvatures.push_back(best->of.curvature);
      if (!units_.gated()) continue;
      const double x = std::max(square_of_input(j, m), 1e-9 * squared(units_.x.lengths[j]));
      const double balance = x > 0.0 ? std::sqrt(std::max(least, 1e-18 * x) / x) : 1.0;
      proof.balances.push_back(std::isfinite(balance) && balance > 0.0 ? balance : 1.0);
    }
    return proof;
  }

  /// What unit j adds at most, as terms.
  [[nodiscard]] UnitTerms terms_of(const QuadraticProof& proof, std::size_t j, double rest) const {
    const double slope = proof.slopes[j], curvature = proof.curvatures[j];
    if (!units_.gated()) return {.constant = rest, .p = slope, .pp = curvature};
    // a x φ(z) = a s x z + a x r(z), and |x r| <= κ x²/2 + r²/(2 κ).
    const double a = read(j), x0 = units_.x.centres[j], z0 = units_.z.centres[j];
    const double half = 0.5 * std::abs(a) * proof.balances[j], other = 0.5 * std::abs(a) / proof.balances[j];
    return {.constant = a * slope * x0 * z0 + half * x0 * x0 + other * rest,
            .p = a * slope * x0,
            .q = a * slope * z0 + 2.0 * half * x0,
            .pp = other * curvature,
            .qq = half,
            .pq = a * slope};
  }

  /// The sum of all units' terms; `proves`: with a proved bound of what the polynomials leave.
  [[nodiscard]] BallForm form_of(const QuadraticProof& proof, bool proves) const {
    std::vector<UnitTerms> terms(count_);
    std::vector<double> sizes(count_);
    parallel_for(count_, 8, threads_, [&](std::size_t begin, std::size_t end) {
      for (std::size_t j = begin; j < end; ++j) {
        const double rest = proves ? rest_of(proof, j, sizes[j]) : known_rest(proof, j);
        terms[j] = terms_of(proof, j, rest);
      }
    });
    BallForm form{
        .linear = VectorXd::Zero(static_cast<Index>(units_.width)),
        .matrix = MatrixXd::Zero(static_cast<Index>(units_.width), static_cast<Index>(units_.width))};
    const std::size_t width = units_.width;
    double misread = 0.0;
    std::vector<double> with_z(count_ * width), with_x(units_.gated() ? count_ * width : 0);
    for (std::size_t j = 0; j < count_; ++j) {
      const UnitTerms& t = terms[j];
      const std::span<const double> p = row(units_.z, j);
      form.constant += t.constant;
      for (std::size_t i = 0; i < width; ++i) {
        form.linear[static_cast<Index>(i)] += t.p * p[i];
        with_z[j * width + i] = t.pp * p[i];
      }
      const double lp = units_.z.lengths[j], ep = units_.z.errors[j];
      form.sizes += std::abs(t.pp) * lp * lp;
      form.error += sizes[j] + std::abs(t.constant) + (std::abs(t.p) + std::abs(t.pp) * lp) * lp;
      double shifted = std::abs(t.p) * ep + std::abs(t.pp) * (2.0 * lp + ep) * ep;
      if (units_.gated()) {
        const std::span<const double> q = row(units_.x, j);
        for (std::size_t i = 0; i < width; ++i) {
          form.linear[static_cast<Index>(i)] += t.q * q[i];
          with_z[j * width + i] += 0.5 * t.pq * q[i];
          with_x[j * width + i] = t.qq * q[i] + 0.5 * t.pq * p[i];
        }
        const double lq = units_.x.lengths[j], eq = units_.x.errors[j];
        form.sizes += std::abs(t.qq) * lq * lq + std::abs(t.pq) * lp * lq;
        form.error += std::abs(t.q) * lq + std::abs(t.qq) * lq * lq + std::abs(t.pq) * lp * lq;
        shifted += std::abs(t.q) * eq + std::abs(t.qq) * (2.0 * lq + eq) * eq +
                   std::abs(t.pq) * (lp * eq + lq * ep + ep * eq);
      }
      misread += shifted;
    }
    // Σ p (pp p + pq q/2)ᵀ + q (qq q + pq p/2)ᵀ, of which one half is enough.
    parallel_for(width, 64, threads_, [&](std::size_t begin, std::size_t end) {
      const MatrixView<double> to(form.matrix.data() + begin * width, end - begin, end, width);
      multiply(Factor<double>(with_z.data() + begin, count_, end - begin, width).transposed(),
               Factor<double>(units_.z.rows.data(), count_, end, width), to);
      if (with_x.empty()) return;
      multiply(Factor<double>(with_x.data() + begin, count_, end - begin, width).transposed(),
               Factor<double>(units_.x.rows.data(), count_, end, width), to, Into::add);
    });
    // Columns of Eigen's matrix are rows in memory.
    form.matrix = MatrixXd(form.matrix.selfadjointView<Eigen::Upper>());
    const auto terms_added = static_cast<std::ptrdiff_t>(count_ + width);
    form.error = 4.0 * rounding(terms_added + 64) * (form.error + form.sizes) + 2.0 * misread;
    return form;
  }

  [[nodiscard]] double known_rest(const QuadraticProof& proof, std::size_t j) const {
    for (const Candidate& one : candidates_[j]) {
      if (one.of.slope == proof.slopes[j] && one.of.curvature == proof.curvatures[j]) return one.rest;
    }
    return infinity;
  }

  /// A bound of what the polynomial leaves of unit j, and the sizes of its terms.
  [[nodiscard]] double rest_of(const QuadraticProof& proof, std::size_t j, double& size) const {
    const Interval& on = units_.z.intervals[j];
    const double reach = units_.z.lengths[j] + units_.z.errors[j];
    const double value = std::max(std::abs(forward::activated(units_.activation, on.lower)),
                                  std::abs(forward::activated(units_.activation, on.upper))) +
                         1.0;
    const Quadratic less{proof.slopes[j], proof.curvatures[j]};
    const double factor = units_.gated() ? 1.0 : read(j);
    const double line = std::abs(less.slope) * (units_.gated() ? on.size() : reach);
    const double whole = std::abs(less.curvature) * reach * reach;
    const double own =
        units_.gated() ? squared(value + line) + whole : std::abs(factor) * value + line + whole;
    size = units_.gated() ? 0.5 * std::abs(read(j)) / proof.balances[j] * own : own;
    return most_of({units_.activation, factor, units_.z.centres[j], less, units_.gated()}, on, own);
  }

  /// About the largest value of h·u + uᵀMu over the ball, where it is, and its multiplier: over the span of
  /// powers of M times h.
  [[nodiscard]] Highest highest_of(const BallForm& form) const {
    const auto n = form.linear.size();
    const Index most = std::min<Index>(n, 48);
    MatrixXd basis(n, most), images(n, most);
    VectorXd next = form.linear;
    // M alone may have its largest value beside all that h leads to.
    const double size = next.norm() > 0.0 ? next.norm() : 1.0;
    for (Index i = 0; i < n; ++i)
      next[i] +=
          0.1 * size / std::sqrt(static_cast<double>(n)) * std::cos(1.0 + 2.0 * static_cast<double>(i));
    Index found = 0;
    for (; found < most; ++found) {
      const double whole = next.norm();
      for (int twice = 0; twice < 2; ++twice) {
        next -= basis.leftCols(found) * (basis.leftCols(found).transpose() * next).eval();
      }
      const double length = next.norm();
      if (!(length > 1e-10 * whole)) break;
      basis.col(found) = next / length;
      images.col(found) = form.matrix * basis.col(found);
      next = images.col(found);
    }
    const MatrixXd used = basis.leftCols(found);
    const MatrixXd small = used.transpose() * images.leftCols(found);
    const SymmetricEigen eigen = symmetric_eigen(0.5 * (small + small.transpose()));
    const VectorXd h = eigen.vectors.transpose() * (used.transpose() * form.linear);
    const Index last = found - 1;
    const auto point = [&](double multiplier) {
      VectorXd y = h;
      for (Index i = 0; i < found; ++i) y[i] *= 0.5 / std::max(multiplier - eigen.values[i], 1e-300);
      return y;
    };
    const double edge = std::max(eigen.values[last], 0.0);
    double low = edge, high = edge + h.norm() + 1e-300;
    for (int step = 0; step < 100; ++step) {
      const double middle = 0.5 * (low + high);
      (point(middle).norm() > 1.0 ? low : high) = middle;
    }
    VectorXd y = point(high);
    if (const double length = y.norm(); length < 1.0 && edge > 0.0) {
      y[last] += std::copysign(std::sqrt(1.0 - length * length), h[last]);
      y /= std::max(y.norm(), 1.0);
    }
    const double value = h.dot(y) + (eigen.values.array() * y.array().square()).sum();
    return {value, high, used * (eigen.vectors * y)};
  }

  /// Moves means towards those of a vector.
  void add(std::vector<UnitMoments>& moments, const VectorXd& u, double part) const {
    const std::span<const double> at = as_span(u);
    for (std::size_t j = 0; j < count_; ++j) {
      UnitMoments& m = moments[j];
      const double p = plain_dot(row(units_.z, j), at);
      const double q = units_.gated() ? plain_dot(row(units_.x, j), at) : 0.0;
      m.p += part * (p - m.p);
      m.q += part * (q - m.q);
      m.pp += part * (p * p - m.pp);
      m.qq += part * (q * q - m.qq);
      m.pq += part * (p * q - m.pq);
    }
  }

  /// h·u + uᵀMu = λ|u|² + r·u + wᵀAw − (u − w)ᵀA(u − w) with A = λ − M and r = h − 2Aw, for every w.
  [[nodiscard]] std::optional<BallBound> proved(QuadraticProof proof) const {
    const BallForm form = form_of(proof, true);
    const auto n = static_cast<double>(units_.width);
    const double guess = proof.multiplier;
    const double scale = std::max({std::abs(guess), form.matrix.norm() / std::sqrt(n), 1e-300});
    std::optional<BallBound> best;
    for (const double more : {1e-12, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0}) {
      const double multiplier = guess + more * scale;
      MatrixXd a = -form.matrix;
      a.diagonal().array() += multiplier;
      if (!has_cholesky_factor(a)) continue;
      const VectorXd w = solve_positive(a, 0.5 * form.linear);
      const VectorXd image = a * w;
      // How far A may be from positive semidefinite: errors of the matrix, and of its factor.
      const double miss = 4.0 * rounding(static_cast<std::ptrdiff_t>(count_ + units_.width) + 64) *
                          (n * multiplier + form.sizes + a.norm());
      const double length = w.norm();
      const double value =
          form.constant + multiplier + w.dot(image) + (form.linear - 2.0 * image).norm() +
          miss * (1.0 + length) * (1.0 + length) +
          16.0 * unit_roundoff * n * (a.norm() * length * (1.0 + length) + form.linear.norm()) + form.error;
      const double outwards = std::abs(form.constant) + multiplier + std::abs(w.dot(image));
      if (!std::isfinite(value) || (best && value >= best->value)) break;
      proof.multiplier = multiplier;
      best = BallBound{value + 8.0 * unit_roundoff * outwards, proof};
    }
    return best;
  }

  const BallUnits& units_;
  double sign_;
  unsigned threads_;
  std::size_t count_;
  std::vector<std::vector<Candidate>> candidates_{};
};

}  // namespace

std::optional<BallBound> bound_units(const BallUnits& units, double sign, unsigned threads) {
  return UnitsBound(units, sign, threads).best();
}

}  // namespace normscope::analysis
