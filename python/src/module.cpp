// The extension module normscope._core.

#include "module.hpp"

#include <string>

#include <nanobind/stl/string.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/version.hpp>

namespace nb = nanobind;

namespace {

PyObject* exception_of(normscope::ErrorCode code) {
  switch (code) {
    case normscope::ErrorCode::Io: return PyExc_OSError;
    case normscope::ErrorCode::Cancelled: return PyExc_KeyboardInterrupt;
    case normscope::ErrorCode::Format:
    case normscope::ErrorCode::Shape:
    case normscope::ErrorCode::Argument:
    case normscope::ErrorCode::Unsupported: break;
  }
  return PyExc_ValueError;
}

void write_file(const std::string& path, const std::string& text) {
  const nb::gil_scoped_release others_may_run;
  normscope::AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_bytes(const std::string& path, const nb::bytes& bytes) {
  write_file(path, {static_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

NB_MODULE(_core, module) {
  nb::register_exception_translator([](const std::exception_ptr& caught, void*) {
    try {
      std::rethrow_exception(caught);
    } catch (const normscope::Error& error) {
      PyErr_SetString(exception_of(error.code()), error.what());
    }
  });
  module.attr("__version__") = normscope::version;
  normscope::python::define(module, "write_file", &write_file);
  normscope::python::define(module, "write_bytes", &write_bytes);
  normscope::python::define_kernels(module);
  normscope::python::define_model(module);
  normscope::python::define_analyses(module);
  normscope::python::define_observers(module);
  normscope::python::define_nets(module);
  normscope::python::define_signature(module);
  normscope::python::define_tensors(module);
}
