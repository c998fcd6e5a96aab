#include "leads.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

#include "arithmetic.hpp"

namespace normscope::verify {
namespace {

/// Claims whose scores are computed in one product, and rows: their scores fit into the second-level cache.
constexpr std::size_t block = 128;
constexpr std::size_t tile = 512;

/// A matrix in float32, each row or all of it divided by a power of two.
void append_single(std::vector<float>& to, std::span<const double> row, const BinaryScale& scale) {
  for (const double value : row) to.push_back(static_cast<float>(scale.divide(value)));
}

/// A lower bound of the lead, in twice the precision of float64.
double exact_lead(MatrixView<const double> rows, const LeadClaim& claim, std::size_t row) {
  const std::span<const double> a = rows.row(claim.index);
  const std::span<const double> b = rows.row(row);
  ExactSum sum;
  double error = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const DoubleDouble difference = two_sum(a[i], -b[i]);
    sum.add(difference, claim.direction[i]);
    if (!claim.rest.empty()) sum.add(difference, claim.rest[i]);
    if (!claim.error.empty()) error += claim.error[i] * std::abs(a[i] - b[i]);
  }
  const double terms = static_cast<double>(a.size()) + 4.0;
  return sum.result().low() - error * (1.0 + 2.0 * terms * unit);
}

class LeadChecker {
 public:
  explicit LeadChecker(MatrixView<const double> rows) : rows_(rows), scale_(BinaryScale::of(rows)) {
    single_.reserve(rows.rows() * rows.width());
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      lengths_.push_back(up(euclidean_norm(rows.row(row))));
      append_single(single_, rows.row(row), scale_);
    }
  }

  void check(const std::vector<LeadClaim>& claims, std::size_t first, std::size_t count,
             const DecideLead& decide, char* holds) const {
    const std::size_t width = rows_.width();
    std::vector<float> directions;
    std::vector<Limit> limits;
    for (std::size_t k = first; k < first + count; ++k) {
      const BinaryScale scale = BinaryScale::of(claims[k].direction);
      append_single(directions, claims[k].direction, scale);
      limits.push_back(limit_of(claims[k], scale));
    }
    std::fill(holds, holds + count, char{1});
    std::vector<float> scores(count * tile);
    for (std::size_t begin = 0; begin < rows_.rows(); begin += tile) {
      const std::size_t columns = std::min(tile, rows_.rows() - begin);
      multiply(Factor<float>(directions.data(), count, width, width),
               Factor<float>(single_.data() + begin * width, columns, width, width).transposed(),
               MatrixView<float>(scores.data(), count, columns));
      for (std::size_t k = 0; k < count; ++k) {
        if (holds[k] == 0) continue;
        const float* const products = scores.data() + k * columns;
        holds[k] = leads_all(claims[first + k], limits[k], products, begin, columns,
                             [&](std::size_t row) { return decide && decide(first + k, row); });
      }
    }
  }

 private:
  /// What a float32 score has to stay below: `factor` score + `part` length of the row <= `most`.
  struct Limit {
    double factor = 1.0;
    double part = 0.0;
    double most = 0.0;
    double length = 0.0;  ///< of the direction
    double error = 0.0;   ///< of the direction
  };

  [[nodiscard]] Limit limit_of(const LeadClaim& claim, const BinaryScale& scale) const {
    const double width = static_cast<double>(rows_.width());
    const std::size_t own = claim.index;
    Limit limit;
    limit.factor = std::scalbn(1.0, scale_.exponent() + scale.exponent());
    limit.length = up(euclidean_norm(claim.direction));
    limit.error = up(euclidean_norm(claim.error) + euclidean_norm(claim.rest));
    limit.part = up(single_rounding(rows_.width()) * limit.length + limit.error);
    double score = 0.0;
    for (std::size_t i = 0; i < claim.direction.size(); ++i) {
      score += claim.direction[i] * rows_.row(own)[i];
    }
    // Numbers divided by their scales are less than 2; what underflows in float32 is less than 2⁻¹²⁶.
    const double tiny = 4.0 * width * 0x1p-126 * limit.factor + least_of_products();
    limit.most = score - claim.least - (relative() * limit.length + limit.error) * lengths_[own] - tiny;
    limit.most -= 16.0 * unit * (std::abs(score) + std::abs(limit.most));
    return limit;
  }

  template <typename Decide>
  [[nodiscard]] bool leads_all(const LeadClaim& claim, const Limit& limit, const float* products,
                               std::size_t begin, std::size_t count, const Decide& decide) const {
    const auto is_clear = [&](std::size_t i) {
      return limit.factor * static_cast<double>(products[i]) + limit.part * lengths_[begin + i] <= limit.most;
    };
    bool holds = true;
    each_open(count, is_clear, [&](std::size_t i) {
      const std::size_t row = begin + i;
      // NaN and infinity, where products overflow, decide nothing.
      if (!holds || row == claim.index || quick_lead(claim, limit, row) >= claim.least) return;
      holds = exact_lead(rows_, claim, row) >= claim.least || decide(row);
    });
    return holds;
  }

  /// Rounding of a product in float64 and the few operations around it, relative to the sizes of its terms.
  [[nodiscard]] double relative() const {
    return rounding(static_cast<std::ptrdiff_t>(rows_.width())) + 16.0 * unit;
  }
  [[nodiscard]] double least_of_products() const {
    return 4.0 * static_cast<double>(rows_.width() + 4) * std::numeric_limits<double>::min();
  }

  /// A lower bound of the lead, in float64.
  [[nodiscard]] double quick_lead(const LeadClaim& claim, const Limit& limit, std::size_t row) const {
    const std::span<const double> a = rows_.row(claim.index);
    const std::span<const double> b = rows_.row(row);
    double own = 0.0;
    double other = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      own += claim.direction[i] * a[i];
      other += claim.direction[i] * b[i];
    }
    const double reach = lengths_[claim.index] + lengths_[row];
    return own - other - up((relative() * limit.length + limit.error) * reach + least_of_products());
  }

  MatrixView<const double> rows_;
  BinaryScale scale_;
  std::vector<float> single_{};  ///< the rows in float32, divided by the scale
  std::vector<double> lengths_{};
};

}  // namespace

std::vector<char> proved_leads(MatrixView<const double> rows, const std::vector<LeadClaim>& claims,
                               const DecideLead& decide, unsigned threads, const Progress& progress) {
  std::vector<char> holds(claims.size());
  const LeadChecker checker(rows);
  const std::size_t together = block * thread_count(threads);
  for (std::size_t begin = 0; begin < claims.size(); begin += together) {
    progress("claim", begin, claims.size());
    const std::size_t count = std::min(together, claims.size() - begin);
    parallel_for((count + block - 1) / block, 1, threads, [&](std::size_t first, std::size_t last) {
      for (std::size_t k = first; k < last; ++k) {
        const std::size_t at = begin + k * block;
        checker.check(claims, at, std::min(block, begin + count - at), decide, holds.data() + at);
      }
    });
  }
  progress("claim", claims.size(), claims.size());
  return holds;
}

bool is_proved_lead(MatrixView<const double> rows, const LeadClaim& claim,
                    std::span<const std::size_t> others, const std::function<bool(std::size_t row)>& decide) {
  return std::all_of(others.begin(), others.end(), [&](std::size_t row) {
    return exact_lead(rows, claim, row) >= claim.least || decide(row);
  });
}

}  // namespace normscope::verify
