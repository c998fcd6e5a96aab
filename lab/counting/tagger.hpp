#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tagging.hpp"

/// Recurrent taggers with gradients written by hand. Letters are one-hot over two units; gates and candidate
/// of a unit are σ and tanh of affine maps, and ' marks the previous step:
///   lstm      of x and h':              c = f ∘ c' + i ∘ z,        h = o ∘ tanh(c)
///   ifo_qrnn  of the last `window` x:   c = f ∘ c' + i ∘ z,        h = o ∘ c
///   fo_qrnn   of the last `window` x:   c = f ∘ c' + (1 − f) ∘ z,  h = o ∘ c
/// The window is 2 letters in the first layer and 1 in the next. A label is 1 where  v · h + b > 0  (D1), or
/// v · σ(M h + m) + b > 0  (D2).
///
/// Source    [Merrill et al. 2020, sections 2 and 5]
namespace normscope::lab::counting {

enum class TaggerCell : std::uint8_t { lstm, ifo_qrnn, fo_qrnn };

struct TaggerShape {
  TaggerCell cell = TaggerCell::lstm;
  std::size_t layers = 1;
  bool hidden_decoder = false;  ///< D2
  std::size_t width = 10;
};

/// lstm, qrnn, qrnn_d2, two_qrnns, fo_qrnn, fo_qrnn_d2, two_fo_qrnns; a qrnn without more is an ifo-QRNN.
///
/// Errors    Argument if there is none of that name
[[nodiscard]] TaggerShape tagger(std::string_view name, std::size_t width);

/// Number of parameters of a tagger: for each layer W (maps · width, window · inputs), U of an lstm, and b,
/// with maps in the order z, f, o, i; then those of the decoder.
[[nodiscard]] std::size_t parameters(const TaggerShape& shape);

/// Loss and accuracy on words.
struct Judgement {
  double loss = 0.0;      ///< mean of −log of the right label's probability
  std::size_t right = 0;  ///< number of correct labels
};

/// Forward and backward pass over words of one length, `lanes` at a time.
template <typename Real>
class TaggerPass {
 public:
  explicit TaggerPass(const TaggerShape& shape);
  TaggerPass(TaggerPass&&) noexcept;
  TaggerPass& operator=(TaggerPass&&) noexcept;
  ~TaggerPass();

  /// Requires  `lanes` words of one length of 1 or more, labels for each, the right number of parameters
  ///
  /// Accuracy  in float64 as the formulas, 1e-13 (test: Tagger.FollowsItsFormulas)
  Judgement forward(std::span<const Real> parameters, std::span<const Word> words,
                    std::span<const std::vector<std::uint8_t>> labels);

  /// Gradient of the loss of the words read last.
  ///
  /// Accuracy  in float64 1e-7 relative to central differences (test: Tagger.GradientsAreThoseOfDifferences)
  void backward(std::span<const Real> parameters, std::span<Real> gradient);

  /// For the words read last, (steps, lanes).
  [[nodiscard]] std::span<const Real> logits() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace normscope::lab::counting
