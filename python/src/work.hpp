#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::python {

/// Calls `compute(progress)` without the GIL. Ctrl-C and exceptions of `callback`, which is None or takes
/// (what, done, total), stop it; both are asked about ten times a second.
/// Errors    what `compute` throws, and the Python exception that stopped it
template <typename Compute>
auto run(const nanobind::object& callback, const Compute& compute) {
  namespace nb = nanobind;
  constexpr std::chrono::milliseconds between{100};
  std::optional<nb::python_error> raised;
  auto asked = std::chrono::steady_clock::now();
  const Progress progress([&](std::string_view what, std::size_t done, std::size_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (now - asked < between && done < total) return true;
    asked = now;
    const nb::gil_scoped_acquire held;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!callback.is_none()) callback(nb::str(what.data(), what.size()), done, total);
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
    }
    return !raised;
  });
  try {
    const nb::gil_scoped_release others_may_run;
    return compute(progress);
  } catch (const Error&) {
    if (raised) throw nb::python_error(std::move(*raised));
    throw;
  }
}

}  // namespace normscope::python
