#include "plateaus.hpp"

#include <algorithm>
#include <optional>

#include <normscope/core/assert.hpp>

#include "training.hpp"

namespace normscope::lab::ln_nets {
namespace {

constexpr std::size_t smoothed_steps = 300;
constexpr std::size_t plateau_steps = 600;
constexpr std::size_t fall_steps = 300;
constexpr double plateau_change = 0.15;
constexpr double fall_to = 0.7;

/// The median of the values at most `reach` places away, at every place.
std::vector<double> running_median(std::span<const double> values, std::size_t reach) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i - std::min(i, reach);
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    medians.push_back(
        median({begin, begin + static_cast<std::ptrdiff_t>(std::min(values.size(), i + reach + 1) - first)}));
  }
  return medians;
}

/// A plateau that ends at a place, and the place at which the loss has fallen.
struct Fall {
  double plateau = 0.0;
  std::size_t place = 0;
};

/// Requires  last >= length
std::optional<Fall> fall_after(std::span<const double> medians, std::size_t last, std::size_t length,
                               std::size_t within) {
  if (last >= medians.size()) return std::nullopt;
  const std::span<const double> plateau = medians.subspan(last - length, length + 1);
  const double middle = median({plateau.begin(), plateau.end()});
  const double least = *std::min_element(plateau.begin(), plateau.end());
  const double most = *std::max_element(plateau.begin(), plateau.end());
  if (least < (1.0 - plateau_change) * middle || most > (1.0 + plateau_change) * middle) return std::nullopt;
  const std::span<const double> after =
      medians.subspan(last + 1, std::min(within, medians.size() - last - 1));
  const auto fallen =
      std::find_if(after.begin(), after.end(), [&](double loss) { return loss <= fall_to * least; });
  if (fallen == after.end()) return std::nullopt;
  return Fall{middle, last + 1 + static_cast<std::size_t>(fallen - after.begin())};
}

}  // namespace

std::vector<Plateau> plateaus(std::span<const double> loss, std::size_t every) {
  NORMSCOPE_ASSERT(every >= 1);
  const std::vector<double> medians = running_median(loss, smoothed_steps / every / 2);
  const std::size_t length = std::max<std::size_t>(1, plateau_steps / every);
  const std::size_t within = std::max<std::size_t>(1, fall_steps / every);
  std::vector<Plateau> found;
  std::size_t last = length;
  while (last < medians.size()) {
    std::optional<Fall> fall = fall_after(medians, last, length, within);
    if (!fall) {
      ++last;
      continue;
    }
    while (const std::optional<Fall> later = fall_after(medians, last + 1, length, within)) {
      fall = later;
      ++last;
    }
    found.push_back({.last = last * every, .loss = fall->plateau});
    last = fall->place + length;
  }
  return found;
}

}  // namespace normscope::lab::ln_nets
