// Arrays of vectors need vectors of a size known when compiling; HWY_WASM has none of float64, and SSSE3
// nothing over the plain ones that these loops would notice.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_WASM | HWY_SSSE3)

#include "kernel_jobs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "forward_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace normscope::norm::detail {
namespace HWY_NAMESPACE {

/// Moments of at most `run_vectors` vectors about `base`, which the first run chooses.
template <bool centers, class D, typename T>
HWY_INLINE Moments RunMoments(D d, const T* x, std::size_t n, bool first, double& base) {
  hn::Vec<D> square[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const double count = static_cast<double>(n);
  if constexpr (!centers) {
    Sweep<4>(
        n, hn::Lanes(d),
        [&](auto k, std::size_t i) NORMSCOPE_IN_PLACE {
          const auto v = Read(d, x + i);
          square[k] = hn::MulAdd(v, v, square[k]);
        },
        [&](std::size_t i, std::size_t some) NORMSCOPE_IN_PLACE {
          const auto v = ReadSome(d, x + i, some);
          square[3] = hn::MulAdd(v, v, square[3]);
        });
    return {count, 0.0, Total(d, square), 0.0, 0.0};
  }
  const auto rough = RoughMean(d, x, n);
  const auto mean = hn::Set(d, rough);
  hn::Vec<D> rest[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const auto add = [&](auto k, hn::Vec<D> deviation) NORMSCOPE_IN_PLACE {
    rest[k] = hn::Add(rest[k], deviation);
    square[k] = hn::MulAdd(deviation, deviation, square[k]);
  };
  Sweep<4>(
      n, hn::Lanes(d),
      [&](auto k, std::size_t i) NORMSCOPE_IN_PLACE { add(k, hn::Sub(Read(d, x + i), mean)); },
      [&](std::size_t i, std::size_t some) NORMSCOPE_IN_PLACE {
        add(std::integral_constant<std::size_t, 3>(),
            hn::IfThenElseZero(hn::FirstN(d, some), hn::Sub(ReadSome(d, x + i, some), mean)));
      });
  const double left = Total(d, rest);
  if (first) base = static_cast<double>(rough);
  // What is taken off is second order in the rounding of the mean: nothing cancels.
  const double rest_mean = Share<Wide<T>>(left, count);
  return {count, (static_cast<double>(rough) - base) + rest_mean,
          NotBelowZero(Total(d, square) - left * rest_mean), 0.0, 0.0};
}

/// The same, of a block that takes several runs; apart, so that short blocks have little code.
template <bool centers, class D, typename T>
HWY_NOINLINE Moments LongMoments(D d, const T* x, std::size_t n, double& base) {
  const std::size_t run = run_vectors * hn::Lanes(d);
  Cascade runs(RunMoments<centers>(d, x, run, true, base));
  for (std::size_t i = run; i < n; i += run) {
    runs.add(RunMoments<centers>(d, x + i, std::min(run, n - i), false, base));
  }
  return runs.total();
}

template <bool centers, class D, typename T>
HWY_INLINE Scale<Wide<T>> BlockScale(D d, const Layer<T>& layer, const T* x, std::size_t n) {
  double base = 0.0;
  const Moments m = n <= run_vectors * hn::Lanes(d) ? RunMoments<centers>(d, x, n, true, base)
                                                    : LongMoments<centers>(d, x, n, base);
  return ScaleOf(layer, base, m);
}

/// Entries of blocks that are worth holding together, and how many are.
inline constexpr std::size_t short_block = 512;
inline constexpr std::size_t most_held = 8;

/// Which parameters there are. `either` asks at each vector.
enum class Parameters { none, gain, both, either };

template <bool centers, Parameters there, class D, typename T>
HWY_INLINE void Apply(D d, const Scale<Wide<T>>& by, const T* x, const Wide<T>* gain, const Wide<T>* bias,
                      T* y, std::size_t n, bool stream) {
  const std::size_t lanes = hn::Lanes(d);
  const auto mean = hn::Set(d, by.mean);
  const auto rest = hn::Set(d, by.rest);
  const auto scale = hn::Set(d, by.scale);
  // One expression for whole and partial vectors: bits do not depend on where a row starts.
  const auto value = [&](auto v, const auto& parameter) NORMSCOPE_IN_PLACE {
    if constexpr (centers) v = hn::Sub(hn::Sub(v, mean), rest);
    v = hn::Mul(v, scale);
    if constexpr (there == Parameters::none) return v;
    if constexpr (there == Parameters::gain) return hn::Mul(v, parameter(gain));
    if constexpr (there == Parameters::both) return hn::MulAdd(v, parameter(gain), parameter(bias));
    if (gain != nullptr && bias != nullptr) return hn::MulAdd(v, parameter(gain), parameter(bias));
    if (gain != nullptr) return hn::Mul(v, parameter(gain));
    return bias != nullptr ? hn::Add(v, parameter(bias)) : v;
  };
  const auto some = [&](std::size_t i, std::size_t count) NORMSCOPE_IN_PLACE {
    const auto parameter = [&](const Wide<T>* p) NORMSCOPE_IN_PLACE { return ReadSome(d, p + i, count); };
    WriteSome(d, value(ReadSome(d, x + i, count), parameter), y + i, count);
  };
  const auto whole = [&](std::size_t i) NORMSCOPE_IN_PLACE {
    return value(Read(d, x + i), [&](const Wide<T>* p) NORMSCOPE_IN_PLACE { return hn::LoadU(d, p + i); });
  };
  std::size_t i = 0;
  if constexpr (there != Parameters::either) {
    const std::size_t unit = lanes * sizeof(T);
    const std::size_t behind = reinterpret_cast<std::uintptr_t>(y) % unit;
    if (stream && behind % sizeof(T) == 0) {
      i = behind == 0 ? 0 : std::min(n, (unit - behind) / sizeof(T));
      if (i != 0) some(0, i);
      for (; i + lanes <= n; i += lanes) WriteThrough(d, whole(i), y + i);
    }
  }
  for (; i + lanes <= n; i += lanes) Write(d, whole(i), y + i);
  if (i < n) some(i, n - i);
}

template <class D, typename T>
HWY_NOINLINE void AddRow(D d, const T* x, const T* residual, T* sum, std::size_t n) {
  Sweep<1>(
      n, hn::Lanes(d),
      [&](auto /*k*/, std::size_t i)
          NORMSCOPE_IN_PLACE { Write(d, hn::Add(Read(d, x + i), Read(d, residual + i)), sum + i); },
      [&](std::size_t i, std::size_t count) NORMSCOPE_IN_PLACE {
        WriteSome(d, hn::Add(ReadSome(d, x + i, count), ReadSome(d, residual + i, count)), sum + i, count);
      });
}

/// Short blocks on their way: scales of several are found side by side, since each is a long chain of few
/// operations.
template <typename T>
struct Held {
  const T* x;
  T* y;
  std::size_t begin;
};

template <bool centers, Parameters there, class D, typename T>
HWY_INLINE void Blocks(D d, const ForwardJob<T>& job, const Held<T>* held, std::size_t count) {
  const Layer<T>& layer = job.layer;
  const std::size_t n = layer.width / layer.groups;
  Scale<Wide<T>> by[most_held];
  for (std::size_t k = 0; k < count; ++k) by[k] = BlockScale<centers>(d, layer, held[k].x, n);
  for (std::size_t k = 0; k < count; ++k) {
    const Held<T>& at = held[k];
    if (!by[k].ordinary) {
      plain_forward(layer, at.begin, at.x, at.y);
      continue;
    }
    Apply<centers, there>(d, by[k], at.x, layer.gain.empty() ? nullptr : layer.gain.data() + at.begin,
                          layer.bias.empty() ? nullptr : layer.bias.data() + at.begin, at.y, n, job.stream);
  }
}

template <bool centers, Parameters there, class D, typename T>
HWY_NOINLINE void Rows(D d, const ForwardJob<T>& job, std::size_t first, std::size_t last) {
  const std::size_t width = job.layer.width;
  const std::size_t block = width / job.layer.groups;
  const std::size_t most = block <= short_block ? most_held : 1;
  Held<T> held[most_held];
  std::size_t count = 0;
  for (std::size_t row = first; row < last; ++row) {
    const T* x = job.x.data() + row * job.x.stride();
    T* const y = job.y.data() + row * job.y.stride();
    if (job.residual.data() != nullptr) {
      T* const sum = job.sum.data() + row * job.sum.stride();
      AddRow(hn::ScalableTag<Wide<T>>(), x, job.residual.data() + row * job.residual.stride(), sum, width);
      x = sum;
    }
    for (std::size_t begin = 0; begin < width; begin += block) {
      held[count++] = {x + begin, y + begin, begin};
      if (count < most && (row + 1 < last || begin + block < width)) continue;
      Blocks<centers, there>(d, job, held, count);
      count = 0;
    }
  }
}

template <bool centers, typename T>
HWY_INLINE void RowsOf(const ForwardJob<T>& job, std::size_t first, std::size_t last) {
  const bool gain = !job.layer.gain.empty();
  const bool bias = !job.layer.bias.empty();
  WithLanes<Wide<T>>(job.layer.width / job.layer.groups, [&](auto d) NORMSCOPE_IN_PLACE {
    if constexpr (std::is_same_v<decltype(d), hn::ScalableTag<Wide<T>>>) {
      if (gain && bias) return Rows<centers, Parameters::both>(d, job, first, last);
      if (gain) return Rows<centers, Parameters::gain>(d, job, first, last);
      if (!bias) return Rows<centers, Parameters::none>(d, job, first, last);
    }
    Rows<centers, Parameters::either>(d, job, first, last);
  });
}

template <typename T>
HWY_INLINE void AnyRows(const ForwardJob<T>& job, std::size_t first, std::size_t last) {
  if (job.layer.kind == NormKind::layer) return RowsOf<true>(job, first, last);
  return RowsOf<false>(job, first, last);
}

void ForwardF64(const ForwardJob<double>& job, std::size_t first, std::size_t last) {
  AnyRows(job, first, last);
}
void ForwardF32(const ForwardJob<float>& job, std::size_t first, std::size_t last) {
  AnyRows(job, first, last);
}
void ForwardBF16(const ForwardJob<Bfloat16>& job, std::size_t first, std::size_t last) {
  AnyRows(job, first, last);
}
void ForwardF16(const ForwardJob<Float16>& job, std::size_t first, std::size_t last) {
  AnyRows(job, first, last);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::norm::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope::norm::detail {

HWY_EXPORT(ForwardF64);
HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardBF16);
HWY_EXPORT(ForwardF16);

void forward_rows(const ForwardJob<double>& job, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(ForwardF64)(job, first, last);
}
void forward_rows(const ForwardJob<float>& job, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(ForwardF32)(job, first, last);
}
void forward_rows(const ForwardJob<Bfloat16>& job, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(ForwardBF16)(job, first, last);
}
void forward_rows(const ForwardJob<Float16>& job, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(ForwardF16)(job, first, last);
}

}  // namespace normscope::norm::detail
#endif
