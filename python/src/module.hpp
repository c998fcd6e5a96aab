#pragma once

#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>

#include <normscope/core/file.hpp>

/// The parts of the extension module `normscope._core`. Its functions take every argument by position; the
/// modules beside it, written in Python, have the signatures and the documentation.
namespace normscope::python {

/// An argument that may be None.
template <typename Parameter>
constexpr auto optional_argument() {
  return nanobind::arg().none();
}

/// Calls the function. If a file that it mapped is not the one that was opened any more, the error says so
/// instead of what was computed from it, or of how that failed.
template <typename Function>
auto on_unchanged_files(const Function& function) {
  const MappedFilesOfCall files;
  try {
    if constexpr (std::is_void_v<decltype(function())>) {
      function();
      files.expect_unchanged();
    } else {
      auto result = function();
      files.expect_unchanged();
      return result;
    }
  } catch (const nanobind::python_error&) {
    throw;  // Ctrl-C, or of a callback
  } catch (...) {
    files.expect_unchanged();
    throw;
  }
}

/// Defines a function each of whose arguments may be None, as far as its type can be.
template <typename Result, typename... Parameters>
void define(nanobind::module_& module, const char* name, Result (*function)(Parameters...)) {
  module.def(
      name,
      [function](Parameters... given) -> Result {
        return on_unchanged_files([&] { return function(std::forward<Parameters>(given)...); });
      },
      optional_argument<Parameters>()...);
}

void define_kernels(nanobind::module_& module);
void define_model(nanobind::module_& module);
void define_analyses(nanobind::module_& module);
void define_observers(nanobind::module_& module);
void define_nets(nanobind::module_& module);
void define_signature(nanobind::module_& module);
void define_tensors(nanobind::module_& module);

}  // namespace normscope::python
