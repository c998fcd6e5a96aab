#include "eigen.hpp"

#include <algorithm>
#include <cmath>

namespace normscope::lab::dense {
namespace {

/// A ← JᵀAJ with the rotation J of p and q that makes A(p, q) zero.
void rotate(std::vector<double>& a, std::size_t width, std::size_t p, std::size_t q) {
  const double off = a[p * width + q];
  if (off == 0.0) return;
  const double theta = (a[q * width + q] - a[p * width + p]) / (2.0 * off);
  const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
  const double c = 1.0 / std::hypot(t, 1.0);
  const double s = t * c;
  for (std::size_t k = 0; k < width; ++k) {
    const double kp = a[k * width + p];
    const double kq = a[k * width + q];
    a[k * width + p] = c * kp - s * kq;
    a[k * width + q] = s * kp + c * kq;
  }
  for (std::size_t k = 0; k < width; ++k) {
    const double pk = a[p * width + k];
    const double qk = a[q * width + k];
    a[p * width + k] = c * pk - s * qk;
    a[q * width + k] = s * pk + c * qk;
  }
}

}  // namespace

Eigen symmetric_eigen(std::vector<double> matrix, std::size_t width) {
  constexpr int most_sweeps = 40;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    double off = 0.0;
    double all = 0.0;
    for (std::size_t p = 0; p < width; ++p) {
      for (std::size_t q = 0; q < width; ++q) {
        const double square = matrix[p * width + q] * matrix[p * width + q];
        all += square;
        if (p != q) off += square;
      }
    }
    if (off <= 1e-32 * all) break;
    for (std::size_t p = 0; p + 1 < width; ++p) {
      for (std::size_t q = p + 1; q < width; ++q) rotate(matrix, width, p, q);
    }
  }
  Eigen result;
  for (std::size_t i = 0; i < width; ++i) result.values.push_back(matrix[i * width + i]);
  std::sort(result.values.rbegin(), result.values.rend());
  return result;
}

}  // namespace normscope::lab::dense
