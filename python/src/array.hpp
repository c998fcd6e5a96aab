#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <normscope/core/view.hpp>
#include <normscope/norm/kernels.hpp>

/// Arrays of Python as the library sees them. NumPy's are read by `__array_struct__` and PyTorch's by
/// `__dlpack__`, whose layouts are fixed: neither's headers are needed, nor one of their versions.
namespace normscope::python {

namespace nb = nanobind;

using Shape = std::span<const std::ptrdiff_t>;

enum class Element { float64, float32, float16, bfloat16 };

[[nodiscard]] std::string_view to_string(Element element);
[[nodiscard]] std::size_t size_of(Element element);

template <typename T>
inline constexpr Element element_of = std::is_same_v<T, double>           ? Element::float64
                                      : std::is_same_v<T, float>          ? Element::float32
                                      : std::is_same_v<T, norm::Bfloat16> ? Element::bfloat16
                                                                          : Element::float16;

/// Calls `body` with an element of the C++ type.
template <typename Body>
decltype(auto) with_type(Element element, const Body& body) {
  switch (element) {
    case Element::float64: return body(double{});
    case Element::float32: return body(float{});
    case Element::float16: return body(norm::Float16{});
    case Element::bfloat16: break;
  }
  return body(norm::Bfloat16{});
}

/// What is said of a tensor whose address is 0.
inline constexpr std::string_view no_memory =
    "has no memory, as fake, meta and freed tensors: expected one with entries";

/// An array's memory as rows: all axes but the last run together.
struct Rows {
  char* data = nullptr;
  std::size_t count = 0;
  std::size_t width = 0;
  std::size_t stride = 0;  ///< in elements
  std::size_t entry = 0;   ///< bytes of an element

  template <typename T>
  [[nodiscard]] MatrixView<T> view() const {
    return {reinterpret_cast<T*>(data), count, width, stride};
  }
};

/// Whether the entries are the same, place by place; whether some byte may be in both.
[[nodiscard]] bool same_place(const Rows& a, const Rows& b);
[[nodiscard]] bool may_overlap(const Rows& a, const Rows& b);

/// An argument: a NumPy array, a PyTorch tensor on the CPU, or what numpy.asarray makes an array of.
/// Errors    TypeError for elements and devices that the library does not know, ValueError for no axis
class Array {
 public:
  /// `who` and `name` begin the messages.
  Array(std::string_view who, std::string_view name, nb::object object);

  [[nodiscard]] const nb::object& object() const { return object_; }
  [[nodiscard]] Element element() const { return element_; }
  [[nodiscard]] Shape shape() const { return shape_; }
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(shape_.back()); }
  [[nodiscard]] bool writable() const { return writable_; }

  /// Refuses a tensor as a result while torch records operations, which this one escapes.
  /// Errors    TypeError
  void expect_computed() const;

  /// None where rows are not one stride apart, or their entries not side by side.
  [[nodiscard]] const std::optional<Rows>& rows() const { return rows_; }

  /// A new one, contiguous, with these entries; of the library that this one is of, like the next.
  [[nodiscard]] Array copy() const;
  /// This one where it has those elements, else a copy that has.
  [[nodiscard]] Array converted(Element element) const;
  /// A new one without entries yet.
  /// Errors    as `expect_computed`
  [[nodiscard]] Array empty(Shape shape) const;
  [[nodiscard]] Array empty(Shape shape, Element element) const;

  /// Throws unless it has the shape and the elements of `like`, which is called `of`.
  /// Errors    TypeError, ValueError
  void expect_like(const Array& like, std::string_view of) const;

 private:
  friend nb::object array_of(const std::vector<double>& values);

  void read_numpy();
  void read_dlpack();
  [[nodiscard]] Array new_like(Shape shape) const;
  /// `scale` turns the strides into bytes.
  void find_rows(const std::ptrdiff_t* strides, std::size_t scale);
  [[noreturn]] void refuse(PyObject* error, const std::string& what) const;

  std::string_view who_;
  std::string_view name_;
  nb::object object_;
  nb::object keeper_;  ///< of what `data_` and `shape_` point to
  bool torch_ = false;
  bool writable_ = true;
  bool native_ = true;  ///< byte order
  Element element_ = Element::float64;
  char* data_ = nullptr;
  Shape shape_;
  std::optional<Rows> rows_;
};

[[nodiscard]] nb::tuple to_tuple(Shape shape);

/// A new NumPy array of float64.
[[nodiscard]] nb::object array_of(const std::vector<double>& values);

/// "(4, 768)", as Python writes it.
[[nodiscard]] std::string shape_text(Shape shape);

}  // namespace normscope::python
