#include "secular_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "secular_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace normscope::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

PoleSum SumPoles(const double* poles, const double* weights, std::size_t count, double origin,
                 double offset) {
  const hn::ScalableTag<double> tag;
  const std::size_t lanes = hn::Lanes(tag);
  const auto o = hn::Set(tag, origin);
  const auto t = hn::Set(tag, offset);
  auto value_a = hn::Zero(tag), value_b = hn::Zero(tag);
  auto slope_a = hn::Zero(tag), slope_b = hn::Zero(tag);
  const auto add = [&](std::size_t at, auto& value, auto& slope) {
    const auto difference = hn::Sub(hn::Sub(hn::LoadU(tag, poles + at), o), t);
    const auto reciprocal = hn::Div(hn::Set(tag, 1.0), difference);
    const auto term = hn::Mul(hn::LoadU(tag, weights + at), reciprocal);
    value = hn::Add(value, term);
    slope = hn::MulAdd(term, reciprocal, slope);
  };
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    add(i, value_a, slope_a);
    add(i + lanes, value_b, slope_b);
  }
  PoleSum sum{hn::GetLane(hn::SumOfLanes(tag, hn::Add(value_a, value_b))),
              hn::GetLane(hn::SumOfLanes(tag, hn::Add(slope_a, slope_b)))};
  for (; i < count; ++i) {
    const double reciprocal = 1.0 / ((poles[i] - origin) - offset);
    sum.value += weights[i] * reciprocal;
    sum.slope += weights[i] * reciprocal * reciprocal;
  }
  return sum;
}

void ExpandPoles(const double* poles, const double* weights, std::size_t count, double center, double radius,
                 double* coefficients) {
  const hn::ScalableTag<double> tag;
  const std::size_t lanes = hn::Lanes(tag);
  const auto c = hn::Set(tag, center);
  const auto r = hn::Set(tag, radius);
  using Vector = hn::Vec<decltype(tag)>;
  HWY_ALIGN_MAX double sums[expansion_terms * HWY_MAX_BYTES / sizeof(double)] = {};
  std::size_t i = 0;
  // Four vectors per iteration, so that each coefficient is loaded and stored once for all four.
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto reciprocal = [&](std::size_t at) {
      return hn::Div(hn::Set(tag, 1.0), hn::Sub(hn::LoadU(tag, poles + at), c));
    };
    const Vector t0 = reciprocal(i), t1 = reciprocal(i + lanes);
    const Vector t2 = reciprocal(i + 2 * lanes), t3 = reciprocal(i + 3 * lanes);
    Vector p0 = hn::Mul(t0, hn::LoadU(tag, weights + i)),
           p1 = hn::Mul(t1, hn::LoadU(tag, weights + i + lanes));
    Vector p2 = hn::Mul(t2, hn::LoadU(tag, weights + i + 2 * lanes));
    Vector p3 = hn::Mul(t3, hn::LoadU(tag, weights + i + 3 * lanes));
    const Vector x0 = hn::Mul(t0, r), x1 = hn::Mul(t1, r), x2 = hn::Mul(t2, r), x3 = hn::Mul(t3, r);
    for (std::size_t j = 0; j < expansion_terms; ++j) {
      double* sum = sums + j * lanes;
      hn::Store(hn::Add(hn::Load(tag, sum), hn::Add(hn::Add(p0, p1), hn::Add(p2, p3))), tag, sum);
      p0 = hn::Mul(p0, x0);
      p1 = hn::Mul(p1, x1);
      p2 = hn::Mul(p2, x2);
      p3 = hn::Mul(p3, x3);
    }
  }
  for (std::size_t j = 0; j < expansion_terms; ++j) {
    coefficients[j] += hn::GetLane(hn::SumOfLanes(tag, hn::Load(tag, sums + j * lanes)));
  }
  for (; i < count; ++i) {
    const double reciprocal = 1.0 / (poles[i] - center);
    double power = weights[i] * reciprocal;
    for (std::size_t j = 0; j < expansion_terms; ++j) {
      coefficients[j] += power;
      power *= reciprocal * radius;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope::detail {

HWY_EXPORT(SumPoles);
HWY_EXPORT(ExpandPoles);

PoleSum sum_poles(std::span<const double> poles, std::span<const double> weights, double origin,
                  double offset) {
  return HWY_DYNAMIC_DISPATCH(SumPoles)(poles.data(), weights.data(), poles.size(), origin, offset);
}

void expand_poles(std::span<const double> poles, std::span<const double> weights, double center,
                  double radius, double* coefficients) {
  HWY_DYNAMIC_DISPATCH(ExpandPoles)(poles.data(), weights.data(), poles.size(), center, radius, coefficients);
}

}  // namespace normscope::detail
#endif
