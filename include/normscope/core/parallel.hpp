#pragma once

#include <cstddef>
#include <functional>

namespace normscope {

/// Calls `body(begin, end)` on consecutive pieces of [0, count), on up to `threads` threads
/// (0: as many as the machine has). Pieces hold at least `grain` items. What is computed for an
/// index must not depend on the piece it falls into; then the answer does not depend on `threads`.
/// The first exception a piece throws is thrown again here, after all threads have ended.
void parallel_for(std::size_t count, std::size_t grain, unsigned threads,
                  const std::function<void(std::size_t begin, std::size_t end)>& body);

/// Threads that `parallel_for` uses for a request of `threads`.
[[nodiscard]] unsigned thread_count(unsigned threads);

}  // namespace normscope
