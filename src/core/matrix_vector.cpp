#include <normscope/core/matrix_vector.hpp>

#include <algorithm>

#include <normscope/core/error.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matrix_vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace normscope::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of sums at a time: enough to hide the latency of an addition.
inline constexpr std::size_t sums_at_once = 8;

/// y[0 .. vectors · lanes) of Σ_j x_j a_j, where column a_j starts at a + j · step.
template <std::size_t vectors>
HWY_INLINE void SumColumns(const double* HWY_RESTRICT a, std::size_t columns, std::size_t step,
                           const double* HWY_RESTRICT x, double* HWY_RESTRICT y) {
  const hn::ScalableTag<double> tag;
  const std::size_t lanes = hn::Lanes(tag);
  hn::Vec<decltype(tag)> sums[vectors];
  for (auto& sum : sums) sum = hn::Zero(tag);
  for (std::size_t j = 0; j < columns; ++j, a += step) {
    const auto weight = hn::Set(tag, x[j]);
    for (std::size_t v = 0; v < vectors; ++v) {
      sums[v] = hn::MulAdd(weight, hn::LoadU(tag, a + v * lanes), sums[v]);
    }
  }
  for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(sums[v], tag, y + v * lanes);
}

/// y = A x, columns of A contiguous.
void ByColumns(const double* a, std::size_t rows, std::size_t columns, std::size_t step, const double* x,
               double* y) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<double>());
  std::size_t i = 0;
  for (; i + sums_at_once * lanes <= rows; i += sums_at_once * lanes) {
    SumColumns<sums_at_once>(a + i, columns, step, x, y + i);
  }
  for (; i + lanes <= rows; i += lanes) SumColumns<1>(a + i, columns, step, x, y + i);
  for (; i < rows; ++i) {
    double sum = 0.0;
    for (std::size_t j = 0; j < columns; ++j) sum += x[j] * a[i + j * step];
    y[i] = sum;
  }
}

/// y[0 .. count) of the dot products of x with rows a + i · step.
template <std::size_t count>
HWY_INLINE void DotRows(const double* HWY_RESTRICT a, std::size_t columns, std::size_t step,
                        const double* HWY_RESTRICT x, double* HWY_RESTRICT y) {
  const hn::ScalableTag<double> tag;
  const std::size_t lanes = hn::Lanes(tag);
  hn::Vec<decltype(tag)> sums[count];
  for (auto& sum : sums) sum = hn::Zero(tag);
  std::size_t j = 0;
  for (; j + lanes <= columns; j += lanes) {
    const auto value = hn::LoadU(tag, x + j);
    for (std::size_t r = 0; r < count; ++r) {
      sums[r] = hn::MulAdd(value, hn::LoadU(tag, a + r * step + j), sums[r]);
    }
  }
  for (std::size_t r = 0; r < count; ++r) {
    y[r] = hn::GetLane(hn::SumOfLanes(tag, sums[r]));
    for (std::size_t k = j; k < columns; ++k) y[r] += x[k] * a[r * step + k];
  }
}

/// y = A x, rows of A contiguous.
void ByRows(const double* a, std::size_t rows, std::size_t columns, std::size_t step, const double* x,
            double* y) {
  std::size_t i = 0;
  for (; i + sums_at_once <= rows; i += sums_at_once) {
    DotRows<sums_at_once>(a + i * step, columns, step, x, y + i);
  }
  for (; i < rows; ++i) DotRows<1>(a + i * step, columns, step, x, y + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {
namespace detail {

HWY_EXPORT(ByColumns);
HWY_EXPORT(ByRows);

namespace {

// Highway requires unqualified names of the kernels.
void times(const Factor<double>& a, const double* x, double* y) {
  if (a.row_step == 1) {
    HWY_DYNAMIC_DISPATCH(ByColumns)(a.data, a.rows, a.columns, a.column_step, x, y);
  } else {
    HWY_DYNAMIC_DISPATCH(ByRows)(a.data, a.rows, a.columns, a.row_step, x, y);
  }
}

}  // namespace
}  // namespace detail

void multiply_vector(Factor<double> a, std::span<const double> x, std::span<double> y) {
  NORMSCOPE_ASSERT(a.columns == x.size() && a.rows == y.size());
  NORMSCOPE_ASSERT(a.row_step == 1 || a.column_step == 1);
  detail::times(a, x.data(), y.data());
}

}  // namespace normscope
#endif
