#include <normscope/nets/scatter.hpp>

#include <cmath>

#include <normscope/core/sum.hpp>

#include "classes.hpp"

namespace normscope::nets {

double sum_of_squares(MatrixView<const double> x) {
  const BinaryScale scale = common_scale(x, 1);
  std::vector<double> squares(x.width());
  for_each_feature(x, 1, [&](std::size_t index, std::span<double> feature) {
    center_feature(feature, scale);
    squares[index] = normscope::sum_of_squares(feature);
  });
  return std::scalbn(sum(squares), 2 * scale.exponent());
}

double sum_of_squares_ratio(MatrixView<const double> x, std::span<const std::size_t> labels,
                            unsigned threads) {
  const Classes classes = checked_classes(x, labels);
  const BinaryScale scale = common_scale(x, threads);
  std::vector<double> within(x.width());
  std::vector<double> total(x.width());
  for_each_feature(x, threads, [&](std::size_t index, std::span<double> feature) {
    center_feature(feature, scale);
    const Squares squares = squares_of(feature, classes);
    within[index] = squares.within;
    total[index] = squares.total;
  });
  return Squares{sum(within), sum(total)}.ratio();
}

}  // namespace normscope::nets
