// Included once an instruction set: elements in and out of vectors, sweeps over a row, and its scale.

#if defined(NORMSCOPE_NORM_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_NORM_ROWS_INL
#undef NORMSCOPE_NORM_ROWS_INL
#else
#define NORMSCOPE_NORM_ROWS_INL
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include "kernel_jobs.hpp"

// A lambda that captures vectors must become part of the loop that calls it.
#define NORMSCOPE_IN_PLACE __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace normscope::norm::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Vectors that one run of single-precision sums takes; longer ones go on in double.
inline constexpr std::size_t run_vectors = 128;

template <class D>
using Halves = hn::Rebind<std::uint16_t, D>;

template <class D>
HWY_INLINE hn::Vec<D> FromBits(D d, hn::Vec<Halves<D>> bits, Bfloat16 /*type*/) {
  const hn::RebindToUnsigned<D> words;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}

template <class D>
HWY_INLINE hn::Vec<D> FromBits(D d, hn::Vec<Halves<D>> bits, Float16 /*type*/) {
#if HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
#else
  const hn::RebindToUnsigned<D> words;
  const auto wide = hn::PromoteTo(words, bits);
  const auto size = hn::ShiftLeft<13>(hn::And(wide, hn::Set(words, 0x7FFFU)));
  // Subnormals come out right, too: the product is exact.
  const auto number = hn::BitCast(words, hn::Mul(hn::BitCast(d, size), hn::Set(d, 0x1p112F)));
  const auto beyond = hn::Ge(hn::BitCast(d, size), hn::BitCast(d, hn::Set(words, 0x0F800000U)));
  const auto infinite = hn::IfThenElseZero(hn::RebindMask(words, beyond), hn::Set(words, 0x7F800000U));
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(words, 0x8000U)));
  return hn::BitCast(d, hn::Or(hn::Or(number, infinite), sign));
#endif
}

template <class D>
HWY_INLINE hn::Vec<Halves<D>> Narrow(D /*d*/, hn::Vec<hn::RebindToUnsigned<D>> words) {
  return hn::DemoteTo(Halves<D>(), hn::BitCast(hn::RebindToSigned<D>(), words));
}

/// The upper half, to nearest, ties to even.
template <class D>
HWY_INLINE hn::Vec<Halves<D>> ToBits(D d, hn::Vec<D> v, Bfloat16 /*type*/) {
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::BitCast(words, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1U));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(words, 0x7FFFU)), odd);
  const auto quiet = hn::Or(bits, hn::Set(words, 0x00400000U));
  const auto number = hn::RebindMask(words, hn::Eq(v, v));
  return Narrow(d, hn::ShiftRight<16>(hn::IfThenElse(number, rounded, quiet)));
}

template <class D>
HWY_INLINE hn::Vec<Halves<D>> ToBits(D d, hn::Vec<D> v, Float16 /*type*/) {
#if HWY_TARGET <= HWY_AVX2
  return hn::BitCast(Halves<D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
#else
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::BitCast(words, v);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 0x8000U));
  const auto size = hn::Abs(v);
  const auto size_bits = hn::BitCast(words, size);
  const auto odd = hn::And(hn::ShiftRight<13>(size_bits), hn::Set(words, 1U));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Add(size_bits, hn::Set(words, 0xC8000FFFU)), odd));  // 15 − 127 << 23
  // A sum that leaves just the subnormal's bits below the point rounds as it should.
  const auto below =
      hn::Sub(hn::BitCast(words, hn::Add(size, hn::Set(d, 0.5F))), hn::Set(words, 0x3F000000U));
  const auto is = [&](auto mask) NORMSCOPE_IN_PLACE { return hn::RebindMask(words, mask); };
  auto half = hn::IfThenElse(is(hn::Lt(size, hn::Set(d, 0x1p-14F))), below, normal);
  half = hn::IfThenElse(is(hn::Ge(size, hn::Set(d, 65520.0F))), hn::Set(words, 0x7C00U), half);
  half = hn::IfThenElse(is(hn::Eq(v, v)), half, hn::Set(words, 0x7E00U));
  return Narrow(d, hn::Or(half, sign));
#endif
}

template <class D, typename T>
HWY_INLINE hn::Vec<D> Read(D d, const T* from) {
  if constexpr (std::is_floating_point_v<T>) {
    return hn::LoadU(d, from);
  } else {
    return FromBits(d, hn::LoadU(Halves<D>(), &from->bits), T{});
  }
}

template <class D, typename T>
HWY_INLINE void Write(D d, hn::Vec<D> v, T* to) {
  if constexpr (std::is_floating_point_v<T>) {
    hn::StoreU(v, d, to);
  } else {
    hn::StoreU(ToBits(d, v, T{}), Halves<D>(), &to->bits);
  }
}

/// Requires  `to` aligned to the vector as stored
template <class D, typename T>
HWY_INLINE void WriteThrough(D d, hn::Vec<D> v, T* to) {
  if constexpr (std::is_floating_point_v<T>) {
    hn::Stream(v, d, to);
  } else {
    hn::Stream(ToBits(d, v, T{}), Halves<D>(), &to->bits);
  }
}

/// The first `count` lanes, less than all; the others are zero, and nothing beyond is read.
template <class D, typename T>
HWY_INLINE hn::Vec<D> ReadSome(D d, const T* from, std::size_t count) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (std::is_floating_point_v<T>) {
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
  } else {
    const Halves<D> halves;
    return FromBits(d, hn::MaskedLoad(hn::FirstN(halves, count), halves, &from->bits), T{});
  }
#else
  T lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, from, count * sizeof(T));
  return Read(d, lanes);
#endif
}

template <class D, typename T>
HWY_INLINE void WriteSome(D d, hn::Vec<D> v, T* to, std::size_t count) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (std::is_floating_point_v<T>) {
    hn::BlendedStore(v, hn::FirstN(d, count), d, to);
  } else {
    const Halves<D> halves;
    hn::BlendedStore(ToBits(d, v, T{}), hn::FirstN(halves, count), halves, &to->bits);
  }
#else
  T lanes[hn::MaxLanes(d)];
  Write(d, v, lanes);
  std::memcpy(to, lanes, count * sizeof(T));
#endif
}

/// `body(k)` for k = 0 ... count − 1, each k known when compiling, so that what it indexes stays in
/// registers.
template <std::size_t count, class Body>
HWY_INLINE void Repeat(const Body& body) {
  if constexpr (count > 0) {
    Repeat<count - 1>(body);
    body(std::integral_constant<std::size_t, count - 1>());
  }
}

/// `whole(sum, i)` for each vector of n entries, with the sum of `sums` it goes to, then
/// `part(i, count)` for those that fill none. Sums are independent so that additions overlap.
template <std::size_t sums, class Whole, class Part>
HWY_INLINE void Sweep(std::size_t n, std::size_t lanes, const Whole& whole, const Part& part) {
  std::size_t i = 0;
  for (; i + sums * lanes <= n; i += sums * lanes) {
    Repeat<sums>([&](auto k) NORMSCOPE_IN_PLACE { whole(k, i + k * lanes); });
  }
  Repeat<sums - 1>([&](auto k) NORMSCOPE_IN_PLACE {
    if (i + lanes > n) return;
    whole(k, i);
    i += lanes;
  });
  if (i < n) part(i, n - i);
}

template <class D, std::size_t sums>
HWY_INLINE double Total(D d, const hn::Vec<D> (&sum)[sums]) {
  static_assert(sums == 2 || sums == 4);
  auto all = hn::Add(sum[0], sum[1]);
  if constexpr (sums == 4) all = hn::Add(all, hn::Add(sum[2], sum[3]));
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all)));
}

/// value / count; in single precision by a multiplication, whose rounding is lost there: short rows spend
/// their time on divisions, and this one is shared.
template <typename W>
HWY_INLINE double Share(double value, double count) {
  return std::is_same_v<W, double> ? value / count : value * (1.0 / count);
}

/// NaN stays, for `ordinary` to see.
HWY_INLINE double NotBelowZero(double value) { return value < 0.0 ? 0.0 : value; }

/// Mean of n entries as near as single sums get it.
template <class D, typename T>
HWY_INLINE hn::TFromD<D> RoughMean(D d, const T* x, std::size_t n) {
  hn::Vec<D> sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  Sweep<4>(
      n, hn::Lanes(d),
      [&](auto k, std::size_t i) NORMSCOPE_IN_PLACE { sum[k] = hn::Add(sum[k], Read(d, x + i)); },
      [&](std::size_t i, std::size_t count)
          NORMSCOPE_IN_PLACE { sum[3] = hn::Add(sum[3], ReadSome(d, x + i, count)); });
  return static_cast<hn::TFromD<D>>(Share<hn::TFromD<D>>(Total(d, sum), static_cast<double>(n)));
}

/// What a block's entries are taken by: y = ((x − mean) − rest) · scale. `ordinary` is false where that
/// would leave the range of W.
template <typename W>
struct Scale {
  W mean;
  W rest;
  W scale;
  bool ordinary;
};

/// base + offset is the mean.
template <typename T>
HWY_INLINE Scale<Wide<T>> ScaleOf(const Layer<T>& layer, double base, const Moments& m) {
  using W = Wide<T>;
  constexpr double least = std::is_same_v<W, double> ? 0x1p-900 : 0x1p-100;
  const double squares = layer.kind == NormKind::spherical ? m.squares : Share<W>(m.squares, m.count);
  const double square = squares + layer.eps;
  const double mean = base + m.offset;
  const double shift = mean - base;
  const double lost = (base - (mean - shift)) + (m.offset - shift);
  const W rounded = static_cast<W>(mean);
  return {rounded, static_cast<W>((mean - static_cast<double>(rounded)) + lost),
          static_cast<W>(1.0 / std::sqrt(square)), square >= least && square <= 1.0 / least};
}

/// `run(d)` with the vectors that suit blocks of `width`: narrow ones would be mostly padding.
template <typename W, class Run>
HWY_INLINE void WithLanes(std::size_t width, const Run& run) {
  const hn::ScalableTag<W> full;
  if (width >= hn::Lanes(full)) return run(full);
  return run(hn::CappedTag<W, 4>());
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::norm::detail
HWY_AFTER_NAMESPACE();

#endif
