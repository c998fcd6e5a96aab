#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <normscope/nets/rnn/network.hpp>

/// Forward and backward pass of a network over whole words.
namespace normscope::nets::rnn::detail {

/// Number of words processed side by side.
inline constexpr std::size_t lanes = 8;

class Unroll {
 public:
  explicit Unroll(const Network& network);

  /// Adds loss and gradient of at most `lanes` words, with weight `weight` per word or symbol.
  ///
  /// Requires  words.size() <= lanes, a network of the same sizes as given to the constructor
  void add(const Network& network, std::span<const Labelled* const> words, double weight);

  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] std::size_t right() const { return right_; }
  /// Cell parameters, then output parameters.
  void gradient(std::span<double> values) const;
  /// Resets loss and gradient to 0.
  void clear();

 private:
  struct Words;

  void reserve(std::size_t steps);
  /// Loss after `step` steps, and its derivatives with respect to the outputs.
  void judge(const Network& network, const Words& words, std::size_t step);

  std::size_t width_;
  std::size_t outputs_;
  std::size_t gates_;
  bool has_cell_;
  // After every step, starting with zeros; value i of word l is at [i lanes + l].
  std::vector<double> hidden_{};
  std::vector<double> cell_{};
  std::vector<double> extra_{};
  std::vector<double> gate_values_{};
  std::vector<double> output_slopes_{};
  std::vector<std::uint8_t> symbols_{};
  std::vector<double> delta_;
  std::vector<double> d_hidden_;
  std::vector<double> d_cell_;
  std::vector<double> cell_gradient_;  ///< one number per parameter and word
  std::vector<double> output_gradient_;
  std::array<bool, lanes> ruled_out_{};  ///< words in which a symbol was improbable
  double loss_ = 0.0;
  std::size_t right_ = 0;
};

}  // namespace normscope::nets::rnn::detail
