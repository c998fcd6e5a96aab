#include "kernel_jobs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "forward_kernel.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "scales-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace normscope::norm::detail {
namespace HWY_NAMESPACE {

/// The input without a residual.
template <typename T>
MatrixView<const T> Normalized(const ForwardJob<T>& job) {
  if (job.residual.data() == nullptr) return job.x;
  return job.sum;
}

/// Stores sum = x + residual for n entries of a row from `begin` on, if there is a residual; returns the
/// start of the values to normalize.
template <typename T>
HWY_INLINE const T* Summed(const ForwardJob<T>& job, std::size_t row, std::size_t begin, std::size_t n) {
  const T* const x = job.x.data() + row * job.x.stride() + begin;
  if (job.residual.data() == nullptr) return x;
  const hn::ScalableTag<Wide<T>> d;
  const T* const residual = job.residual.data() + row * job.residual.stride() + begin;
  T* const sum = job.sum.data() + row * job.sum.stride() + begin;
  Sweep<4>(
      n, hn::Lanes(d),
      [&](auto /*k*/, std::size_t i)
          NORMSCOPE_IN_PLACE { Write(d, hn::Add(Read(d, x + i), Read(d, residual + i)), sum + i); },
      [&](std::size_t i, std::size_t count) NORMSCOPE_IN_PLACE {
        WriteSome(d, hn::Add(ReadSome(d, x + i, count), ReadSome(d, residual + i, count)), sum + i, count);
      });
  return sum;
}

/// Blocks to be normalized.
template <typename T>
struct Blocks {
  Entries<T> x[most_blocks];
  T* y[most_blocks];
  std::size_t begin[most_blocks];
  Scales<Wide<T>> by;
};

/// y of blocks [first, first + blocks), column by column, so that parameters are read once for all blocks.
template <std::size_t blocks, bool near, class D, typename T>
HWY_NOINLINE void Apply(D d, const ForwardJob<T>& job, const Blocks<T>& of, std::size_t first, std::size_t n,
                        std::size_t ahead) {
  using W = Wide<T>;
  using V = hn::Vec<D>;
  const std::size_t lanes = hn::Lanes(d);
  const auto gain = ParameterOr<W, 1>(job.layer.gain).From(of.begin[first]);
  const auto bias = ParameterOr<W, 0>(job.layer.bias).From(of.begin[first]);
  V mean[blocks];
  V rest[blocks];
  V scale[blocks];
  const T* x[blocks];
  T* result[blocks];
  T* y[blocks];
  Repeat<blocks>([&](auto r) NORMSCOPE_IN_PLACE {
    const std::size_t k = first + r;
    mean[r] = hn::Set(d, near ? of.by.shift[k] : of.by.mean[k]);
    rest[r] = hn::Set(d, of.by.rest[k]);
    scale[r] = hn::Set(d, of.by.scale[k]);
    x[r] = of.x[k].x;
    result[r] = of.y[k];
  });
  // One expression serves full and partial vectors: bits do not depend on where a row starts.
  const auto value = [&](auto r, V v, V g, V b) NORMSCOPE_IN_PLACE {
    if constexpr (near) v = hn::MulAdd(v, scale[r], mean[r]);
    if constexpr (!near) v = hn::Mul(hn::Sub(hn::Sub(v, mean[r]), rest[r]), scale[r]);
    return hn::MulAdd(v, g, b);
  };
  const W* gain_at = gain.at;
  const W* bias_at = bias.at;
  const auto some = [&](std::size_t i, std::size_t count) NORMSCOPE_IN_PLACE {
    const V g = ReadSome(d, gain_at, count);
    gain_at += count & gain.mask;
    const V b = ReadSome(d, bias_at, count);
    bias_at += count & bias.mask;
    Repeat<blocks>([&](auto r) NORMSCOPE_IN_PLACE {
      WriteSome(d, value(r, ReadSome(d, x[r] + i, count), g, b), y[r] + i, count);
    });
  };
  const auto whole = [&](std::size_t i, auto way) NORMSCOPE_IN_PLACE {
    const V g = hn::LoadU(d, gain_at);
    const V b = hn::LoadU(d, bias_at);
    gain_at += lanes & gain.mask;
    bias_at += lanes & bias.mask;
    Repeat<blocks>([&](auto r) NORMSCOPE_IN_PLACE {
      const V v = value(r, Read(d, x[r] + i), g, b);
      if constexpr (way.fetch) Fetch(x[r] + ahead, i, lanes);
      if constexpr (way.stream) {
        WriteThrough(d, v, y[r] + i);
      } else {
        Write(d, v, y[r] + i);
      }
    });
  };
  const bool stream = job.stream && job.layer.width * sizeof(T) >= least_streamed;
  Columns(d, n, result, y, ahead != 0, stream, false, some, whole);
}

/// y of block k.
template <class D, typename T>
HWY_NOINLINE void ApplyOne(D d, const ForwardJob<T>& job, const Blocks<T>& of, std::size_t k, std::size_t n,
                           std::size_t ahead) {
  if (!of.by.Ordinary(k)) {
    return plain_forward<Stored<T>>(job.layer, of.begin[k], of.x[k].x, of.y[k]);
  }
  if (of.by.Near(k)) return Apply<1, true>(d, job, of, k, n, ahead);
  Apply<1, false>(d, job, of, k, n, ahead);
}

/// y of `count` blocks, `together` at a time if as many rows have the same columns.
template <class D, typename T>
HWY_INLINE void ApplyAll(D d, const ForwardJob<T>& job, const Blocks<T>& of, std::size_t count,
                         std::size_t together, std::size_t n, std::size_t ahead) {
  for (std::size_t k = 0; k < count;) {
    if (together == 1 || k + together > count || of.begin[k] != of.begin[k + together - 1] ||
        !of.by.Usual(k, together)) {
      ApplyOne(d, job, of, k++, n, ahead);
      continue;
    }
    if (together == 4) {
      Apply<4, true>(d, job, of, k, n, ahead);
    } else {
      Apply<2, true>(d, job, of, k, n, ahead);
    }
    k += together;
  }
}

/// How many rows are measured before they are normalized, how many of these together, and whether the
/// following ones are prefetched.
struct Order {
  std::size_t most;
  std::size_t together;
  bool asks;
};

template <typename T>
Order OrderOf(const ForwardJob<T>& job, std::size_t n, bool is_short) {
  const std::size_t bytes = n * sizeof(T);
  const std::size_t together =
      std::min(RowsTogether<T>(Normalized(job).stride()), RowsTogether<T>(job.y.stride()));
  if (!is_short) return {together, together, false};
  if (job.at_hand) return {bytes <= 2048 && together == 4 ? most_blocks : 4, together, false};
  const bool asks = job.layer.width * sizeof(T) >= least_streamed;
  if (job.layer.groups > 1) return {4, !job.stream || bytes < 1024 ? together : 1, asks};
  // The next row is read while this one is written; for shorter rows the cost of separate scales is higher.
  return {bytes >= 3072 ? std::size_t{1} : 4, 1, asks};
}

/// Processes rows by their blocks, several at a time; short blocks together with the blocks that follow them.
template <bool centers, class D, typename T>
HWY_NOINLINE void Rows(D d, const ForwardJob<T>& job, std::size_t first, std::size_t last) {
  const std::size_t width = job.layer.width;
  const std::size_t n = width / job.layer.groups;
  const bool is_short = n <= short_vectors * hn::Lanes(d);
  const auto [most, together, asks] = OrderOf(job, n, is_short);
  Blocks<T> now;
  std::size_t count = 0;
  for (std::size_t row = first; row < last; row += most) {
    const std::size_t rows = std::min(most, last - row);
    const std::size_t ahead = asks && row + 2 * most <= last ? most * Normalized(job).stride() : 0;
    const T* x[most_blocks];
    for (std::size_t k = 0; k < rows; ++k) x[k] = Summed(job, row + k, 0, width);
    for (std::size_t begin = 0; begin < width; begin += n) {
      for (std::size_t k = 0; k < rows; ++k) {
        now.x[count] = {x[k] + begin};
        now.y[count] = job.y.data() + (row + k) * job.y.stride() + begin;
        now.begin[count++] = begin;
      }
      if (is_short && count + rows <= most_blocks && begin + n < width) continue;
      MeasureAll<centers>(d, job.layer, now.x, count, n, now.by);
      ApplyAll(d, job, now, count, together, n, ahead);
      count = 0;
    }
  }
}

/// One step over columns [first, last) of all rows.
template <bool centers, class D, typename T>
HWY_NOINLINE void LongColumns(D d, const ForwardJob<T>& job, std::size_t first, std::size_t last) {
  ByColumns& columns = *job.columns;
  if (columns.step == ByColumns::Step::join) return JoinColumns(d, job.layer, job.x.rows(), columns);
  const MatrixView<const T> x = Normalized(job);
  Blocks<T> now;
  for (std::size_t row = 0; row < x.rows(); ++row) {
    Run* const runs = columns.runs + row * columns.stride;
    now.x[0] = {x.data() + row * x.stride()};
    if (columns.step == ByColumns::Step::measure) {
      Summed(job, row, first, last - first);
      MeasureColumns<centers>(d, now.x[0], first, last, runs);
      continue;
    }
    now.x[0] = now.x[0].From(first);
    now.y[0] = job.y.data() + row * job.y.stride() + first;
    now.begin[0] = first;
    ScalesOf(job.layer, runs[0], now.by, 0);
    ApplyOne(d, job, now, 0, last - first, 0);
  }
}

template <bool centers, typename T>
HWY_INLINE void RowsOf(const ForwardJob<T>& job, std::size_t first, std::size_t last) {
  if (job.columns != nullptr) return LongColumns<centers>(hn::ScalableTag<Wide<T>>(), job, first, last);
  const std::size_t n = job.layer.width / job.layer.groups;
  WithLanes<T>(n, [&](auto d) NORMSCOPE_IN_PLACE { Rows<centers>(d, job, first, last); });
}

template <typename T>
HWY_INLINE void AnyRows(const ForwardJob<T>& job, std::size_t first, std::size_t last) {
  if (job.layer.centers()) {
    RowsOf<true>(job, first, last);
  } else {
    RowsOf<false>(job, first, last);
  }
  // Non-temporal stores are not ordered by another thread's acquire without a fence.
  if (job.stream) hwy::FlushStream();
}

void ForwardF64(const ForwardJob<double>& job, std::size_t first, std::size_t last) {
  AnyRows(job, first, last);
}
void ForwardF32(const ForwardJob<float>& job, std::size_t first, std::size_t last) {
  AnyRows(job, first, last);
}
void ForwardBF16(const ForwardJob<Bfloat16>& job, std::size_t first, std::size_t last) {
#if NORMSCOPE_ROUNDS_BFLOAT16
  if (RoundsBfloat16(job.layer)) {
    return AnyRows(ForwardJob<FastBfloat16>{job.layer, Fast(job.x), Fast(job.residual), Fast(job.sum),
                                            Fast(job.y), job.stream, job.at_hand, job.columns},
                   first, last);
  }
#endif
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
