#include <normscope/selectability/probability.hpp>

#include <algorithm>
#include <cmath>

#include <normscope/convex/log_softmax.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::selectability {
namespace {

/// Tokens that climb together, as rows of one product.
constexpr std::size_t batch = 32;
/// What exp and the last operations may round, with room.
constexpr double rounded = 1e-15;

}  // namespace

Probability probability_from_lead(const TokenReach& reach, std::size_t tokens) {
  const double others = static_cast<double>(tokens) - 1.0;
  Probability result;
  if (others == 0.0) return {.lower = 1.0, .upper = 1.0};
  if (reach.lower > 0.0) result.lower = (1.0 - rounded) / (1.0 + others * std::exp(-reach.lower));
  result.upper = std::min(1.0, (1.0 + 4.0 * rounded) / (1.0 + std::exp(-reach.upper)));
  return result;
}

std::vector<Probability> largest_probabilities(const Logits& logits, std::span<const std::size_t> asked,
                                               double gap, unsigned threads, const Progress& progress) {
  std::vector<Probability> results(asked.size());
  const std::size_t group = batch * thread_count(threads);
  for (std::size_t done = 0; done < asked.size(); done += group) {
    progress("probability", done, asked.size());
    const std::size_t batches = (std::min(group, asked.size() - done) + batch - 1) / batch;
    parallel_for(batches, 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const std::size_t first = done + k * batch;
        const std::size_t count = std::min(batch, asked.size() - first);
        std::vector<convex::LogSoftmaxMaximum> maxima =
            convex::largest_log_softmax(logits.view(), logits.offsets, asked.subspan(first, count), gap);
        for (std::size_t i = 0; i < count; ++i) {
          // Two logits of the quotient may each be off by what folding rounded.
          const double slack = 2.0 * logits.rounding + rounded;
          results[first + i] = {std::exp(maxima[i].lower - slack),
                                std::min(1.0, std::exp(maxima[i].upper + slack)), std::move(maxima[i].point),
                                std::move(maxima[i].tangent)};
        }
      }
    });
  }
  progress("probability", asked.size(), asked.size());
  return results;
}

}  // namespace normscope::selectability
