#pragma once

#include <functional>

#include <normscope/core/parallel.hpp>

namespace normscope {

/// The processes that one mpirun or srun started; a single process otherwise.
class Ranks : public Team {
 public:
  /// Joins the others.
  ///
  /// Requires  at most one object a process
  Ranks();
  ~Ranks() override;

  [[nodiscard]] std::size_t rank() const override { return static_cast<std::size_t>(rank_); }
  [[nodiscard]] std::size_t size() const override { return static_cast<std::size_t>(count_); }
  void gather(std::span<std::byte> bytes, std::span<const std::size_t> begins) const override;
  [[nodiscard]] bool any(bool value) const override;

  /// Runs `work` in the first process, then lets the others continue. If it throws, the others end as well.
  void first_then_all(const std::function<void()>& work) const;
  /// Waits for all processes.
  void meet() const;
  /// Ends every process with that exit status, unless there is only one.
  void end_all(int status) const;

 private:
  bool joined_ = false;
  int rank_ = 0;
  int count_ = 1;
};

}  // namespace normscope
