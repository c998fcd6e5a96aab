#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <normscope/core/rounding.hpp>
#include <normscope/verify/verify.hpp>

#include "document.hpp"

/// Bounds over all sets of changes d_k of a row u.
namespace normscope::verify {

/// Deviations of this part of the sizes of terms are accepted.
inline constexpr double accepted = 1e-9;
/// The rows of a proof and their inner products.
struct Rows {
  std::size_t width = 0, count = 0;
  double squared_radius = 1.0, eps = 0.0;
  std::vector<double> u{}, v{};
  std::vector<std::vector<double>> d{};
  std::vector<double> gram{}, along{}, reads{}, lengths{};  ///< d_j·d_k, u·d_k, v·d_k, |d_k|
  double square = 0.0, length = 0.0, read = 0.0, direction_length = 0.0;
  double s = 0.0;

  void multiply() {
    gram.resize(count * count);
    for (std::size_t j = 0; j < count; ++j) {
      along.push_back(plain_dot(u, d[j]));
      reads.push_back(plain_dot(v, d[j]));
      for (std::size_t k = 0; k <= j; ++k) {
        gram[j * count + k] = gram[k * count + j] = plain_dot(d[j], d[k]);
      }
      lengths.push_back(std::sqrt(gram[j * count + j]));
    }
    square = plain_dot(u, u);
    length = std::sqrt(square);
    read = plain_dot(v, u);
    direction_length = std::sqrt(plain_dot(v, v));
    s = divisor(square);
  }
  [[nodiscard]] const double* row(std::size_t k) const { return gram.data() + k * count; }
  [[nodiscard]] double divisor(double of) const {
    return std::sqrt(std::max(0.0, of) / squared_radius + eps);
  }
  /// The price of freezing of a row of that square, which may be infinite.
  [[nodiscard]] double price(double of, double its_read) const {
    if (its_read == 0.0) return 0.0;
    return of == infinity ? -its_read / s : its_read * (1.0 / divisor(of) - 1.0 / s);
  }
  /// |u| and the `removed` largest |d_k|.
  [[nodiscard]] double longest(std::size_t removed) const {
    std::vector<double> sorted = lengths;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    return std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(removed), length);
  }
};

/// Ends of a number over sets.
struct SetRange {
  double least = -infinity, most = infinity;

  [[nodiscard]] bool contains(const SetRange& other) const {
    return other.least >= least && other.most <= most;
  }
};

/// Checks the bounds of a result of `attribute`, one for each number of removed components.
class SetCheck {
 public:
  /// Keeps references. `names` are those of the components, by their places.
  SetCheck(const Rows& rows, const std::map<std::string, std::size_t>& names, Verification& found)
      : rows_(rows), names_(names), found_(found) {}

  /// Errors    Format for a bound of another number of components than `expected`
  void check(const Field& bound, std::size_t expected);

 private:
  [[nodiscard]] SetRange squares_of(const Field& bound, double longest) const;
  void check_relaxed_prices(const Field& bound, std::size_t removed, const SetRange& square, double longest);
  [[nodiscard]] double relaxed(const Field& bound, const char* name, std::size_t removed, double sign);
  [[nodiscard]] bool is_semidefinite(const std::vector<double>& diagonal, double sign);
  void check_attained(const Field& bound, const std::string& name, std::size_t removed);

  const Rows& rows_;
  const std::map<std::string, std::size_t>& names_;
  Verification& found_;
  std::map<std::pair<double, std::vector<double>>, bool> semidefinite_{};
};

}  // namespace normscope::verify
