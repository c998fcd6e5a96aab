#pragma once

#include <functional>

namespace normscope::lab {

/// The processes that one mpirun or srun started; a single process otherwise.
class Ranks {
 public:
  /// Joins the others.
  ///
  /// Requires  at most one object a process
  Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  [[nodiscard]] bool several() const { return count_ > 1; }
  [[nodiscard]] bool first() const { return rank_ == 0; }

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

}  // namespace normscope::lab
