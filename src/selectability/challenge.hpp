#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cloud.hpp"

namespace normscope::selectability {

/// A query of unit length that is to prove a key selectable.
struct Query {
  std::size_t place = 0;
  std::vector<double> direction{};
};

/// Keys that queries are compared with: all keys of a cloud, or those gathered so far.
class Rivals {
 public:
  /// All keys of the cloud.
  explicit Rivals(const Cloud& cloud) : cloud_(&cloud), all_(true) {}
  /// An empty set.
  [[nodiscard]] static Rivals none(const Cloud& cloud) {
    Rivals result(cloud);
    result.all_ = false;
    return result;
  }

  void add(std::size_t place);
  [[nodiscard]] bool holds(std::size_t place) const;
  [[nodiscard]] std::size_t size() const { return all_ ? cloud_->size() : places_.size(); }
  [[nodiscard]] std::size_t place(std::size_t index) const { return all_ ? index : places_[index]; }
  [[nodiscard]] const float* values(std::size_t index) const;
  [[nodiscard]] const std::vector<std::size_t>& places() const { return places_; }

 private:
  const Cloud* cloud_;
  bool all_;
  std::vector<std::size_t> places_{};
  std::vector<bool> held_{};
  std::vector<float> values_{};
};

struct Challenge {
  std::vector<std::size_t> winners{};  ///< places of keys that may score at least as high, the highest first
  /// If `winners` is empty: a lower bound of min_j qᵀ(z_i − z_j) over the rivals.
  double margin = std::numeric_limits<double>::infinity();
};

/// Scores each query against all rivals in blocked float32 products and names up to `most` rivals that score
/// higher. Comparisons within the float32 error are repeated with the keys themselves.
[[nodiscard]] std::vector<Challenge> challenge(const Cloud& cloud, const Rivals& rivals,
                                               std::span<const Query> queries, std::size_t most,
                                               unsigned threads);

}  // namespace normscope::selectability
