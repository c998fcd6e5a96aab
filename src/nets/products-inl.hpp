// Included once per instruction set: the three matrix products of a linear layer.

#if defined(NORMSCOPE_LNNET_PRODUCTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_LNNET_PRODUCTS_INL
#undef NORMSCOPE_LNNET_PRODUCTS_INL
#else
#define NORMSCOPE_LNNET_PRODUCTS_INL
#endif

#include <cstddef>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace normscope::nets::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// c[o][r] (+)= start[o] + Σ_k w[o · row + k · column] a[k][r]; `start` null for zeros.
struct ProductShape {
  std::size_t outputs = 0;
  std::size_t inner = 0;
  std::size_t row = 0;
  std::size_t column = 0;
  std::size_t columns = 0;  ///< of a and c, a multiple of row_multiple
  std::size_t a_stride = 0;
  std::size_t c_stride = 0;
  bool accumulate = false;
};

template <std::size_t outputs, std::size_t vectors, typename T>
HWY_INLINE void ProductTile(const ProductShape& s, const T* HWY_RESTRICT w, const T* start,
                            const T* HWY_RESTRICT a, T* HWY_RESTRICT c) {
  const hn::ScalableTag<T> tag;
  const std::size_t lanes = hn::Lanes(tag);
  hn::Vec<decltype(tag)> sums[outputs][vectors];
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t v = 0; v < vectors; ++v) {
      sums[o][v] = start != nullptr ? hn::Set(tag, start[o]) : hn::Zero(tag);
    }
  }
  for (std::size_t k = 0; k < s.inner; ++k) {
    hn::Vec<decltype(tag)> values[vectors];
    for (std::size_t v = 0; v < vectors; ++v) values[v] = hn::LoadU(tag, a + k * s.a_stride + v * lanes);
    for (std::size_t o = 0; o < outputs; ++o) {
      const auto weight = hn::Set(tag, w[o * s.row + k * s.column]);
      for (std::size_t v = 0; v < vectors; ++v) sums[o][v] = hn::MulAdd(weight, values[v], sums[o][v]);
    }
  }
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t v = 0; v < vectors; ++v) {
      T* to = c + o * s.c_stride + v * lanes;
      hn::StoreU(s.accumulate ? hn::Add(hn::LoadU(tag, to), sums[o][v]) : sums[o][v], tag, to);
    }
  }
}

template <std::size_t vectors, typename T>
HWY_INLINE void ProductPanel(const ProductShape& s, const T* w, const T* start, const T* a, T* c) {
  // As many partial sums as there are registers.
  constexpr std::size_t most = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL ? 8 : 4;
  const auto from = [&](std::size_t o) { return start != nullptr ? start + o : nullptr; };
  std::size_t o = 0;
  for (; o + most <= s.outputs; o += most) {
    ProductTile<most, vectors>(s, w + o * s.row, from(o), a, c + o * s.c_stride);
  }
  for (; o + 3 <= s.outputs; o += 3) {
    ProductTile<3, vectors>(s, w + o * s.row, from(o), a, c + o * s.c_stride);
  }
  for (; o < s.outputs; ++o) {
    ProductTile<1, vectors>(s, w + o * s.row, from(o), a, c + o * s.c_stride);
  }
}

template <typename T>
HWY_INLINE void Product(const ProductShape& s, const T* w, const T* start, const T* a, T* c) {
  const hn::ScalableTag<T> tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t r = 0;
  for (; r + 2 * lanes <= s.columns; r += 2 * lanes) ProductPanel<2>(s, w, start, a + r, c + r);
  for (; r < s.columns; r += lanes) ProductPanel<1>(s, w, start, a + r, c + r);
}

template <typename T>
HWY_INLINE T Dot(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::size_t rows) {
  const hn::ScalableTag<T> tag;
  auto total = hn::Zero(tag);
  for (std::size_t r = 0; r < rows; r += hn::Lanes(tag)) {
    total = hn::MulAdd(hn::LoadU(tag, a + r), hn::LoadU(tag, b + r), total);
  }
  return hn::GetLane(hn::SumOfLanes(tag, total));
}

template <typename T>
HWY_INLINE T Total(const T* a, std::size_t rows) {
  const hn::ScalableTag<T> tag;
  auto total = hn::Zero(tag);
  for (std::size_t r = 0; r < rows; r += hn::Lanes(tag)) total = hn::Add(total, hn::LoadU(tag, a + r));
  return hn::GetLane(hn::SumOfLanes(tag, total));
}

/// gradient[o][i] += Σ_r d[o][r] a[i][r], vectorized along the inputs if they fill vectors, otherwise as dot
/// products.
template <typename T>
HWY_INLINE void WeightGradient(std::size_t out, std::size_t in, const T* d, const T* a, std::size_t rows,
                               T* HWY_RESTRICT transposed, T* gradient) {
  const std::size_t whole = in / row_multiple * row_multiple;
  if (whole != 0) {
    for (std::size_t first = 0; first < whole; first += row_multiple) {
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t i = first; i < first + row_multiple; ++i)
          transposed[r * whole + i] = a[i * block_rows + r];
      }
    }
    const ProductShape shape{.outputs = out,
                             .inner = rows,
                             .row = block_rows,
                             .column = 1,
                             .columns = whole,
                             .a_stride = whole,
                             .c_stride = in,
                             .accumulate = true};
    Product<T>(shape, d, nullptr, transposed, gradient);
  }
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t i = whole; i < in; ++i) {
      gradient[o * in + i] += Dot(d + o * block_rows, a + i * block_rows, rows);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::nets::detail
HWY_AFTER_NAMESPACE();

#endif
