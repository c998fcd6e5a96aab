#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// Vectors of sixteen floats or eight doubles, computed in a fixed order of basic operations, which every
/// instruction set rounds alike. Functions are inlined into the caller's copy for each instruction set.
#define NORMSCOPE_LANES_INLINE [[gnu::always_inline]] inline

/// One copy of a function per instruction set, chosen at program start. No operations are fused and sums keep
/// their order, so all copies give the same bits.
#if defined(__x86_64__) && defined(__linux__)
#define NORMSCOPE_LANES_CLONES [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define NORMSCOPE_LANES_CLONES
#endif

namespace normscope {

template <class Real>
struct Simd {
  static constexpr bool single = std::is_same_v<Real, float>;
  using Int = std::conditional_t<single, std::int32_t, std::int64_t>;
  // g++ forgets the attribute of a `using` whose type is a parameter.
  typedef Real Lanes __attribute__((vector_size(64)));
  typedef Int Ints __attribute__((vector_size(64)));
  static constexpr int mantissa = single ? 23 : 52;
  static constexpr Int exponent = single ? 127 : 1023;
  static constexpr Int root_guess = static_cast<Int>(single ? 0x5f3759df : 0x5fe6eb50c7b537a9);
  static constexpr int root_rounds = single ? 3 : 5;
  static constexpr int terms = single ? 7 : 13;
  static constexpr Real least = single ? -80 : -700;
};

template <class Real>
using Lanes = typename Simd<Real>::Lanes;
template <class Real>
using Ints = typename Simd<Real>::Ints;
template <class Real>
constexpr std::size_t lane_count = 64 / sizeof(Real);

/// The lanes as an array: indexing a vector by a variable is many times slower.
template <class Real>
using IntArray = typename Simd<Real>::Int[lane_count<Real>];

template <class To, class From>
NORMSCOPE_LANES_INLINE void same_bits(To& to, const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&to, &from, sizeof(To));
}

template <class Real>
constexpr std::array<Real, Simd<Real>::terms + 1> inverse_factorials() {
  std::array<Real, Simd<Real>::terms + 1> result{};
  double value = 1.0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (i > 0) value /= static_cast<double>(i);
    result[i] = static_cast<Real>(value);
  }
  return result;
}

/// x becomes e^x, or that of `least` where it is less.
///
/// Requires  x <= 0
///
/// Accuracy  4 ulp (test: LanesOf.ExponentiateIsTheExponential)
template <class Real>
NORMSCOPE_LANES_INLINE void exponentiate(Lanes<Real>& x) {
  using S = Simd<Real>;
  constexpr double log2 = 0.69314718055994530942;
  // ln 2 in two parts, the first of which times any exponent is exact.
  constexpr auto high = static_cast<Real>(S::single ? 0.693359375 : 0.693147180369123816490);
  constexpr auto low = static_cast<Real>(S::single ? -2.12194440e-4 : 1.90821492927058770002e-10);
  x = x < S::least ? x * Real{0} + S::least : x;
  const Lanes<Real> scaled = x * static_cast<Real>(1.0 / log2) - Real{0.5};
  const Ints<Real> power = __builtin_convertvector(scaled, Ints<Real>);
  const Lanes<Real> whole = __builtin_convertvector(power, Lanes<Real>);
  const Lanes<Real> rest = (x - whole * high) - whole * low;
  constexpr auto coefficients = inverse_factorials<Real>();
  Lanes<Real> sum = rest * coefficients[S::terms] + coefficients[S::terms - 1];
#pragma GCC unroll 16
  for (int term = S::terms - 2; term >= 0; --term) sum = sum * rest + coefficients[term];
  Lanes<Real> factor;
  const Ints<Real> bits = (power + S::exponent) << S::mantissa;
  same_bits(factor, bits);
  x = sum * factor;
}

/// x becomes 1/sqrt(x).
///
/// Requires  x > 0
///
/// Accuracy  4 ulp (test: LanesOf.InvertRootIsTheInverseOfTheRoot)
template <class Real>
NORMSCOPE_LANES_INLINE void invert_root(Lanes<Real>& x) {
  using S = Simd<Real>;
  Ints<Real> bits;
  same_bits(bits, x);
  bits = S::root_guess - (bits >> 1);
  Lanes<Real> root;
  same_bits(root, bits);
  const Lanes<Real> half = x * Real{0.5};
  for (int round = 0; round < S::root_rounds; ++round) root = root * (Real{1.5} - half * root * root);
  x = root;
}

/// Sum of the lanes, in order.
template <class Real>
double total(const Lanes<Real>& lanes) {
  double sum = 0.0;
  for (std::size_t lane = 0; lane < lane_count<Real>; ++lane) sum += static_cast<double>(lanes[lane]);
  return sum;
}

}  // namespace normscope
