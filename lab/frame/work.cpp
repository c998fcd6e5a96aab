#include "work.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "session.hpp"
#include "store/store.hpp"
#include "torch/device.hpp"
#include "torch/threads.hpp"

namespace normscope::lab {
namespace {

constexpr std::chrono::milliseconds poll_interval{200};

class Children {
 public:
  void add(pid_t child) { running_.push_back(child); }

  ~Children() {
    for (const pid_t child : running_) kill(child, SIGTERM);
    for (const pid_t child : running_) waitpid(child, nullptr, 0);
  }

  /// Whether some processes are still running.
  ///
  /// Errors    Io if one has failed, after it has reported why
  bool running() {
    for (std::size_t i = 0; i < running_.size();) {
      int status = 0;
      if (waitpid(running_[i], &status, WNOHANG) == 0) {
        ++i;
        continue;
      }
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      if (WIFEXITED(status) && WEXITSTATUS(status) == cli::cancelled)
        throw Error(ErrorCode::Cancelled, "interrupted; run the same command again to continue");
      if (!WIFEXITED(status) || WEXITSTATUS(status) != cli::ok)
        throw Error(ErrorCode::Io, "lab: a process ended early; its progress is saved");
    }
    return !running_.empty();
  }

 private:
  std::vector<pid_t> running_{};
};

}  // namespace

void work(const Work& work, const Progress& progress) {
  use_threads(1);
  const std::string device = use_device(work.device);
  Store store(work.store);
  const std::size_t all = work.runs.size();
  while (const std::size_t open = store.open(work.runs)) {
    const std::optional<Lease> lease = store.lease(work.runs, work.lease_seconds, device);
    if (!lease) {
      progress(
          fmt::format("{}: {} of {} runs done, others do the rest:", work.experiment->name, all - open, all),
          0, 1);
      std::this_thread::sleep_for(poll_interval);
      continue;
    }
    const std::string title = fmt::format("{}, run {} of {}:", work.experiment->name, all - open + 1, all);
    perform(store, *work.experiment, *lease, work.lease_seconds,
            Progress([&](std::string_view what, std::size_t done, std::size_t total) {
              progress(fmt::format("{} {}", title, what), done, total);
              return true;
            }));
  }
}

void work_in_processes(const Work& the_work, unsigned processes, const Progress& progress) {
  Children children;
  for (unsigned i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child < 0) throw Error(ErrorCode::Io, "lab: cannot start a worker process");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      _exit(cli::guarded("normscope-lab", [&] {
        cli::Session silent;
        silent.quiet = true;
        try {
          work(the_work, silent.progress());
        } catch (const Error& error) {
          // The parent reports it once for all.
          if (error.code() != ErrorCode::Cancelled) throw;
          return static_cast<int>(cli::cancelled);
        }
        return static_cast<int>(cli::ok);
      }));
    }
    children.add(child);
  }
  const Store store(the_work.store);
  const std::size_t all = the_work.runs.size();
  while (children.running()) {
    progress(fmt::format("{}: runs done", the_work.experiment->name), all - store.open(the_work.runs), all);
    std::this_thread::sleep_for(poll_interval);
  }
}

}  // namespace normscope::lab
