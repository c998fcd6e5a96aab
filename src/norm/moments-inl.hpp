// Included once per instruction set: sums over blocks of a row, and their moments.

#if defined(NORMSCOPE_NORM_MOMENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_NORM_MOMENTS_INL
#undef NORMSCOPE_NORM_MOMENTS_INL
#else
#define NORMSCOPE_NORM_MOMENTS_INL
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "elements-inl.hpp"
#include "kernel_jobs.hpp"

HWY_BEFORE_NAMESPACE();
namespace normscope::norm::detail {
namespace HWY_NAMESPACE {

/// Vectors that a run sums in W; longer blocks merge runs in double.
inline constexpr std::size_t run_vectors = 128;

/// Calls `body(k)` for k = 0 ... count − 1 with each k a compile-time constant, so that indexed values stay
/// in registers.
template <std::size_t count, class Body>
HWY_INLINE void Repeat(const Body& body) {
  if constexpr (count > 0) {
    Repeat<count - 1>(body);
    body(std::integral_constant<std::size_t, count - 1>());
  }
}

/// Calls `whole(sum, i)` for each full vector of n entries, with the index of one of `sums` independent sums,
/// then `part(i, count)` for the rest. Independent sums let additions overlap.
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

#if HWY_TARGET != HWY_SCALAR
/// The sum of the 128-bit parts of a vector.
template <class D>
HWY_INLINE auto Folded(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return Folded(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}
#endif

/// The sum of each of four vectors, all added in the same order.
template <class D>
HWY_INLINE void Totals(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e, hn::TFromD<D>* to) {
#if HWY_TARGET == HWY_SCALAR
  const hn::TFromD<D> all[4] = {hn::GetLane(a), hn::GetLane(b), hn::GetLane(c), hn::GetLane(e)};
  std::copy_n(all, 4, to);
  static_cast<void>(d);
#else
  const hn::CappedTag<hn::TFromD<D>, 16 / sizeof(hn::TFromD<D>)> least;
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  if constexpr (hn::MaxLanes(least) == 4) {
    const hn::Repartition<double, D> pairs;
    const auto of_ab = hn::BitCast(pairs, ab);
    const auto of_ce = hn::BitCast(pairs, ce);
    const auto all = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, of_ab, of_ce)),
                             hn::BitCast(d, hn::InterleaveUpper(pairs, of_ab, of_ce)));
    hn::StoreU(Folded(d, all), least, to);
  } else {
    hn::StoreU(Folded(d, ab), least, to);
    hn::StoreU(Folded(d, ce), least, to + 2);
  }
#endif
}

template <class D>
HWY_INLINE double Total(D d, hn::Vec<D> v) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v)));
}

/// value / count. In single precision this multiplies by the reciprocal, whose rounding is negligible there,
/// because divisions dominate the time of short rows.
template <typename W>
HWY_INLINE double Share(double value, double count) {
  return std::is_same_v<W, double> ? value / count : value * (1.0 / count);
}

/// Keeps NaN, for `ordinary` to detect.
HWY_INLINE double NotBelowZero(double value) { return value < 0.0 ? 0.0 : value; }

/// Largest squared distance of a guess from the mean, in variances.
inline constexpr double most_off = 4.0;

/// Whether sums about a guess of the mean are as accurate as sums about the mean: the correction for the
/// guess is subtracted from the squares and must not be most of them.
HWY_INLINE bool Centred(double offset, double squares, double count) {
  return offset * offset * count <= most_off * squares;
}

/// A block's entries.
template <typename T>
struct Entries {
  static constexpr bool slopes = false;
  const T* x;

  [[nodiscard]] Entries From(std::size_t i) const { return {x + i}; }
  template <class D>
  HWY_INLINE hn::Vec<D> At(D d, std::size_t i) const {
    return Read(d, x + i);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Some(D d, std::size_t i, std::size_t count) const {
    return ReadSome(d, x + i, count);
  }
};

/// Sums over a block's deviations d from a guess of its mean and, if a source has slopes, over a = g · dy.
template <class D>
struct Sums {
  hn::Vec<D> rest;    ///< Σ d
  hn::Vec<D> square;  ///< Σ d²
  hn::Vec<D> total;   ///< Σ a
  hn::Vec<D> along;   ///< Σ a d
};

/// Number of independent copies of each sum, so that additions overlap.
template <class Source>
inline constexpr std::size_t usual_ways = Source::slopes ? 2 : 4;

template <bool centers, std::size_t ways, class D, class Source>
HWY_INLINE Sums<D> SumsAbout(D d, const Source& x, std::size_t n, hn::TFromD<D> guess) {
  using V = hn::Vec<D>;
  const V mean = hn::Set(d, guess);
  V rest[ways];
  V square[ways];
  V total[ways];
  V along[ways];
  Repeat<ways>([&](auto k) NORMSCOPE_IN_PLACE {
    rest[k] = hn::Zero(d);
    square[k] = hn::Zero(d);
    total[k] = hn::Zero(d);
    along[k] = hn::Zero(d);
  });
  const auto add = [&](auto k, V deviation) NORMSCOPE_IN_PLACE {
    if constexpr (centers) rest[k] = hn::Add(rest[k], deviation);
    square[k] = hn::MulAdd(deviation, deviation, square[k]);
  };
  const auto add_slope = [&](auto k, V deviation, V a) NORMSCOPE_IN_PLACE {
    if constexpr (centers) total[k] = hn::Add(total[k], a);
    along[k] = hn::MulAdd(a, deviation, along[k]);
  };
  Sweep<ways>(
      n, hn::Lanes(d),
      [&](auto k, std::size_t i) NORMSCOPE_IN_PLACE {
        const V deviation = centers ? hn::Sub(x.At(d, i), mean) : x.At(d, i);
        add(k, deviation);
        if constexpr (Source::slopes) add_slope(k, deviation, x.SlopeAt(d, i));
      },
      [&](std::size_t i, std::size_t some) NORMSCOPE_IN_PLACE {
        constexpr auto last = std::integral_constant<std::size_t, ways - 1>();
        V deviation = x.Some(d, i, some);
        if constexpr (centers) deviation = hn::IfThenElseZero(hn::FirstN(d, some), hn::Sub(deviation, mean));
        add(last, deviation);
        if constexpr (Source::slopes) add_slope(last, deviation, x.SomeSlopes(d, i, some));
      });
  const auto joined = [](const V* sum) NORMSCOPE_IN_PLACE {
    if constexpr (ways == 1) return sum[0];
    if constexpr (ways == 2) return hn::Add(sum[0], sum[1]);
    if constexpr (ways == 4) return hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  };
  return {joined(rest), joined(square), joined(total), joined(along)};
}

template <bool centers, class D, class Source>
HWY_INLINE Moments MomentsAbout(D d, const Source& x, std::size_t n, hn::TFromD<D> guess) {
  const Sums<D> sums = SumsAbout<centers, usual_ways<Source>>(d, x, n, guess);
  const double count = static_cast<double>(n);
  const double along = Source::slopes ? Total(d, sums.along) : 0.0;
  if constexpr (!centers) return {count, 0.0, Total(d, sums.square), 0.0, along};
  const double left = Total(d, sums.rest);
  const double offset = Share<hn::TFromD<D>>(left, count);
  return {count, offset, NotBelowZero(Total(d, sums.square) - left * offset),
          Source::slopes ? Total(d, sums.total) : 0.0, along};
}

/// Moments of at most `run_vectors` vectors about a sufficiently close mean. The first guess is exact if all
/// entries are equal.
template <bool centers, class D, class Source>
HWY_NOINLINE Run RunMoments(D d, const Source& x, std::size_t n) {
  using W = hn::TFromD<D>;
  const std::size_t lanes = hn::Lanes(d);
  W guess{0};
  if constexpr (centers) {
    guess = n < lanes ? hn::GetLane(x.Some(d, 0, n))
                      : hn::GetLane(hn::SumOfLanes(d, x.At(d, 0))) * (W{1} / static_cast<W>(lanes));
  }
  const double base = static_cast<double>(guess);
  const Moments m = MomentsAbout<centers>(d, x, n, guess);
  if (!centers || Centred(m.offset, m.squares, m.count)) return {m, base};
  const W better = static_cast<W>(base + m.offset);
  return {MomentsAbout<centers>(d, x, n, better), static_cast<double>(better)};
}

/// Moments of a block of any length.
template <bool centers, class D, class Source>
HWY_NOINLINE Run BlockMoments(D d, const Source& x, std::size_t n) {
  const std::size_t run = run_vectors * hn::Lanes(d);
  Cascade runs(RunMoments<centers>(d, x, std::min(run, n)));
  for (std::size_t i = run; i < n; i += run) {
    runs.add(RunMoments<centers>(d, x.From(i), std::min(run, n - i)));
  }
  return runs.total();
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::norm::detail
HWY_AFTER_NAMESPACE();

#endif
