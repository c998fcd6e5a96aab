#include "array.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "arguments.hpp"
#include "interchange.hpp"

namespace normscope::python {
namespace {

const nb::module_& numpy() {
  // Never freed, because the interpreter ends before the module is destroyed.
  static const auto* const module = new nb::module_(nb::module_::import_("numpy"));
  return *module;
}

bool is_numpy(const nb::object& object) {
  static PyObject* const array = nb::object(numpy().attr("ndarray")).release().ptr();
  return PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(array)) != 0;
}

/// NumPy has no name for bfloat16; ml_dtypes and others register one, which numbers do not tell apart.
bool is_bfloat16(const nb::object& dtype) {
  static PyObject* known = nullptr;
  if (dtype.ptr() == known) return true;
  if (text(dtype.attr("name")) != "bfloat16") return false;
  known = nb::object(dtype).release().ptr();
  return true;
}

}  // namespace

std::string_view to_string(Element element) {
  switch (element) {
    case Element::float64: return "float64";
    case Element::float32: return "float32";
    case Element::float16: return "float16";
    case Element::bfloat16: return "bfloat16";
  }
  return "";
}

std::size_t size_of(Element element) {
  return with_type(element, [](auto value) { return sizeof(value); });
}

nb::tuple to_tuple(Shape shape) {
  nb::list sizes;
  for (const std::ptrdiff_t size : shape) sizes.append(size);
  return nb::tuple(sizes);
}

nb::object array_of(const std::vector<double>& values) {
  nb::object made = numpy().attr("empty")(values.size());
  const Array array("", "", made);
  std::copy(values.begin(), values.end(), reinterpret_cast<double*>(array.data_));
  return made;
}

std::string shape_text(Shape shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

bool same_place(const Rows& a, const Rows& b) {
  return a.data == b.data && a.entry == b.entry && a.count == b.count && a.width == b.width &&
         (a.stride == b.stride || a.count == 1);
}

bool may_overlap(const Rows& a, const Rows& b) {
  if (a.count * a.width == 0 || b.count * b.width == 0) return false;
  const auto begin = [](const Rows& rows) { return reinterpret_cast<std::uintptr_t>(rows.data); };
  const auto end = [&](const Rows& rows) {
    return begin(rows) + ((rows.count - 1) * rows.stride + rows.width) * rows.entry;
  };
  if (end(a) <= begin(b) || end(b) <= begin(a)) return false;
  const std::size_t stride = a.stride * a.entry;
  if (stride != b.stride * b.entry) return true;
  // Columns of one matrix, side by side?
  const std::size_t apart = (begin(b) % stride + stride - begin(a) % stride) % stride;
  return apart < a.width * a.entry || apart + b.width * b.entry > stride;
}

Array::Array(std::string_view who, std::string_view name, nb::object object)
    : who_(who), name_(name), object_(std::move(object)) {
  torch_ = !is_numpy(object_) && nb::hasattr(object_, "new_empty") && nb::hasattr(object_, "__dlpack__");
  if (torch_) {
    // Parameters are read as they are; no gradient is recorded.
    if (nb::hasattr(object_, "requires_grad") && truth_of(object_.attr("requires_grad"))) {
      object_ = object_.attr("detach")();
    }
    read_dlpack();
  } else {
    read_numpy();
  }
}

void Array::refuse(PyObject* error, const std::string& what) const {
  python::refuse(error, fmt::format("{}: {} {}", who_, name_, what));
}

void Array::read_numpy() {
  if (!is_numpy(object_)) {
    // A list has no element type of its own.
    const bool plain = nb::isinstance<nb::list>(object_) || nb::isinstance<nb::tuple>(object_);
    try {
      object_ = nb::hasattr(object_, "__dlpack__") && !nb::hasattr(object_, "__array__")
                    ? numpy().attr("from_dlpack")(object_)
                    : numpy().attr("asarray")(
                          object_, plain ? nb::object(nb::str("float64")) : nb::object(nb::none()));
    } catch (nb::python_error& error) {
      // Ctrl-C is no Exception.
      if (!error.matches(PyExc_Exception)) throw;
      refuse(PyExc_TypeError,
             "is no array of numbers: " +
                 text(nb::module_::import_("normscope._check").attr("reason")(error.value())));
    }
  }
  keeper_ = object_.attr("__array_struct__");
  const auto* const array = static_cast<const NumpyArray*>(PyCapsule_GetPointer(keeper_.ptr(), nullptr));
  if (array == nullptr) throw nb::python_error();
  const bool real = array->kind == 'f';
  if (real && array->entry == 8) {
    element_ = Element::float64;
  } else if (real && array->entry == 4) {
    element_ = Element::float32;
  } else if (real && array->entry == 2) {
    element_ = Element::float16;
  } else if (array->entry == 2 && is_bfloat16(object_.attr("dtype"))) {
    element_ = Element::bfloat16;
  } else {
    refuse(PyExc_TypeError,
           fmt::format("is {}, expected float64, float32, float16 or bfloat16", text(object_.attr("dtype"))));
  }
  native_ = (array->flags & NumpyArray::native) != 0;
  writable_ = (array->flags & NumpyArray::writable) != 0;
  data_ = static_cast<char*>(array->data);
  shape_ = {array->shape, static_cast<std::size_t>(array->axes)};
  find_rows(array->strides, 1);
}

void Array::read_dlpack() {
  try {
    // A capsule holds the entries without their sign bit.
    if (nb::hasattr(object_, "resolve_neg")) object_ = object_.attr("resolve_neg")();
    keeper_ = object_.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    refuse(PyExc_ValueError,
           fmt::format("cannot be loaded: {}",
                       text(nb::module_::import_("normscope._check").attr("reason")(error.value()))));
  }
  // The capsule keeps its name, so that it frees what it holds when we let go of it.
  const auto* const tensor =
      static_cast<const DlpackTensor*>(PyCapsule_GetPointer(keeper_.ptr(), "dltensor"));
  if (tensor == nullptr) throw nb::python_error();
  if (tensor->device_type != DlpackTensor::cpu && tensor->device_type != DlpackTensor::pinned) {
    refuse(PyExc_TypeError, "is on another device, expected the CPU");
  }
  const bool real = tensor->type.code == DlpackTensor::real && tensor->type.lanes == 1;
  if (real && tensor->type.bits == 64) {
    element_ = Element::float64;
  } else if (real && tensor->type.bits == 32) {
    element_ = Element::float32;
  } else if (real && tensor->type.bits == 16) {
    element_ = Element::float16;
  } else if (tensor->type.code == DlpackTensor::bfloat && tensor->type.bits == 16) {
    element_ = Element::bfloat16;
  } else {
    refuse(PyExc_TypeError,
           fmt::format("is {}, expected float64, float32, float16 or bfloat16", text(object_.attr("dtype"))));
  }
  data_ = static_cast<char*>(tensor->data) + tensor->offset;
  shape_ = {tensor->shape, static_cast<std::size_t>(tensor->axes)};
  if (tensor->strides != nullptr) return find_rows(tensor->strides, size_of(element_));
  std::vector<std::ptrdiff_t> contiguous(shape_.size(), 1);
  for (std::size_t axis = shape_.size(); axis-- > 1;) contiguous[axis - 1] = contiguous[axis] * shape_[axis];
  find_rows(contiguous.data(), size_of(element_));
}

void Array::find_rows(const std::ptrdiff_t* strides, std::size_t scale) {
  if (shape_.empty()) refuse(PyExc_ValueError, "has no axis, expected at least one");
  const std::size_t entry = size_of(element_);
  const auto stride_of = [&](std::size_t axis) { return strides[axis] * static_cast<std::ptrdiff_t>(scale); };
  Rows rows{data_, 1, width(), width(), entry};
  for (std::size_t axis = 0; axis + 1 < shape_.size(); ++axis) {
    rows.count *= static_cast<std::size_t>(shape_[axis]);
  }
  if (rows.count * rows.width != 0) {
    if (data_ == nullptr) refuse(PyExc_ValueError, std::string(no_memory));
    if (!native_ || reinterpret_cast<std::uintptr_t>(data_) % entry != 0) return;
    if (rows.width > 1 && stride_of(shape_.size() - 1) != static_cast<std::ptrdiff_t>(entry)) return;
    // From the last axis outwards, those of one entry left out: each steps over the whole one before.
    std::ptrdiff_t step = 0;
    for (std::size_t axis = shape_.size() - 1; axis-- > 0;) {
      if (shape_[axis] == 1) continue;
      if (step == 0) {
        const std::ptrdiff_t stride = stride_of(axis);
        if (stride % static_cast<std::ptrdiff_t>(entry) != 0 ||
            stride < static_cast<std::ptrdiff_t>(rows.width * entry)) {
          return;
        }
        rows.stride = static_cast<std::size_t>(stride) / entry;
        step = stride;
      } else if (stride_of(axis) != step) {
        return;
      }
      step *= shape_[axis];
    }
  }
  rows_ = rows;
}

Array Array::copy() const {
  if (torch_) {
    Array made = new_like(shape_);
    made.object_.attr("copy_")(object_);
    return made;
  }
  const nb::object dtype = object_.attr("dtype").attr("newbyteorder")("=");
  return {who_, name_, numpy().attr("array")(object_, dtype, nb::arg("order") = "C")};
}

Array Array::converted(Element element) const {
  if (element == element_) return *this;
  if (torch_) return {who_, name_, object_.attr(element == Element::float64 ? "double" : "float")()};
  return {who_, name_, object_.attr("astype")(nb::str(to_string(element).data()))};
}

Array Array::new_like(Shape shape) const { return {who_, name_, object_.attr("new_empty")(to_tuple(shape))}; }

Array Array::empty(Shape shape) const {
  expect_computed();
  if (torch_) return new_like(shape);
  nb::object dtype = object_.attr("dtype");
  if (!native_) dtype = dtype.attr("newbyteorder")("=");
  return {who_, name_, numpy().attr("empty")(to_tuple(shape), dtype)};
}

Array Array::empty(Shape shape, Element element) const {
  if (element == element_) return empty(shape);
  if (torch_) return empty(shape).converted(element);
  return {who_, name_, numpy().attr("empty")(to_tuple(shape), nb::str(to_string(element).data()))};
}

void Array::expect_computed() const {
  if (!torch_) return;
  nb::module_::import_("normscope._check").attr("expect_computed")(nb::str(who_.data(), who_.size()));
}

void Array::expect_like(const Array& like, std::string_view of) const {
  if (element_ != like.element_) {
    refuse(PyExc_TypeError,
           fmt::format("is {}, expected {}, as {} is", to_string(element_), to_string(like.element_), of));
  }
  if (!std::equal(shape_.begin(), shape_.end(), like.shape_.begin(), like.shape_.end())) {
    refuse(PyExc_ValueError, fmt::format("has shape {}, expected {}, as {} has", shape_text(shape_),
                                         shape_text(like.shape_), of));
  }
}

}  // namespace normscope::python
