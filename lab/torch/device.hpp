#pragma once

#include <string>

namespace normscope::lab {

/// Whether this program has libtorch. Without it the functions below take "cpu" alone.
[[nodiscard]] bool has_torch();

/// The device on which torch computes the networks of lab/grouped: "cpu", "cuda" or "cuda:INDEX" with at most
/// three digits. The processor computes everything else.
[[nodiscard]] const std::string& device();

/// Refuses a device that this libtorch cannot compute on, without starting it: a process that is forked later
/// cannot use a GPU that its parent has used.
///
/// Requires  one of the three forms
///
/// Errors    Argument for a GPU where libtorch is built for processors only
void expect_device(const std::string& name);

/// Selects the device for this process.
///
/// Returns   what the GPU is called, "NVIDIA H100 80GB HBM3", or "" for the processor
///
/// Errors    those of expect_device; Argument for a GPU that this machine does not have
std::string use_device(const std::string& name);

}  // namespace normscope::lab
