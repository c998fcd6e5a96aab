#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/linear_algebra.hpp>

namespace normscope::norm::detail {

/// Eigenvalues and eigenvectors of G Π G (centered) or G² for the gains of one block.
class BlockImage {
 public:
  BlockImage(std::span<const double> gain, bool centered, unsigned threads, const Progress& progress);

  [[nodiscard]] std::size_t width() const { return gain_.size(); }
  /// √ζ of the nonzero eigenvalues divided by 2^`exponent`, ascending.
  [[nodiscard]] const std::vector<double>& lengths() const { return lengths_; }
  /// Exponent of the power of two near the largest |gain|.
  [[nodiscard]] int exponent() const { return exponent_; }
  [[nodiscard]] std::size_t null_space_dim() const { return width() - lengths_.size(); }

  /// Eigenvector `index` (ascending) of length 1, with positive largest entry. `factors` scales the gains per
  /// pole: all ones, or `orthogonal_factors`.
  void vector(std::size_t index, std::span<const double> factors, std::span<double> out) const;
  [[nodiscard]] std::vector<double> unit_factors() const { return std::vector<double>(poles_.size(), 1.0); }
  /// Factors of the gains for which the computed roots are exact eigenvalues.
  [[nodiscard]] std::vector<double> orthogonal_factors(unsigned threads) const;

  /// Vector `index` of the orthonormal basis of the null space.
  void null_vector(std::size_t index, std::span<double> out) const;

 private:
  /// Identifies an eigenvector: that of a root, or the `index`-th within the coordinates of a pole.
  struct Origin {
    bool is_root;
    std::size_t pole;  ///< the root between `pole` and `pole` + 1, or the pole itself
    std::size_t index;
  };

  [[nodiscard]] std::span<const std::size_t> coordinates(std::size_t pole) const {
    return {order_.data() + starts_[pole], starts_[pole + 1] - starts_[pole]};
  }
  [[nodiscard]] bool has_zero_pole() const { return !poles_.empty() && poles_.front() == 0.0; }
  /// poles[pole] − ζ without cancellation.
  [[nodiscard]] double distance(std::size_t pole, const SecularRoot& root) const {
    return (poles_[pole] - poles_[root.origin]) - root.offset;
  }
  void add_inner_vectors(std::size_t pole, std::size_t count);
  void fill_root_vector(const SecularRoot& root, std::span<const double> factors,
                        std::span<double> out) const;
  void fill_inner_vector(std::size_t pole, std::size_t index, std::span<double> out) const;

  bool centered_;
  int exponent_ = 0;
  std::vector<double> gain_;         ///< divided by 2^`exponent_`, with tiny ones set to zero
  std::vector<std::size_t> order_;   ///< coordinates by ascending square
  std::vector<double> poles_;        ///< distinct squares, ascending
  std::vector<std::size_t> starts_;  ///< pole k owns order_[starts_[k], starts_[k + 1])
  std::vector<SecularRoot> roots_;
  std::vector<Origin> origins_;
  std::vector<double> lengths_;
};

}  // namespace normscope::norm::detail
