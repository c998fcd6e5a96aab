#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cloud.hpp"

namespace normscope::selectability {

/// A query of length one on behalf of a key.
struct Query {
  std::size_t place = 0;
  std::vector<double> direction{};
};

/// Keys that queries are put to: all of a cloud, or those gathered so far.
class Rivals {
 public:
  /// All keys.
  explicit Rivals(const Cloud& cloud) : cloud_(&cloud), all_(true) {}
  /// None yet.
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
  std::vector<std::size_t> winners{};  ///< places that may score as high, the highest first
  /// Where there is none: a lower bound of min_j qᵀ(z_i − z_j) over the rivals.
  double margin = std::numeric_limits<double>::infinity();
};

/// Puts each query to all rivals, in blocked float32 products; names up to `most` that score higher. Where
/// float32 cannot tell, the keys themselves are asked.
[[nodiscard]] std::vector<Challenge> challenge(const Cloud& cloud, const Rivals& rivals,
                                               std::span<const Query> queries, std::size_t most,
                                               unsigned threads);

}  // namespace normscope::selectability
