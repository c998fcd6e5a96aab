#pragma once

#include <normscope/selectability/logits.hpp>

namespace normscope::selectability {

/// The cone over the logits, with one more column: a token is the argmax of A u/t + a₀ for some u and t > 0
/// exactly if it is the argmax of (A, a₀)(u, t). Offsets are scaled to the length of the rows, which only
/// rescales t.
[[nodiscard]] Logits cone(const Logits& logits);

/// The power of two by which offsets are scaled.
[[nodiscard]] int offset_exponent(const Logits& logits);

/// Whether offsets differ. If they do not, the bound on the norm's output changes no answer.
[[nodiscard]] bool has_offsets(const Logits& logits);

}  // namespace normscope::selectability
