#pragma once

#include <span>

/// Cell parameters, then output parameters, of the networks of `trained`, as multiples of 1e-5.
namespace normscope::nets::rnn::detail {

[[nodiscard]] std::span<const int> lstm_anbn();
[[nodiscard]] std::span<const int> gru_anbn();
[[nodiscard]] std::span<const int> lstm_anbncn();
[[nodiscard]] std::span<const int> gru_anbncn();

}  // namespace normscope::nets::rnn::detail
