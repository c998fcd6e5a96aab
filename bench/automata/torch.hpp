#pragma once

#include <span>

#include <normscope/nets/rnn/train.hpp>

#include "bench.hpp"

namespace normscope::bench {

/// libtorch's own LSTM and autograd compute the gradient, eagerly; the answer is in our order.
///
/// Requires  an LSTM for membership, and words of one length
[[nodiscard]] Contender torch(const nets::rnn::Network& network, std::span<const nets::rnn::Labelled> words,
                              std::size_t calls);

}  // namespace normscope::bench
