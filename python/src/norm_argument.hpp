#pragma once

#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>

#include <normscope/core/norm_spec.hpp>

namespace normscope::python {

/// An argument's entries in float64; none for None.
/// Errors    TypeError, ValueError
[[nodiscard]] std::vector<double> vector_of(std::string_view who, std::string_view name,
                                            const nanobind::object& given);

/// A norm from the fields of the class `Norm` of Python.
/// Errors    TypeError, ValueError; Argument for a kind that there is not
[[nodiscard]] NormSpec norm_of(std::string_view who, const nanobind::object& norm);

}  // namespace normscope::python
