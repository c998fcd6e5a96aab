#include "screen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/product.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::selectability {
namespace {

constexpr std::size_t tile = 512;
constexpr float lowest = -std::numeric_limits<float>::infinity();
/// Rows shorter than this fraction of the longest are left to float64.
constexpr double shortest = 0x1p-40;

/// For each token, the highest score of another token at the token's own direction.
struct Highest {
  std::vector<float> score;
  std::vector<std::size_t> constraint;

  explicit Highest(std::size_t tokens) : score(tokens, lowest), constraint(tokens, 0) {}

  // Ties go to the lower index, so that the result does not depend on the order of tiles.
  void see(std::size_t token, float value, std::size_t other) {
    if (value > score[token] || (value == score[token] && other < constraint[token])) {
      score[token] = value;
      constraint[token] = other;
    }
  }
};

class Tiles {
 public:
  Tiles(const Logits& logits, const SinglePrecision& single, std::vector<float> inverse_lengths)
      : logits_(logits), single_(single), inverse_(std::move(inverse_lengths)) {}

  [[nodiscard]] std::size_t strips() const { return (logits_.tokens + tile - 1) / tile; }

  /// Processes all pairs of a token of `strip` with a token of the same or an earlier strip.
  void see_strip(std::size_t strip, Highest& highest, std::vector<float>& products) const {
    products.resize(tile * tile);
    for (std::size_t other = 0; other <= strip; ++other) see_tile(strip, other, highest, products);
  }

 private:
  void see_tile(std::size_t strip, std::size_t other, Highest& highest, std::vector<float>& products) const {
    const std::size_t i0 = strip * tile;
    const std::size_t j0 = other * tile;
    const std::size_t rows = std::min(tile, logits_.tokens - i0);
    const std::size_t columns = std::min(tile, logits_.tokens - j0);
    const std::size_t width = logits_.width;
    multiply(Factor<float>(single_.rows.data() + i0 * width, rows, width, width),
             Factor<float>(single_.rows.data() + j0 * width, columns, width, width).transposed(),
             MatrixView<float>(products.data(), rows, columns));
    if (strip == other) {
      for (std::size_t r = 0; r < rows; ++r) products[r * columns + r] = lowest;
    }
    std::vector<float> down(columns, lowest);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* line = products.data() + r * columns;
      const float across = highest_across(line, j0, columns, inverse_[i0 + r]);
      if (across >= highest.score[i0 + r]) find_across(line, j0, columns, i0 + r, across, highest);
      const float offset = single_.offsets[i0 + r];
      const float* inverse = inverse_.data() + j0;
      for (std::size_t c = 0; c < columns; ++c) {
        const float score = line[c] * inverse[c] + offset;
        down[c] = score > down[c] ? score : down[c];
      }
    }
    if (strip == other) return;  // a tile on the diagonal is symmetric
    for (std::size_t c = 0; c < columns; ++c) {
      if (down[c] >= highest.score[j0 + c])
        find_down(products, i0, rows, columns, c, j0 + c, down[c], highest);
    }
  }

  [[nodiscard]] float highest_across(const float* line, std::size_t j0, std::size_t columns,
                                     float inverse) const {
    constexpr std::size_t lanes = 16;
    float best[lanes];
    std::fill(best, best + lanes, lowest);
    const float* offsets = single_.offsets.data() + j0;
    std::size_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const float score = line[c + lane] * inverse + offsets[c + lane];
        best[lane] = score > best[lane] ? score : best[lane];
      }
    }
    for (; c < columns; ++c) best[0] = std::max(best[0], line[c] * inverse + offsets[c]);
    return *std::max_element(best, best + lanes);
  }

  void find_across(const float* line, std::size_t j0, std::size_t columns, std::size_t token, float score,
                   Highest& highest) const {
    for (std::size_t c = 0; c < columns; ++c) {
      if (line[c] * inverse_[token] + single_.offsets[j0 + c] == score) {
        return highest.see(token, score, j0 + c);
      }
    }
  }

  void find_down(const std::vector<float>& products, std::size_t i0, std::size_t rows, std::size_t columns,
                 std::size_t c, std::size_t token, float score, Highest& highest) const {
    for (std::size_t r = 0; r < rows; ++r) {
      if (products[r * columns + c] * inverse_[token] + single_.offsets[i0 + r] == score) {
        return highest.see(token, score, i0 + r);
      }
    }
  }

  const Logits& logits_;
  const SinglePrecision& single_;
  std::vector<float> inverse_;  ///< 1/|A_i|
};

Highest highest_others(const Tiles& tiles, std::size_t tokens, unsigned threads, const Progress& progress) {
  Highest all(tokens);
  std::mutex merging;
  const std::size_t strips = tiles.strips();
  const std::size_t group = 4 * thread_count(threads);
  for (std::size_t done = 0; done < strips; done += group) {
    progress("screen", done, strips);
    const std::size_t count = std::min(group, strips - done);
    parallel_for(count, 1, threads, [&](std::size_t begin, std::size_t end) {
      Highest some(tokens);
      std::vector<float> products;
      for (std::size_t k = begin; k < end; ++k) {
        // Later strips have more tiles; taking strips from both ends in turn balances the pieces.
        const std::size_t strip = done + k;
        tiles.see_strip(strip % 2 == 0 ? strip / 2 : strips - 1 - strip / 2, some, products);
      }
      const std::scoped_lock lock(merging);
      for (std::size_t token = 0; token < tokens; ++token) {
        all.see(token, some.score[token], some.constraint[token]);
      }
    });
  }
  progress("screen", strips, strips);
  return all;
}

}  // namespace

SinglePrecision single_precision(const Logits& logits) {
  SinglePrecision single;
  const BinaryScale by = BinaryScale::of(logits.scale);
  single.exponent = by.exponent();
  single.rows.reserve(logits.rows.size());
  for (const double value : logits.rows) single.rows.push_back(static_cast<float>(by.divide(value)));
  for (const double value : logits.offsets) single.offsets.push_back(static_cast<float>(by.divide(value)));
  // The bound of the product, then the rounding of entries, point, length and sums.
  const double count = static_cast<double>(logits.width) + static_cast<double>(logits.width / 256) + 16.0;
  single.error = 1.01 * count * 0x1p-24 * logits.scale;
  return single;
}

std::vector<Lead> screen(const Logits& logits, const SinglePrecision& single, unsigned threads,
                         const Progress& progress) {
  std::vector<double> lengths(logits.tokens);
  std::vector<float> inverse(logits.tokens);
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    lengths[token] = euclidean_norm(logits.view().row(token));
    const double scaled = std::scalbn(lengths[token], -single.exponent);
    inverse[token] = scaled > shortest ? static_cast<float>(1.0 / scaled) : 0.0F;
  }
  const Highest highest =
      highest_others(Tiles(logits, single, std::move(inverse)), logits.tokens, threads, progress);
  std::vector<Lead> leads(logits.tokens);
  const double error = single.error + 64.0 * 0x1p-53 * logits.scale + 2.0 * logits.rounding;
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    const bool has_direction = std::scalbn(lengths[token], -single.exponent) > shortest;
    const double other = std::scalbn(static_cast<double>(highest.score[token]), single.exponent);
    leads[token].constraint = highest.constraint[token];
    leads[token].lower = has_direction ? lengths[token] + logits.offsets[token] - other - error
                                       : -std::numeric_limits<double>::infinity();
  }
  return leads;
}

}  // namespace normscope::selectability
