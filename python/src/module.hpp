#pragma once

#include <nanobind/nanobind.h>

/// The parts of the extension module `normscope._core`. Its functions take every argument by position; the
/// modules beside it, written in Python, have the signatures and the documentation.
namespace normscope::python {

/// An argument that may be None.
template <typename Parameter>
constexpr auto optional_argument() {
  return nanobind::arg().none();
}

/// Defines a function each of whose arguments may be None, as far as its type can be.
template <typename Result, typename... Parameters>
void define(nanobind::module_& module, const char* name, Result (*function)(Parameters...)) {
  module.def(name, function, optional_argument<Parameters>()...);
}

void define_kernels(nanobind::module_& module);
void define_model(nanobind::module_& module);
void define_analyses(nanobind::module_& module);
void define_observers(nanobind::module_& module);
void define_nets(nanobind::module_& module);
void define_signature(nanobind::module_& module);

}  // namespace normscope::python
