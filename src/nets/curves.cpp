#include <normscope/nets/curves.hpp>

#include <algorithm>

#include <normscope/core/assert.hpp>

namespace normscope::nets {

Curves thinned(std::span<const double> loss, std::span<const double> accuracy, std::size_t record_every,
               std::size_t most) {
  NORMSCOPE_ASSERT(most >= 1 && loss.size() == accuracy.size());
  const std::size_t stride = std::max<std::size_t>(1, (loss.size() + most - 1) / most);
  Curves shown;
  const auto add = [&](std::size_t i) {
    shown.step.push_back(static_cast<double>(i * record_every));
    shown.loss.push_back(loss[i]);
    shown.accuracy.push_back(accuracy[i]);
  };
  for (std::size_t i = 0; i < loss.size(); i += stride) add(i);
  if (!loss.empty() && (loss.size() - 1) % stride != 0) add(loss.size() - 1);
  return shown;
}

}  // namespace normscope::nets
