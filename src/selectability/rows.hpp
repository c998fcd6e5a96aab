#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/minimum_norm.hpp>

/// What searches and certificates of keys and of tokens share.
namespace normscope::selectability {

/// directionᵀ(a − b) in float64, and a bound of its error: enough unless rounding could decide.
[[nodiscard]] Bounded quick_difference_dot(std::span<const double> direction, std::span<const double> a,
                                           std::span<const double> b);

/// The sum of the weights of a certificate about row `index` of `rows`; 0 for invalid weights: negative, not
/// finite, without a positive sum, on the row itself or on a row that does not exist.
[[nodiscard]] double total_weight(std::span<const proof::PointWeight> weights, std::size_t rows,
                                  std::size_t index);

inline constexpr std::size_t no_duplicate = std::numeric_limits<std::size_t>::max();

/// For each row of `rows`, with its number of `numbers` if there are any, another row that is equal, or
/// `no_duplicate`. Of several equal rows, the first gets the second, and all others get the first.
///
/// Cost      O(rows log(rows) width)
[[nodiscard]] std::vector<std::size_t> find_duplicates(MatrixView<const double> rows,
                                                       std::span<const double> numbers = {});

/// Whether two rows are equal, according to the result of `find_duplicates`; an empty one says that all
/// differ.
[[nodiscard]] bool are_duplicates(std::span<const std::size_t> duplicates, std::size_t a, std::size_t b);

/// Decides a batch of rows by working sets. In each iteration `evaluate(open)` scores the points of all open
/// searches in one product and adds their violated constraints to their working sets; `advance(search)` then
/// solves the problem over the working set, which gives an answer or the next point. Searches advance in
/// parallel, so `advance` may change its search only.
template <typename Search, typename Evaluate, typename Advance>
void run_working_sets(std::vector<Search>& searches, std::size_t most_rounds, unsigned threads,
                      const Evaluate& evaluate, const Advance& advance) {
  for (std::size_t round = 0; round < most_rounds; ++round) {
    std::vector<Search*> open;
    for (Search& search : searches) {
      if (search.open) open.push_back(&search);
    }
    if (open.empty()) return;
    evaluate(open);
    parallel_for(open.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        if (open[i]->open) advance(*open[i]);
      }
    });
  }
}

}  // namespace normscope::selectability
