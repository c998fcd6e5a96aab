#include "norm_argument.hpp"

#include <fmt/format.h>

#include "arguments.hpp"
#include "array.hpp"

namespace normscope::python {

std::vector<double> vector_of(std::string_view who, std::string_view name, const nb::object& given) {
  if (given.is_none()) return {};
  const Array array = Array(who, name, given).converted(Element::float64);
  if (array.shape().size() != 1) {
    refuse(PyExc_ValueError,
           fmt::format("{}: {} has shape {}, expected one axis", who, name, shape_text(array.shape())));
  }
  const Array laid_out = array.rows() ? array : array.copy();
  const auto* const values = reinterpret_cast<const double*>(laid_out.rows()->data);
  return {values, values + laid_out.width()};
}

NormSpec norm_of(std::string_view who, const nb::object& norm) {
  constexpr std::size_t widest = std::size_t{1} << 26;
  const auto field = [&](const char* name) { return nb::object(norm.attr(name)); };
  const std::size_t width = integer(who, "width", field("width"), 1);
  if (width > widest) {
    refuse(PyExc_ValueError, fmt::format("{}: width is {}, expected 1 to {}", who, width, widest));
  }
  return {.kind = kind_of(who, field("kind")),
          .width = width,
          .groups = integer(who, "groups", field("groups"), 1),
          .eps = real(who, "eps", field("eps")),
          .gain = vector_of(who, "gain", field("gain")),
          .bias = vector_of(who, "bias", field("bias")),
          .alpha = real(who, "alpha", field("alpha")),
          .shift = real(who, "shift", field("shift"))};
}

}  // namespace normscope::python
