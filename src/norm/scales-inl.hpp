// Included once per instruction set: the scales of blocks, from their moments.

#if defined(NORMSCOPE_NORM_SCALES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_NORM_SCALES_INL
#undef NORMSCOPE_NORM_SCALES_INL
#else
#define NORMSCOPE_NORM_SCALES_INL
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "kernel_jobs.hpp"
#include "moments-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace normscope::norm::detail {
namespace HWY_NAMESPACE {

/// Largest number of vectors of a block that is measured together with others, and number of such blocks.
inline constexpr std::size_t short_vectors = 64;
inline constexpr std::size_t most_blocks = 16;

/// Coefficients of each block: ŷ = ((x − mean) − rest) · scale, or x · scale + shift if the mean is close to
/// zero; and with slopes, dx = scale · a − level − ŷ · tilt.
template <typename W>
struct Scales {
  W mean[most_blocks];
  W rest[most_blocks];
  W scale[most_blocks];
  W shift[most_blocks];
  W level[most_blocks];
  W tilt[most_blocks];
  double square[most_blocks];  ///< 1 / scale²
  double far[most_blocks];     ///< mean · scale
  std::uint32_t usual = 0;     ///< bit k: block k is in range and its mean is close to zero

  /// Whether the values of the block are within the range of W.
  [[nodiscard]] bool Ordinary(std::size_t k) const { return square[k] >= least && square[k] <= 1.0 / least; }
  [[nodiscard]] bool Near(std::size_t k) const { return std::abs(far[k]) <= nearest; }
  /// Whether all blocks in [first, first + count) are.
  [[nodiscard]] bool Usual(std::size_t first, std::size_t count) const {
    return (~usual >> first & ((1U << count) - 1)) == 0;
  }

  static constexpr double least = std::is_same_v<W, double> ? 0x1p-900 : 0x1p-100;
  static constexpr double nearest = 2.0;
};

/// Converts to single precision. Larger values become infinite, also where Highway saturates at the largest
/// number.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<float, D>> ToSingle(D d, hn::Vec<D> v) {
  const hn::Rebind<float, D> narrow;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  double from[hn::MaxLanes(d)];
  float to[hn::MaxLanes(d)];
  hn::StoreU(v, d, from);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) to[i] = static_cast<float>(from[i]);
  return hn::LoadU(narrow, to);
#else
  static_cast<void>(d);
  return hn::DemoteTo(narrow, v);
#endif
}

/// Bit i: lane i of a mask of at most 8.
template <class D>
HWY_INLINE std::uint32_t BitsOf(D d, hn::Mask<D> mask) {
  std::uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  return bits[0];
}

/// The scales of blocks [k, k + lanes of d); the mean is `base` + `offset`.
template <bool centers, bool slopes, class D, typename W>
HWY_INLINE void FindScales(D d, const BasicNorm<std::span<const W>>& layer, double n, hn::Vec<D> base,
                           hn::Vec<D> offset, hn::Vec<D> squares, hn::Vec<D> total, hn::Vec<D> along,
                           Scales<W>& to, std::size_t k) {
  const hn::Rebind<W, D> narrow;
  const auto round = [&](hn::Vec<D> v) NORMSCOPE_IN_PLACE {
    if constexpr (std::is_same_v<W, double>) return v;
    if constexpr (!std::is_same_v<W, double>) return ToSingle(d, v);
  };
  const auto rounded = [&](hn::Vec<D> v) NORMSCOPE_IN_PLACE {
    if constexpr (std::is_same_v<W, double>) return v;
    if constexpr (!std::is_same_v<W, double>) return hn::PromoteTo(d, ToSingle(d, v));
  };
  const auto put = [&](hn::Vec<D> v, W* at) NORMSCOPE_IN_PLACE { hn::StoreU(round(v), narrow, at + k); };
  const auto share = [&](hn::Vec<D> v) NORMSCOPE_IN_PLACE {
    if (facts(layer.kind).divisor == Divisor::length) return v;
    return std::is_same_v<W, double> ? hn::Div(v, hn::Set(d, n)) : hn::Mul(v, hn::Set(d, 1.0 / n));
  };
  const auto square = hn::Add(share(squares), hn::Set(d, layer.eps));
  const auto scale = hn::Div(hn::Set(d, 1.0), hn::Sqrt(square));
  put(scale, to.scale);
  hn::StoreU(square, d, to.square + k);
  if constexpr (slopes) {
    const auto along_deviations = centers ? hn::Sub(along, hn::Mul(offset, total)) : along;
    put(hn::Mul(scale, share(total)), to.level);
    put(hn::Mul(scale, hn::Mul(scale, share(along_deviations))), to.tilt);
  }
  const auto mean = hn::Add(base, offset);
  const auto far = hn::Mul(mean, scale);
  hn::StoreU(far, d, to.far + k);
  if constexpr (centers) {
    const auto moved = hn::Sub(mean, base);
    const auto lost = hn::Add(hn::Sub(base, hn::Sub(mean, moved)), hn::Sub(offset, moved));
    put(mean, to.mean);
    put(hn::Add(hn::Sub(mean, rounded(mean)), lost), to.rest);
    // Uses the rounded scale, so that its error multiplies x − mean and not x.
    put(hn::Neg(hn::Mul(mean, rounded(scale))), to.shift);
  } else {
    const auto none = hn::Zero(d);
    put(none, to.mean);
    put(none, to.rest);
    put(none, to.shift);
  }
  const auto in_range = hn::And(hn::Ge(square, hn::Set(d, Scales<W>::least)),
                                hn::Le(square, hn::Set(d, 1.0 / Scales<W>::least)));
  const auto usual = hn::And(in_range, hn::Le(hn::Abs(far), hn::Set(d, Scales<W>::nearest)));
  to.usual = (to.usual & ~(((1U << hn::Lanes(d)) - 1) << k)) | BitsOf(d, usual) << k;
}

/// The scales of one block, stored as entry k.
template <typename W>
HWY_NOINLINE void ScalesOf(const BasicNorm<std::span<const W>>& layer, const Run& block, Scales<W>& to,
                           std::size_t k) {
  const Moments& m = block.moments;
  const hn::CappedTag<double, 1> one;
  const auto set = [&](double value) NORMSCOPE_IN_PLACE { return hn::Set(one, value); };
  FindScales<true, true>(one, layer, m.count, set(block.base), set(m.offset), set(m.squares), set(m.total),
                         set(m.along), to, k);
}

/// The scales of a block of any length, computed from its entries.
template <bool centers, class D, class Source, typename W>
HWY_INLINE void LongScales(D d, const BasicNorm<std::span<const W>>& layer, const Source& x, std::size_t n,
                           Scales<W>& to, std::size_t k) {
  ScalesOf(layer, BlockMoments<centers>(d, x, n), to, k);
}

/// Columns [first, last) of a row; `first` starts a run.
template <bool centers, class D, class Source>
HWY_INLINE void MeasureColumns(D d, const Source& x, std::size_t first, std::size_t last, Run* runs) {
  const std::size_t run = run_vectors * hn::Lanes(d);
  for (std::size_t i = first; i < last; i += run) {
    runs[i / run] = RunMoments<centers>(d, x.From(i), std::min(run, last - i));
  }
}

/// Merges the runs of all rows.
template <class D, typename W>
HWY_NOINLINE void JoinColumns(D d, const BasicNorm<std::span<const W>>& layer, std::size_t rows,
                              ByColumns& columns) {
  const std::size_t run = run_vectors * hn::Lanes(d);
  columns.ordinary = true;
  for (std::size_t row = 0; row < rows; ++row) {
    Run* const runs = columns.runs + row * columns.stride;
    Cascade cascade(runs[0]);
    for (std::size_t i = run; i < layer.width; i += run) cascade.add(runs[i / run]);
    runs[0] = cascade.total();
    Scales<W> by;
    ScalesOf(layer, runs[0], by, 0);
    columns.ordinary = columns.ordinary && by.Ordinary(0);
  }
}

/// The sums of `Sums`, for several blocks.
template <typename W>
struct ManySums {
  W rest[most_blocks];
  W square[most_blocks];
  W total[most_blocks];
  W along[most_blocks];
};

/// A guess of the means of four blocks from x[q] on, exact for blocks of equal entries.
template <class Source, typename W>
HWY_INLINE void GuessMeans(const Source* x, std::size_t q, std::size_t count, std::size_t n, W* to) {
  const hn::CappedTag<W, 4> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto at = [&](std::size_t r)
                      NORMSCOPE_IN_PLACE -> const Source& { return x[q + r < count ? q + r : q]; };
  if (n < lanes) {
    for (std::size_t r = 0; r < 4; ++r) to[r] = hn::GetLane(at(r).Some(d, 0, n));
    return;
  }
  Totals(d, at(0).At(d, 0), at(1).At(d, 0), at(2).At(d, 0), at(3).At(d, 0), to);
  for (std::size_t r = 0; r < 4; ++r) to[r] *= W{1} / static_cast<W>(lanes);
}

/// Sums over the blocks [q, q + 4) of `count`; beyond the last, the first of the four is repeated.
template <bool centers, std::size_t ways, class D, class Source, typename W>
HWY_INLINE void FourSums(D d, const Source* x, std::size_t q, std::size_t count, std::size_t n,
                         const W* guess, ManySums<W>& to) {
  // Written out, because a constructor would be compiled for another instruction set.
  const Sums<D> none{hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  Sums<D> sums[4] = {none, none, none, none};
  Repeat<4>([&](auto r) NORMSCOPE_IN_PLACE {
    sums[r] = r == 0 || q + r < count ? SumsAbout<centers, ways>(d, x[q + r], n, guess[q + r]) : sums[0];
  });
  const auto totals = [&](auto member, W* to_sums) NORMSCOPE_IN_PLACE {
    Totals(d, sums[0].*member, sums[1].*member, sums[2].*member, sums[3].*member, to_sums + q);
  };
  totals(&Sums<D>::square, to.square);
  if constexpr (centers) totals(&Sums<D>::rest, to.rest);
  if constexpr (centers && Source::slopes) totals(&Sums<D>::total, to.total);
  if constexpr (Source::slopes) totals(&Sums<D>::along, to.along);
}

/// The scales of `count` short blocks, computed together step by step, because each is a long dependent chain
/// of a few operations. Every block is treated alike, whatever their number.
template <bool centers, class D, class Source, typename W>
HWY_INLINE void ShortScales(D d, const BasicNorm<std::span<const W>>& layer, const Source* x,
                            std::size_t count, std::size_t n, Scales<W>& to) {
  const double size = static_cast<double>(n);
  const std::size_t blocks = (count + 3) / 4 * 4;
  W guess[most_blocks];
  ManySums<W> sums;
  for (std::size_t q = 0; q < blocks && centers; q += 4) GuessMeans(x, q, count, n, guess + q);
  if (n <= hn::Lanes(d)) {
    for (std::size_t q = 0; q < blocks; q += 4) FourSums<centers, 1>(d, x, q, count, n, guess, sums);
  } else {
    for (std::size_t q = 0; q < blocks; q += 4) {
      FourSums<centers, usual_ways<Source>>(d, x, q, count, n, guess, sums);
    }
  }
  // Loads as many as were stored at once, so that store forwarding works.
  const hn::CappedTag<double, std::is_same_v<W, double> ? 2 : 4> wide;
  const hn::Rebind<W, decltype(wide)> narrow;
  const auto widen = [&](const W* from) NORMSCOPE_IN_PLACE {
    if constexpr (std::is_same_v<W, double>) return hn::LoadU(wide, from);
    if constexpr (!std::is_same_v<W, double>) return hn::PromoteTo(wide, hn::LoadU(narrow, from));
  };
  const auto none = hn::Zero(wide);
  // Decided for each block separately, so that neighbours do not influence how it is measured.
  std::uint32_t centred = centers ? 0 : ~0U;
  for (std::size_t k = 0; k < blocks; k += hn::Lanes(wide)) {
    auto base = none;
    auto offset = none;
    auto about = widen(sums.square + k);
    const auto total = centers && Source::slopes ? widen(sums.total + k) : none;
    const auto along = Source::slopes ? widen(sums.along + k) : none;
    if constexpr (centers) {
      base = widen(guess + k);
      const auto sum = widen(sums.rest + k);
      offset = std::is_same_v<W, double> ? hn::Div(sum, hn::Set(wide, size))
                                         : hn::Mul(sum, hn::Set(wide, 1.0 / size));
      const auto lost = hn::Mul(sum, offset);
      about = hn::Sub(about, lost);
      about = hn::IfThenElse(hn::Lt(about, none), none, about);
      centred |= BitsOf(wide, hn::Le(lost, hn::Mul(about, hn::Set(wide, most_off)))) << k;
    }
    FindScales<centers, Source::slopes>(wide, layer, size, base, offset, about, total, along, to, k);
  }
  const std::uint32_t others = ~centred & ((1U << count) - 1);
  for (std::size_t k = 0; others >> k != 0; ++k) {
    if ((others >> k & 1U) != 0) LongScales<centers>(d, layer, x[k], n, to, k);
  }
}

/// The scales of `count` blocks of any length.
template <bool centers, class D, class Source, typename W>
HWY_INLINE void MeasureAll(D d, const BasicNorm<std::span<const W>>& layer, const Source* x,
                           std::size_t count, std::size_t n, Scales<W>& to) {
  if (n <= short_vectors * hn::Lanes(d)) return ShortScales<centers>(d, layer, x, count, n, to);
  for (std::size_t k = 0; k < count; ++k) LongScales<centers>(d, layer, x[k], n, to, k);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::norm::detail
HWY_AFTER_NAMESPACE();

#endif
