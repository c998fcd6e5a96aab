#include <normscope/core/linear_algebra.hpp>

#include <algorithm>
#include <memory>
#include <new>

#include <normscope/core/error.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// The blocking of Goto and van de Geijn: a block of b that fits into the second-level cache is packed into
// panels as wide as the register tile, a block of a into panels as tall, and each tile of c is summed in
// registers along `depth` terms.

#ifndef NORMSCOPE_NUMERIC_PRODUCT_ONCE
#define NORMSCOPE_NUMERIC_PRODUCT_ONCE
namespace normscope::detail {

template <typename T>
inline constexpr std::size_t depth = 2048 / sizeof(T);  ///< terms summed at a time in a tile
inline constexpr std::size_t block_rows = 192;  ///< rows of a packed at a time, a multiple of every tile's
inline constexpr std::size_t block_columns = 512;

/// Memory that a thread keeps for its next product. Highway's own allocator is not header-only, and
/// WebAssembly builds have only Highway's headers.
template <typename T>
class Packed {
 public:
  T* of(std::size_t count) {
    if (count > size_) {
      data_.reset(static_cast<T*>(::operator new(count * sizeof(T), alignment)));
      size_ = count;
    }
    return data_.get();
  }

 private:
  /// Two cache lines, and the widest vector there is.
  static constexpr std::align_val_t alignment{128};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, alignment); }
  };

  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;
};

template <typename T>
struct Packs {
  Packed<T> a;
  Packed<T> b;
};

}  // namespace normscope::detail
#endif

HWY_BEFORE_NAMESPACE();
namespace normscope::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// As many sums as registers allow beside a column's vectors and a broadcast.
#if HWY_TARGET <= HWY_AVX3
inline constexpr std::size_t tile_rows = 12;
#elif HWY_TARGET_IS_NEON
inline constexpr std::size_t tile_rows = 8;
#elif HWY_TARGET <= HWY_AVX2
inline constexpr std::size_t tile_rows = 6;
#else
inline constexpr std::size_t tile_rows = 4;
#endif
inline constexpr std::size_t tile_vectors = 2;

/// `panel` contiguous numbers of each term. A call for each piece of memory would take longer than the
/// copies.
template <typename T>
HWY_INLINE void CopyPanel(const T* from, std::size_t terms, std::size_t step, std::size_t panel,
                          T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> tag;
  const std::size_t lanes = hn::Lanes(tag);
  const std::size_t whole = panel / lanes * lanes;
  for (std::size_t p = 0; p < terms; ++p, from += step, to += panel) {
    for (std::size_t i = 0; i < whole; i += lanes) hn::StoreU(hn::LoadU(tag, from + i), tag, to + i);
    for (std::size_t i = whole; i < panel; ++i) to[i] = from[i];
  }
}

/// Rows of `from` interleaved in panels of `panel`, term by term; missing rows are zeros.
template <typename T>
HWY_INLINE void Pack(const T* from, std::size_t count, std::size_t step, std::size_t terms,
                     std::size_t term_step, std::size_t panel, T* HWY_RESTRICT to) {
  for (std::size_t first = 0; first < count; first += panel, to += panel * terms) {
    const std::size_t there = std::min(panel, count - first);
    const T* const start = from + first * step;
    if (step == 1 && there == panel) {
      CopyPanel(start, terms, term_step, panel, to);
      continue;
    }
    // A few terms of every row at a time, so that what is written stays in the first-level cache.
    for (std::size_t p = 0; p < terms; p += 16) {
      const std::size_t end = std::min(terms, p + 16);
      for (std::size_t i = 0; i < there; ++i) {
        const T* const row = start + i * step;
        for (std::size_t q = p; q < end; ++q) to[q * panel + i] = row[q * term_step];
      }
      for (std::size_t i = there; i < panel; ++i) {
        for (std::size_t q = p; q < end; ++q) to[q * panel + i] = T{0};
      }
    }
  }
}

/// A tile of c from a panel of each factor.
template <typename T>
HWY_INLINE void Tile(std::size_t terms, const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, bool add, T* c,
                     std::size_t stride) {
  const hn::ScalableTag<T> tag;
  const std::size_t lanes = hn::Lanes(tag);
  hn::Vec<decltype(tag)> sums[tile_rows][tile_vectors];
  for (auto& row : sums) {
    for (auto& sum : row) sum = hn::Zero(tag);
  }
  for (std::size_t p = 0; p < terms; ++p) {
    hn::Vec<decltype(tag)> values[tile_vectors];
    for (std::size_t v = 0; v < tile_vectors; ++v) values[v] = hn::Load(tag, b + v * lanes);
    for (std::size_t i = 0; i < tile_rows; ++i) {
      const auto weight = hn::Set(tag, a[i]);
      for (std::size_t v = 0; v < tile_vectors; ++v) sums[i][v] = hn::MulAdd(weight, values[v], sums[i][v]);
    }
    a += tile_rows;
    b += tile_vectors * lanes;
  }
  for (std::size_t i = 0; i < tile_rows; ++i) {
    for (std::size_t v = 0; v < tile_vectors; ++v) {
      T* const to = c + i * stride + v * lanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(tag, to), sums[i][v]) : sums[i][v], tag, to);
    }
  }
}

/// The tiles of one packed block of a and one of b; tiles that extend beyond c are computed in a temporary
/// tile.
template <typename T>
HWY_INLINE void Tiles(std::size_t rows, std::size_t columns, std::size_t terms, const T* a, const T* b,
                      bool add, T* c, std::size_t stride) {
  const hn::ScalableTag<T> tag;
  const std::size_t tile_columns = tile_vectors * hn::Lanes(tag);
  HWY_ALIGN T aside[tile_rows * tile_vectors * HWY_MAX_BYTES / sizeof(T)];
  for (std::size_t j = 0; j < columns; j += tile_columns) {
    for (std::size_t i = 0; i < rows; i += tile_rows) {
      const T* const panel_a = a + i * terms;
      const T* const panel_b = b + j * terms;
      T* const to = c + i * stride + j;
      if (i + tile_rows <= rows && j + tile_columns <= columns) {
        Tile(terms, panel_a, panel_b, add, to, stride);
        continue;
      }
      Tile(terms, panel_a, panel_b, false, aside, tile_columns);
      for (std::size_t r = 0; r < std::min(tile_rows, rows - i); ++r) {
        for (std::size_t k = 0; k < std::min(tile_columns, columns - j); ++k) {
          const T sum = aside[r * tile_columns + k];
          to[r * stride + k] = add ? to[r * stride + k] + sum : sum;
        }
      }
    }
  }
}

template <typename T>
HWY_INLINE void Multiply(const Factor<T>& a, const Factor<T>& b, MatrixView<T> c, bool add, Packs<T>& packs) {
  const hn::ScalableTag<T> tag;
  const std::size_t tile_columns = tile_vectors * hn::Lanes(tag);
  const auto whole = [](std::size_t count, std::size_t of) { return (count + of - 1) / of * of; };
  const std::size_t terms_at_most = std::min(depth<T>, a.columns);
  T* const pack_a = packs.a.of(whole(std::min(block_rows, a.rows), tile_rows) * terms_at_most);
  T* const pack_b = packs.b.of(whole(std::min(block_columns, b.columns), tile_columns) * terms_at_most);
  for (std::size_t j = 0; j < b.columns; j += block_columns) {
    const std::size_t columns = std::min(block_columns, b.columns - j);
    for (std::size_t p = 0; p < a.columns; p += depth<T>) {
      const std::size_t terms = std::min(depth<T>, a.columns - p);
      Pack(b.data + p * b.row_step + j * b.column_step, columns, b.column_step, terms, b.row_step,
           tile_columns, pack_b);
      for (std::size_t i = 0; i < a.rows; i += block_rows) {
        const std::size_t rows = std::min(block_rows, a.rows - i);
        Pack(a.data + i * a.row_step + p * a.column_step, rows, a.row_step, terms, a.column_step, tile_rows,
             pack_a);
        Tiles(rows, columns, terms, pack_a, pack_b, add || p != 0, c.data() + i * c.stride() + j, c.stride());
      }
    }
  }
}

void MultiplyF64(const Factor<double>& a, const Factor<double>& b, MatrixView<double> c, bool add,
                 Packs<double>& packs) {
  Multiply(a, b, c, add, packs);
}
void MultiplyF32(const Factor<float>& a, const Factor<float>& b, MatrixView<float> c, bool add,
                 Packs<float>& packs) {
  Multiply(a, b, c, add, packs);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {
namespace detail {

HWY_EXPORT(MultiplyF64);
HWY_EXPORT(MultiplyF32);

namespace {

/// Returns false if there is nothing to sum; c is then set to zero, or unchanged.
template <typename T>
bool prepare(const Factor<T>& a, const Factor<T>& b, MatrixView<T> c, Into into) {
  NORMSCOPE_ASSERT(a.columns == b.rows && a.rows == c.rows() && b.columns == c.width());
  if (a.rows == 0 || b.columns == 0) return false;
  if (a.columns != 0) return true;
  if (into == Into::replace) {
    for (std::size_t i = 0; i < c.rows(); ++i) std::fill(c.row(i).begin(), c.row(i).end(), T{0});
  }
  return false;
}

template <typename T>
Packs<T>& packs() {
  thread_local Packs<T> kept;
  return kept;
}

// Highway requires unqualified names of the kernels.
void dispatch(const Factor<double>& a, const Factor<double>& b, MatrixView<double> c, bool add) {
  HWY_DYNAMIC_DISPATCH(MultiplyF64)(a, b, c, add, packs<double>());
}
void dispatch(const Factor<float>& a, const Factor<float>& b, MatrixView<float> c, bool add) {
  HWY_DYNAMIC_DISPATCH(MultiplyF32)(a, b, c, add, packs<float>());
}

template <typename T>
void run(const Factor<T>& a, const Factor<T>& b, MatrixView<T> c, Into into) {
  if (prepare(a, b, c, into)) dispatch(a, b, c, into == Into::add);
}

}  // namespace
}  // namespace detail

void multiply(Factor<double> a, Factor<double> b, MatrixView<double> c, Into into) {
  detail::run(a, b, c, into);
}

void multiply(Factor<float> a, Factor<float> b, MatrixView<float> c, Into into) {
  detail::run(a, b, c, into);
}

}  // namespace normscope
#endif
