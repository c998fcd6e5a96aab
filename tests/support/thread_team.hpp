#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <normscope/core/parallel.hpp>

namespace normscope {

/// Threads that behave as the processes of a team.
class ThreadTeam {
 public:
  /// Calls `work` in `size` threads at once, each as the member of a team.
  static void run(std::size_t size, const std::function<void(const Team&)>& work) {
    Shared shared(size);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < size; ++rank) {
      threads.emplace_back([&shared, &work, rank] { work(Member(shared, rank)); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Shared {
    explicit Shared(std::size_t size) : parts(size), values(size) {}

    /// Returns when all members have come here as often.
    void meet() {
      std::unique_lock lock(mutex);
      const std::size_t now = meeting;
      if (++arrived == parts.size()) {
        arrived = 0;
        ++meeting;
        all_arrived.notify_all();
      }
      all_arrived.wait(lock, [&] { return meeting != now; });
    }

    std::vector<std::span<std::byte>> parts;
    std::vector<char> values;
    std::mutex mutex{};
    std::condition_variable all_arrived{};
    std::size_t arrived = 0;
    std::size_t meeting = 0;
  };

  class Member : public Team {
   public:
    Member(Shared& shared, std::size_t rank) : shared_(shared), rank_(rank) {}
    [[nodiscard]] std::size_t rank() const override { return rank_; }
    [[nodiscard]] std::size_t size() const override { return shared_.parts.size(); }
    void gather(std::span<std::byte> bytes, std::span<const std::size_t> begins) const override {
      shared_.parts[rank_] = bytes;
      shared_.meet();
      for (std::size_t member = 0; member < size(); ++member) {
        const std::size_t count = begins[member + 1] - begins[member];
        if (member == rank_) continue;
        const std::span<const std::byte> from = shared_.parts[member].subspan(begins[member], count);
        std::copy(from.begin(), from.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begins[member]));
      }
      shared_.meet();
    }
    [[nodiscard]] bool any(bool value) const override {
      shared_.values[rank_] = value ? 1 : 0;
      shared_.meet();
      const bool found = std::find(shared_.values.begin(), shared_.values.end(), 1) != shared_.values.end();
      shared_.meet();
      return found;
    }

   private:
    Shared& shared_;
    std::size_t rank_;
  };
};

}  // namespace normscope
