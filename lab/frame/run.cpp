#include "run.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <normscope/core/error.hpp>

#include "experiment.hpp"

namespace normscope::lab {

namespace {

/// Largest amount of work lost when a process is killed, in addition to the current step.
constexpr double seconds_between_saves = 5.0;

/// Processor time of this process so far.
double processor_seconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

rusage usage_of_this_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

}  // namespace

/// The connection of a run to its store; its thread renews the lease during long steps.
struct Run::LeaseRenewer {
  Store& store;
  double seconds;
  std::chrono::steady_clock::time_point saved = std::chrono::steady_clock::now();
  std::mutex mutex{};
  std::condition_variable ends{};
  bool over = false;
  std::thread pulse{};

  LeaseRenewer(Store& the_store, const Lease& lease, double for_seconds)
      : store(the_store), seconds(for_seconds) {
    pulse = std::thread([this, held = Lease{.run = lease.run, .token = lease.token}] { renew(held); });
  }

  ~LeaseRenewer() {
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    ends.notify_one();
    pulse.join();
  }

  void renew(const Lease& held) {
    std::unique_lock lock(mutex);
    try {
      // A connection must be used by one thread only.
      Store own(store.file());
      while (!ends.wait_for(lock, std::chrono::duration<double>(seconds / 3), [this] { return over; })) {
        if (!own.renew(held, seconds)) return;
      }
    } catch (const Error&) {
      // The next save will fail in the same way and report it.
    }
  }

  [[nodiscard]] bool due() const {
    return std::chrono::steady_clock::now() - saved >
           std::chrono::duration<double>(std::min(seconds_between_saves, seconds / 3));
  }
};

Run::Run(Json configuration, std::uint64_t seed, Progress progress)
    : configuration_(std::move(configuration)), progress_(std::move(progress)) {
  lease_.key.seed = seed;
}

Run::Run(Store& store, Lease lease, double seconds, Progress progress)
    : configuration_(lease.key.configuration),
      lease_(std::move(lease)),
      progress_(std::move(progress)),
      reached_(lease_.step),
      processor_seconds_(processor_seconds(usage_of_this_process())),
      keeper_(std::make_unique<LeaseRenewer>(store, lease_, seconds)) {}

Run::~Run() = default;

void Run::measure(std::string name, std::uint64_t step, double value) {
  pending_.push_back({std::move(name), step, value});
}

void Run::keep(const std::string& name, std::string_view bytes) {
  if (keeper_) keeper_->store.keep(lease_, name, std::as_bytes(std::span(bytes)));
}

void Run::reached(std::uint64_t step, std::uint64_t total, const std::function<Bytes()>& progress) {
  reached_ = step;
  bool stop = false;
  try {
    progress_("step", step, total);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Cancelled) throw;
    stop = true;
  }
  if (stop || (keeper_ && keeper_->due())) save(progress());
  if (stop) throw Error(ErrorCode::Cancelled, "interrupted; run the same command again to continue");
}

void Run::account_for_time() {
  const rusage usage = usage_of_this_process();
  const double now = processor_seconds(usage);
  lease_.spent.seconds += now - std::exchange(processor_seconds_, now);
  lease_.spent.peak = 1024 * static_cast<std::uint64_t>(usage.ru_maxrss);
}

void Run::save(Bytes progress) {
  if (keeper_) {
    account_for_time();
    keeper_->store.save(lease_, reached_, pending_, progress, keeper_->seconds);
    keeper_->saved = std::chrono::steady_clock::now();
    pending_.clear();
  }
  lease_.step = reached_;
  lease_.progress = std::move(progress);
}

void perform(Store& store, const Experiment& experiment, const Lease& lease, double seconds,
             const Progress& progress) {
  Run run(store, lease, seconds, progress);
  try {
    experiment.perform(run);
    // A run of one step may report nothing before its end.
    for (const Metric& metric : run.pending_) run.reached_ = std::max(run.reached_, metric.step);
    run.account_for_time();
    store.finish(run.lease_, run.reached_, run.pending_);
  } catch (...) {
    store.release(run.lease_);
    throw;
  }
}

}  // namespace normscope::lab
