#include <normscope/core/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#include <normscope/core/error.hpp>

namespace normscope {

const Team& alone() {
  class Alone : public Team {
   public:
    [[nodiscard]] std::size_t rank() const override { return 0; }
    [[nodiscard]] std::size_t size() const override { return 1; }
    void gather(std::span<std::byte> /*bytes*/, std::span<const std::size_t> /*begins*/) const override {}
    [[nodiscard]] bool any(bool value) const override { return value; }
  };
  static const Alone team;
  return team;
}

std::vector<std::vector<std::byte>> gathered(const std::vector<std::byte>& own, const Team& team) {
  std::vector<std::uint64_t> sizes(team.size());
  std::vector<std::size_t> begins(team.size() + 1);
  for (std::size_t member = 0; member < begins.size(); ++member)
    begins[member] = member * sizeof(std::uint64_t);
  sizes[team.rank()] = own.size();
  team.gather(std::as_writable_bytes(std::span(sizes)), begins);
  for (std::size_t member = 0; member < sizes.size(); ++member)
    begins[member + 1] = begins[member] + sizes[member];
  begins[0] = 0;
  std::vector<std::byte> all(begins.back());
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(begins[team.rank()]));
  team.gather(all, begins);
  std::vector<std::vector<std::byte>> result;
  for (std::size_t member = 0; member < sizes.size(); ++member) {
    result.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begins[member]),
                        all.begin() + static_cast<std::ptrdiff_t>(begins[member + 1]));
  }
  return result;
}

void together(const Team& team, const std::function<void()>& work) {
  std::optional<Error> cancelled;
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Cancelled) throw;
    cancelled = error;
  }
  if (team.any(cancelled.has_value())) {
    throw cancelled.value_or(Error(ErrorCode::Cancelled, "another process was interrupted"));
  }
}

namespace {

constexpr unsigned most_threads = 1024;
/// How long a thread spins before it sleeps: about as long as sleeping and waking take.
constexpr std::chrono::microseconds spinning_time{50};

unsigned machine_threads() {
  // hardware_concurrency() reads a file.
  static const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  return threads;
}

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Whether `ready` became true within `spinning_time`.
template <typename Ready>
bool spin_until(const Ready& ready) {
  // With one CPU, spinning only delays the thread that is waited for.
  if (machine_threads() == 1) return ready();
  const auto end = std::chrono::steady_clock::now() + spinning_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// The remaining pieces of the range that one worker starts with, on a cache line of its own.
class alignas(64) Range {
 public:
  Range(std::uint64_t begin, std::uint64_t end) : left_(packed(begin, end)) {}

  enum class From : unsigned char { front, back };

  /// Takes a piece; returns false if none is left.
  bool take(From side, std::size_t& piece) {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    std::uint64_t rest = 0;
    do {
      const std::uint64_t begin = left & lower_half;
      const std::uint64_t end = left >> 32U;
      if (begin >= end) return false;
      piece = static_cast<std::size_t>(side == From::front ? begin : end - 1);
      rest = side == From::front ? packed(begin + 1, end) : packed(begin, end - 1);
    } while (!left_.compare_exchange_weak(left, rest, std::memory_order_relaxed));
    return true;
  }

 private:
  static constexpr std::uint64_t lower_half = 0xffffffffU;
  static std::uint64_t packed(std::uint64_t begin, std::uint64_t end) { return end << 32U | begin; }

  std::atomic<std::uint64_t> left_;
};

/// One call of `parallel_for`, on the stack of its caller.
struct Job {
 private:
  static constexpr std::size_t most_ranges = 64;
  /// The ranges; nothing is written beyond them.
  alignas(Range) unsigned char memory_[most_ranges * sizeof(Range)];

 public:
  const PieceBody& body;
  const std::size_t count;
  const std::size_t pieces;
  /// One range per worker; the caller starts with the first.
  const std::size_t ranges;
  /// What piece `last` threw; written under `failing`.
  std::exception_ptr failure{};
  std::mutex failing{};
  /// The first piece that threw, as far as is known: those behind it are left out.
  std::atomic<std::size_t> last{std::numeric_limits<std::size_t>::max()};

  /// The members below are written under the pool's mutex.
  bool caller_sleeps = false;
  /// Number of workers that may still join.
  std::size_t places = 0;
  /// Bit mask of the ranges that a worker has started.
  std::uint64_t begun = 1;
  /// Number of workers inside; after the last one leaves, the job is not accessed any more.
  std::atomic<std::size_t> inside{0};
  std::condition_variable left{};
  Job* next_open = nullptr;

  Job(const PieceBody& the_body, std::size_t the_count, std::size_t the_pieces, std::size_t workers)
      : body(the_body), count(the_count), pieces(the_pieces), ranges(std::min(most_ranges, workers)) {
    for (std::size_t r = 0; r < ranges; ++r) {
      new (place(r)) Range(pieces * r / ranges, pieces * (r + 1) / ranges);
    }
  }

  /// Takes the pieces of range `own` in order, then pieces left in other ranges.
  void work(std::size_t own) noexcept {
    for (std::size_t i = 0; i < ranges; ++i) {
      Range& from = range((own + i) % ranges);
      const Range::From side = i == 0 ? Range::From::front : Range::From::back;
      for (std::size_t piece = 0; from.take(side, piece);) {
        if (piece > last.load(std::memory_order_relaxed)) continue;
        try {
          body(begin_of(piece), begin_of(piece + 1));
        } catch (...) {
          const std::lock_guard lock(failing);
          if (piece < last.load(std::memory_order_relaxed)) {
            last.store(piece, std::memory_order_relaxed);
            failure = std::current_exception();
          }
        }
      }
    }
  }

  /// The range for one more worker: `wish`, if no worker has started it yet.
  std::size_t range_for(std::size_t wish) {
    if (wish >= ranges || (begun >> wish & 1U) != 0) {
      wish = 0;
      while (wish < ranges && (begun >> wish & 1U) != 0) ++wish;
      if (wish == ranges) return places % ranges;
    }
    begun |= std::uint64_t{1} << wish;
    return wish;
  }

 private:
  /// Pieces are as equal in size as possible.
  [[nodiscard]] std::size_t begin_of(std::size_t piece) const {
    return count / pieces * piece + std::min(piece, count % pieces);
  }

  void* place(std::size_t r) { return &memory_[r * sizeof(Range)]; }
  Range& range(std::size_t r) { return *std::launder(static_cast<Range*>(place(r))); }
};

/// Blocks all signals in workers except those of faults, which must be delivered to the faulting thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t signals;
    sigfillset(&signals);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&signals, fault);
    }
    pthread_sigmask(SIG_SETMASK, &signals, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Threads that wait for jobs. Never destroyed, because they sleep on it until the process ends.
class Pool {
 public:
  void run(Job& job, std::size_t workers) {
    open(job, workers);
    job.work(0);
    close(job);
  }

 private:
  /// State of one thread, on its stack.
  struct Worker {
    /// The index of its range in the last call, parts of which may still be in the CPU's cache.
    std::size_t range = 0;
    /// The next sleeping worker, or the next one woken by the same call.
    Worker* next = nullptr;
    /// The thread that sets it does not access the worker afterwards.
    std::atomic<int> woken{0};
  };

  void open(Job& job, std::size_t workers) {
    Worker* to_wake = nullptr;
    {
      const std::lock_guard lock(mutex_);
      while (started_ < workers && start()) {
      }
      job.places = std::min(workers, started_);
      if (job.places == 0) return;
      job.next_open = open_;
      open_ = &job;
      places_ += job.places;
      while (asleep_ != nullptr && idle_ < places_) {
        Worker* const worker = asleep_;
        asleep_ = worker->next;
        worker->next = to_wake;
        to_wake = worker;
        ++idle_;
      }
    }
    while (to_wake != nullptr) {
      Worker& worker = *to_wake;
      to_wake = worker.next;
      worker.woken.store(1, std::memory_order_release);
      worker.woken.notify_one();
    }
  }

  void close(Job& job) {
    const auto empty = [&] { return job.inside.load(std::memory_order_acquire) == 0; };
    std::unique_lock lock(mutex_);
    if (job.places != 0) {
      Job** link = &open_;
      while (*link != &job) link = &(*link)->next_open;
      *link = job.next_open;
      places_ -= job.places;
    }
    if (empty()) return;
    lock.unlock();
    if (spin_until(empty)) return;
    lock.lock();
    job.caller_sleeps = true;
    job.left.wait(lock, empty);
  }

  /// Returns false if the system starts no more threads; the existing ones do the work.
  bool start() {
    try {
      const SignalsBlocked blocked;
      std::thread([this] { serve(); }).detach();
    } catch (const std::exception&) {
      return false;
    }
    ++started_;
    ++idle_;
    return true;
  }

  void serve() {
    Worker self;
    std::unique_lock lock(mutex_);
    for (;;) {
      if (Job* const job = join(self)) {
        lock.unlock();
        job->work(self.range);
        lock.lock();
        leave(*job);
        continue;
      }
      const auto wanted = [&] { return places_.load(std::memory_order_relaxed) != 0; };
      // More workers than CPUs would spin on each other's time.
      if (idle_ < machine_threads()) {
        lock.unlock();
        spin_until(wanted);
        lock.lock();
      }
      if (wanted()) continue;
      --idle_;
      self.next = asleep_;
      asleep_ = &self;
      self.woken.store(0, std::memory_order_relaxed);
      lock.unlock();
      self.woken.wait(0, std::memory_order_acquire);
      lock.lock();
    }
  }

  Job* join(Worker& worker) {
    Job* const job = open_;
    if (job == nullptr) return nullptr;
    worker.range = job->range_for(worker.range);
    job->inside.fetch_add(1, std::memory_order_relaxed);
    if (--job->places == 0) open_ = job->next_open;
    --places_;
    --idle_;
    return job;
  }

  void leave(Job& job) {
    ++idle_;
    if (job.caller_sleeps && job.inside.load(std::memory_order_relaxed) == 1) job.left.notify_one();
    job.inside.fetch_sub(1, std::memory_order_release);
  }

  std::mutex mutex_;
  /// Jobs that workers may join, newest first: an inner call comes before its outer call.
  Job* open_ = nullptr;
  /// Total number of workers that the open jobs may take; spinning threads read it without the mutex.
  std::atomic<std::size_t> places_{0};
  std::size_t started_ = 0;
  /// Workers that are awake, or being woken, and have no job.
  std::size_t idle_ = 0;
  /// Sleeping workers, most recent first, because their caches are the warmest.
  Worker* asleep_ = nullptr;
};

alignas(Pool) unsigned char memory_of_pool[sizeof(Pool)];

/// After a fork, the child has no workers, and locks that they held stay locked.
void reset_after_fork() { new (memory_of_pool) Pool; }

Pool& pool() {
  static Pool* const the_pool = [] {
    pthread_atfork(nullptr, nullptr, reset_after_fork);
    return new (memory_of_pool) Pool;
  }();
  return *the_pool;
}

}  // namespace

std::size_t first_cache_ways() {
#ifdef _SC_LEVEL1_DCACHE_ASSOC
  static const long ways = ::sysconf(_SC_LEVEL1_DCACHE_ASSOC);
  return static_cast<std::size_t>(std::max(0L, ways));
#else
  return 0;
#endif
}

unsigned thread_count(unsigned threads) {
  return std::min(most_threads, threads != 0 ? threads : machine_threads());
}

void parallel_for(std::size_t count, std::size_t grain, unsigned threads, PieceBody body) {
  if (count == 0) return;
  const std::size_t smallest = std::max<std::size_t>(1, grain);
  const std::size_t pieces = (count - 1) / smallest + 1;
  const std::size_t workers = pieces == 1 ? 1 : std::min<std::size_t>(thread_count(threads), pieces);
  if (workers <= 1) {
    body(0, count);
    return;
  }
  // Each thread gets as many pieces, so that even pieces end together; several, so that uneven pieces
  // balance.
  Job job(body, count, workers * std::min<std::size_t>(8, pieces / workers), workers);
  pool().run(job, workers - 1);
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace normscope
