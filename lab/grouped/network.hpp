#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/norm_kind.hpp>
#include <normscope/core/norm_spec.hpp>

#include "gpt/recipe.hpp"

/// Networks with grouped LayerNorms (LN-G) or other norms in their place, computed by torch.
namespace normscope::lab::grouped {

enum class Kind {
  language,     ///< a Pre-LN GPT over tokens
  vision,       ///< a Pre-LN ViT over patches, with the mean over its last norm's output
  convolution,  ///< three 3 × 3 convolutions, the last two of stride 2, averaged over positions
};

/// What follows each convolution; transformers use norms.
enum class Between { norm, relu, nothing };

/// Source    [Ni et al. 2024, LN-G in place of LN]; sizes are ours
struct Shape {
  Kind kind = Kind::language;
  std::size_t width = 0;   ///< features of a token, channels of a convolution
  std::size_t groups = 1;  ///< divides `width`; statistics are per position and group, with gain and bias
  std::size_t layers = 0;  ///< of a transformer
  std::size_t heads = 0;   ///< of a transformer; divides `width`
  std::size_t length = 0;  ///< tokens of a language model
  std::size_t side = 0;    ///< pixels of an image's side
  std::size_t patch = 0;   ///< pixels of a patch's side; divides `side`
  std::size_t classes = 0;
  Between between = Between::norm;
  double eps = 1e-5;
  NormKind norm = NormKind::layer;  ///< not spherical; several groups need layer
  bool peri = false;     ///< a transformer's attention and MLP are followed by a norm as well (Peri-LN)
  bool qk_norm = false;  ///< LayerNorm of each head's queries and keys (QK-norm)
  /// Initial value of a learned scalar that multiplies a language model's embeddings; 0: there is none.
  double embedding_scalar = 0.0;
  double alpha_attention = 0.5;  ///< initial α of DyT and Derf, of the norms around attention
  double alpha_other = 0.5;      ///< of all other norms
  /// Constant denominators of the stream's LayerNorms, one a norm in the order of the forward pass; QK-norms
  /// keep theirs. Empty: the standard deviation of each row.
  std::vector<double> frozen{};
};

/// Statistics of the input of one norm, over all rows of a batch.
struct NormInput {
  std::string norm;              ///< "block0.norm1"
  double cosine = 0.0;           ///< mean of x·1/(|x| sqrt(width))
  double cosine_size = 0.0;      ///< mean of its absolute value
  double sigma = 0.0;            ///< mean standard deviation over the features, with eps
  double sigma_deviation = 0.0;  ///< its standard deviation over rows
  double mean_square = 0.0;      ///< of all entries
};

/// Statistics of one forward pass.
struct Observation {
  std::vector<NormInput> norms{};  ///< in the order of the forward pass
  /// Largest absolute attention score that the softmax sees, with its factor 1/√depth.
  double largest_score = 0.0;
};

/// Input of a network: tokens (rows × length) and as many labels, or pixels (rows × 3 × side × side) and one
/// label per row.
struct Batch {
  std::size_t rows = 0;
  std::vector<std::int64_t> tokens{};
  std::vector<float> pixels{};
  std::vector<std::int64_t> labels{};
};

/// Mean negative log-likelihood in nats, and the accuracy.
struct Score {
  double loss = 0.0;
  double accuracy = 0.0;
};

/// The parameters are passed as one flat vector in the order of `parameters`. On one machine, device
/// and thread the same input gives the same bits.
class Network {
 public:
  /// Errors    Argument for groups or heads that do not divide the width, or a patch the side; for groups or
  ///           frozen denominators of other norms than LayerNorm, or not one for each norm
  explicit Network(const Shape& shape);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }

  /// The mean loss; stores its gradient in `gradient`.
  ///
  /// Shapes    values, gradient (total count of the parameters)
  double loss_and_gradient(std::span<const float> values, const Batch& batch,
                           std::span<float> gradient) const;

  [[nodiscard]] Score score(std::span<const float> values, const Batch& batch) const;

  [[nodiscard]] Observation observe(std::span<const float> values, const Batch& batch) const;

 private:
  Shape shape_;
  std::vector<Parameter> parameters_;
};

/// The norm of these networks, including gain and bias.
///
/// Shapes    rows (any × spec.width), and so the result
///
/// Requires  spec.kind is layer
///
/// Accuracy  norm::forward to 2e-6 (test: Grouped.TheNormIsOurs)
[[nodiscard]] std::vector<float> grouped_norm(const NormSpec& spec, std::span<const float> rows);

}  // namespace normscope::lab::grouped
