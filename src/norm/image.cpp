#include <normscope/norm/image.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

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

namespace {

/// Smaller gains count as zero beside the largest of their block, because their squares must be normal
/// numbers.
constexpr int smallest_exponent = -480;

void make_unit(std::span<double> vector) {
  const auto largest = std::max_element(vector.begin(), vector.end(),
                                        [](double a, double b) { return std::abs(a) < std::abs(b); });
  const double length = std::copysign(euclidean_norm(vector), *largest);
  for (double& value : vector) value /= length;
}

}  // namespace

BlockImage::BlockImage(std::span<const double> gain, bool centered, unsigned threads,
                       const Progress& progress)
    : centered_(centered), gain_(gain.begin(), gain.end()), order_(gain.size()) {
  double largest = 0.0;
  for (const double g : gain_) largest = std::max(largest, std::abs(g));
  exponent_ = largest == 0.0 ? 0 : std::ilogb(largest);
  for (double& g : gain_) {
    g = std::scalbn(g, -exponent_);
    if (std::abs(g) < std::scalbn(1.0, smallest_exponent)) g = 0.0;
  }

  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(gain_[a]) < std::abs(gain_[b]); });
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const double square = gain_[order_[i]] * gain_[order_[i]];
    if (poles_.empty() || square > poles_.back()) {
      poles_.push_back(square);
      starts_.push_back(i);
    }
  }
  starts_.push_back(order_.size());

  if (centered_) {
    std::vector<double> weights(poles_.size());
    for (std::size_t k = 0; k < poles_.size(); ++k) {
      weights[k] = static_cast<double>(coordinates(k).size());
    }
    roots_ = secular_roots(poles_, weights, threads, progress);
  }
  for (std::size_t k = 0; k < poles_.size(); ++k) {
    if (poles_[k] > 0.0) add_inner_vectors(k, coordinates(k).size() - (centered_ ? 1 : 0));
    if (k < roots_.size()) {
      origins_.push_back({true, k, k});
      lengths_.push_back(std::sqrt(poles_[roots_[k].origin] + roots_[k].offset));
    }
  }
}

void BlockImage::add_inner_vectors(std::size_t pole, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    origins_.push_back({false, pole, i});
    lengths_.push_back(std::sqrt(poles_[pole]));
  }
}

void BlockImage::vector(std::size_t index, std::span<const double> factors, std::span<double> out) const {
  const Origin& origin = origins_[index];
  std::fill(out.begin(), out.end(), 0.0);
  if (origin.is_root) {
    fill_root_vector(roots_[origin.index], factors, out);
  } else {
    fill_inner_vector(origin.pole, origin.index, out);
  }
  make_unit(out);
}

void BlockImage::fill_root_vector(const SecularRoot& root, std::span<const double> factors,
                                  std::span<double> out) const {
  for (std::size_t k = 0; k < poles_.size(); ++k) {
    const double factor = factors[k] / distance(k, root);
    for (const std::size_t i : coordinates(k)) out[i] = gain_[i] * factor;
  }
}

void BlockImage::fill_inner_vector(std::size_t pole, std::size_t index, std::span<double> out) const {
  const std::span<const std::size_t> at = coordinates(pole);
  if (!centered_) {
    out[at[index]] = 1.0;
    return;
  }
  // Orthogonal to the block's part of the gain, ±|g| in each entry, and to one another: Helmert contrasts,
  // with the sign of the gain in each entry.
  for (std::size_t j = 0; j <= index; ++j) out[at[j]] = std::copysign(1.0, gain_[at[j]]);
  out[at[index + 1]] = -std::copysign(static_cast<double>(index + 1), gain_[at[index + 1]]);
}

std::vector<double> BlockImage::orthogonal_factors(unsigned threads) const {
  std::vector<double> factors = unit_factors();
  if (!centered_) return factors;
  // With roots ζ_k just below the poles d_k, the square of the rank-one vector at pole i is
  const std::size_t first = has_zero_pole() ? 1 : 0;
  const auto to_root_below = [&](std::size_t i, std::size_t k) {
    return k == 0 ? poles_[i] : distance(i, roots_[k - 1]);
  };
  parallel_for(poles_.size() - first, std::max<std::size_t>(1, 50'000 / poles_.size()), threads,
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t i = first + begin; i < first + end; ++i) {
                   double product = to_root_below(i, i);
                   for (std::size_t k = first; k < i; ++k)
                     product *= to_root_below(i, k) / (poles_[i] - poles_[k]);
                   for (std::size_t k = i + 1; k < poles_.size(); ++k) {
                     product *= to_root_below(i, k) / (poles_[i] - poles_[k]);
                   }
                   const double given = static_cast<double>(coordinates(i).size()) * poles_[i];
                   factors[i] = std::sqrt(static_cast<double>(width()) * product / given);
                 }
               });
  return factors;
}

void BlockImage::null_vector(std::size_t index, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  if (has_zero_pole()) {
    out[coordinates(0)[index]] = 1.0;
    return;
  }
  const double smallest = std::abs(gain_[order_.front()]);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = smallest / gain_[i];
  make_unit(out);
}

}  // namespace normscope::norm::detail

namespace normscope::norm {
namespace {

/// The fraction that centring subtracts from a diagonal entry: 1/n for layer with blocks of n, 0 otherwise.
double centring(const NormSpec& spec) {
  return spec.centers() ? 1.0 / static_cast<double>(spec.block_width()) : 0.0;
}

/// values · 2^-exponent, with the largest near one, so that their fourth powers stay in range.
struct Scaled {
  std::vector<double> values;
  int exponent;

  explicit Scaled(std::vector<double> given)
      : values(std::move(given)), exponent(BinaryScale::of(values).exponent()) {
    BinaryScale::of_exponent(exponent).divide(values);
  }
};

Scaled scaled_gain(const NormSpec& spec) {
  std::vector<double> gain = spec.gain;
  gain.resize(spec.width, 1.0);
  return Scaled(std::move(gain));
}

/// `rms_radius` divided by the power of two that the gain was divided by.
double scaled_radius(const NormSpec& spec, const Scaled& gain) {
  if (centring(spec) == 1.0) return 0.0;
  return spec.radius() * std::sqrt(sum_of_squares(gain.values) / static_cast<double>(spec.block_width()));
}

/// tr((G_a Π_a G_a)(G_b Π_b G_b)): both are diagonal minus rank one per block, so the trace of the product
/// needs Σ g_a² g_b² and, if two blocks overlap, (Σ g_a g_b)².
double inner_product(const NormSpec& a, const NormSpec& b, const std::vector<double>& ga,
                     const std::vector<double>& gb) {
  // Blocks of one centred entry are points; the difference below would be rounding.
  if (centring(a) == 1.0 || centring(b) == 1.0) return 0.0;
  CompensatedSum squares;
  for (std::size_t i = 0; i < a.width; ++i) squares.add(ga[i] * gb[i] * ga[i] * gb[i]);
  CompensatedSum crossed;
  for (std::size_t begin = 0; begin < a.width;) {
    const std::size_t end_a = (begin / a.block_width() + 1) * a.block_width();
    const std::size_t end = std::min(end_a, (begin / b.block_width() + 1) * b.block_width());
    CompensatedSum overlap;
    for (std::size_t i = begin; i < end; ++i) overlap.add(ga[i] * gb[i]);
    crossed.add(overlap.value() * overlap.value());
    begin = end;
  }
  return squares.value() * (1.0 - centring(a) - centring(b)) + crossed.value() * centring(a) * centring(b);
}

}  // namespace

/// The block of a semi-axis, and the index of its eigenvector in the block.
struct NormImage::Origin {
  std::size_t block;
  std::size_t index;
};

struct NormImage::Blocks {
  std::vector<detail::BlockImage> images;
  std::vector<Origin> origins;  ///< by descending length

  /// Returns the part of `vector` that belongs to block `block`; sets the rest to zero.
  [[nodiscard]] std::span<double> only(std::size_t block, std::span<double> vector) const {
    std::fill(vector.begin(), vector.end(), 0.0);
    const std::size_t width = images[block].width();
    return vector.subspan(block * width, width);
  }
};

NormImage::NormImage(const NormSpec& spec, unsigned threads, const Progress& progress)
    : width_(spec.width), blocks_(std::make_unique<Blocks>()) {
  validate(spec);
  std::vector<double> gain = spec.gain;
  gain.resize(spec.width, 1.0);
  // A box has the axes of the ellipsoid in it.
  const std::size_t block_width = spec.elementwise() ? spec.width : spec.block_width();
  std::vector<Origin>& origins = blocks_->origins;
  for (std::size_t block = 0; block < spec.width / block_width; ++block) {
    blocks_->images.emplace_back(std::span<const double>(gain).subspan(block * block_width, block_width),
                                 spec.centers(), threads, progress);
    for (std::size_t i = 0; i < blocks_->images.back().lengths().size(); ++i) origins.push_back({block, i});
  }
  // In normal range with a separate exponent: the lengths themselves may be subnormal.
  const auto length = [&](const Origin& origin) {
    return blocks_->images[origin.block].lengths()[origin.index];
  };
  const auto exponent = [&](const Origin& origin) { return blocks_->images[origin.block].exponent(); };
  std::stable_sort(origins.begin(), origins.end(), [&](const Origin& a, const Origin& b) {
    return length(a) > std::scalbn(length(b), exponent(b) - exponent(a));
  });
  semi_axes_.reserve(origins.size());
  for (const Origin& origin : origins) {
    semi_axes_.push_back(std::scalbn(spec.radius() * length(origin), exponent(origin)));
  }
  if (origins.empty()) return;
  if (!std::isfinite(semi_axes_.front())) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("norm: gains of 2^{} give semi-axes beyond the range of float64, expected smaller ones",
                    exponent(origins.front())));
  }
  condition_ = std::scalbn(length(origins.front()) / length(origins.back()),
                           exponent(origins.front()) - exponent(origins.back()));
}

NormImage::NormImage(NormImage&&) noexcept = default;
NormImage& NormImage::operator=(NormImage&&) noexcept = default;
NormImage::~NormImage() = default;

double NormImage::median() const {
  if (semi_axes_.empty()) return 0.0;
  const std::size_t middle = semi_axes_.size() / 2;
  return semi_axes_.size() % 2 == 1 ? semi_axes_[middle]
                                    : 0.5 * semi_axes_[middle - 1] + 0.5 * semi_axes_[middle];
}

void NormImage::axis(std::size_t rank, std::span<double> axis) const {
  NORMSCOPE_ASSERT(rank < semi_axes_.size() && axis.size() == width_);
  const Origin& origin = blocks_->origins[rank];
  const detail::BlockImage& image = blocks_->images[origin.block];
  image.vector(origin.index, image.unit_factors(), blocks_->only(origin.block, axis));
}

void NormImage::axes(std::size_t first, MatrixView<double> axes, unsigned threads) const {
  NORMSCOPE_ASSERT(first + axes.rows() <= semi_axes_.size() && axes.width() == width_);
  std::vector<std::vector<double>> factors(blocks_->images.size());
  for (std::size_t row = 0; row < axes.rows(); ++row) {
    const Origin& origin = blocks_->origins[first + row];
    const detail::BlockImage& image = blocks_->images[origin.block];
    std::vector<double>& of_block = factors[origin.block];
    if (of_block.empty()) of_block = image.orthogonal_factors(threads);
    image.vector(origin.index, of_block, blocks_->only(origin.block, axes.row(row)));
  }
}

void NormImage::null_space(MatrixView<double> basis) const {
  NORMSCOPE_ASSERT(basis.rows() == null_space_dim() && basis.width() == width_);
  std::size_t row = 0;
  for (std::size_t block = 0; block < blocks_->images.size(); ++block) {
    const detail::BlockImage& image = blocks_->images[block];
    for (std::size_t i = 0; i < image.null_space_dim(); ++i) {
      image.null_vector(i, blocks_->only(block, basis.row(row++)));
    }
  }
}

double longest_axes_cosine(const NormImage& a, const NormImage& b) {
  if (a.width() != b.width()) {
    throw Error(ErrorCode::Shape, fmt::format("longest_axes_cosine: widths are {} and {}, expected equal",
                                              a.width(), b.width()));
  }
  if (a.semi_axes().empty() || b.semi_axes().empty()) return 0.0;
  std::vector<double> first(a.width());
  std::vector<double> second(b.width());
  a.axis(0, first);
  b.axis(0, second);
  CompensatedSum cosine;
  for (std::size_t i = 0; i < first.size(); ++i) cosine.add(first[i] * second[i]);
  return std::abs(cosine.value());
}

double energy(const NormSpec& spec) {
  validate(spec);
  const Scaled gain = scaled_gain(spec);
  const double squares = spec.radius() * spec.radius() * (1.0 - centring(spec)) * sum_of_squares(gain.values);
  return std::scalbn(squares, 2 * gain.exponent);
}

double rms_radius(const NormSpec& spec) {
  validate(spec);
  const Scaled gain = scaled_gain(spec);
  return std::scalbn(scaled_radius(spec, gain), gain.exponent);
}

std::optional<double> shift_over_radius(const NormSpec& spec) {
  validate(spec);
  const Scaled gain = scaled_gain(spec);
  const double radius = scaled_radius(spec, gain);
  if (radius == 0.0) return std::nullopt;
  const Scaled bias(spec.bias);
  return std::scalbn(std::sqrt(sum_of_squares(bias.values)) / radius, bias.exponent - gain.exponent);
}

double effective_dimension(const NormSpec& spec) {
  validate(spec);
  const std::vector<double> gain = scaled_gain(spec).values;
  const double trace = (1.0 - centring(spec)) * sum_of_squares(gain);
  const double square = inner_product(spec, spec, gain, gain);
  return square > 0.0 ? trace * trace / square : 0.0;
}

double image_similarity(const NormSpec& a, const NormSpec& b) {
  validate(a);
  validate(b);
  if (a.width != b.width) {
    throw Error(ErrorCode::Shape,
                fmt::format("image_similarity: widths are {} and {}, expected equal", a.width, b.width));
  }
  const std::vector<double> ga = scaled_gain(a).values;
  const std::vector<double> gb = scaled_gain(b).values;
  const double square_a = inner_product(a, a, ga, ga);
  const double square_b = inner_product(b, b, gb, gb);
  if (square_a <= 0.0 || square_b <= 0.0) return 0.0;
  return inner_product(a, b, ga, gb) / (std::sqrt(square_a) * std::sqrt(square_b));
}

}  // namespace normscope::norm
