// Norms of plain tensors of torch. For a few rows, Python takes longer than the kernel: here nothing of it
// runs between the call of a norm and its kernel but torch's own functions.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <normscope/core/norm_kind.hpp>
#include <normscope/norm/kernels.hpp>

#include "array.hpp"
#include "interchange.hpp"
#include "module.hpp"

namespace normscope::python {
namespace {

/// Entries up to which one thread computes and other threads of Python wait, which takes less time than to
/// begin others.
constexpr std::size_t few_entries = std::size_t{1} << 15U;

nb::object attribute(nb::handle object, const nb::object& name) {
  PyObject* const found = PyObject_GetAttr(object.ptr(), name.ptr());
  if (found == nullptr) throw nb::python_error();
  return nb::steal(found);
}

nb::object name_of(const char* text) { return nb::steal(PyUnicode_InternFromString(text)); }

template <typename... Arguments>
nb::object called(const nb::object& function, const Arguments&... arguments) {
  const std::array<PyObject*, sizeof...(arguments) + 1> given{nullptr, arguments.ptr()...};
  PyObject* const result = PyObject_Vectorcall(
      function.ptr(), given.data() + 1, sizeof...(arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

bool is_true(const nb::object& object) {
  const int truth = PyObject_IsTrue(object.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

/// What is asked of torch at every call.
struct Torch {
  Torch(const nb::object& given, const DlpackExchange& functions)
      : exchange(functions),
        tensor(given.attr("tensor")),
        parameter(given.attr("parameter")),
        empty_like(given.attr("empty_like")),
        is_neg(given.attr("is_neg")),
        is_grad_enabled(given.attr("is_grad_enabled")),
        get_num_threads(given.attr("get_num_threads")),
        transforms_active(given.attr("transforms_active")),
        dispatch_modes(given.attr("dispatch_modes")),
        tracing_state(given.attr("tracing_state")),
        forward_ad(given.attr("forward_ad")),
        recorded(given.attr("recorded")) {}

  /// Whether torch does nothing with the operations that it is called with but compute their values and
  /// derivatives.
  [[nodiscard]] bool is_plain() const {
    return !is_true(called(transforms_active)) && !is_true(called(dispatch_modes)) &&
           called(tracing_state).is_none() && nb::cast<int>(attribute(forward_ad, current_level)) < 0;
  }

  const DlpackExchange& exchange;
  nb::object tensor;
  nb::object parameter;
  nb::object empty_like;
  nb::object is_neg;
  nb::object is_grad_enabled;
  nb::object get_num_threads;
  nb::object transforms_active;
  nb::object dispatch_modes;
  nb::object tracing_state;
  nb::object forward_ad;
  nb::object recorded;  ///< `apply` of the autograd function
  nb::object current_level = name_of("_current_level");
  nb::object requires_grad = name_of("requires_grad");
  nb::object save_for_backward = name_of("save_for_backward");
  nb::object saved_tensors = name_of("saved_tensors");
  nb::object needs_input_grad = name_of("needs_input_grad");
  nb::object how = name_of("how");
};

/// Never freed, because the interpreter ends before the module is destroyed.
const Torch* torch = nullptr;

/// A tensor whose entries are side by side in this machine's memory.
struct Entries {
  Element element = Element::float64;
  char* data = nullptr;
  std::size_t rows = 0;
  std::size_t width = 0;
  int axes = 0;

  template <typename T>
  [[nodiscard]] MatrixView<T> view() const {
    return {reinterpret_cast<T*>(data), rows, width, width};
  }
  [[nodiscard]] bool is_few() const { return rows * width <= few_entries; }
};

std::optional<Element> element_of_type(const DlpackTensor::Type& type) {
  if (type.lanes != 1) return std::nullopt;
  if (type.code == DlpackTensor::bfloat && type.bits == 16) return Element::bfloat16;
  if (type.code != DlpackTensor::real) return std::nullopt;
  switch (type.bits) {
    case 64: return Element::float64;
    case 32: return Element::float32;
    case 16: return Element::float16;
    default: return std::nullopt;
  }
}

/// None for a tensor of another kind, which `_autograd.py` computes or refuses.
std::optional<Entries> entries_of(nb::handle tensor) {
  const auto type = reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr()));
  if (type != torch->tensor.ptr() && type != torch->parameter.ptr()) return std::nullopt;
  DlpackTensor found{};
  if (torch->exchange.describe(tensor.ptr(), &found) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const std::optional<Element> element = element_of_type(found.type);
  if (!element || found.device_type != DlpackTensor::cpu || found.axes < 1 || found.data == nullptr) {
    return std::nullopt;
  }
  Entries entries{*element, static_cast<char*>(found.data) + found.offset, 1, 0, found.axes};
  std::ptrdiff_t step = 1;
  for (int axis = found.axes; axis-- > 0;) {
    const std::ptrdiff_t size = found.shape[axis];
    if (size != 1 && found.strides != nullptr && found.strides[axis] != step) return std::nullopt;
    step *= size;
  }
  entries.width = static_cast<std::size_t>(found.shape[found.axes - 1]);
  if (step == 0 || entries.width == 0) return std::nullopt;
  entries.rows = static_cast<std::size_t>(step) / entries.width;
  return entries;
}

/// With their signs: some tensors are stored negated.
bool is_stored_negated(nb::handle tensor) { return is_true(called(torch->is_neg, tensor)); }

/// The entries of a parameter that may not be there.
template <typename T>
std::span<T> entries_in(const std::optional<Entries>& parameter) {
  if (!parameter) return {};
  return {reinterpret_cast<T*>(parameter->data), parameter->width};
}

/// A norm's x, gain and bias, which are in the precision of the statistics: copies hold them where theirs is
/// another.
struct TensorInputs {
  Entries x;
  std::optional<Entries> gain{};
  std::optional<Entries> bias{};
  std::array<std::vector<float>, 2> copies{};
};

/// What the norm is besides.
struct TensorNorm {
  NormKind kind = NormKind::layer;
  std::size_t groups = 1;
  double eps = 0.0;

  /// Reads (kind, groups, eps); false for values that no norm has.
  [[nodiscard]] bool read(nb::handle given) {
    std::string name;
    if (!nb::try_cast(given[0], name) || !nb::try_cast(given[1], groups) || !nb::try_cast(given[2], eps))
      return false;
    const auto* const found = std::find_if(norm_kinds.begin(), norm_kinds.end(),
                                           [&](const NormKindFacts& known) { return known.name == name; });
    if (found == norm_kinds.end()) return false;
    kind = found->kind;
    return groups != 0 && eps >= 0.0;
  }

  template <typename T>
  [[nodiscard]] norm::Layer<T> layer(const TensorInputs& inputs) const {
    return {.kind = kind,
            .width = inputs.x.width,
            .groups = groups,
            .eps = eps,
            .gain = entries_in<const norm::Wide<T>>(inputs.gain),
            .bias = entries_in<const norm::Wide<T>>(inputs.bias),
            .alpha = 1.0,
            .shift = 0.0};
  }
};

float widened(norm::Bfloat16 value) { return norm::to_float(value); }
float widened(norm::Float16 value) { return norm::to_float(value); }
void narrow(float value, norm::Bfloat16& to) { to = norm::to_bfloat16(value); }
void narrow(float value, norm::Float16& to) { to = norm::to_float16(value); }

/// Calls `body` with an element of that type if it has 16 bits.
template <typename Body>
void with_narrow(Element element, const Body& body) {
  with_type(element, [&]<typename T>(T entry) {
    if constexpr (sizeof(T) == 2) body(entry);
  });
}

/// Whether a parameter that is there has an entry for each feature, of the type of x or of its statistics.
bool read_parameter(nb::handle given, const Entries& x, std::optional<Entries>& parameter,
                    std::vector<float>& copy) {
  if (given.is_none()) return true;
  parameter = entries_of(given);
  if (!parameter || parameter->axes != 1 || parameter->width != x.width) return false;
  const Element wide = x.element == Element::float64 ? Element::float64 : Element::float32;
  if (parameter->element == wide) return true;
  if (parameter->element != x.element) return false;
  with_narrow(x.element, [&]<typename T>(T) {
    for (const T value : entries_in<const T>(parameter)) copy.push_back(widened(value));
  });
  parameter->element = wide;
  parameter->data = reinterpret_cast<char*>(copy.data());
  return true;
}

std::optional<TensorInputs> inputs_of(nb::handle x, nb::handle gain, nb::handle bias) {
  const std::optional<Entries> rows = entries_of(x);
  if (!rows) return std::nullopt;
  std::optional<TensorInputs> inputs{{.x = *rows}};
  if (!read_parameter(gain, *rows, inputs->gain, inputs->copies[0]) ||
      !read_parameter(bias, *rows, inputs->bias, inputs->copies[1])) {
    return std::nullopt;
  }
  return inputs;
}

/// How many threads torch would use.
unsigned threads_for(const Entries& x) {
  return x.is_few() ? 1U : nb::cast<unsigned>(called(torch->get_num_threads));
}

/// Calls `compute`, while other threads of Python run unless it takes less than to let them.
template <typename Compute>
void computed(const Entries& x, const Compute& compute) {
  if (x.is_few()) return compute();
  const nb::gil_scoped_release others_may_run;
  compute();
}

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

nb::object norm_of(nb::handle x, const TensorInputs& inputs, const TensorNorm& how) {
  nb::object y = called(torch->empty_like, x);
  const std::optional<Entries> to = entries_of(y);
  if (!to) return not_implemented();
  const unsigned threads = threads_for(inputs.x);
  with_type(to->element, [&]<typename T>(T) {
    const norm::Layer<T> layer = how.layer<T>(inputs);
    computed(inputs.x, [&] { norm::normalize<T>(layer, inputs.x.view<const T>(), to->view<T>(), threads); });
  });
  return y;
}

/// What a call that torch records has read, until torch calls `record_tensor` for it.
class Recorded {
 public:
  Recorded(const TensorInputs& tensors, const TensorNorm& norm) : inputs(tensors), how(norm) { last_ = this; }
  ~Recorded() { last_ = before_; }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  [[nodiscard]] static const Recorded& last() { return *last_; }

  const TensorInputs& inputs;
  const TensorNorm& how;

 private:
  static inline thread_local const Recorded* last_ = nullptr;
  const Recorded* before_ = last_;
};

/// The norm of a plain tensor `x` over its last axis, `width` entries if that is not None, with its
/// derivatives where torch records them; NotImplemented where anything is not plain.
nb::object normalize_tensor(nb::handle x, nb::handle gain, nb::handle bias, nb::handle width, nb::handle kind,
                            nb::handle groups, nb::handle eps) {
  if (torch == nullptr || !torch->is_plain()) return not_implemented();
  const std::optional<TensorInputs> inputs = inputs_of(x, gain, bias);
  if (!inputs || (!width.is_none() && nb::cast<std::size_t>(width) != inputs->x.width))
    return not_implemented();
  const nb::tuple given = nb::make_tuple(kind, groups, eps);
  TensorNorm how;
  if (!how.read(given)) return not_implemented();
  bool recorded = false;
  const bool records = is_true(called(torch->is_grad_enabled));
  for (const nb::handle tensor : {x, gain, bias}) {
    if (tensor.is_none()) continue;
    if (is_stored_negated(tensor)) return not_implemented();
    recorded = recorded || (records && is_true(attribute(tensor, torch->requires_grad)));
  }
  if (!recorded) return norm_of(x, *inputs, how);
  const Recorded until_then(*inputs, how);
  return called(torch->recorded, x, gain, bias, given);
}

/// `forward` of the autograd function, which `normalize_tensor` alone applies.
nb::object record_tensor(nb::handle context, nb::handle x, nb::handle gain, nb::handle bias,
                         nb::handle given) {
  const Recorded& call = Recorded::last();
  called(attribute(context, torch->save_for_backward), x, gain, bias);
  if (PyObject_SetAttr(context.ptr(), torch->how.ptr(), given.ptr()) != 0) throw nb::python_error();
  return norm_of(x, call.inputs, call.how);
}

/// The gradients of x, gain, bias and None; NotImplemented where anything is not plain.
nb::object gradients_of_tensor(nb::handle context, nb::handle dy) {
  if (!torch->is_plain() || is_true(called(torch->is_grad_enabled))) return not_implemented();
  const std::optional<Entries> back = entries_of(dy);
  if (!back || is_stored_negated(dy)) return not_implemented();
  const nb::object saved = attribute(context, torch->saved_tensors);
  const nb::object x = saved[0];
  const std::array<nb::object, 2> parameters{saved[1], saved[2]};
  const std::optional<TensorInputs> inputs = inputs_of(x, parameters[0], parameters[1]);
  if (!inputs || inputs->x.element != back->element || inputs->x.rows != back->rows ||
      inputs->x.width != back->width) {
    return not_implemented();
  }
  TensorNorm how;
  if (!how.read(attribute(context, torch->how))) return not_implemented();
  const nb::object needed = attribute(context, torch->needs_input_grad);
  const nb::object dx = called(torch->empty_like, x);
  std::array<nb::object, 2> gradients{nb::none(), nb::none()};
  std::array<std::optional<Entries>, 2> of_parameters;
  std::array<std::vector<float>, 2> sums;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (parameters[i].is_none() || !is_true(needed[i + 1])) continue;
    gradients[i] = called(torch->empty_like, parameters[i]);
    of_parameters[i] = entries_of(gradients[i]);
    if (!of_parameters[i]) return not_implemented();
    if (size_of(of_parameters[i]->element) == 2) sums[i].resize(inputs->x.width);
  }
  const std::optional<Entries> to = entries_of(dx);
  if (!to) return not_implemented();
  const unsigned threads = threads_for(inputs->x);
  with_type(to->element, [&]<typename T>(T) {
    const norm::Layer<T> layer = how.layer<T>(*inputs);
    const auto to_sum = [&](std::size_t i) -> std::span<norm::Wide<T>> {
      if constexpr (sizeof(T) == 2) {
        if (!sums[i].empty()) return sums[i];
      }
      return entries_in<norm::Wide<T>>(of_parameters[i]);
    };
    computed(inputs->x, [&] {
      norm::normalize_backward<T>(layer, inputs->x.view<const T>(), back->view<const T>(), to->view<T>(),
                                  {to_sum(0), to_sum(1), nullptr, nullptr}, threads);
    });
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].empty()) continue;
    with_narrow(of_parameters[i]->element, [&]<typename T>(T) {
      const std::span<T> entries = entries_in<T>(of_parameters[i]);
      for (std::size_t k = 0; k < entries.size(); ++k) narrow(sums[i][k], entries[k]);
    });
  }
  return nb::make_tuple(dx, gradients[0], gradients[1], nb::none());
}

/// Takes what is asked of torch at every call. False for a version that describes its tensors to nobody.
bool use_torch(const nb::object& given) {
  const nb::object capsule = given.attr("exchange");
  if (capsule.is_none()) return false;
  const auto* const exchange =
      static_cast<const DlpackExchange*>(PyCapsule_GetPointer(capsule.ptr(), DlpackExchange::name));
  if (exchange == nullptr) throw nb::python_error();
  if (exchange->major != DlpackExchange::known || exchange->describe == nullptr) return false;
  torch = new Torch(given, *exchange);
  return true;
}

template <typename Result, typename... Parameters>
void define_quick(nb::module_& module, const char* name, Result (*function)(Parameters...)) {
  module.def(name, function, optional_argument<Parameters>()...);
}

}  // namespace

void define_tensors(nb::module_& module) {
  define_quick(module, "use_torch", &use_torch);
  define_quick(module, "normalize_tensor", &normalize_tensor);
  define_quick(module, "record_tensor", &record_tensor);
  define_quick(module, "gradients_of_tensor", &gradients_of_tensor);
}

}  // namespace normscope::python
