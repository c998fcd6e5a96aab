#include "key_shares.hpp"

#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::lab::language {
namespace {

using selectability::Selectability;
using selectability::Selection;

double share_of(const std::vector<double>& values, std::size_t width, std::size_t& undecided) {
  const std::size_t rows = values.size() / width;
  const Selection selection = selectability::select_keys({values.data(), rows, width}, {.threads = 1});
  undecided += selection.count(Selectability::undecided);
  return static_cast<double>(selection.count(Selectability::unselectable)) / static_cast<double>(rows);
}

/// The product of each row with some rows of a matrix.
std::vector<double> mapped(const std::vector<double>& rows, std::size_t width,
                           std::span<const double> matrix) {
  std::vector<double> result;
  for (std::size_t row = 0; row < rows.size() / width; ++row) {
    for (std::size_t out = 0; out < matrix.size() / width; ++out) {
      double sum = 0.0;
      for (std::size_t f = 0; f < width; ++f) sum += matrix[out * width + f] * rows[row * width + f];
      result.push_back(sum);
    }
  }
  return result;
}

}  // namespace

KeyShares key_shares(std::span<const double> stream, const NormSpec& norm, bool scales,
                     std::span<const double> key_map, std::size_t heads) {
  const std::size_t width = norm.width;
  const std::size_t rows = stream.size() / width;
  std::vector<double> keys(stream.size());
  const MatrixView<const double> from(stream.data(), rows, width);
  const MatrixView<double> to(keys.data(), rows, width);
  // In double: in float32, rounding of the projection would leave a direction of its own.
  if (scales) {
    norm::forward(norm, from, to);
  } else {
    norm::project(norm, from, to);
  }
  KeyShares shares;
  shares.rows = share_of({stream.begin(), stream.end()}, width, shares.undecided);
  shares.keys = share_of(keys, width, shares.undecided);
  const std::size_t head_width = width / heads;
  for (std::size_t head = 0; head < heads; ++head) {
    const auto matrix = key_map.subspan(head * head_width * width, head_width * width);
    shares.in_head +=
        share_of(mapped(keys, width, matrix), head_width, shares.undecided) / static_cast<double>(heads);
  }
  return shares;
}

double normal_share(std::size_t count, std::size_t width, std::size_t sets, std::uint64_t seed) {
  Random random(seed);
  double share = 0.0;
  std::size_t undecided = 0;
  std::vector<double> values(count * width);
  for (std::size_t set = 0; set < sets; ++set) {
    for (double& value : values) value = random.normal();
    share += share_of(values, width, undecided) / static_cast<double>(sets);
  }
  return share;
}

}  // namespace normscope::lab::language
