#include "turned_gram.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "turned_gram.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace normscope::heads {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t all = 8;
using Tag = hn::CappedTag<double, all>;
using Vector = hn::Vec<Tag>;

std::size_t StartOfRow(std::size_t row) { return row * (row + 1) / 2 * all; }

/// The lower triangle of S − R G Rᵀ − e eᵀ, two rows and columns per step.
void Build(std::size_t pairs, const double* gram, const double* shape, const double* cosines,
           const double* sines, const double* shifts, double* work) {
  const Tag tag;
  const std::size_t dim = 2 * pairs;
  for (std::size_t lane = 0; lane < all; lane += hn::Lanes(tag)) {
    for (std::size_t i = 0; i < pairs; ++i) {
      const Vector ci = hn::LoadU(tag, cosines + i * all + lane);
      const Vector si = hn::LoadU(tag, sines + i * all + lane);
      const Vector ei[2] = {hn::LoadU(tag, shifts + 2 * i * all + lane),
                            hn::LoadU(tag, shifts + (2 * i + 1) * all + lane)};
      for (std::size_t j = 0; j <= i; ++j) {
        const Vector cj = hn::LoadU(tag, cosines + j * all + lane);
        const Vector sj = hn::LoadU(tag, sines + j * all + lane);
        const double* const block = gram + 2 * i * dim + 2 * j;
        const Vector g00 = hn::Set(tag, block[0]), g01 = hn::Set(tag, block[1]);
        const Vector g10 = hn::Set(tag, block[dim]), g11 = hn::Set(tag, block[dim + 1]);
        // Columns first, G Rᵀ, then rows.
        const Vector h00 = hn::Sub(hn::Mul(cj, g00), hn::Mul(sj, g01));
        const Vector h01 = hn::Add(hn::Mul(sj, g00), hn::Mul(cj, g01));
        const Vector h10 = hn::Sub(hn::Mul(cj, g10), hn::Mul(sj, g11));
        const Vector h11 = hn::Add(hn::Mul(sj, g10), hn::Mul(cj, g11));
        const Vector turned[2][2] = {
            {hn::Sub(hn::Mul(ci, h00), hn::Mul(si, h10)), hn::Sub(hn::Mul(ci, h01), hn::Mul(si, h11))},
            {hn::Add(hn::Mul(si, h00), hn::Mul(ci, h10)), hn::Add(hn::Mul(si, h01), hn::Mul(ci, h11))}};
        for (std::size_t a = 0; a < 2; ++a) {
          for (std::size_t b = 0; b < 2; ++b) {
            if (2 * j + b > 2 * i + a) continue;
            const Vector ej = hn::LoadU(tag, shifts + (2 * j + b) * all + lane);
            const Vector s = hn::Set(tag, shape[(2 * i + a) * dim + 2 * j + b]);
            const Vector value = hn::Sub(hn::Sub(s, turned[a][b]), hn::Mul(ei[a], ej));
            hn::StoreU(value, tag, work + StartOfRow(2 * i + a) + (2 * j + b) * all + lane);
          }
        }
      }
    }
  }
}

/// Cholesky factorization by rows, four columns per step. Returns a bit mask of the lanes whose pivots are
/// all positive.
unsigned Factor(std::size_t dim, double* work) {
  const Tag tag;
  unsigned good = 0;
  for (std::size_t lane = 0; lane < all; lane += hn::Lanes(tag)) {
    double* const base = work + lane;
    auto positive = hn::Eq(hn::Zero(tag), hn::Zero(tag));
    for (std::size_t i = 0; i < dim; ++i) {
      double* const row = base + StartOfRow(i);
      std::size_t k = 0;
      for (; k + 4 <= i; k += 4) {
        const double* const r0 = base + StartOfRow(k);
        const double* const r1 = base + StartOfRow(k + 1);
        const double* const r2 = base + StartOfRow(k + 2);
        const double* const r3 = base + StartOfRow(k + 3);
        Vector s0 = hn::LoadU(tag, row + k * all), s1 = hn::LoadU(tag, row + (k + 1) * all);
        Vector s2 = hn::LoadU(tag, row + (k + 2) * all), s3 = hn::LoadU(tag, row + (k + 3) * all);
        for (std::size_t j = 0; j < k; ++j) {
          const Vector x = hn::LoadU(tag, row + j * all);
          s0 = hn::Sub(s0, hn::Mul(x, hn::LoadU(tag, r0 + j * all)));
          s1 = hn::Sub(s1, hn::Mul(x, hn::LoadU(tag, r1 + j * all)));
          s2 = hn::Sub(s2, hn::Mul(x, hn::LoadU(tag, r2 + j * all)));
          s3 = hn::Sub(s3, hn::Mul(x, hn::LoadU(tag, r3 + j * all)));
        }
        // The diagonal holds the reciprocal square roots of the pivots.
        const auto entry = [&](const double* r, std::size_t column) {
          return hn::LoadU(tag, r + column * all);
        };
        s0 = hn::Mul(s0, entry(r0, k));
        s1 = hn::Mul(hn::Sub(s1, hn::Mul(s0, entry(r1, k))), entry(r1, k + 1));
        s2 = hn::Sub(s2, hn::Mul(s0, entry(r2, k)));
        s2 = hn::Mul(hn::Sub(s2, hn::Mul(s1, entry(r2, k + 1))), entry(r2, k + 2));
        s3 = hn::Sub(s3, hn::Mul(s0, entry(r3, k)));
        s3 = hn::Sub(s3, hn::Mul(s1, entry(r3, k + 1)));
        s3 = hn::Mul(hn::Sub(s3, hn::Mul(s2, entry(r3, k + 2))), entry(r3, k + 3));
        hn::StoreU(s0, tag, row + k * all);
        hn::StoreU(s1, tag, row + (k + 1) * all);
        hn::StoreU(s2, tag, row + (k + 2) * all);
        hn::StoreU(s3, tag, row + (k + 3) * all);
      }
      for (; k <= i; ++k) {
        const double* const other = base + StartOfRow(k);
        Vector s = hn::LoadU(tag, row + k * all);
        for (std::size_t j = 0; j < k; ++j) {
          s = hn::Sub(s, hn::Mul(hn::LoadU(tag, row + j * all), hn::LoadU(tag, other + j * all)));
        }
        if (k < i) {
          s = hn::Mul(s, hn::LoadU(tag, other + k * all));
        } else {
          const auto here = hn::Gt(s, hn::Zero(tag));
          positive = hn::And(positive, here);
          const Vector one = hn::Set(tag, 1.0);
          s = hn::Div(one, hn::Sqrt(hn::IfThenElse(here, s, one)));
        }
        hn::StoreU(s, tag, row + k * all);
      }
      if (hn::AllFalse(tag, positive)) break;
    }
    HWY_ALIGN_MAX double flags[all] = {};
    hn::StoreU(hn::IfThenElseZero(positive, hn::Set(tag, 1.0)), tag, flags);
    for (std::size_t i = 0; i < hn::Lanes(tag); ++i) {
      if (flags[i] != 0.0) good |= 1u << (lane + i);
    }
  }
  return good;
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::heads
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope::heads {

HWY_EXPORT(Build);
HWY_EXPORT(Factor);

namespace {

/// A symmetric matrix, padded with a zero row and column if its size is odd.
std::vector<double> padded(std::size_t dim, std::size_t pairs, const double* matrix, double last) {
  std::vector<double> result(4 * pairs * pairs, 0.0);
  for (std::size_t i = 0; i < dim; ++i) {
    for (std::size_t j = 0; j < dim; ++j) result[i * 2 * pairs + j] = matrix[i * dim + j];
  }
  if (dim < 2 * pairs) result.back() = last;
  return result;
}

}  // namespace

TurnedGramTest::TurnedGramTest(std::size_t dim, const double* gram)
    : pairs_((dim + 1) / 2),
      gram_(padded(dim, pairs_, gram, 0.0)),
      shape_(4 * pairs_ * pairs_, 0.0),
      cosines_(pairs_ * lanes, 1.0),
      sines_(pairs_ * lanes, 0.0),
      shifts_(2 * pairs_ * lanes, 0.0),
      work_(pairs_ * (2 * pairs_ + 1) * lanes),
      dim_(dim) {}

void TurnedGramTest::set_shape(const double* shape) { shape_ = padded(dim_, pairs_, shape, 1.0); }

unsigned TurnedGramTest::passes() {
  HWY_DYNAMIC_DISPATCH(Build)
  (pairs_, gram_.data(), shape_.data(), cosines_.data(), sines_.data(), shifts_.data(), work_.data());
  return HWY_DYNAMIC_DISPATCH(Factor)(2 * pairs_, work_.data());
}

}  // namespace normscope::heads
#endif
