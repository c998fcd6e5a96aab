// As in forward_kernel.cpp.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_WASM | HWY_SSSE3)

#include "kernel_jobs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backward_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace normscope::norm::detail {
namespace HWY_NAMESPACE {

/// Vectors of a row's three sources, whole or in part; `gain` null for ones.
template <class D>
struct Entry {
  hn::Vec<D> x;
  hn::Vec<D> dy;
  hn::Vec<D> gain;
};

template <bool gains, class D, typename T>
HWY_INLINE Entry<D> EntryAt(D d, const T* x, const T* dy, const Wide<T>* gain, std::size_t i) {
  if constexpr (gains) return {Read(d, x + i), Read(d, dy + i), hn::LoadU(d, gain + i)};
  return {Read(d, x + i), Read(d, dy + i), hn::Zero(d)};
}

template <bool gains, class D, typename T>
HWY_INLINE Entry<D> EntryAt(D d, const T* x, const T* dy, const Wide<T>* gain, std::size_t i, std::size_t n) {
  if constexpr (gains) return {ReadSome(d, x + i, n), ReadSome(d, dy + i, n), ReadSome(d, gain + i, n)};
  return {ReadSome(d, x + i, n), ReadSome(d, dy + i, n), hn::Zero(d)};
}

/// Moments of at most `run_vectors` vectors about `base`, which the first run chooses.
template <bool centers, bool gains, class D, typename T>
HWY_NOINLINE Moments RunMoments(D d, const T* x, const T* dy, const Wide<T>* gain, std::size_t n, bool first,
                                double& base) {
  hn::TFromD<D> rough{};
  if constexpr (centers) rough = RoughMean(d, x, n);
  const auto mean = hn::Set(d, rough);
  hn::Vec<D> rest[2] = {hn::Zero(d), hn::Zero(d)};
  hn::Vec<D> square[2] = {hn::Zero(d), hn::Zero(d)};
  hn::Vec<D> total[2] = {hn::Zero(d), hn::Zero(d)};
  hn::Vec<D> along[2] = {hn::Zero(d), hn::Zero(d)};
  const auto add = [&](auto k, hn::Vec<D> deviation, hn::Vec<D> a) NORMSCOPE_IN_PLACE {
    if constexpr (centers) {
      rest[k] = hn::Add(rest[k], deviation);
      total[k] = hn::Add(total[k], a);
    }
    square[k] = hn::MulAdd(deviation, deviation, square[k]);
    along[k] = hn::MulAdd(a, deviation, along[k]);
  };
  const auto weighted = [&](const Entry<D>& e) NORMSCOPE_IN_PLACE {
    if constexpr (gains) return hn::Mul(e.dy, e.gain);
    return e.dy;
  };
  Sweep<2>(
      n, hn::Lanes(d),
      [&](auto k, std::size_t i) NORMSCOPE_IN_PLACE {
        const Entry<D> e = EntryAt<gains>(d, x, dy, gain, i);
        add(k, centers ? hn::Sub(e.x, mean) : e.x, weighted(e));
      },
      [&](std::size_t i, std::size_t some) NORMSCOPE_IN_PLACE {
        const Entry<D> e = EntryAt<gains>(d, x, dy, gain, i, some);
        add(std::integral_constant<std::size_t, 1>(),
            centers ? hn::IfThenElseZero(hn::FirstN(d, some), hn::Sub(e.x, mean)) : e.x, weighted(e));
      });
  const double count = static_cast<double>(n);
  const double squares = Total(d, square);
  if constexpr (!centers) return {count, 0.0, squares, 0.0, Total(d, along)};
  const double left = Total(d, rest);
  const double sum = Total(d, total);
  if (first) base = static_cast<double>(rough);
  const double shift = static_cast<double>(rough) - base;
  const double rest_mean = Share<Wide<T>>(left, count);
  return {count, shift + rest_mean, NotBelowZero(squares - left * rest_mean), sum,
          Total(d, along) + shift * sum};
}

/// dx = scale · a − shift − ŷ · tilt, ŷ the normalized entry.
template <typename W>
struct Pullback {
  Scale<W> by;
  W shift;
  W tilt;
};

template <bool centers, bool gains, class D, typename T>
HWY_NOINLINE Pullback<Wide<T>> PullbackOf(D d, const Layer<T>& layer, const T* x, const T* dy,
                                          const Wide<T>* gain, std::size_t n) {
  using W = Wide<T>;
  const std::size_t run = run_vectors * hn::Lanes(d);
  double base = 0.0;
  Moments m = RunMoments<centers, gains>(d, x, dy, gain, std::min(run, n), true, base);
  if (n > run) {
    Cascade runs(m);
    for (std::size_t i = run; i < n; i += run) {
      runs.add(RunMoments<centers, gains>(d, x + i, dy + i, gains ? gain + i : gain, std::min(run, n - i),
                                          false, base));
    }
    m = runs.total();
  }
  const double divisor = layer.kind == NormKind::spherical ? 1.0 : m.count;
  const double scale = 1.0 / std::sqrt(m.squares / divisor + layer.eps);
  const double along = centers ? m.along - m.offset * m.total : m.along;
  return {ScaleOf(layer, base, m), static_cast<W>(scale * m.total / divisor),
          static_cast<W>(scale * (scale * along / divisor))};
}

/// dx of `rows` rows' blocks, column by column, so that the shares are read and written once for all.
template <std::size_t rows, bool centers, bool gains, class D, typename T>
HWY_NOINLINE void Pull(D d, const BackwardJob<T>& job, std::size_t row, std::size_t begin, std::size_t n,
                       const Pullback<Wide<T>>* by, Shares<T> to) {
  const T* x[rows];
  const T* dy[rows];
  T* dx[rows];
  std::uintptr_t behind = 0;
  Repeat<rows>([&](auto r) NORMSCOPE_IN_PLACE {
    x[r] = job.x.data() + (row + r) * job.x.stride() + begin;
    dy[r] = job.dy.data() + (row + r) * job.dy.stride() + begin;
    dx[r] = job.dx.data() + (row + r) * job.dx.stride() + begin;
    behind |= reinterpret_cast<std::uintptr_t>(dx[r]) % (hn::Lanes(d) * sizeof(T));
  });
  const Wide<T>* const gain = gains ? job.layer.gain.data() + begin : nullptr;
  struct Sums {
    hn::Vec<D> gain;
    hn::Vec<D> bias;
  };
  hn::Vec<D> mean[rows];
  hn::Vec<D> rest[rows];
  hn::Vec<D> scale[rows];
  hn::Vec<D> shift[rows];
  hn::Vec<D> tilt[rows];
  Repeat<rows>([&](auto r) NORMSCOPE_IN_PLACE {
    mean[r] = hn::Set(d, by[r].by.mean);
    rest[r] = hn::Set(d, by[r].by.rest);
    scale[r] = hn::Set(d, by[r].by.scale);
    shift[r] = hn::Set(d, by[r].shift);
    tilt[r] = hn::Set(d, by[r].tilt);
  });
  const auto step = [&](auto r, const Entry<D>& e, Sums& sums) NORMSCOPE_IN_PLACE {
    auto z = e.x;
    if constexpr (centers) z = hn::Sub(hn::Sub(z, mean[r]), rest[r]);
    const auto normalized = hn::Mul(z, scale[r]);
    sums.gain = r == 0 ? hn::Mul(e.dy, normalized) : hn::MulAdd(e.dy, normalized, sums.gain);
    sums.bias = r == 0 ? e.dy : hn::Add(sums.bias, e.dy);
    auto a = e.dy;
    if constexpr (gains) a = hn::Mul(a, e.gain);
    const auto level = centers ? hn::MulSub(a, scale[r], shift[r]) : hn::Mul(a, scale[r]);
    return hn::NegMulAdd(normalized, tilt[r], level);
  };
  const auto column = [&](std::size_t i, auto stream) NORMSCOPE_IN_PLACE {
    Sums sums{hn::Zero(d), hn::Zero(d)};
    Repeat<rows>([&](auto r) NORMSCOPE_IN_PLACE {
      const auto v = step(r, EntryAt<gains>(d, x[r], dy[r], gain, i), sums);
      if constexpr (stream) {
        WriteThrough(d, v, dx[r] + i);
      } else {
        Write(d, v, dx[r] + i);
      }
    });
    if (to.gain != nullptr) {
      Wide<T>* const g = to.gain + begin + i;
      Wide<T>* const b = to.bias + begin + i;
      hn::StoreU(hn::Add(hn::LoadU(d, g), sums.gain), d, g);
      hn::StoreU(hn::Add(hn::LoadU(d, b), sums.bias), d, b);
    }
  };
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if constexpr (std::is_same_v<D, hn::ScalableTag<Wide<T>>>) {
    if (job.stream && behind == 0) {
      for (; i + lanes <= n; i += lanes) column(i, std::true_type());
    }
  }
  for (; i + lanes <= n; i += lanes) column(i, std::false_type());
  if (i == n) return;
  const std::size_t some = n - i;
  Sums sums{hn::Zero(d), hn::Zero(d)};
  Repeat<rows>([&](auto r) NORMSCOPE_IN_PLACE {
    WriteSome(d, step(r, EntryAt<gains>(d, x[r], dy[r], gain, i, some), sums), dx[r] + i, some);
  });
  if (to.gain != nullptr) {
    Wide<T>* const g = to.gain + begin + i;
    Wide<T>* const b = to.bias + begin + i;
    WriteSome(d, hn::Add(ReadSome(d, g, some), sums.gain), g, some);
    WriteSome(d, hn::Add(ReadSome(d, b, some), sums.bias), b, some);
  }
}

template <std::size_t rows, bool centers, bool gains, class D, typename T>
HWY_NOINLINE void Group(D d, const BackwardJob<T>& job, std::size_t row, Shares<T> to) {
  const std::size_t n = job.layer.width / job.layer.groups;
  for (std::size_t begin = 0; begin < job.layer.width; begin += n) {
    Pullback<Wide<T>> by[rows];
    bool ordinary = true;
    for (std::size_t r = 0; r < rows; ++r) {
      by[r] = PullbackOf<centers, gains>(d, job.layer, job.x.data() + (row + r) * job.x.stride() + begin,
                                         job.dy.data() + (row + r) * job.dy.stride() + begin,
                                         gains ? job.layer.gain.data() + begin : nullptr, n);
      ordinary = ordinary && by[r].by.ordinary;
    }
    if (ordinary) {
      Pull<rows, centers, gains>(d, job, row, begin, n, by, to);
      continue;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      if (by[r].by.ordinary) {
        Pull<1, centers, gains>(d, job, row + r, begin, n, by + r, to);
      } else {
        plain_backward(job.layer, begin, job.x.data() + (row + r) * job.x.stride() + begin,
                       job.dy.data() + (row + r) * job.dy.stride() + begin,
                       job.dx.data() + (row + r) * job.dx.stride() + begin, to);
      }
    }
  }
}

template <bool centers, bool gains, typename T>
HWY_INLINE void RowsOf(const BackwardJob<T>& job, std::size_t first, std::size_t last, Shares<T> to) {
  WithLanes<Wide<T>>(job.layer.width / job.layer.groups, [&](auto d) NORMSCOPE_IN_PLACE {
    std::size_t row = first;
    for (; row + 4 <= last; row += 4) Group<4, centers, gains>(d, job, row, to);
    for (; row < last; ++row) Group<1, centers, gains>(d, job, row, to);
  });
}

template <bool centers, typename T>
HWY_INLINE void RowsWith(const BackwardJob<T>& job, std::size_t first, std::size_t last, Shares<T> to) {
  if (!job.layer.gain.empty()) return RowsOf<centers, true>(job, first, last, to);
  return RowsOf<centers, false>(job, first, last, to);
}

template <typename T>
HWY_INLINE void AnyRows(const BackwardJob<T>& job, std::size_t first, std::size_t last, Shares<T> to) {
  if (job.layer.kind == NormKind::layer) return RowsWith<true>(job, first, last, to);
  return RowsWith<false>(job, first, last, to);
}

void BackwardF64(const BackwardJob<double>& job, std::size_t first, std::size_t last, Shares<double> to) {
  AnyRows(job, first, last, to);
}
void BackwardF32(const BackwardJob<float>& job, std::size_t first, std::size_t last, Shares<float> to) {
  AnyRows(job, first, last, to);
}
void BackwardBF16(const BackwardJob<Bfloat16>& job, std::size_t first, std::size_t last,
                  Shares<Bfloat16> to) {
  AnyRows(job, first, last, to);
}
void BackwardF16(const BackwardJob<Float16>& job, std::size_t first, std::size_t last, Shares<Float16> to) {
  AnyRows(job, first, last, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::norm::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope::norm::detail {

HWY_EXPORT(BackwardF64);
HWY_EXPORT(BackwardF32);
HWY_EXPORT(BackwardBF16);
HWY_EXPORT(BackwardF16);

void backward_rows(const BackwardJob<double>& job, std::size_t first, std::size_t last, Shares<double> to) {
  HWY_DYNAMIC_DISPATCH(BackwardF64)(job, first, last, to);
}
void backward_rows(const BackwardJob<float>& job, std::size_t first, std::size_t last, Shares<float> to) {
  HWY_DYNAMIC_DISPATCH(BackwardF32)(job, first, last, to);
}
void backward_rows(const BackwardJob<Bfloat16>& job, std::size_t first, std::size_t last,
                   Shares<Bfloat16> to) {
  HWY_DYNAMIC_DISPATCH(BackwardBF16)(job, first, last, to);
}
void backward_rows(const BackwardJob<Float16>& job, std::size_t first, std::size_t last, Shares<Float16> to) {
  HWY_DYNAMIC_DISPATCH(BackwardF16)(job, first, last, to);
}

}  // namespace normscope::norm::detail
#endif
