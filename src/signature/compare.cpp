#include <normscope/signature/compare.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/signature/verify.hpp>

#include "subspace.hpp"

namespace normscope::signature {
namespace {

/// The largest power of two that divides the width.
std::size_t roundness(std::size_t width) { return width & (~width + 1); }

}  // namespace

std::string_view to_string(FinalNorm norm) {
  constexpr std::array<std::string_view, 4> names{"layer", "rms", "none", "unknown"};
  return names[static_cast<std::size_t>(norm)];
}

Kind kind_of(const Outputs& outputs, const Subspace& subspace, const ExtractOptions& options) {
  Kind result;
  if (subspace.rank == 0 || subspace.rank + 1 >= subspace.tokens) return result;
  // If the rank is limited by the number of rows, it is unknown.
  if (!subspace.fills) {
    const bool is_layer = roundness(subspace.rank + 1) > roundness(subspace.rank);
    result.width = is_layer ? subspace.rank + 1 : subspace.rank;
    result.norm = is_layer ? FinalNorm::layer : FinalNorm::rms;
    result.by_width = true;
  }
  if (outputs.rows() < unknowns(subspace.rank) + subspace.rank) {
    result.rows_needed = 2 * unknowns(subspace.rank);
    result.norm = FinalNorm::unknown;
    return result;
  }
  result.extraction = extract(outputs, subspace, options);
  if (!result.extraction.ellipse) {
    result.norm = FinalNorm::none;
    result.by_width = false;
    result.width = subspace.rank;
  }
  return result;
}

Head head_of(selectability::VocabularyHead head) {
  const double per_entry = head.norm.squared_radius() / static_cast<double>(head.norm.width);
  return {.logits = std::move(head.logits),
          .sizes = std::move(head.sizes),
          .eps = head.norm.eps * per_entry,
          .soft_cap = head.soft_cap};
}

namespace {

/// Lower limits of errors: of the stated ones, and of a scale, which eps changes.
constexpr double least_error = 1e-6;
constexpr double scale_by_eps = 1e-3;
/// Ratio of `outside` to `by_chance` up to which subspaces count as related.
constexpr double related = 0.7;
/// Value of `shape` up to which ellipses count as related if their subspaces fill the vocabulary, so that
/// these always agree.
constexpr double related_shape = 0.3;
constexpr double always_agree = 0.05;
/// Axes with larger stated errors are left out.
constexpr double known_axis = 0.05;

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::string_view to_string(Relation relation) {
  constexpr std::array<std::string_view, 4> names{"same", "rescaled", "fine-tuned", "unrelated"};
  return names[static_cast<std::size_t>(relation)];
}

Comparison compare(const Ellipse& a, const Ellipse& b, unsigned threads) {
  if (a.tokens != b.tokens) {
    throw Error(ErrorCode::Shape,
                fmt::format("compare: one ellipse has {} tokens and the other {}, expected the same number",
                            a.tokens, b.tokens));
  }
  // overlap: rows are axes of A, columns those of B.
  std::vector<double> overlap(a.rank * b.rank);
  product(Factor<double>(a.view()).transposed(), b.view(), MatrixView<double>(overlap.data(), a.rank, b.rank),
          threads);
  Comparison result;
  double inside = 0.0;
  double all = 0.0;
  for (std::size_t j = 0; j < b.rank; ++j) {
    const double square = b.semi_axes[j] * b.semi_axes[j];
    double shared = 0.0;
    for (std::size_t i = 0; i < a.rank; ++i) shared += overlap[i * b.rank + j] * overlap[i * b.rank + j];
    all += square;
    inside += std::min(1.0, shared) * square;
  }
  result.outside = std::sqrt(std::max(0.0, 1.0 - inside / all));
  result.by_chance = std::sqrt(1.0 - static_cast<double>(a.rank) / static_cast<double>(a.tokens - 1));
  // The extent of B's ellipsoid along each axis of A, over A's.
  std::vector<double> ratios;
  std::vector<double> errors;
  for (std::size_t i = 0; i < a.rank; ++i) {
    if (!(a.errors[i] < known_axis)) continue;
    double square = 0.0;
    double error = 0.0;
    for (std::size_t j = 0; j < b.rank; ++j) {
      const double part = overlap[i * b.rank + j] * b.semi_axes[j];
      square += part * part;
      error += part * part * std::min(1.0, b.errors[j]);
    }
    ratios.push_back(std::sqrt(square) / a.semi_axes[i]);
    errors.push_back(a.errors[i] + (square > 0.0 ? error / square : 0.0));
  }
  if (ratios.empty()) return result;
  result.scale = middle(ratios);
  double deviation = 0.0;
  double expected = 0.0;
  for (std::size_t k = 0; k < ratios.size(); ++k) {
    deviation += (ratios[k] / result.scale - 1.0) * (ratios[k] / result.scale - 1.0);
    expected += errors[k] * errors[k];
  }
  const double count = static_cast<double>(ratios.size());
  result.shape = std::sqrt(deviation / count);
  result.tolerance = least_error + std::sqrt(expected / count);
  std::vector<double> difference = b.centre;
  for (std::size_t i = 0; i < a.tokens; ++i) difference[i] = difference[i] / result.scale - a.centre[i];
  const double size = euclidean_norm(a.semi_axes) / std::sqrt(static_cast<double>(a.rank));
  result.centre = euclidean_norm(difference) / size;
  const double room = std::max(3.0 * result.tolerance, least_error);
  // The error of a subspace is the noise of its rows relative to the axes.
  const double noise = std::hypot(a.off * std::sqrt(static_cast<double>(a.tokens)),
                                  b.off * std::sqrt(static_cast<double>(b.tokens)));
  const double room_outside = 1e-6 + 10.0 * noise / euclidean_norm(b.semi_axes);
  const bool same_shape =
      result.shape <= room && result.outside <= room_outside && result.centre <= scale_by_eps + 10.0 * room;
  if (same_shape) {
    result.relation =
        std::abs(result.scale - 1.0) <= scale_by_eps + room ? Relation::same : Relation::rescaled;
  } else if (result.by_chance > always_agree ? result.outside < related * result.by_chance
                                             : result.shape < related_shape) {
    result.relation = Relation::fine_tuned;
  }
  return result;
}

}  // namespace normscope::signature
