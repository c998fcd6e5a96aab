#include "turned_gram.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "turned_gram.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace normscope::heads {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Lanes of the matrices: 64 bytes.
template <typename T>
constexpr std::size_t all = 64 / sizeof(T);
template <typename T>
using Tag = hn::CappedTag<T, all<T>>;
template <typename T>
using Vector = hn::Vec<Tag<T>>;

/// Rows of a tile: as many as the registers hold with the columns of a tile.
constexpr std::size_t tile_rows = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL ? 4 : 2;
constexpr std::size_t tile_columns = 4;

template <typename T>
std::size_t StartOfRow(std::size_t row) {
  return row * (row + 1) / 2 * all<T>;
}

/// The lower triangle of S − R G Rᵀ − e eᵀ, two rows and columns per step.
template <typename T>
void Build(std::size_t pairs, const T* gram, const T* shape, const T* cosines, const T* sines,
           const T* shifts, T* work) {
  const Tag<T> tag;
  const std::size_t dim = 2 * pairs;
  for (std::size_t lane = 0; lane < all<T>; lane += hn::Lanes(tag)) {
    for (std::size_t i = 0; i < pairs; ++i) {
      const Vector<T> ci = hn::LoadU(tag, cosines + i * all<T> + lane);
      const Vector<T> si = hn::LoadU(tag, sines + i * all<T> + lane);
      const Vector<T> ei[2] = {hn::LoadU(tag, shifts + 2 * i * all<T> + lane),
                               hn::LoadU(tag, shifts + (2 * i + 1) * all<T> + lane)};
      for (std::size_t j = 0; j <= i; ++j) {
        const Vector<T> cj = hn::LoadU(tag, cosines + j * all<T> + lane);
        const Vector<T> sj = hn::LoadU(tag, sines + j * all<T> + lane);
        const T* const block = gram + 2 * i * dim + 2 * j;
        const Vector<T> g00 = hn::Set(tag, block[0]), g01 = hn::Set(tag, block[1]);
        const Vector<T> g10 = hn::Set(tag, block[dim]), g11 = hn::Set(tag, block[dim + 1]);
        // Columns first, G Rᵀ, then rows.
        const Vector<T> h00 = hn::NegMulAdd(sj, g01, hn::Mul(cj, g00));
        const Vector<T> h01 = hn::MulAdd(sj, g00, hn::Mul(cj, g01));
        const Vector<T> h10 = hn::NegMulAdd(sj, g11, hn::Mul(cj, g10));
        const Vector<T> h11 = hn::MulAdd(sj, g10, hn::Mul(cj, g11));
        const Vector<T> turned[2][2] = {
            {hn::NegMulAdd(si, h10, hn::Mul(ci, h00)), hn::NegMulAdd(si, h11, hn::Mul(ci, h01))},
            {hn::MulAdd(si, h00, hn::Mul(ci, h10)), hn::MulAdd(si, h01, hn::Mul(ci, h11))}};
        for (std::size_t a = 0; a < 2; ++a) {
          for (std::size_t b = 0; b < 2; ++b) {
            if (2 * j + b > 2 * i + a) continue;
            const Vector<T> ej = hn::LoadU(tag, shifts + (2 * j + b) * all<T> + lane);
            const Vector<T> s = hn::Set(tag, shape[(2 * i + a) * dim + 2 * j + b]);
            const Vector<T> value = hn::NegMulAdd(ei[a], ej, hn::Sub(s, turned[a][b]));
            hn::StoreU(value, tag, work + StartOfRow<T>(2 * i + a) + (2 * j + b) * all<T> + lane);
          }
        }
      }
    }
  }
}

/// Replaces the tile of entries (row + a, column + b), a < R and b < C, by its part of the factor, given the
/// factor's entries to the left and above. The diagonal holds the reciprocal square roots of the pivots.
template <typename T, std::size_t R, std::size_t C>
void FactorTile(T* base, std::size_t row, std::size_t column) {
  const Tag<T> tag;
  T* rows[R];
  const T* columns[C];
  for (std::size_t a = 0; a < R; ++a) rows[a] = base + StartOfRow<T>(row + a);
  for (std::size_t b = 0; b < C; ++b) columns[b] = base + StartOfRow<T>(column + b);
  Vector<T> s[R][C];
  for (std::size_t a = 0; a < R; ++a) {
    for (std::size_t b = 0; b < C; ++b) s[a][b] = hn::LoadU(tag, rows[a] + (column + b) * all<T>);
  }
  for (std::size_t j = 0; j < column * all<T>; j += all<T>) {
    Vector<T> x[R];
    for (std::size_t a = 0; a < R; ++a) x[a] = hn::LoadU(tag, rows[a] + j);
    for (std::size_t b = 0; b < C; ++b) {
      const Vector<T> y = hn::LoadU(tag, columns[b] + j);
      for (std::size_t a = 0; a < R; ++a) s[a][b] = hn::NegMulAdd(x[a], y, s[a][b]);
    }
  }
  for (std::size_t b = 0; b < C; ++b) {
    for (std::size_t j = 0; j < b; ++j) {
      const Vector<T> y = hn::LoadU(tag, columns[b] + (column + j) * all<T>);
      for (std::size_t a = 0; a < R; ++a) s[a][b] = hn::NegMulAdd(s[a][j], y, s[a][b]);
    }
    const Vector<T> pivot = hn::LoadU(tag, columns[b] + (column + b) * all<T>);
    for (std::size_t a = 0; a < R; ++a) {
      s[a][b] = hn::Mul(s[a][b], pivot);
      hn::StoreU(s[a][b], tag, rows[a] + (column + b) * all<T>);
    }
  }
}

/// Replaces the R rows of the triangle that begins at (row, row) by their part of the factor, given the
/// entries to the left. Returns the lanes whose pivots are positive.
template <typename T, std::size_t R>
auto FactorDiagonal(T* base, std::size_t row) {
  const Tag<T> tag;
  T* rows[R];
  Vector<T> s[R][R];
  for (std::size_t a = 0; a < R; ++a) {
    rows[a] = base + StartOfRow<T>(row + a);
    for (std::size_t b = 0; b <= a; ++b) s[a][b] = hn::LoadU(tag, rows[a] + (row + b) * all<T>);
  }
  for (std::size_t j = 0; j < row * all<T>; j += all<T>) {
    Vector<T> x[R];
    for (std::size_t a = 0; a < R; ++a) x[a] = hn::LoadU(tag, rows[a] + j);
    for (std::size_t a = 0; a < R; ++a) {
      for (std::size_t b = 0; b <= a; ++b) s[a][b] = hn::NegMulAdd(x[a], x[b], s[a][b]);
    }
  }
  const Vector<T> one = hn::Set(tag, T{1});
  auto positive = hn::Eq(one, one);
  for (std::size_t b = 0; b < R; ++b) {
    const auto here = hn::Gt(s[b][b], hn::Zero(tag));
    positive = hn::And(positive, here);
    s[b][b] = hn::Div(one, hn::Sqrt(hn::IfThenElse(here, s[b][b], one)));
    for (std::size_t a = b + 1; a < R; ++a) s[a][b] = hn::Mul(s[a][b], s[b][b]);
    for (std::size_t a = b + 1; a < R; ++a) {
      for (std::size_t c = b + 1; c <= a; ++c) s[a][c] = hn::NegMulAdd(s[a][b], s[c][b], s[a][c]);
    }
  }
  for (std::size_t a = 0; a < R; ++a) {
    for (std::size_t b = 0; b <= a; ++b) hn::StoreU(s[a][b], tag, rows[a] + (row + b) * all<T>);
  }
  return positive;
}

/// Rows `row` to row + R − 1 of the factor.
template <typename T, std::size_t R>
auto FactorRows(T* base, std::size_t row) {
  std::size_t column = 0;
  for (; column + tile_columns <= row; column += tile_columns) {
    FactorTile<T, R, tile_columns>(base, row, column);
  }
  if (column < row) FactorTile<T, R, 2>(base, row, column);
  return FactorDiagonal<T, R>(base, row);
}

/// Cholesky factorization by tiles. Returns a bit mask of the lanes whose pivots are all positive.
template <typename T>
unsigned Factor(std::size_t dim, T* work) {
  const Tag<T> tag;
  unsigned good = 0;
  for (std::size_t lane = 0; lane < all<T>; lane += hn::Lanes(tag)) {
    T* const base = work + lane;
    auto positive = hn::Eq(hn::Zero(tag), hn::Zero(tag));
    for (std::size_t row = 0; row < dim; row += tile_rows) {
      // The number of coordinates is even.
      positive = hn::And(positive, row + tile_rows <= dim ? FactorRows<T, tile_rows>(base, row)
                                                          : FactorRows<T, 2>(base, row));
      if (hn::AllFalse(tag, positive)) break;
    }
    HWY_ALIGN_MAX T flags[all<T>] = {};
    hn::StoreU(hn::IfThenElseZero(positive, hn::Set(tag, T{1})), tag, flags);
    for (std::size_t i = 0; i < hn::Lanes(tag); ++i) {
      if (flags[i] != T{0}) good |= 1u << (lane + i);
    }
  }
  return good;
}

template <typename T>
unsigned Passes(std::size_t pairs, const T* gram, const T* shape, const T* cosines, const T* sines,
                const T* shifts, T* work) {
  Build(pairs, gram, shape, cosines, sines, shifts, work);
  return Factor(2 * pairs, work);
}

unsigned PassesF32(std::size_t pairs, const float* gram, const float* shape, const float* cosines,
                   const float* sines, const float* shifts, float* work) {
  return Passes(pairs, gram, shape, cosines, sines, shifts, work);
}
unsigned PassesF64(std::size_t pairs, const double* gram, const double* shape, const double* cosines,
                   const double* sines, const double* shifts, double* work) {
  return Passes(pairs, gram, shape, cosines, sines, shifts, work);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::heads
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope::heads {

HWY_EXPORT(PassesF32);
HWY_EXPORT(PassesF64);

namespace {

/// A symmetric matrix, padded with a zero row and column if its size is odd.
template <typename T>
std::vector<T> padded(std::size_t dim, std::size_t pairs, const double* matrix, double last) {
  std::vector<T> result(4 * pairs * pairs, T{0});
  for (std::size_t i = 0; i < dim; ++i) {
    for (std::size_t j = 0; j < dim; ++j) result[i * 2 * pairs + j] = static_cast<T>(matrix[i * dim + j]);
  }
  if (dim < 2 * pairs) result.back() = static_cast<T>(last);
  return result;
}

}  // namespace

template <typename T>
TurnedGramTest<T>::TurnedGramTest(std::size_t dim, const double* gram)
    : pairs_((dim + 1) / 2),
      gram_(padded<T>(dim, pairs_, gram, 0.0)),
      shape_(4 * pairs_ * pairs_, T{0}),
      cosines_(pairs_ * lanes, T{1}),
      sines_(pairs_ * lanes, T{0}),
      shifts_(2 * pairs_ * lanes, T{0}),
      work_(pairs_ * (2 * pairs_ + 1) * lanes),
      dim_(dim) {}

template <typename T>
void TurnedGramTest<T>::set_shape(const double* shape) {
  shape_ = padded<T>(dim_, pairs_, shape, 1.0);
}

template <>
unsigned TurnedGramTest<float>::passes() {
  return HWY_DYNAMIC_DISPATCH(PassesF32)(pairs_, gram_.data(), shape_.data(), cosines_.data(), sines_.data(),
                                         shifts_.data(), work_.data());
}
template <>
unsigned TurnedGramTest<double>::passes() {
  return HWY_DYNAMIC_DISPATCH(PassesF64)(pairs_, gram_.data(), shape_.data(), cosines_.data(), sines_.data(),
                                         shifts_.data(), work_.data());
}

template class TurnedGramTest<float>;
template class TurnedGramTest<double>;

}  // namespace normscope::heads
#endif
