// The norm kernels for Python: arrays are converted, normscope::norm computes.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <normscope/core/error.hpp>
#include <normscope/core/norm_spec.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

#include "arguments.hpp"
#include "array.hpp"
#include "module.hpp"

namespace normscope::python {
namespace {

/// The keywords that every function has.
struct Options {
  Options(std::string_view who, const nb::object& kind_name, const nb::object& group_count,
          const nb::object& epsilon, const nb::object& factor, const nb::object& addend,
          const nb::object& most)
      : kind(kind_of(who, kind_name)),
        groups(integer(who, "groups", group_count, 1)),
        eps(real(who, "eps", epsilon)),
        alpha(real(who, "alpha", factor)),
        shift(real(who, "shift", addend)),
        threads(
            static_cast<unsigned>(std::min<std::size_t>(integer(who, "threads", most, 0), most_threads))) {}

  /// What no machine has; the library asks for the number it was told.
  static constexpr std::size_t most_threads = 1U << 16U;

  NormKind kind;
  std::size_t groups;
  double eps;
  double alpha;
  double shift;
  unsigned threads;
};

/// Where a result goes: `out`, or a new array like `like`, which is called `of`.
Array result(std::string_view who, const nb::object& out, const Array& like, std::string_view of = "x") {
  if (out.is_none()) return like.empty(like.shape());
  Array given(who, "out", out);
  if (!given.object().is(out)) refuse(PyExc_TypeError, fmt::format("{}: out is no array", who));
  given.expect_like(like, of);
  given.expect_computed();
  if (!given.writable()) refuse(PyExc_ValueError, fmt::format("{}: out is read-only", who));
  if (!given.rows()) {
    refuse(PyExc_ValueError,
           fmt::format("{}: out is not laid out in rows, expected the last axis contiguous and the others "
                       "one stride apart",
                       who));
  }
  return given;
}

/// `input`, or a copy of it where it is not laid out in rows or a result would be written over it while it
/// is still read.
Array readable(const Array& input, std::initializer_list<const Array*> results, bool in_place) {
  bool as_it_is = input.rows().has_value();
  for (const Array* to : results) {
    as_it_is = as_it_is && (!may_overlap(*input.rows(), *to->rows()) ||
                            (in_place && same_place(*input.rows(), *to->rows())));
  }
  return as_it_is ? input : input.copy();
}

/// A gain or a bias in the precision of the statistics; none where the caller has none.
std::optional<Array> parameter(std::string_view who, std::string_view name, const nb::object& given,
                               const Array& x, std::initializer_list<const Array*> results) {
  if (given.is_none()) return std::nullopt;
  const Array array(who, name, given);
  if (array.shape().size() != 1 || array.width() != x.width()) {
    refuse(PyExc_ValueError, fmt::format("{}: {} has shape {}, expected ({},)", who, name,
                                         shape_text(array.shape()), x.width()));
  }
  const Element wide = x.element() == Element::float64 ? Element::float64 : Element::float32;
  return readable(array.converted(wide), results, false);
}

template <typename T>
std::span<T> entries(const std::optional<Array>& array) {
  if (!array) return {};
  return {reinterpret_cast<T*>(array->rows()->data), array->width()};
}

template <typename T>
norm::Layer<T> layer_of(const Options& options, const Array& x, const std::optional<Array>& gain,
                        const std::optional<Array>& bias) {
  return {.kind = options.kind,
          .width = x.width(),
          .groups = options.groups,
          .eps = options.eps,
          .gain = entries<const norm::Wide<T>>(gain),
          .bias = entries<const norm::Wide<T>>(bias),
          .alpha = options.alpha,
          .shift = options.shift};
}

nb::object normalize(const nb::object& x, const nb::object& gain, const nb::object& bias,
                     const nb::object& kind, const nb::object& groups, const nb::object& eps,
                     const nb::object& alpha, const nb::object& shift, const nb::object& out,
                     const nb::object& threads) {
  constexpr std::string_view who = "normalize";
  const Options options(who, kind, groups, eps, alpha, shift, threads);
  const Array given(who, "x", x);
  const Array y = result(who, out, given);
  const Array from = readable(given, {&y}, true);
  const auto g = parameter(who, "gain", gain, from, {&y});
  const auto b = parameter(who, "bias", bias, from, {&y});
  with_type(y.element(), [&]<typename T>(T) {
    const nb::gil_scoped_release others_may_run;
    norm::normalize<T>(layer_of<T>(options, from, g, b), from.rows()->view<const T>(), y.rows()->view<T>(),
                       options.threads);
  });
  return y.object();
}

/// The two of `out`, each of which may be None.
std::pair<nb::object, nb::object> two(std::string_view who, const nb::object& out) {
  if (out.is_none()) return {nb::none(), nb::none()};
  if (!nb::isinstance<nb::tuple>(out) || nb::len(out) != 2) {
    refuse(PyExc_TypeError, fmt::format("{}: out is no pair, expected (sum, y)", who));
  }
  const auto pair = nb::borrow<nb::tuple>(out);
  return {nb::object(pair[0]), nb::object(pair[1])};
}

nb::tuple add_normalize(const nb::object& x, const nb::object& residual, const nb::object& gain,
                        const nb::object& bias, const nb::object& kind, const nb::object& groups,
                        const nb::object& eps, const nb::object& alpha, const nb::object& shift,
                        const nb::object& out, const nb::object& threads) {
  constexpr std::string_view who = "add_normalize";
  const Options options(who, kind, groups, eps, alpha, shift, threads);
  const Array given(who, "x", x);
  const Array other(who, "residual", residual);
  other.expect_like(given, "x");
  const auto [out_sum, out_y] = two(who, out);
  const Array sum = result(who, out_sum, given);
  const Array y = result(who, out_y, given);
  if (may_overlap(*sum.rows(), *y.rows()) && !same_place(*sum.rows(), *y.rows())) {
    refuse(PyExc_ValueError, fmt::format("{}: the two of out overlap, expected one array or two", who));
  }
  const Array from = readable(given, {&sum, &y}, true);
  const Array added = readable(other, {&sum, &y}, true);
  const auto g = parameter(who, "gain", gain, from, {&sum, &y});
  const auto b = parameter(who, "bias", bias, from, {&sum, &y});
  with_type(y.element(), [&]<typename T>(T) {
    const nb::gil_scoped_release others_may_run;
    norm::add_normalize<T>(layer_of<T>(options, from, g, b), from.rows()->view<const T>(),
                           added.rows()->view<const T>(), sum.rows()->view<T>(), y.rows()->view<T>(),
                           options.threads);
  });
  return nb::make_tuple(sum.object(), y.object());
}

nb::tuple normalize_backward(const nb::object& x, const nb::object& dy, const nb::object& gain,
                             const nb::object& kind, const nb::object& groups, const nb::object& eps,
                             const nb::object& alpha, const nb::object& shift, const nb::object& parameters,
                             const nb::object& out, const nb::object& threads) {
  constexpr std::string_view who = "normalize_backward";
  const Options options(who, kind, groups, eps, alpha, shift, threads);
  const Array given(who, "x", x);
  const Array back(who, "dy", dy);
  back.expect_like(given, "x");
  const Array dx = result(who, out, given);
  const Array from = readable(given, {&dx}, false);
  const Array through = readable(back, {&dx}, true);
  const auto g = parameter(who, "gain", gain, from, {&dx});
  std::optional<Array> dgain;
  std::optional<Array> dbias;
  const bool wanted = flag("normalize_backward", "parameters", parameters);
  if (wanted) {
    const Element wide = from.element() == Element::float64 ? Element::float64 : Element::float32;
    dgain = from.empty(given.shape().last(1), wide);
    dbias = from.empty(given.shape().last(1), wide);
  }
  double dalpha = 0.0;
  double dshift = 0.0;
  const bool scalars = wanted && is_elementwise(options.kind);
  with_type(dx.element(), [&]<typename T>(T) {
    const nb::gil_scoped_release others_may_run;
    norm::Wide<T> of_alpha{};
    norm::Wide<T> of_shift{};
    norm::normalize_backward<T>(layer_of<T>(options, from, g, {}), from.rows()->view<const T>(),
                                through.rows()->view<const T>(), dx.rows()->view<T>(),
                                {entries<norm::Wide<T>>(dgain), entries<norm::Wide<T>>(dbias),
                                 scalars ? &of_alpha : nullptr, scalars ? &of_shift : nullptr},
                                options.threads);
    dalpha = of_alpha;
    dshift = of_shift;
  });
  if (!wanted) return nb::make_tuple(dx.object(), nb::none(), nb::none());
  if (scalars) return nb::make_tuple(dx.object(), dgain->object(), dbias->object(), dalpha, dshift);
  return nb::make_tuple(dx.object(), dgain->object(), dbias->object());
}

/// The layer as the functions in double want it.
NormSpec spec_of(const Options& options, const Array& x, const std::optional<Array>& gain) {
  const std::span<const double> gains = entries<const double>(gain);
  return {.kind = options.kind,
          .width = x.width(),
          .groups = options.groups,
          .eps = options.eps,
          .gain = {gains.begin(), gains.end()},
          .alpha = options.alpha,
          .shift = options.shift};
}

/// A vector a row, and what messages call it.
struct Vectors {
  std::string_view name;
  const nb::object& given;
};

/// `compute(spec, x, vectors..., out, threads)`, `out` apart from x, and from vectors that it is not itself.
template <std::size_t Count, typename Compute>
nb::object product(std::string_view who, const nb::object& x, const Vectors (&vectors)[Count],
                   const nb::object& gain, const Options& options, const nb::object& out,
                   const Compute& compute) {
  const Array given = Array(who, "x", x).converted(Element::float64);
  const Array to = result(who, out, given, "x in float64");
  const Array from = readable(given, {&to}, false);
  std::vector<Array> kept;
  std::array<MatrixView<const double>, Count> views;
  for (std::size_t i = 0; i < Count; ++i) {
    const Array vector = Array(who, vectors[i].name, vectors[i].given).converted(Element::float64);
    vector.expect_like(given, "x");
    kept.push_back(readable(vector, {&to}, true));
    views[i] = kept.back().rows()->view<const double>();
  }
  const NormSpec spec = spec_of(options, from, parameter(who, "gain", gain, from, {}));
  {
    const nb::gil_scoped_release others_may_run;
    const auto call = [&](const auto&... view) {
      compute(spec, from.rows()->view<const double>(), view..., to.rows()->view<double>(), options.threads);
    };
    std::apply(call, views);
  }
  return to.object();
}

nb::object jacobian_vector(const nb::object& x, const nb::object& v, const nb::object& gain,
                           const nb::object& kind, const nb::object& groups, const nb::object& eps,
                           const nb::object& alpha, const nb::object& shift, const nb::object& out,
                           const nb::object& threads) {
  constexpr std::string_view who = "jacobian_vector";
  const Options options(who, kind, groups, eps, alpha, shift, threads);
  return product(who, x, {{"v", v}}, gain, options, out, norm::jacobian_vector);
}

nb::object vector_jacobian(const nb::object& x, const nb::object& w, const nb::object& gain,
                           const nb::object& kind, const nb::object& groups, const nb::object& eps,
                           const nb::object& alpha, const nb::object& shift, const nb::object& out,
                           const nb::object& threads) {
  constexpr std::string_view who = "vector_jacobian";
  const Options options(who, kind, groups, eps, alpha, shift, threads);
  return product(who, x, {{"w", w}}, gain, options, out, norm::vector_jacobian);
}

nb::object hessian_vector(const nb::object& x, const nb::object& w, const nb::object& v,
                          const nb::object& gain, const nb::object& kind, const nb::object& groups,
                          const nb::object& eps, const nb::object& alpha, const nb::object& shift,
                          const nb::object& out, const nb::object& threads) {
  constexpr std::string_view who = "hessian_vector";
  const Options options(who, kind, groups, eps, alpha, shift, threads);
  return product(who, x, {{"w", w}, {"v", v}}, gain, options, out, norm::hessian_vector);
}

nb::object curvature(const nb::object& x, const nb::object& gain, const nb::object& kind,
                     const nb::object& groups, const nb::object& eps, const nb::object& alpha,
                     const nb::object& shift, const nb::object& threads) {
  constexpr std::string_view who = "curvature";
  const Options options(who, kind, groups, eps, alpha, shift, threads);
  const Array from = readable(Array(who, "x", x).converted(Element::float64), {}, false);
  const NormSpec spec = spec_of(options, from, parameter(who, "gain", gain, from, {}));
  std::vector<double> measures;
  {
    const nb::gil_scoped_release others_may_run;
    measures = norm::curvature(spec, from.rows()->view<const double>(), options.threads);
  }
  const std::array count{static_cast<std::ptrdiff_t>(measures.size())};
  const Array values = from.empty(count);
  std::copy(measures.begin(), measures.end(), reinterpret_cast<double*>(values.rows()->data));
  // A row's measure is a number, as where NumPy reduces the only axis.
  return values.object().attr("reshape")(to_tuple(from.shape().first(from.shape().size() - 1)))[nb::tuple()];
}

template <typename T>
T* pointer_to(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

using Address = std::optional<std::uintptr_t>;

/// Rows in memory, by address: what the torch modules pass, whose other checks are theirs.
///
/// Errors    ValueError for the address 0, which torch gives for a tensor without memory
struct RawRows {
  RawRows(std::uintptr_t from, std::size_t rows, std::size_t entries)
      : address(from), count(rows), width(entries) {
    if (address == 0 && count != 0 && width != 0) refuse_without_memory("a tensor");
  }

  [[noreturn]] static void refuse_without_memory(const char* name) {
    refuse(PyExc_ValueError, fmt::format("normalize: {} {}", name, no_memory));
  }

  std::uintptr_t address;
  std::size_t count;
  std::size_t width;

  template <typename T>
  [[nodiscard]] MatrixView<T> view() const {
    return {pointer_to<T>(address), count, width, width};
  }
};

template <typename T>
std::span<T> raw_entries(Address address, std::size_t width) {
  if (!address) return {};
  if (*address == 0 && width != 0) RawRows::refuse_without_memory("a parameter");
  return {pointer_to<T>(*address), width};
}

template <typename T>
norm::Layer<T> raw_layer(const std::string& kind, std::size_t width, std::size_t groups, double eps,
                         Address gain, Address bias, double alpha, double shift) {
  return {.kind = norm_kind(kind),
          .width = width,
          .groups = groups,
          .eps = eps,
          .gain = raw_entries<const norm::Wide<T>>(gain, width),
          .bias = raw_entries<const norm::Wide<T>>(bias, width),
          .alpha = alpha,
          .shift = shift};
}

void normalize_raw(int element, std::uintptr_t x, std::uintptr_t y, std::size_t rows, std::size_t width,
                   Address gain, Address bias, const std::string& kind, std::size_t groups, double eps,
                   double alpha, double shift, unsigned threads) {
  with_type(static_cast<Element>(element), [&]<typename T>(T) {
    const auto layer = raw_layer<T>(kind, width, groups, eps, gain, bias, alpha, shift);
    const RawRows from(x, rows, width);
    const RawRows to(y, rows, width);
    const nb::gil_scoped_release others_may_run;
    norm::normalize<T>(layer, from.view<const T>(), to.view<T>(), threads);
  });
}

/// (dalpha, dshift), which are 0 for kinds without these.
std::pair<double, double> normalize_backward_raw(int element, std::uintptr_t x, std::uintptr_t dy,
                                                 std::uintptr_t dx, std::size_t rows, std::size_t width,
                                                 Address gain, Address dgain, Address dbias,
                                                 const std::string& kind, std::size_t groups, double eps,
                                                 double alpha, double shift, unsigned threads) {
  return with_type(static_cast<Element>(element), [&]<typename T>(T) {
    const norm::Layer<T> layer = raw_layer<T>(kind, width, groups, eps, gain, {}, alpha, shift);
    const RawRows from(x, rows, width);
    const RawRows back(dy, rows, width);
    const RawRows to(dx, rows, width);
    const auto of_gain = raw_entries<norm::Wide<T>>(dgain, width);
    const auto of_bias = raw_entries<norm::Wide<T>>(dbias, width);
    const nb::gil_scoped_release others_may_run;
    norm::Wide<T> dalpha{};
    norm::Wide<T> dshift{};
    const bool scalars = is_elementwise(layer.kind);
    norm::normalize_backward<T>(layer, from.view<const T>(), back.view<const T>(), to.view<T>(),
                                {of_gain, of_bias, scalars ? &dalpha : nullptr, scalars ? &dshift : nullptr},
                                threads);
    return std::pair<double, double>(dalpha, dshift);
  });
}

}  // namespace

void define_kernels(nb::module_& module) {
  define(module, "normalize", &normalize);
  module.def("normalize_raw", &normalize_raw);
  module.def("normalize_backward_raw", &normalize_backward_raw);
  define(module, "add_normalize", &add_normalize);
  define(module, "normalize_backward", &normalize_backward);
  define(module, "jacobian_vector", &jacobian_vector);
  define(module, "vector_jacobian", &vector_jacobian);
  define(module, "hessian_vector", &hessian_vector);
  define(module, "curvature", &curvature);
}

}  // namespace normscope::python
