#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

/// A GPT-2 small enough for its attention to be analysed key by key.
namespace normscope::lab::language {

struct Shape {
  std::size_t vocabulary = 0;
  std::size_t context = 256;
  std::size_t width = 8;
  std::size_t heads = 4;
  std::size_t layers = 4;
  std::size_t hidden = 32;
  bool scales = true;  ///< whether the norm before attention scales, or only projects
  double eps = 1e-5;
  double dropout = 0.1;
  double deviation = 0.02;  ///< standard deviation of initial weights
};

struct Rate {
  double learning = 0.0;  ///< of AdamW, without weight decay
  double clip = 1.0;      ///< largest norm of a gradient
};

/// Like GPT-2, except that the norm before attention has no gain and no bias, and queries, keys and values
/// have no bias. All arithmetic runs on one thread, so a seed determines the numbers.
///
/// Source    [Brody, Alon, Yahav 2023, section 4.2], and the authors' code
class Network {
 public:
  /// Errors    Argument for heads that are not as wide as one of `head_widths`
  Network(const Shape& shape, std::uint64_t seed);
  ~Network();

  /// One step of AdamW on `rows` sequences of context + 1 characters; `noise` seeds the dropout. Returns the
  /// loss in nats per character.
  double train(std::span<const std::uint8_t> pieces, std::size_t rows, const Rate& rate, std::uint64_t noise);
  /// The loss without dropout.
  [[nodiscard]] double loss(std::span<const std::uint8_t> pieces, std::size_t rows);
  /// The input of each layer's norm before attention, for one sequence.
  ///
  /// Shapes    result (layers, sequence.size() · width)
  [[nodiscard]] std::vector<std::vector<double>> attention_inputs(std::span<const std::uint8_t> sequence);
  /// The key map of a layer, heads one below the other.
  ///
  /// Shapes    result (width · width)
  [[nodiscard]] std::vector<double> key_map(std::size_t layer) const;

  /// Weights, the two averages of AdamW, and the number of its steps: the complete state.
  [[nodiscard]] std::vector<float> state() const;
  /// Requires  a state of this shape
  void restore(std::span<const float> state);

 private:
  struct Torch;
  std::unique_ptr<Torch> torch_;
};

}  // namespace normscope::lab::language
