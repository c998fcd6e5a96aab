#pragma once

#include <cstdint>

#include <gtest/gtest.h>
#include <hwy/detect_targets.h>
#include <hwy/targets.h>

namespace normscope::test {

/// Runs `body` once for every instruction set that this machine has and the kernels are compiled for, best
/// first, as if it had no better one.
template <typename Body>
void for_each_instruction_set(const Body& body) {
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace normscope::test
