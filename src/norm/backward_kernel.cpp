#include "kernel_jobs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backward_kernel.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <normscope/core/parallel.hpp>

#include "scales-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace normscope::norm::detail {
namespace HWY_NAMESPACE {

/// A block's entries and slopes; `dy` is multiplied by the gain.
template <typename T>
struct Sources : Entries<T> {
  static constexpr bool slopes = true;
  const T* dy;
  Parameter<Wide<T>> gain;

  [[nodiscard]] Sources From(std::size_t i) const { return {Entries<T>::From(i), dy + i, gain.From(i)}; }
  template <class D>
  HWY_INLINE hn::Vec<D> SlopeAt(D d, std::size_t i) const {
    return hn::Mul(Read(d, dy + i), hn::LoadU(d, gain.at + (i & gain.mask)));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> SomeSlopes(D d, std::size_t i, std::size_t count) const {
    return hn::Mul(ReadSome(d, dy + i, count), ReadSome(d, gain.at + (i & gain.mask), count));
  }
};

/// Whether the columns of `rows` rows of x and dx fall into the same sets of the first-level cache.
template <typename T>
HWY_INLINE bool Collide(const BackwardJob<T>& job, std::size_t row, std::size_t rows) {
  const T* const x = job.x.data() + row * job.x.stride();
  const T* const dx = job.dx.data() + row * job.dx.stride();
  return SameSets(x, x + (rows - 1) * job.x.stride()) && SameSets(dx, dx + (rows - 1) * job.dx.stride()) &&
         SameSets(x, dx);
}

/// Ways of the first-level cache from which on a set holds the lines of one column of four rows of x, dy and
/// dx.
inline constexpr std::size_t enough_ways = 12;

/// dx of the blocks of `rows` rows, column by column, so that the gradient sums are read and written once for
/// all rows. `collide`: through the caches they are stored tile by tile. `late`: a column is stored after all
/// its rows are loaded, because a load waits for a store whose address agrees in the lower 12 bits.
template <std::size_t rows, bool near, bool late = false, class D, typename T>
HWY_NOINLINE void Pull(D d, const BackwardJob<T>& job, std::size_t row, std::size_t begin, std::size_t n,
                       const Scales<Wide<T>>& by, std::size_t first, Shares<T> to, bool collide = false) {
  using W = Wide<T>;
  using V = hn::Vec<D>;
  const std::size_t lanes = hn::Lanes(d);
  const T* x[rows];
  const T* dy[rows];
  T* result[rows];
  T* dx[rows];
  V mean[rows];
  V rest[rows];
  V scale[rows];
  V level[rows];
  V tilt[rows];
  Repeat<rows>([&](auto r) NORMSCOPE_IN_PLACE {
    const std::size_t k = first + r;
    x[r] = job.x.data() + (row + r) * job.x.stride() + begin;
    dy[r] = job.dy.data() + (row + r) * job.dy.stride() + begin;
    result[r] = job.dx.data() + (row + r) * job.dx.stride() + begin;
    mean[r] = hn::Set(d, near ? by.shift[k] : by.mean[k]);
    rest[r] = hn::Set(d, by.rest[k]);
    scale[r] = hn::Set(d, by.scale[k]);
    level[r] = hn::Set(d, by.level[k]);
    tilt[r] = hn::Set(d, by.tilt[k]);
  });
  const auto gain = ParameterOr<W, 1>(job.layer.gain).From(begin);
  V of_gain = hn::Zero(d);
  V of_bias = hn::Zero(d);
  const auto step = [&](auto r, V v, V slope, V g) NORMSCOPE_IN_PLACE {
    if constexpr (near) v = hn::MulAdd(v, scale[r], mean[r]);
    if constexpr (!near) v = hn::Mul(hn::Sub(hn::Sub(v, mean[r]), rest[r]), scale[r]);
    of_gain = r == 0 ? hn::Mul(slope, v) : hn::MulAdd(slope, v, of_gain);
    of_bias = r == 0 ? slope : hn::Add(of_bias, slope);
    return hn::NegMulAdd(v, tilt[r], hn::MulSub(hn::Mul(slope, g), scale[r], level[r]));
  };
  const W* gain_at = gain.at;
  const auto some = [&](std::size_t i, std::size_t count) NORMSCOPE_IN_PLACE {
    const V g = ReadSome(d, gain_at, count);
    gain_at += count & gain.mask;
    Repeat<rows>([&](auto r) NORMSCOPE_IN_PLACE {
      const V v = ReadSome(d, x[r] + i, count);
      WriteSome(d, step(r, v, ReadSome(d, dy[r] + i, count), g), dx[r] + i, count);
    });
    if (to.gain == nullptr) return;
    W* const at_gain = to.gain + begin + i;
    W* const at_bias = to.bias + begin + i;
    WriteSome(d, hn::Add(ReadSome(d, at_gain, count), of_gain), at_gain, count);
    WriteSome(d, hn::Add(ReadSome(d, at_bias, count), of_bias), at_bias, count);
  };
  const bool last = row + 2 * rows > job.x.rows();
  const std::size_t ahead_x = last ? 0 : rows * job.x.stride();
  const std::size_t ahead_dy = last ? 0 : rows * job.dy.stride();
  const auto whole = [&](std::size_t i, auto way) NORMSCOPE_IN_PLACE {
    const V g = hn::LoadU(d, gain_at);
    gain_at += lanes & gain.mask;
    const auto write = [&](auto r, V v) NORMSCOPE_IN_PLACE {
      if constexpr (way.stream) {
        WriteThrough(d, v, dx[r] + i);
      } else {
        Write(d, v, dx[r] + i);
      }
    };
    V kept[rows];
    Repeat<rows>([&](auto r) NORMSCOPE_IN_PLACE {
      kept[r] = step(r, Read(d, x[r] + i), Read(d, dy[r] + i), g);
      if constexpr (way.fetch) {
        Fetch(x[r] + ahead_x, i, lanes);
        Fetch(dy[r] + ahead_dy, i, lanes);
      }
      if constexpr (!late) write(r, kept[r]);
    });
    if constexpr (late) Repeat<rows>([&](auto r) NORMSCOPE_IN_PLACE { write(r, kept[r]); });
    if (to.gain == nullptr) return;
    W* const at_gain = to.gain + begin + i;
    W* const at_bias = to.bias + begin + i;
    hn::StoreU(hn::Add(hn::LoadU(d, at_gain), of_gain), d, at_gain);
    hn::StoreU(hn::Add(hn::LoadU(d, at_bias), of_bias), d, at_bias);
  };
  const bool is_long = job.layer.width * sizeof(T) >= least_streamed;
  const bool stream = job.stream && (sizeof(T) > 2 || is_long);
  Columns(d, n, result, dx, !job.at_hand && is_long, stream, rows > 1 && !late && collide, some, whole);
}

/// dx of the blocks of `rows` rows with scales [first, first + rows) of `by`. The number of rows taken
/// together depends only on the layer, as the bits of the gradients do.
template <class D, typename T>
HWY_NOINLINE void PullAll(D d, const BackwardJob<T>& job, std::size_t row, std::size_t rows,
                          std::size_t begin, std::size_t n, const Scales<Wide<T>>& by, std::size_t first,
                          Shares<T> to) {
  const std::size_t together = RowsTogether<T>(job.layer.width / job.layer.groups);
  for (std::size_t r = 0; r < rows;) {
    const std::size_t k = first + r;
    if (r % together == 0 && r + together <= rows && by.Usual(k, together)) {
      // Rows of two bytes an entry leave enough of the ways: they take at most 1.13 times as long without.
      const bool collide = sizeof(T) > 2 && Collide(job, row + r, together);
      const auto pull = [&](auto count) NORMSCOPE_IN_PLACE {
        if (collide && first_cache_ways() >= enough_ways) {
          return Pull<count, true, true>(d, job, row + r, begin, n, by, k, to);
        }
        Pull<count, true>(d, job, row + r, begin, n, by, k, to, collide);
      };
      if (together == 4) {
        pull(std::integral_constant<std::size_t, 4>());
      } else {
        pull(std::integral_constant<std::size_t, 2>());
      }
      r += together;
      continue;
    }
    if (!by.Ordinary(k)) {
      const auto of = [&](auto matrix) { return matrix.data() + (row + r) * matrix.stride() + begin; };
      plain_backward<Stored<T>>(job.layer, begin, of(job.x), of(job.dy), of(job.dx), {to.gain, to.bias});
    } else if (by.Near(k)) {
      Pull<1, true>(d, job, row + r, begin, n, by, k, to);
    } else {
      Pull<1, false>(d, job, row + r, begin, n, by, k, to);
    }
    ++r;
  }
}

/// Processes rows by their blocks, several at a time; short blocks together with the blocks that follow them.
template <bool centers, class D, typename T>
HWY_NOINLINE void Rows(D d, const BackwardJob<T>& job, std::size_t first, std::size_t last, Shares<T> to) {
  const std::size_t width = job.layer.width;
  const std::size_t n = width / job.layer.groups;
  const bool is_short = n <= short_vectors * hn::Lanes(d);
  const std::size_t most = job.at_hand && n * sizeof(T) <= 1024 ? most_blocks : RowsTogether<T>(n);
  const auto gain = ParameterOr<Wide<T>, 1>(job.layer.gain);
  Sources<T> of[most_blocks];
  Scales<Wide<T>> by;
  for (std::size_t row = first; row < last; row += most) {
    const std::size_t rows = std::min(most, last - row);
    const std::size_t blocks = is_short ? std::min(most_blocks / rows, job.layer.groups) : 1;
    for (std::size_t begin = 0; begin < width; begin += blocks * n) {
      const std::size_t end = std::min(width, begin + blocks * n);
      std::size_t count = 0;
      for (std::size_t i = begin; i < end; i += n) {
        for (std::size_t r = row; r < row + rows; ++r) {
          of[count++] = {
              {job.x.data() + r * job.x.stride() + i}, job.dy.data() + r * job.dy.stride() + i, gain.From(i)};
        }
      }
      MeasureAll<centers>(d, job.layer, of, count, n, by);
      count = 0;
      for (std::size_t i = begin; i < end; i += n, count += rows) {
        PullAll(d, job, row, rows, i, n, by, count, to);
      }
    }
  }
}

/// One step over columns [first, last) of all rows. Rows are grouped as in `Rows`, so that the gradient sums
/// are the same.
template <bool centers, class D, typename T>
HWY_NOINLINE void LongColumns(D d, const BackwardJob<T>& job, std::size_t first, std::size_t last,
                              Shares<T> to) {
  ByColumns& columns = *job.columns;
  const std::size_t all = job.x.rows();
  if (columns.step == ByColumns::Step::join) return JoinColumns(d, job.layer, all, columns);
  if (columns.step == ByColumns::Step::measure) {
    const auto gain = ParameterOr<Wide<T>, 1>(job.layer.gain);
    for (std::size_t row = 0; row < all; ++row) {
      const Sources<T> of{{job.x.data() + row * job.x.stride()}, job.dy.data() + row * job.dy.stride(), gain};
      MeasureColumns<centers>(d, of, first, last, columns.runs + row * columns.stride);
    }
    return;
  }
  const std::size_t n = last - first;
  Scales<Wide<T>> by;
  for (std::size_t row = 0; row < all; row += 4) {
    const std::size_t rows = std::min<std::size_t>(4, all - row);
    for (std::size_t r = 0; r < rows; ++r) {
      ScalesOf(job.layer, columns.runs[(row + r) * columns.stride], by, r);
    }
    PullAll(d, job, row, rows, first, n, by, 0, to);
  }
}

template <bool centers, typename T>
HWY_INLINE void RowsOf(const BackwardJob<T>& job, std::size_t first, std::size_t last, Shares<T> to) {
  if (job.columns != nullptr) {
    return LongColumns<centers>(hn::ScalableTag<Wide<T>>(), job, first, last, to);
  }
  WithLanes<T>(job.layer.width / job.layer.groups,
               [&](auto d) NORMSCOPE_IN_PLACE { Rows<centers>(d, job, first, last, to); });
}

template <typename T>
HWY_INLINE void AnyRows(const BackwardJob<T>& job, std::size_t first, std::size_t last, Shares<T> to) {
  if (job.layer.centers()) {
    RowsOf<true>(job, first, last, to);
  } else {
    RowsOf<false>(job, first, last, to);
  }
  // Non-temporal stores are not ordered by another thread's acquire without a fence.
  if (job.stream) hwy::FlushStream();
}

void BackwardF64(const BackwardJob<double>& job, std::size_t first, std::size_t last, Shares<double> to) {
  AnyRows(job, first, last, to);
}
void BackwardF32(const BackwardJob<float>& job, std::size_t first, std::size_t last, Shares<float> to) {
  AnyRows(job, first, last, to);
}
void BackwardBF16(const BackwardJob<Bfloat16>& job, std::size_t first, std::size_t last,
                  Shares<Bfloat16> to) {
#if NORMSCOPE_ROUNDS_BFLOAT16
  if (RoundsBfloat16(job.layer)) {
    return AnyRows<FastBfloat16>(
        {job.layer, Fast(job.x), Fast(job.dy), Fast(job.dx), job.stream, job.at_hand, job.columns}, first,
        last, {to.gain, to.bias});
  }
#endif
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
