#include "matrix_argument.hpp"

#include <fmt/format.h>

#include "arguments.hpp"
#include "array.hpp"

namespace normscope::python {
namespace {

std::vector<double> values_of(const Array& array) {
  const Array laid_out = array.rows() ? array : array.copy();
  const MatrixView<const double> rows = laid_out.rows()->view<const double>();
  std::vector<double> values;
  values.reserve(rows.rows() * rows.width());
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    values.insert(values.end(), rows.row(i).begin(), rows.row(i).end());
  }
  return values;
}

}  // namespace

Matrix matrix_of(std::string_view who, std::string_view name, const nb::object& given) {
  const Array array = Array(who, name, given).converted(Element::float64);
  const Shape shape = array.shape();
  if (shape.size() != 2) {
    refuse(PyExc_ValueError,
           fmt::format("{}: {} has shape {}, expected (rows, width)", who, name, shape_text(shape)));
  }
  return {values_of(array), static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1])};
}

Matrix samples_of(std::string_view who, std::string_view name, const nb::object& given) {
  const Array array = Array(who, name, given).converted(Element::float64);
  std::vector<double> values = values_of(array);
  if (values.empty()) {
    refuse(PyExc_ValueError, fmt::format("{}: {} has shape {}, expected samples along the first axis", who,
                                         name, shape_text(array.shape())));
  }
  const auto rows = static_cast<std::size_t>(array.shape()[0]);
  const std::size_t width = values.size() / rows;
  return {std::move(values), rows, width};
}

}  // namespace normscope::python
