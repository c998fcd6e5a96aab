#include "scaled_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/sum.hpp>
#include <normscope/selectability/verify.hpp>

#include "extents.hpp"
#include "scaled_keys.hpp"

namespace normscope::selectability {
namespace {

/// Ratio between extents, as a power of two, up to which the search uses the columns unscaled.
constexpr int like = 10;
/// Queries whose entries are within this power of two of the largest lose nothing to underflow.
constexpr int safe_exponent = 900;
/// Bound of the relative rounding error of lengths and their quotients.
constexpr double product_rounding = 0x1p-47;

/// The query for the original keys, and the factor between its length and scores and those of `query`.
struct GivenQuery {
  std::vector<double> direction{};
  double factor = 0.0;
  bool is_exact = true;
};

GivenQuery given_query(std::span<const double> query, const std::vector<int>& exponents) {
  int largest = std::numeric_limits<int>::min();
  int least = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < query.size(); ++i) {
    if (query[i] == 0.0) continue;
    const int size = std::ilogb(query[i]) - exponents[i];
    largest = std::max(largest, size);
    least = std::min(least, size);
  }
  GivenQuery result{.direction = std::vector<double>(query.size())};
  if (least > largest) return result;
  result.is_exact = largest - least < safe_exponent && std::abs(largest) < safe_exponent;
  for (std::size_t i = 0; i < query.size(); ++i) {
    result.direction[i] = std::scalbn(query[i], -exponents[i] - largest);
  }
  // The score of the scaled query is 2^-largest times that of `query`.
  result.factor = std::scalbn(euclidean_norm(query) / euclidean_norm(result.direction), -largest);
  return result;
}

}  // namespace

Selection ScaledColumns::of_given(MatrixView<const double> keys, Selection selection,
                                  unsigned threads) const {
  const std::vector<double> center = std::move(selection.center);
  selection.center.assign(width, 0.0);
  for (std::size_t i = 0; i < width; ++i) {
    // Constant columns are 0 in the scaled keys.
    selection.center[i] = selection.extents[i] > 0.0 ? std::scalbn(center[i], exponents[i]) : keys.row(0)[i];
  }
  selection.extents = extents_of(keys, selection.center);
  selection.scale = largest_size(selection.extents);
  parallel_for(rows, 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      Verdict& verdict = selection.keys[row];
      const auto give_up = [&verdict] {
        verdict.answer = Selectability::undecided;
        verdict.proof = Proof::none;
        verdict.query.clear();
      };
      if (verdict.answer == Selectability::selectable) {
        std::vector<double> own;
        for (std::size_t i = 0; verdict.proof == Proof::own_direction && i < width; ++i) {
          own.push_back(view().row(row)[i] - center[i]);
        }
        GivenQuery query = given_query(own.empty() ? verdict.query : own, exponents);
        const double margin = is_exact && query.is_exact
                                  ? verdict.margin * query.factor * (1.0 - product_rounding)
                                  : verified_margin(keys, row, query.direction);
        verdict.proof = Proof::query;
        verdict.query = std::move(query.direction);
        verdict.margin = margin;
        if (!(margin > std::numeric_limits<double>::min() && std::isfinite(margin))) give_up();
        continue;
      }
      const std::vector<double> distances = verified_distances(keys, row, verdict.weights);
      verdict.residual = verified_residual(keys, row, verdict.weights);
      if (!std::isfinite(verdict.residual)) verdict.residual = selection.scale;
      if (verdict.answer == Selectability::unselectable &&
          !(are_none(distances, selection.extents, selection.tolerance) &&
            verdict.residual <= selection.tolerance * selection.scale)) {
        give_up();
      }
    }
  });
  return selection;
}

std::optional<ScaledColumns> scaled_columns(MatrixView<const double> keys) {
  const double size = largest_size(keys);
  if (keys.rows() < 2 || !(size >= least_entry && size <= largest_entry)) return std::nullopt;
  ScaledColumns result{
      .exponents = std::vector<int>(keys.width()), .rows = keys.rows(), .width = keys.width()};
  std::vector<bool> varies(keys.width());
  int largest = std::numeric_limits<int>::min();
  int least = std::numeric_limits<int>::max();
  double constant = 0.0;
  for (std::size_t i = 0; i < keys.width(); ++i) {
    double low = keys.row(0)[i];
    double high = low;
    for (std::size_t row = 1; row < keys.rows(); ++row) {
      low = std::min(low, keys.row(row)[i]);
      high = std::max(high, keys.row(row)[i]);
    }
    varies[i] = low < high;
    if (!varies[i]) {
      constant = std::max(constant, std::abs(low));
      continue;
    }
    result.exponents[i] = std::ilogb(high - low);
    largest = std::max(largest, result.exponents[i]);
    least = std::min(least, result.exponents[i]);
  }
  if (least > largest) return std::nullopt;
  const bool is_hidden = constant > 0.0 && std::ilogb(constant) - largest > like;
  if (largest - least <= like && !is_hidden) return std::nullopt;
  result.values.resize(keys.rows() * keys.width());
  auto to = result.values.begin();
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    for (std::size_t i = 0; i < keys.width(); ++i) {
      const double value = keys.row(row)[i];
      *to = varies[i] ? std::scalbn(value, -result.exponents[i]) : 0.0;
      result.is_exact = result.is_exact && (!varies[i] || std::scalbn(*to, result.exponents[i]) == value);
      ++to;
    }
  }
  return result;
}

}  // namespace normscope::selectability
