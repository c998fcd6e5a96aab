#include <algorithm>
#include <cmath>

#include <normscope/core/rounding.hpp>

#include "kernel_jobs.hpp"

namespace normscope::norm::detail {
namespace {

/// A block's entries before gain and bias, each computed on request.
template <typename T>
class Normalized {
 public:
  Normalized(const Layer<T>& layer, const T* x) : x_(x), n_(layer.width / layer.groups) {
    double largest = 0.0;
    for (std::size_t i = 0; i < n_; ++i) largest = std::max(largest, std::abs(number(x_[i])));
    if (largest > 0.0 && std::isfinite(largest)) exponent_ = std::ilogb(largest);
    // If eps dominates the squares, it must stay in range.
    if (layer.eps > 0.0) exponent_ = std::max(exponent_, -500);
    if (layer.centers()) {
      mean_ = mean();
      rest_ = mean();
    }
    CompensatedSum squares;
    for (std::size_t i = 0; i < n_; ++i) squares.add(deviation(i) * deviation(i));
    const double radius = layer.radius();
    const double length = std::isinf(largest) ? largest : std::sqrt(squares.value());
    // Beside no deviation, eps counts in full and must not lose digits to a large row's scaling.
    if (length > 0.0 || exponent_ < 0) slope_exponent_ = -exponent_;
    const double whole = std::hypot(length, std::scalbn(std::sqrt(layer.eps) * radius, slope_exponent_));
    flat_ = whole == 0.0;
    if (!flat_) scale_ = radius / whole;
  }

  [[nodiscard]] double at(std::size_t i) const { return deviation(i) * scale_; }
  [[nodiscard]] std::size_t size() const { return n_; }
  /// `slope` times the factor of a deviation of the unscaled row, which may itself be out of range.
  [[nodiscard]] double scaled(double slope) const {
    return flat_ ? 0.0 : std::scalbn(slope * scale_, slope_exponent_);
  }

 private:
  [[nodiscard]] double deviation(std::size_t i) const {
    return (std::scalbn(number(x_[i]), -exponent_) - mean_) - rest_;
  }
  [[nodiscard]] double mean() const {
    CompensatedSum sum;
    for (std::size_t i = 0; i < n_; ++i) sum.add(deviation(i));
    return sum.value() / static_cast<double>(n_);
  }

  const T* x_;
  std::size_t n_;
  int exponent_ = 0;
  int slope_exponent_ = 0;  ///< of what slopes are scaled by, beside scale_
  double mean_ = 0.0;
  double rest_ = 0.0;
  double scale_ = 0.0;
  bool flat_ = false;
};

}  // namespace

template <typename T>
void plain_forward(const Layer<T>& layer, std::size_t begin, const T* x, T* y) {
  const Normalized<T> normalized(layer, x);
  for (std::size_t i = 0; i < normalized.size(); ++i) {
    put(normalized.at(i) * layer.gain_at(begin + i) + layer.bias_at(begin + i), y[i]);
  }
}

template <typename T>
void plain_backward(const Layer<T>& layer, std::size_t begin, const T* x, const T* dy, T* dx, Shares<T> to) {
  const Normalized<T> normalized(layer, x);
  const std::size_t n = normalized.size();
  const double divisor = layer.squared_radius();
  const auto a = [&](std::size_t i) { return number(dy[i]) * layer.gain_at(begin + i); };
  CompensatedSum total;
  CompensatedSum along;
  for (std::size_t i = 0; i < n; ++i) {
    total.add(a(i));
    along.add(a(i) * normalized.at(i));
    if (to.gain != nullptr) to.gain[begin + i] += static_cast<Wide<T>>(number(dy[i]) * normalized.at(i));
    if (to.bias != nullptr) to.bias[begin + i] += static_cast<Wide<T>>(number(dy[i]));
  }
  const double mean = layer.centers() ? total.value() / divisor : 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double slope = (a(i) - mean) - normalized.at(i) * (along.value() / divisor);
    put(normalized.scaled(slope), dx[i]);
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type in a declaration
#define NORMSCOPE_PLAIN_ROWS(T)                                               \
  template void plain_forward<T>(const Layer<T>&, std::size_t, const T*, T*); \
  template void plain_backward<T>(const Layer<T>&, std::size_t, const T*, const T*, T*, Shares<T>);
NORMSCOPE_PLAIN_ROWS(double)
NORMSCOPE_PLAIN_ROWS(float)
NORMSCOPE_PLAIN_ROWS(Bfloat16)
NORMSCOPE_PLAIN_ROWS(Float16)
#undef NORMSCOPE_PLAIN_ROWS
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace normscope::norm::detail
