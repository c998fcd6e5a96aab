#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

#include "leads.hpp"
#include "tokens.hpp"

namespace normscope::verify {
namespace {

/// Tokens on each side of a product; its scores fit into the second-level cache.
constexpr std::size_t side = 256;
/// Open rivals of a claim in one product, and in all, beyond which `OpenRivals::all` is set.
constexpr std::size_t most_of_product = 16;
constexpr std::size_t most_rivals = 256;
/// Rows of products between two checks for cancellation.
constexpr std::size_t rows_at_once = 8;

struct OpenPair {
  std::uint32_t token = 0;
  std::uint32_t rival = 0;
};

/// Token i provably leads token j where factor_i P_ij + score_j <= limit_i, P the product in float32.
class OwnProducts {
 public:
  OwnProducts(const Head& head, const std::vector<OwnLead>& claims)
      : head_(head),
        width_(head.width()),
        factor_(head.tokens(), 0.0),
        score_(head.tokens()),
        limit_(head.tokens(), infinity),
        open_(head.tokens()) {
    std::vector<double> turned;
    turned.reserve(head.tokens() * width_);
    for (std::size_t token = 0; token < head.tokens(); ++token) {
      const std::vector<double> row = head.turned(token);
      turned.insert(turned.end(), row.begin(), row.end());
    }
    const MatrixView<const double> rows(turned.data(), head.tokens(), width_);
    const BinaryScale scale = BinaryScale::of(rows);
    single_.reserve(turned.size());
    for (const double value : turned) single_.push_back(static_cast<float>(scale.divide(value)));
    const double square = std::scalbn(1.0, 2 * scale.exponent());
    const double width = static_cast<double>(width_);
    const double single = single_rounding(width_);
    const double relative = (width + 64.0) * 0x1p-50;
    std::vector<double> lengths;
    std::vector<double> errors;
    for (std::size_t token = 0; token < head.tokens(); ++token) {
      const Head::Turned sizes = head.turned_sizes(token);
      lengths.push_back(euclidean_norm(rows.row(token)));
      errors.push_back(relative * (head.radius() * sizes.length + sizes.offset));
      score_[token] = sizes.shift + head.radius() * (single + relative) * lengths[token] + errors[token];
      shift_.push_back(sizes.shift);
    }
    for (const OwnLead& claim : claims) {
      const std::size_t token = claim.token;
      const double length = lengths[token];
      factor_[token] = head.radius() * square / length;
      const double own = head.radius() * length * (1.0 - 0x1p-49);
      limit_[token] = own + shift_[token] - claim.least - errors[token] - relative * own -
                      0x1p-45 * (std::abs(shift_[token]) + std::abs(claim.least)) -
                      8.0 * width * 0x1p-126 * factor_[token];
      open_[token].all = !(length > 0.0) || !std::isfinite(factor_[token]) || !std::isfinite(limit_[token]);
      if (open_[token].all) limit_[token] = infinity;
    }
  }

  void run(unsigned threads, const Progress& progress) {
    const std::size_t tokens = head_.tokens();
    const std::size_t blocks = (tokens + side - 1) / side;
    for (std::size_t first = 0; first < blocks; first += rows_at_once) {
      progress("claim", first, blocks);
      struct Task {
        std::size_t row;
        std::size_t column;
        std::vector<OpenPair> pairs{};
      };
      std::vector<Task> tasks;
      for (std::size_t row = first; row < std::min(blocks, first + rows_at_once); ++row) {
        for (std::size_t column = row; column < blocks; ++column)
          tasks.push_back({row * side, column * side});
      }
      parallel_for(tasks.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<float> products(side * side);
        for (std::size_t i = begin; i < end; ++i) {
          compare(tasks[i].row, tasks[i].column, products.data(), tasks[i].pairs);
        }
      });
      for (const Task& task : tasks) {
        for (const OpenPair& pair : task.pairs) add(pair);
      }
    }
    progress("claim", blocks, blocks);
  }

  [[nodiscard]] std::vector<OpenRivals> results(const std::vector<OwnLead>& claims) {
    std::vector<OpenRivals> results;
    for (const OwnLead& claim : claims) {
      std::sort(open_[claim.token].tokens.begin(), open_[claim.token].tokens.end());
      results.push_back(std::move(open_[claim.token]));
    }
    return results;
  }

 private:
  void add(const OpenPair& pair) {
    OpenRivals& open = open_[pair.token];
    if (open.all) return;
    open.tokens.push_back(pair.rival);
    if (pair.rival != pair.token && open.tokens.size() <= most_rivals) return;
    // A pair of a token with itself says that too many of its rivals are open.
    open.all = true;
    open.tokens = {};
  }

  void compare(std::size_t row, std::size_t column, float* products, std::vector<OpenPair>& pairs) const {
    const std::size_t rows = std::min(side, head_.tokens() - row);
    const std::size_t columns = std::min(side, head_.tokens() - column);
    multiply(Factor<float>(single_.data() + row * width_, rows, width_, width_),
             Factor<float>(single_.data() + column * width_, columns, width_, width_).transposed(),
             MatrixView<float>(products, rows, columns));
    std::vector<std::size_t> found_of_column(columns);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* const line = products + r * columns;
      std::size_t found = 0;
      each_open(
          columns, [&](std::size_t c) { return is_clear(row + r, column + c, line[c]); },
          [&](std::size_t c) { note(row + r, column + c, found, pairs); });
      if (row == column) continue;
      each_open(
          columns, [&](std::size_t c) { return is_clear(column + c, row + r, line[c]); },
          [&](std::size_t c) { note(column + c, row + r, found_of_column[c], pairs); });
    }
  }

  [[nodiscard]] bool is_clear(std::size_t token, std::size_t rival, float product) const {
    return factor_[token] * static_cast<double>(product) + score_[rival] <= limit_[token];
  }

  static void note(std::size_t token, std::size_t rival, std::size_t& found, std::vector<OpenPair>& pairs) {
    if (token == rival || found > most_of_product) return;
    const bool too_many = ++found > most_of_product;
    pairs.push_back(
        {static_cast<std::uint32_t>(token), static_cast<std::uint32_t>(too_many ? token : rival)});
  }

  const Head& head_;
  std::size_t width_;
  std::vector<float> single_{};
  std::vector<double> factor_;
  std::vector<double> score_;
  std::vector<double> limit_;
  std::vector<double> shift_{};
  std::vector<OpenRivals> open_;
};

}  // namespace

std::vector<OpenRivals> open_rivals(const Head& head, const std::vector<OwnLead>& claims, unsigned threads,
                                    const Progress& progress) {
  if (claims.empty()) return {};
  OwnProducts products(head, claims);
  products.run(threads, progress);
  return products.results(claims);
}

}  // namespace normscope::verify
