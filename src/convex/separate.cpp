#include <normscope/convex/separate.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::convex {
namespace {

void validate(MatrixView<const double> a, MatrixView<const double> b) {
  if (a.rows() == 0 || b.rows() == 0 || a.width() == 0 || a.width() != b.width()) {
    throw Error(ErrorCode::Shape,
                fmt::format("separate: the sets are {} x {} and {} x {}, expected rows of one "
                            "width in both",
                            a.rows(), a.width(), b.rows(), b.width()));
  }
  for (const MatrixView<const double>& set : {a, b}) {
    for (std::size_t row = 0; row < set.rows(); ++row) {
      for (const double value : set.row(row)) {
        if (!std::isfinite(value)) {
          throw Error(ErrorCode::Argument,
                      fmt::format("separate: row {} of {} has {}, expected finite numbers", row,
                                  set.data() == a.data() ? "A" : "B", value));
        }
      }
    }
  }
}

/// Rows moved to the mean of both sets and divided by a power of two: far from zero, differences of
/// scores would lose what separates them.
struct Frame {
  std::vector<double> center{};
  double scale = 0.0;
  int exponent = 0;

  Frame(MatrixView<const double> a, MatrixView<const double> b) : center(a.width()) {
    const double rows = static_cast<double>(a.rows() + b.rows());
    for (std::size_t i = 0; i < center.size(); ++i) {
      CompensatedSum total;
      for (std::size_t row = 0; row < a.rows(); ++row) total.add(a.row(row)[i] / rows);
      for (std::size_t row = 0; row < b.rows(); ++row) total.add(b.row(row)[i] / rows);
      center[i] = total.value();
    }
    for (const MatrixView<const double>& set : {a, b}) {
      for (std::size_t row = 0; row < set.rows(); ++row) {
        for (std::size_t i = 0; i < center.size(); ++i) {
          scale = std::max(scale, std::abs(set.row(row)[i] - center[i]));
        }
      }
    }
    exponent = scale > 0.0 && std::isfinite(scale) ? std::ilogb(scale) : 0;
  }

  [[nodiscard]] std::vector<double> moved(MatrixView<const double> set) const {
    std::vector<double> result;
    result.reserve(set.rows() * set.width());
    for (std::size_t row = 0; row < set.rows(); ++row) {
      for (std::size_t i = 0; i < center.size(); ++i) {
        result.push_back(std::scalbn(set.row(row)[i] - center[i], -exponent));
      }
    }
    return result;
  }
};

/// Σ x_i y_i in eight interleaved sums, which a compiler may take at once.
double product(std::span<const double> x, std::span<const double> y) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= x.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  }
  for (; i < x.size(); ++i) sums[0] += x[i] * y[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// The row with the least `sign` · directionᵀrow, the first of them.
std::size_t extreme(MatrixView<const double> set, std::span<const double> direction, double sign,
                    unsigned threads) {
  // Less is sooner done than a thread is started.
  const std::size_t grain = 1 + 1'000'000 / set.width();
  std::vector<double> scores(set.rows());
  parallel_for(set.rows(), grain, threads, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) scores[row] = sign * product(set.row(row), direction);
  });
  return static_cast<std::size_t>(std::min_element(scores.begin(), scores.end()) - scores.begin());
}

/// All differences of a row of `a` and a row of `b`; the id is the pair.
Hull differences(MatrixView<const double> a, MatrixView<const double> b, unsigned threads) {
  const auto least = [a, b, threads](std::span<const double> direction, std::span<double> point) {
    const std::size_t i = extreme(a, direction, 1.0, threads);
    const std::size_t j = extreme(b, direction, -1.0, threads);
    for (std::size_t k = 0; k < point.size(); ++k) point[k] = a.row(i)[k] - b.row(j)[k];
    return static_cast<std::uint64_t>(i) * b.rows() + j;
  };
  return {.dimension = a.width(), .least = least};
}

/// Shares of pairs summed by one of their members.
std::vector<Share> collected(std::vector<Share> shares) {
  std::sort(shares.begin(), shares.end(), [](const Share& x, const Share& y) { return x.id < y.id; });
  std::vector<Share> result;
  for (const Share& share : shares) {
    if (!result.empty() && result.back().id == share.id) {
      result.back().weight += share.weight;
    } else {
      result.push_back(share);
    }
  }
  return result;
}

/// normalᵀrow and a bound on what rounding did to it.
struct Score {
  double value = 0.0;
  double error = 0.0;
};

Score score(std::span<const double> row, const std::vector<double>& normal) {
  CompensatedSum total;
  CompensatedSum size;
  for (std::size_t i = 0; i < row.size(); ++i) {
    total.add(normal[i] * row[i]);
    size.add(std::abs(normal[i] * row[i]));
  }
  // A product rounds by u, the compensated sum by 2u and a term of second order.
  return {total.value(), 4.0 * 0x1p-53 * size.value() + std::numeric_limits<double>::min()};
}

/// Bounds of normalᵀrow over a set, proved.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

Range range(MatrixView<const double> set, const std::vector<double>& normal) {
  Range result;
  for (std::size_t row = 0; row < set.rows(); ++row) {
    const Score s = score(set.row(row), normal);
    result.low = std::min(result.low, s.value - s.error);
    result.high = std::max(result.high, s.value + s.error);
  }
  return result;
}

/// Sum of the weights, or NaN for weights that are none.
double total_weight(const std::vector<Share>& weights, std::size_t rows) {
  CompensatedSum total;
  for (const Share& share : weights) {
    if (!(share.weight >= 0.0) || share.id >= rows) return std::numeric_limits<double>::quiet_NaN();
    total.add(share.weight);
  }
  return total.value();
}

}  // namespace

std::string_view to_string(Answer answer) {
  switch (answer) {
    case Answer::yes: return "yes";
    case Answer::no: return "no";
    case Answer::undecided: return "undecided";
  }
  return "";
}

Separation separate(MatrixView<const double> a, MatrixView<const double> b, double tolerance,
                    unsigned threads, const Progress& progress) {
  validate(a, b);
  const Frame frame(a, b);
  const std::vector<double> moved_a = frame.moved(a);
  const std::vector<double> moved_b = frame.moved(b);
  const MatrixView<const double> near_a(moved_a.data(), a.rows(), a.width());
  const MatrixView<const double> near_b(moved_b.data(), b.rows(), b.width());
  const MinimumNorm nearest =
      minimum_norm_point(differences(near_a, near_b, threads), 1e-12, 100000, progress);

  Separation result;
  result.scale = frame.scale;
  result.tolerance = tolerance;
  for (const Share& share : nearest.shares) {
    result.a.push_back({share.id / b.rows(), share.weight});
    result.b.push_back({share.id % b.rows(), share.weight});
  }
  result.a = collected(std::move(result.a));
  result.b = collected(std::move(result.b));
  result.residual = verified_residual(a, b, result.a, result.b);
  result.normal = nearest.point;
  const double length = euclidean_norm(result.normal);
  if (length > 0.0) {
    for (double& value : result.normal) value /= length;
  }
  result.margin = verified_margin(a, b, result.normal);
  if (result.margin > 0.0) {
    result.answer = Answer::yes;
    result.offset = 0.5 * range(a, result.normal).low + 0.5 * range(b, result.normal).high;
  } else if (result.residual <= tolerance * result.scale) {
    result.answer = Answer::no;
  }
  return result;
}

double verified_margin(MatrixView<const double> a, MatrixView<const double> b,
                       const std::vector<double>& normal) {
  const double length = euclidean_norm(normal);
  if (normal.size() != a.width() || !(length > 0.0) || !std::isfinite(length)) {
    return -std::numeric_limits<double>::infinity();
  }
  const double gap = (range(a, normal).low - range(b, normal).high) / length;
  return gap - 16.0 * 0x1p-53 * std::abs(gap);
}

double verified_residual(MatrixView<const double> a, MatrixView<const double> b,
                         const std::vector<Share>& weights_a, const std::vector<Share>& weights_b) {
  const double total_a = total_weight(weights_a, a.rows());
  const double total_b = total_weight(weights_b, b.rows());
  if (!(total_a > 0.0) || !(total_b > 0.0) || !std::isfinite(total_a) || !std::isfinite(total_b)) {
    return std::numeric_limits<double>::infinity();
  }
  std::vector<double> difference(a.width());
  for (std::size_t i = 0; i < difference.size(); ++i) {
    // From a row of A: what is common to all rows cancels before it can round.
    const double origin = a.row(weights_a[0].id)[i];
    CompensatedSum sum;
    for (const Share& share : weights_a) sum.add(share.weight / total_a * (a.row(share.id)[i] - origin));
    for (const Share& share : weights_b) sum.add(share.weight / total_b * (origin - b.row(share.id)[i]));
    difference[i] = sum.value();
  }
  return euclidean_norm(difference);
}

bool verify(MatrixView<const double> a, MatrixView<const double> b, const Separation& separation) {
  switch (separation.answer) {
    case Answer::yes: {
      const double margin = verified_margin(a, b, separation.normal);
      return margin > 0.0 && separation.margin <= margin &&
             range(a, separation.normal).low >= separation.offset &&
             range(b, separation.normal).high <= separation.offset;
    }
    case Answer::no: {
      const double residual = verified_residual(a, b, separation.a, separation.b);
      return residual <= separation.residual * (1.0 + 1e-9) &&
             residual <= separation.tolerance * Frame(a, b).scale;
    }
    case Answer::undecided: return true;
  }
  return false;
}

}  // namespace normscope::convex
