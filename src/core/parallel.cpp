#include <normscope/core/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace normscope {

unsigned thread_count(unsigned threads) {
  return threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

void parallel_for(std::size_t count, std::size_t grain, unsigned threads,
                  const std::function<void(std::size_t, std::size_t)>& body) {
  if (count == 0) return;
  const std::size_t smallest = std::max<std::size_t>(1, grain);
  const std::size_t most = (count + smallest - 1) / smallest;
  // How many processors there are costs microseconds to ask, which small work does not.
  const std::size_t workers = most == 1 ? 1 : std::min<std::size_t>(thread_count(threads), most);
  if (workers <= 1) {
    body(0, count);
    return;
  }

  // More pieces than threads, handed out in order, so that uneven pieces balance.
  const std::size_t piece = std::max(smallest, count / (workers * 8));
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    for (;;) {
      const std::size_t begin = next.fetch_add(piece);
      if (begin >= count) return;
      try {
        body(begin, std::min(count, begin + piece));
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(workers - 1);
  try {
    for (std::size_t i = 1; i < workers; ++i) pool.emplace_back(work);
  } catch (const std::system_error&) {
    // The machine gives no more threads; those there are do the work.
  }
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace normscope
