#pragma once

#include <cstddef>
#include <vector>

#include "key_set.hpp"

namespace normscope::selectability {

/// Scores of every key with itself as the query: z_i is selectable if z_iᵀz_i > max_j z_iᵀz_j. The first step
/// compares all keys with the longest ones, which eliminates most; each further step processes one block of
/// the others.
class OwnDirection {
 public:
  enum class Outcome : unsigned char { open, beaten };

  explicit OwnDirection(const KeySet& key_set);

  [[nodiscard]] bool done() const { return step_ >= steps(); }
  [[nodiscard]] std::size_t steps() const;
  [[nodiscard]] std::size_t steps_done() const { return step_; }
  void step(unsigned threads);

  /// Whether another key certainly scores at least as high.
  [[nodiscard]] bool beaten(std::size_t place) const { return outcomes_[place] == Outcome::beaten; }
  /// A lower bound of min_j z_iᵀ(z_i − z_j)/|z_i|; proves nothing unless positive.
  ///
  /// Requires  done() and not beaten(place)
  [[nodiscard]] double margin(std::size_t place) const;

 private:
  void meet_the_longest(unsigned threads);
  void gather();
  void meet_one_another(std::size_t row_block, unsigned threads);
  [[nodiscard]] double length(std::size_t rank) const { return key_set_.length(order_[rank]); }

  const KeySet& key_set_;
  std::size_t step_ = 0;
  std::vector<Outcome> outcomes_;
  std::vector<double> rivals_;  ///< upper bounds of max_j z_iᵀz_j
  std::size_t open_ = 0;
  std::vector<std::size_t> order_{};  ///< places of undecided keys, then of eliminated ones
  std::vector<float> gathered_{};     ///< their values, if the order differs from the key_set's
};

}  // namespace normscope::selectability
