#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/parallel.hpp>

namespace normscope::selectability {

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
