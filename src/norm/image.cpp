#include <normscope/norm/image.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "block_image.hpp"

namespace normscope::norm {

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

}  // namespace normscope::norm
