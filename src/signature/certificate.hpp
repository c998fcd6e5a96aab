#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/selectability/logits.hpp>

namespace normscope::signature {

/// `w` as multiples of one power of two whose sum is exactly zero.
[[nodiscard]] std::vector<double> balanced(std::span<const double> w);

/// The logits that a proof is about: those of `tokens`, or of all tokens in order if it is empty, each within
/// its slack.
struct GivenRow {
  std::span<const std::size_t> tokens{};
  std::span<const double> logits{};
  std::span<const double> slack{};
};

/// (w·(ℓ − a₀) − |Aᵀw| − Σ |w_i| slack_i) / Σ |w_i| slack_i, rounded down. If it is positive, no point of the
/// unit ball has these logits. −1 if w is zero.
///
/// Requires  w is balanced
///
/// Accuracy  proved (test: Verify.OtherModelsAreRefutedWithCertificatesThatHoldInLongDouble)
[[nodiscard]] double margin(const selectability::Logits& logits, const GivenRow& given,
                            std::span<const double> w);

}  // namespace normscope::signature
