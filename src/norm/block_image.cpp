#include "block_image.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::norm::detail {
namespace {

/// Smaller gains count as zero beside the largest of their block, because their squares must be normal
/// numbers.
constexpr int smallest_exponent = -480;

void make_unit(std::span<double> vector) {
  const auto largest = std::max_element(vector.begin(), vector.end(),
                                        [](double a, double b) { return std::abs(a) < std::abs(b); });
  const double length = std::copysign(euclidean_norm(vector), *largest);
  for (double& value : vector) value /= length;
}

}  // namespace

BlockImage::BlockImage(std::span<const double> gain, bool centered, unsigned threads,
                       const Progress& progress)
    : centered_(centered), gain_(gain.begin(), gain.end()), order_(gain.size()) {
  double largest = 0.0;
  for (const double g : gain_) largest = std::max(largest, std::abs(g));
  exponent_ = largest == 0.0 ? 0 : std::ilogb(largest);
  for (double& g : gain_) {
    g = std::scalbn(g, -exponent_);
    if (std::abs(g) < std::scalbn(1.0, smallest_exponent)) g = 0.0;
  }

  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(gain_[a]) < std::abs(gain_[b]); });
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const double square = gain_[order_[i]] * gain_[order_[i]];
    if (poles_.empty() || square > poles_.back()) {
      poles_.push_back(square);
      starts_.push_back(i);
    }
  }
  starts_.push_back(order_.size());

  if (centered_) {
    std::vector<double> weights(poles_.size());
    for (std::size_t k = 0; k < poles_.size(); ++k) {
      weights[k] = static_cast<double>(coordinates(k).size());
    }
    roots_ = secular_roots(poles_, weights, threads, progress);
  }
  for (std::size_t k = 0; k < poles_.size(); ++k) {
    if (poles_[k] > 0.0) add_inner_vectors(k, coordinates(k).size() - (centered_ ? 1 : 0));
    if (k < roots_.size()) {
      origins_.push_back({true, k, k});
      lengths_.push_back(std::sqrt(poles_[roots_[k].origin] + roots_[k].offset));
    }
  }
}

void BlockImage::add_inner_vectors(std::size_t pole, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    origins_.push_back({false, pole, i});
    lengths_.push_back(std::sqrt(poles_[pole]));
  }
}

void BlockImage::vector(std::size_t index, std::span<const double> factors, std::span<double> out) const {
  const Origin& origin = origins_[index];
  std::fill(out.begin(), out.end(), 0.0);
  if (origin.is_root) {
    fill_root_vector(roots_[origin.index], factors, out);
  } else {
    fill_inner_vector(origin.pole, origin.index, out);
  }
  make_unit(out);
}

void BlockImage::fill_root_vector(const SecularRoot& root, std::span<const double> factors,
                                  std::span<double> out) const {
  for (std::size_t k = 0; k < poles_.size(); ++k) {
    const double factor = factors[k] / distance(k, root);
    for (const std::size_t i : coordinates(k)) out[i] = gain_[i] * factor;
  }
}

void BlockImage::fill_inner_vector(std::size_t pole, std::size_t index, std::span<double> out) const {
  const std::span<const std::size_t> at = coordinates(pole);
  if (!centered_) {
    out[at[index]] = 1.0;
    return;
  }
  // Orthogonal to the block's part of the gain, ±|g| in each entry, and to one another: Helmert contrasts,
  // with the sign of the gain in each entry.
  for (std::size_t j = 0; j <= index; ++j) out[at[j]] = std::copysign(1.0, gain_[at[j]]);
  out[at[index + 1]] = -std::copysign(static_cast<double>(index + 1), gain_[at[index + 1]]);
}

std::vector<double> BlockImage::orthogonal_factors(unsigned threads) const {
  std::vector<double> factors = unit_factors();
  if (!centered_) return factors;
  // With roots ζ_k just below the poles d_k, the square of the rank-one vector at pole i is
  const std::size_t first = has_zero_pole() ? 1 : 0;
  const auto to_root_below = [&](std::size_t i, std::size_t k) {
    return k == 0 ? poles_[i] : distance(i, roots_[k - 1]);
  };
  parallel_for(poles_.size() - first, std::max<std::size_t>(1, 50'000 / poles_.size()), threads,
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t i = first + begin; i < first + end; ++i) {
                   double product = to_root_below(i, i);
                   for (std::size_t k = first; k < i; ++k)
                     product *= to_root_below(i, k) / (poles_[i] - poles_[k]);
                   for (std::size_t k = i + 1; k < poles_.size(); ++k) {
                     product *= to_root_below(i, k) / (poles_[i] - poles_[k]);
                   }
                   const double given = static_cast<double>(coordinates(i).size()) * poles_[i];
                   factors[i] = std::sqrt(static_cast<double>(width()) * product / given);
                 }
               });
  return factors;
}

void BlockImage::null_vector(std::size_t index, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  if (has_zero_pole()) {
    out[coordinates(0)[index]] = 1.0;
    return;
  }
  const double smallest = std::abs(gain_[order_.front()]);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = smallest / gain_[i];
  make_unit(out);
}

}  // namespace normscope::norm::detail
