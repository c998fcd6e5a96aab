#pragma once

#include <cstddef>
#include <cstring>

#include <normscope/nets/rnn/activation.hpp>

/// Loops of the taggers for `lanes` words at a time. Value i of word l is at [i lanes + l], so that the
/// compiler vectorizes over words. Sums run across words only at the end, so their bits do not depend on the
/// vector width.
namespace normscope::lab::counting {

/// Number of words side by side, which is the batch size.
inline constexpr std::size_t lanes = 16;

using nets::rnn::decay;
using nets::rnn::logistic;
using nets::rnn::squash;

/// out (B) += the B rows of W (·, columns) at `weight` times in (columns).
template <std::size_t B, typename Real>
void multiply_rows(std::size_t columns, const Real* weight, const Real* in, Real* out) {
  Real sum[B][lanes];
  std::memcpy(sum, out, sizeof sum);
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t row = 0; row < B; ++row) {
      const Real w = weight[row * columns + j];
      for (std::size_t l = 0; l < lanes; ++l) sum[row][l] += w * in[j * lanes + l];
    }
  }
  std::memcpy(out, sum, sizeof sum);
}

/// out (rows) += W (rows, columns) in (columns).
template <typename Real>
void multiply(std::size_t rows, std::size_t columns, const Real* weight, const Real* in, Real* out) {
  std::size_t row = 0;
  for (; row + 2 <= rows; row += 2) {
    multiply_rows<2>(columns, weight + row * columns, in, out + row * lanes);
  }
  if (row < rows) multiply_rows<1>(columns, weight + row * columns, in, out + row * lanes);
}

/// One row per step: (steps, size), with `stride` values from word to word.
template <typename Real>
struct Rows {
  const Real* data;
  std::size_t stride;
};

/// gradient (B) += over steps and words d in: one row of dW from as many columns.
template <std::size_t B, typename Real>
void outer_row(std::size_t steps, Rows<Real> d, Rows<Real> in, Real* gradient) {
  Real sum[B][lanes] = {};
  for (std::size_t t = 0; t < steps; ++t) {
    const Real* const of = d.data + t * d.stride * lanes;
    const Real* const by = in.data + t * in.stride * lanes;
    for (std::size_t j = 0; j < B; ++j) {
      for (std::size_t l = 0; l < lanes; ++l) sum[j][l] += of[l] * by[j * lanes + l];
    }
  }
  for (std::size_t j = 0; j < B; ++j) {
    for (std::size_t l = 0; l < lanes; ++l) gradient[j] += sum[j][l];
  }
}

/// gradient (rows, columns) += over steps and words d (rows) inᵀ (columns).
template <typename Real>
void outer(std::size_t steps, std::size_t rows, Rows<Real> d, std::size_t columns, Rows<Real> in,
           Real* gradient) {
  for (std::size_t row = 0; row < rows; ++row) {
    const Rows<Real> of{d.data + row * lanes, d.stride};
    std::size_t j = 0;
    for (; j + 2 <= columns; j += 2) {
      outer_row<2>(steps, of, {in.data + j * lanes, in.stride}, gradient + row * columns + j);
    }
    if (j < columns) outer_row<1>(steps, of, {in.data + j * lanes, in.stride}, gradient + row * columns + j);
  }
}

/// gradient (rows) += over steps and words d (rows).
template <typename Real>
void sum_up(std::size_t steps, std::size_t rows, Rows<Real> d, Real* gradient) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t t = 0; t < steps; ++t) {
      const Real* const of = d.data + (t * d.stride + row) * lanes;
      for (std::size_t l = 0; l < lanes; ++l) gradient[row] += of[l];
    }
  }
}

}  // namespace normscope::lab::counting
