#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

#include <normscope/core/norm_kind.hpp>

/// Plain arguments. `who` and `name` begin the messages.
namespace normscope::python {

namespace nb = nanobind;

/// str(object).
[[nodiscard]] std::string text(nb::handle object);

/// One line about a value, for messages.
[[nodiscard]] std::string shown(const nb::object& object);

/// bool(object).
[[nodiscard]] bool truth_of(const nb::object& object);

/// A flag that was given as an argument.
/// Errors    TypeError for what is neither true nor false
[[nodiscard]] bool flag(std::string_view who, std::string_view name, const nb::object& given);

/// Raises a Python exception.
[[noreturn]] void refuse(PyObject* error, const std::string& message);

/// An integer of at least `least`; the largest there is for one beyond it.
/// Errors    TypeError, ValueError
[[nodiscard]] std::size_t integer(std::string_view who, std::string_view name, const nb::object& given,
                                  Py_ssize_t least);

/// Errors    TypeError
[[nodiscard]] double real(std::string_view who, std::string_view name, const nb::object& given);

/// Errors    TypeError; Argument for a name of no kind
[[nodiscard]] NormKind kind_of(std::string_view who, const nb::object& given);

}  // namespace normscope::python
