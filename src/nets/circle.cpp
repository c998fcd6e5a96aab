#include <normscope/nets/circle.hpp>

#include <cmath>
#include <numbers>

#include <normscope/core/assert.hpp>

namespace normscope::nets {
namespace {

using std::numbers::pi;

}  // namespace

double stretched(double t, double x, double eps) {
  return t * x / std::sqrt(1.0 + (t * t - 1.0) * x * x + eps);
}

double folded(double t, double x, double eps) { return (x + t) / std::sqrt(1.0 + 2.0 * t * x + t * t + eps); }

double surface(double x, double y, double eps) { return x / std::sqrt(x * x + y * y + eps); }

double stretched_share(double t, double level) {
  NORMSCOPE_ASSERT(t >= 0.0 && level > 0.0 && level < 1.0);
  return 2.0 / pi * std::atan(t * std::sqrt(1.0 - level * level) / level);
}

double fold_minimum(double t) {
  NORMSCOPE_ASSERT(t > 1.0);
  return std::sqrt(1.0 - 1.0 / (t * t));
}

double fold_speed(double t) {
  NORMSCOPE_ASSERT(t >= 0.0 && t != 1.0);
  return 1.0 / std::abs(1.0 - t);
}

double fold_speed_of_shift(double t) {
  NORMSCOPE_ASSERT(t >= 0.0 && t != 1.0);
  return 1.0 / std::abs(1.0 - t * t);
}

int fold_winding(double t, std::size_t points) {
  NORMSCOPE_ASSERT(points >= 3 && t != 1.0);
  const auto angle = [&](std::size_t i) {
    const double theta = 2.0 * pi * static_cast<double>(i) / static_cast<double>(points);
    return std::atan2(std::sin(theta), std::cos(theta) + t);
  };
  double turned = 0.0;
  for (std::size_t i = 0; i < points; ++i) turned += std::remainder(angle(i + 1) - angle(i), 2.0 * pi);
  return static_cast<int>(std::lround(turned / (2.0 * pi)));
}

std::vector<double> moved(Move move, double t, MatrixView<const double> points) {
  NORMSCOPE_ASSERT(points.width() == 2);
  std::vector<double> result;
  result.reserve(2 * points.rows());
  for (std::size_t row = 0; row < points.rows(); ++row) {
    const double x = points.row(row)[0];
    result.push_back(move == Move::stretch ? t * x : x + t);
    result.push_back(points.row(row)[1]);
  }
  return result;
}

std::vector<double> normalized(MatrixView<const double> points, double eps) {
  NORMSCOPE_ASSERT(points.width() == 2);
  std::vector<double> result;
  result.reserve(2 * points.rows());
  for (std::size_t row = 0; row < points.rows(); ++row) {
    const auto at = points.row(row);
    const double length = std::sqrt(at[0] * at[0] + at[1] * at[1] + eps);
    for (const double value : at) result.push_back(length > 0.0 ? value / length : 0.0);
  }
  return result;
}

}  // namespace normscope::nets
