#pragma once

#include <normscope/selectability/logits.hpp>

namespace normscope::selectability {

/// The cone over the logits, a width wider: A u/t + a₀ is argmax for some u and t > 0 when (A, a₀) (u, t) is.
/// Offsets are stretched to the rows' length, which only rescales t.
[[nodiscard]] Logits cone(const Logits& logits);

/// The power of two that stretches them.
[[nodiscard]] int offset_exponent(const Logits& logits);

/// Whether offsets differ: without, the norm's bound changes no answer.
[[nodiscard]] bool has_offsets(const Logits& logits);

}  // namespace normscope::selectability
