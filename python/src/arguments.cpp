#include "arguments.hpp"

#include <fmt/format.h>

namespace normscope::python {

std::string text(nb::handle object) { return nb::str(object).c_str(); }

std::string shown(const nb::object& object) {
  return text(nb::module_::import_("normscope._check").attr("shown")(object));
}

bool truth_of(const nb::object& object) {
  const int truth = PyObject_IsTrue(object.ptr());
  if (truth < 0) throw nb::python_error();
  return truth == 1;
}

bool flag(std::string_view who, std::string_view name, const nb::object& given) {
  const nb::object check = nb::module_::import_("normscope._check").attr("flag");
  return truth_of(check(nb::str(who.data(), who.size()), nb::str(name.data(), name.size()), given));
}

void refuse(PyObject* error, const std::string& message) {
  PyErr_SetString(error, message.c_str());
  throw nb::python_error();
}

std::size_t integer(std::string_view who, std::string_view name, const nb::object& given, Py_ssize_t least) {
  if (PyIndex_Check(given.ptr()) == 0) {
    refuse(PyExc_TypeError, fmt::format("{}: {} is {}, expected an integer", who, name, shown(given)));
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
  refuse(PyExc_TypeError, fmt::format("{}: {} is {}, expected a number", who, name, shown(given)));
}

NormKind kind_of(std::string_view who, const nb::object& given) {
  if (nb::isinstance<nb::str>(given)) return norm_kind(nb::str(given).c_str());
  refuse(PyExc_TypeError, fmt::format("{}: kind is {}, expected a string", who, shown(given)));
}

}  // namespace normscope::python
