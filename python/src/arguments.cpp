#include "arguments.hpp"

#include <fmt/format.h>

namespace normscope::python {

std::string text(nb::handle object) { return nb::str(object).c_str(); }

bool truth_of(const nb::object& object) {
  const int truth = PyObject_IsTrue(object.ptr());
  if (truth < 0) throw nb::python_error();
  return truth == 1;
}

void refuse(PyObject* error, const std::string& message) {
  PyErr_SetString(error, message.c_str());
  throw nb::python_error();
}

std::size_t integer(std::string_view who, std::string_view name, const nb::object& given, Py_ssize_t least) {
  if (PyIndex_Check(given.ptr()) == 0) {
    refuse(PyExc_TypeError,
           fmt::format("{}: {} is {}, expected an integer", who, name, nb::repr(given).c_str()));
  }
  const Py_ssize_t value = PyNumber_AsSsize_t(given.ptr(), nullptr);
  if (value < least) {
    refuse(PyExc_ValueError, fmt::format("{}: {} is {}, expected at least {}", who, name, value, least));
  }
  return static_cast<std::size_t>(value);
}

double real(std::string_view who, std::string_view name, const nb::object& given) {
  const double value = PyFloat_AsDouble(given.ptr());
  if (PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();
  refuse(PyExc_TypeError, fmt::format("{}: {} is {}, expected a number", who, name, nb::repr(given).c_str()));
}

NormKind kind_of(std::string_view who, const nb::object& given) {
  if (nb::isinstance<nb::str>(given)) return norm_kind(nb::str(given).c_str());
  refuse(PyExc_TypeError, fmt::format("{}: kind is {}, expected a string", who, nb::repr(given).c_str()));
}

}  // namespace normscope::python
