#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

/// Sigmoid and tanh from operations that round identically everywhere, so that a training gives the same bits
/// in a browser and natively; the exp and tanh of mathematical libraries do not guarantee that.
namespace normscope::nets::rnn {

/// e^x for x <= 0, relative error 3u; e^-708 below that.
inline double decay(double x) {
  constexpr double most = -708.0;
  constexpr double round_to_integer = 0x1.8p52;
  x = x < most ? most : x;
  // x = k ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two parts such that k times the first is exact.
  const double shifted = x * 0x1.71547652b82fep0 + round_to_integer;
  const double k = shifted - round_to_integer;
  const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  // 2^k: k is in the low bits of the shifted number.
  std::uint64_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  double power = 0.0;
  std::memcpy(&power, &bits, sizeof power);
  return sum * power;
}

/// e^x for x <= 0, relative error 2e-7; e^-87 below that.
inline float decay(float x) {
  constexpr float most = -87.0F;
  constexpr float round_to_integer = 0x1.8p23F;
  x = x < most ? most : x;
  // x = k ln 2 + r, with ln 2 in two parts such that k times the first is exact.
  const float shifted = x * 0x1.715476p0F + round_to_integer;
  const float k = shifted - round_to_integer;
  const float r = (x - k * 0x1.62e4p-1F) - k * 0x1.7f7d1cp-20F;
  float sum = 1.0F / 720.0F;
  sum = sum * r + 1.0F / 120.0F;
  sum = sum * r + 1.0F / 24.0F;
  sum = sum * r + 1.0F / 6.0F;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  // 2^k: k is in the low bits of the shifted number.
  std::uint32_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127U) << 23U;
  float power = 0.0F;
  std::memcpy(&power, &bits, sizeof power);
  return sum * power;
}

/// 1 / (1 + e^-x), relative error 8u down to e^-708 in float64.
template <typename Real>
Real logistic(Real x) {
  const Real e = decay(-std::abs(x));
  return (x < Real(0) ? e : Real(1)) / (Real(1) + e);
}

/// tanh x, absolute error 8u in float64.
template <typename Real>
Real squash(Real x) {
  const Real e = decay(Real(-2) * std::abs(x));
  return std::copysign((Real(1) - e) / (Real(1) + e), x);
}

}  // namespace normscope::nets::rnn
