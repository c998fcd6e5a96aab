#include "lead_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/snapshot.hpp>

#include "float_scores.hpp"

namespace normscope::selectability {
namespace {

/// Rows shorter than this fraction of the longest are left to float64.
constexpr double shortest = 0x1p-40;
/// Blocks of rows screened between two checks for cancellation.
constexpr std::size_t blocks_at_once = 8;

/// The tokens' rows. The direction of row i is A_i/|A_i|, so the score of row j there is their product over
/// |A_i| plus the offset of j.
class TokenProducts {
 public:
  static constexpr std::size_t tile = 512;

  TokenProducts(const Logits& logits, const SinglePrecision& single, std::vector<float> inverse_lengths)
      : logits_(logits), single_(single), inverse_(std::move(inverse_lengths)), highest_(logits.tokens) {}

  [[nodiscard]] std::size_t size() const { return logits_.tokens; }
  [[nodiscard]] std::size_t width() const { return logits_.width; }
  [[nodiscard]] const float* values(std::size_t token) const { return single_.rows.data() + token * width(); }

  [[nodiscard]] HighestScore across(const float* products, std::size_t token, std::size_t column,
                                    std::size_t count) const {
    const float* const offsets = single_.offsets.data() + column;
    const float inverse = inverse_[token];
    const float score = largest(count, [&](std::size_t c) { return products[c] * inverse + offsets[c]; });
    // If the score is lower than the known one, the token is not needed.
    for (std::size_t c = 0; score >= highest_[token].score && c < count; ++c) {
      if (products[c] * inverse + offsets[c] == score) return {score, column + c};
    }
    return {};
  }
  void down(const float* products, std::size_t token, std::size_t column, std::size_t count,
            float* best) const {
    const float* const inverse = inverse_.data() + column;
    const float offset = single_.offsets[token];
    for (std::size_t c = 0; c < count; ++c) {
      const float score = products[c] * inverse[c] + offset;
      best[c] = score > best[c] ? score : best[c];
    }
  }
  [[nodiscard]] HighestScore find(const float* products, std::size_t token, std::size_t tokens,
                                  std::size_t column, std::size_t columns, std::size_t c, float score) const {
    for (std::size_t r = 0; score >= highest_[column + c].score && r < tokens; ++r) {
      if (products[r * columns + c] * inverse_[column + c] + single_.offsets[token + r] == score) {
        return {score, token + r};
      }
    }
    return {};
  }

  // Ties go to the lower index, so that the result does not depend on the order of blocks.
  void see(std::size_t token, HighestScore other) {
    HighestScore& known = highest_[token];
    const bool is_first = other.score == known.score && other.other < known.other;
    if (other.score > known.score || is_first) known = other;
  }
  [[nodiscard]] const std::vector<HighestScore>& highest() const { return highest_; }

  /// Adds what the other members saw.
  void share(const Team& team) {
    if (team.size() == 1) return;
    Packer own;
    own.put(highest_);
    for (const std::vector<std::byte>& bytes : gathered(own.bytes(), team)) {
      Unpacker from(bytes);
      std::vector<HighestScore> theirs;
      from.get(theirs);
      for (std::size_t token = 0; token < theirs.size(); ++token) see(token, theirs[token]);
    }
  }

 private:
  const Logits& logits_;
  const SinglePrecision& single_;
  std::vector<float> inverse_;  ///< 1/|A_i|
  std::vector<HighestScore> highest_;
};

}  // namespace

SinglePrecision single_precision(const Logits& logits) {
  SinglePrecision single;
  const BinaryScale by = BinaryScale::of(logits.scale);
  single.exponent = by.exponent();
  single.rows.reserve(logits.rows.size());
  for (const double value : logits.rows) single.rows.push_back(static_cast<float>(by.divide(value)));
  for (const double value : logits.offsets) single.offsets.push_back(static_cast<float>(by.divide(value)));
  // The bound of the product, then the rounding of entries, point, length and sums.
  const std::size_t roundings = logits.width + logits.width / 256 + 16;
  single.error = 1.01 * static_cast<double>(roundings) * 0x1p-24 * logits.scale;
  return single;
}

std::vector<Lead> screen(const Logits& logits, const SinglePrecision& single, unsigned threads,
                         const Progress& progress, const Team& team) {
  std::vector<double> lengths(logits.tokens);
  std::vector<float> inverse(logits.tokens);
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    lengths[token] = euclidean_norm(logits.view().row(token));
    const double scaled = std::scalbn(lengths[token], -single.exponent);
    inverse[token] = scaled > shortest ? static_cast<float>(1.0 / scaled) : 0.0F;
  }
  TokenProducts products(logits, single, std::move(inverse));
  const auto see = [&](std::size_t token, HighestScore highest, std::size_t) {
    products.see(token, highest);
  };
  const std::size_t blocks = (logits.tokens + TokenProducts::tile - 1) / TokenProducts::tile;
  const std::size_t at_once = team.size() == 1 ? blocks_at_once : 1;
  together(team, [&] {
    // Later blocks of rows have fewer tiles; every other round deals them out in the opposite order.
    for (std::size_t round = 0; round * team.size() * at_once < blocks; ++round) {
      const std::size_t place = round % 2 == 0 ? team.rank() : team.size() - 1 - team.rank();
      const std::size_t first = (round * team.size() + place) * at_once;
      progress("screen", std::min(blocks, first), blocks);
      if (first < blocks) {
        screen_row_blocks(products, first, first + at_once, logits.tokens, threads, see);
      }
    }
    progress("screen", blocks, blocks);
  });
  products.share(team);
  const std::vector<HighestScore>& highest = products.highest();
  std::vector<Lead> leads(logits.tokens);
  const double error = single.error + 64.0 * 0x1p-53 * logits.scale + 2.0 * logits.rounding;
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    const bool has_direction = std::scalbn(lengths[token], -single.exponent) > shortest;
    const double other = std::scalbn(static_cast<double>(highest[token].score), single.exponent);
    leads[token].constraint = highest[token].other;
    leads[token].lower = has_direction ? lengths[token] + logits.offsets[token] - other - error
                                       : -std::numeric_limits<double>::infinity();
  }
  return leads;
}

}  // namespace normscope::selectability
