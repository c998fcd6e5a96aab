#include <normscope/core/parallel.hpp>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace normscope {
namespace {

constexpr unsigned most_threads = 1024;
/// What a wait costs without the system's help; sleeping and waking take several times as long.
constexpr std::chrono::microseconds spinning_time{5};

unsigned machine_threads() {
  // Asking costs the reading of a file.
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

/// Whether `ready` came true within `spinning_time`.
template <typename Ready>
bool spin_until(const Ready& ready) {
  // With one core, whoever is waited for needs it.
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

/// One call of `parallel_for`, on its caller's stack.
struct Job {
  const PieceBody& body;
  const std::size_t count;
  const std::size_t piece;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  /// Written by the one piece that set `failed`.
  std::exception_ptr failure{};

  /// Those below are written under the pool's mutex. Helpers that may still join.
  std::size_t places = 0;
  /// Helpers inside; the last one's leaving is the last that touches the job.
  std::atomic<std::size_t> helpers{0};
  bool caller_sleeps = false;
  std::condition_variable left{};
  Job* next_open = nullptr;

  Job(const PieceBody& the_body, std::size_t the_count, std::size_t the_piece)
      : body(the_body), count(the_count), piece(the_piece) {}

  void work() noexcept {
    for (;;) {
      const std::size_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= count) return;
      try {
        body(begin, std::min(count, begin + piece));
      } catch (...) {
        if (!failed.exchange(true)) failure = std::current_exception();
        next = count;
      }
    }
  }
};

/// Signals stay with the threads that were there before; a fault's must reach the thread it is of.
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

/// Threads that wait for jobs. Never destroyed: they sleep on it until the process has ended.
class Pool {
 public:
  void run(Job& job, std::size_t helpers) {
    open(job, helpers);
    job.work();
    close(job);
  }

 private:
  void open(Job& job, std::size_t helpers) {
    std::size_t to_wake = 0;
    {
      const std::lock_guard lock(mutex_);
      while (started_ < helpers && start()) {
      }
      job.places = std::min(helpers, started_);
      if (job.places == 0) return;
      job.next_open = open_;
      open_ = &job;
      places_ += job.places;
      to_wake = std::min(places_ - std::min<std::size_t>(places_, idle_), asleep_);
    }
    for (; to_wake != 0; --to_wake) wake_.notify_one();
  }

  void close(Job& job) {
    const auto empty = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
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

  /// False where the machine gives no more threads; those there are do the work.
  bool start() {
    try {
      const SignalsBlocked blocked;
      std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
    ++started_;
    ++idle_;
    return true;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (Job* const job = join()) {
        lock.unlock();
        job->work();
        lock.lock();
        leave(*job);
        continue;
      }
      lock.unlock();
      const auto wanted = [&] { return places_.load(std::memory_order_relaxed) != 0; };
      const bool found = spin_until(wanted);
      lock.lock();
      if (found || wanted()) continue;
      --idle_;
      ++asleep_;
      wake_.wait(lock, wanted);
      --asleep_;
      ++idle_;
    }
  }

  Job* join() {
    Job* const job = open_;
    if (job == nullptr) return nullptr;
    job->helpers.fetch_add(1, std::memory_order_relaxed);
    if (--job->places == 0) open_ = job->next_open;
    --places_;
    --idle_;
    return job;
  }

  void leave(Job& job) {
    ++idle_;
    if (job.caller_sleeps && job.helpers.load(std::memory_order_relaxed) == 1) job.left.notify_one();
    job.helpers.fetch_sub(1, std::memory_order_release);
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  /// Jobs with places, the newest first: an inner call's before its outer's.
  Job* open_ = nullptr;
  /// Sum of the open jobs' places; read without the mutex by those who spin.
  std::atomic<std::size_t> places_{0};
  std::size_t started_ = 0;
  std::size_t idle_ = 0;
  std::size_t asleep_ = 0;
};

alignas(Pool) unsigned char memory_of_pool[sizeof(Pool)];

/// In a fork's child the helpers are gone, and with them whatever they held.
void begin_anew() { new (memory_of_pool) Pool; }

Pool& pool() {
  static Pool* const the_pool = [] {
    pthread_atfork(nullptr, nullptr, begin_anew);
    return new (memory_of_pool) Pool;
  }();
  return *the_pool;
}

}  // namespace

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
  // More pieces than threads, handed out in order, so that uneven pieces balance.
  Job job(body, count, std::max(smallest, count / (workers * 8)));
  pool().run(job, workers - 1);
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace normscope
