#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "key_set.hpp"

namespace normscope::selectability {

/// A query of unit length that is to prove a key selectable.
struct Query {
  std::size_t place = 0;
  std::vector<double> direction{};
};

/// Keys that queries are compared with: all keys of a key set, or those gathered so far.
class Constraints {
 public:
  /// All keys of the key set.
  explicit Constraints(const KeySet& key_set) : key_set_(&key_set), all_(true) {}
  /// An empty set.
  [[nodiscard]] static Constraints none(const KeySet& key_set) {
    Constraints result(key_set);
    result.all_ = false;
    return result;
  }

  void add(std::size_t place);
  [[nodiscard]] bool holds(std::size_t place) const;
  [[nodiscard]] std::size_t size() const { return all_ ? key_set_->size() : places_.size(); }
  [[nodiscard]] std::size_t place(std::size_t index) const { return all_ ? index : places_[index]; }
  [[nodiscard]] const float* values(std::size_t index) const;
  [[nodiscard]] const std::vector<std::size_t>& places() const { return places_; }

 private:
  const KeySet* key_set_;
  bool all_;
  std::vector<std::size_t> places_{};
  std::vector<bool> held_{};
  std::vector<float> values_{};
};

struct ScoredQuery {
  std::vector<std::size_t> violated{};  ///< places of keys that may score at least as high, the highest first
  /// If `violated` is empty: a lower bound of min_j qᵀ(z_i − z_j) over the constraints.
  double margin = std::numeric_limits<double>::infinity();
};

/// Scores each query against all constraints in blocked float32 products and names up to `most` constraints
/// that score higher. Comparisons within the float32 error are repeated with the keys themselves.
[[nodiscard]] std::vector<ScoredQuery> score_queries(const KeySet& key_set, const Constraints& constraints,
                                                     std::span<const Query> queries, std::size_t most,
                                                     unsigned threads);

}  // namespace normscope::selectability
