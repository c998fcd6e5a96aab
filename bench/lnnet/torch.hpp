#pragma once

#include <normscope/nets/train.hpp>

#include "bench.hpp"

namespace normscope::bench {

/// `steps` steps of the same training in libtorch, eager, with its own autograd and Adam, from the
/// weights `begin`; the answer is the parameters after them.
[[nodiscard]] Contender torch(const nets::TrainSpec& spec, const nets::Dataset& data,
                              const std::vector<double>& begin, std::size_t steps, unsigned threads);

}  // namespace normscope::bench
