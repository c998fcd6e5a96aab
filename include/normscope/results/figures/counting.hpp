#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include <normscope/nets/rnn/network.hpp>

namespace normscope::figures {

/// A network reading the member of its language with n of every letter: c of an lstm, h of other cells, one
/// line per unit over the letters read, with counters in colour and blocks separated; below, the output
/// probabilities. At most about 400 points per line.
///
/// Source    [Weiss, Goldberg, Yahav 2018, figure 1]
///
/// Errors    as `nets::rnn::accepts`
[[nodiscard]] nlohmann::ordered_json counting_trace(const nets::rnn::Network& network, std::size_t n);

}  // namespace normscope::figures
