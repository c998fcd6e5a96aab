#include <normscope/core/binary_scale.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope {
namespace {

[[noreturn]] void refuse(std::string_view who, const std::string& what) {
  throw Error(ErrorCode::Argument, fmt::format("{}: {}", who, what));
}

}  // namespace

void expect_accepted(std::string_view who, std::initializer_list<MatrixView<const double>> sets) {
  std::vector<double> low;
  std::vector<double> high;
  for (const MatrixView<const double>& set : sets) {
    const char* const of_set = sets.size() == 1 ? "" : &set == sets.begin() ? " of A" : " of B";
    for (std::size_t row = 0; row < set.rows(); ++row) {
      const std::span<const double> values = set.row(row);
      if (low.empty()) {
        low.assign(values.begin(), values.end());
        high = low;
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = values[i];
        if (!std::isfinite(value)) {
          refuse(who, fmt::format("row {}{} has {}, expected finite numbers", row, of_set, value));
        }
        if (std::abs(value) > largest_accepted) {
          refuse(who, fmt::format("row {}{} has {}, expected numbers up to 2^100 ({:.2g}); a power of two "
                                  "times all rows has the same answers",
                                  row, of_set, value, largest_accepted));
        }
        low[i] = std::min(low[i], value);
        high[i] = std::max(high[i], value);
      }
    }
  }
  for (std::size_t i = 0; i < low.size(); ++i) {
    const double extent = high[i] - low[i];
    if (!(extent > 0.0) || extent >= least_extent) continue;
    refuse(who,
           fmt::format("column {} extends over {:.3g}, expected 0 or at least 2^-200 ({:.2g}); a power of "
                       "two times the column has the same answers",
                       i, extent, least_extent));
  }
}

void expect_accepted_logits(std::string_view who, double scale) {
  if (scale == 0.0 || (scale >= least_accepted && scale <= largest_accepted)) return;
  refuse(who,
         fmt::format("logits are up to {:.3g} from their mean, expected 2^-100 ({:.2g}) to 2^100 ({:.2g}); "
                     "a power of two times weights and biases has the same answers",
                     scale, least_accepted, largest_accepted));
}

}  // namespace normscope
