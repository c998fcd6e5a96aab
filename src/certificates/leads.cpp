#include "leads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/exact.hpp>
#include <normscope/numeric/product.hpp>
#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

#include "weights.hpp"

namespace normscope::certificates {
namespace {

/// Claims whose scores are computed in one product.
constexpr std::size_t block = 32;

class LeadChecker {
 public:
  explicit LeadChecker(MatrixView<const double> rows) : rows_(rows) {
    for (std::size_t row = 0; row < rows.rows(); ++row) lengths_.push_back(up(euclidean_norm(rows.row(row))));
  }

  void check(const std::vector<LeadClaim>& claims, std::size_t first, std::size_t count,
             const DecideLead& decide, char* holds) const {
    const std::size_t width = rows_.width();
    std::vector<double> directions;
    for (std::size_t k = first; k < first + count; ++k) {
      directions.insert(directions.end(), claims[k].direction.begin(), claims[k].direction.end());
    }
    std::vector<double> scores(count * rows_.rows());
    const MatrixView<double> score(scores.data(), count, rows_.rows());
    multiply(MatrixView<const double>(directions.data(), count, width), Factor<double>(rows_).transposed(),
             score);
    for (std::size_t k = 0; k < count; ++k) {
      holds[k] = leads_all(claims[first + k], score.row(k),
                           [&](std::size_t row) { return decide && decide(first + k, row); });
    }
  }

 private:
  template <typename Decide>
  [[nodiscard]] bool leads_all(const LeadClaim& claim, std::span<const double> products,
                               const Decide& decide) const {
    const std::size_t own = claim.index;
    const double length = up(euclidean_norm(claim.direction));
    const double error = up(euclidean_norm(claim.error) + euclidean_norm(claim.rest));
    // Rounding of a product and the few operations around it, relative to the sizes of their terms.
    const double part = rounding(static_cast<std::ptrdiff_t>(rows_.width())) + 16.0 * unit;
    const double tiny = 4.0 * static_cast<double>(rows_.width() + 4) * std::numeric_limits<double>::min();
    for (std::size_t row = 0; row < products.size(); ++row) {
      if (row == own) continue;
      const double reach = lengths_[own] + lengths_[row];
      const double rounded = part * length * reach + error * reach + tiny;
      // NaN and infinity, where products overflow, decide nothing.
      if (products[own] - products[row] - up(rounded) >= claim.least) continue;
      if (exact_lead(claim, row) >= claim.least) continue;
      if (!decide(row)) return false;
    }
    return true;
  }

  [[nodiscard]] double exact_lead(const LeadClaim& claim, std::size_t row) const {
    const std::span<const double> a = rows_.row(claim.index);
    const std::span<const double> b = rows_.row(row);
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

  MatrixView<const double> rows_;
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

}  // namespace normscope::certificates
