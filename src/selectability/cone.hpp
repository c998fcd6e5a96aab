#pragma once

#include <normscope/selectability/logits.hpp>

namespace normscope::selectability {

/// The cone over the logits, one column wider: some A u/t + a₀ with t > 0 has its argmax at a token exactly
/// if some (A, a₀) (u, t) does. Offsets are scaled to the length of the rows, which only rescales t.
[[nodiscard]] Logits cone(const Logits& logits);

/// The power of two by which offsets are scaled.
[[nodiscard]] int offset_exponent(const Logits& logits);

/// Whether offsets differ. If they do not, the bound on the norm's output changes no answer.
[[nodiscard]] bool has_offsets(const Logits& logits);

}  // namespace normscope::selectability
