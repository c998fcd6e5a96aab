#include <normscope/nets/construct.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/evaluate.hpp>

namespace normscope::nets {
namespace {

using nets::labels;
using nets::Net;
using nets::trace;

TEST(MergeTrace, OneFoldSolvesExclusiveOr) {
  // p = x + y is 0 and 2 for one class, 1 for the other.
  const std::vector<double> x{0, 0, 1, 1, 0, 1, 1, 0};
  Net net;
  net.layers = {one_fold(std::vector{1.0, 1.0}, 1.0, 1.0)};
  net.head = {.in = 3, .out = 1, .weight = {0, 0, 1}, .bias = {0}};
  const std::vector<double> neurons = trace(net, {x.data(), 4, 2}).front();
  const double root = std::sqrt(0.5);
  const std::vector<double> expected{-root, root, root, root, 0, 1, 0, 1};
  for (std::size_t row = 0; row < 4; ++row) {
    const auto [across, height] = circle_point(Mode::paper, {neurons.data() + 3 * row, 3});
    EXPECT_NEAR(across, expected[2 * row], 1e-15);
    EXPECT_NEAR(height, expected[2 * row + 1], 1e-15);
  }
  // As in the paper's construction.
  EXPECT_NEAR(neurons[0], -0.366, 1e-3);
  EXPECT_NEAR(neurons[8], -std::sqrt(2.0), 1e-15);
  EXPECT_THROW((void)one_fold({}, 0.0, 1.0), Error);
}

RC_GTEST_PROP(MergeTrace, PlacesAreFoldedLayerByLayer, ()) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const Mode mode = *rc::gen::element(Mode::paper, Mode::stable);
  const auto rows = *rc::gen::inRange<std::size_t>(2, 24);
  std::vector<double> x(2 * rows);
  for (double& value : x) value = random.normal();
  std::vector<std::int64_t> labels(rows);
  for (std::int64_t& label : labels) label = static_cast<std::int64_t>(random.below(3));
  const MatrixView<const double> view(x.data(), rows, 2);
  const Construction made = construct(view, labels, {.mode = mode});
  const MergeTrace story = merge_trace(made, mode, view);
  RC_ASSERT(story.layers == made.folds.size());
  RC_ASSERT(story.places.size() == (story.layers + 1) * rows);
  const auto place = [&](std::size_t layer, std::size_t row) { return story.places[layer * rows + row]; };
  // A fold divides the rounding of places and of its midpoint by its radius; the neuron that a place is read
  // from is 1/height, with the rounding of numbers near 1.
  const auto tolerance = [&](const Fold& fold, double from, double to) {
    const double height = mode == Mode::paper ? 1.0 / to : std::sqrt(2.0) * to;
    return 1e-14 * (height * to + (1.0 + std::abs(from) + std::abs(fold.midpoint)) / fold.radius);
  };
  for (std::size_t l = 0; l < story.layers; ++l) {
    const Fold& fold = made.folds[l];
    for (std::size_t row = 0; row < rows; ++row) {
      const double expected = folded_place(mode, fold, place(l, row));
      RC_ASSERT(std::abs(place(l + 1, row) - expected) <= tolerance(fold, place(l, row), expected));
      const double* point = &story.circle[2 * (l * rows + row)];
      RC_ASSERT(std::abs(std::hypot(point[0], point[1]) - 1.0) <= 1e-14);
    }
    if (fold.first == no_row) continue;
    const double together = place(l + 1, fold.first);
    RC_ASSERT(std::abs(together - place(l + 1, fold.second)) <=
              2.0 * tolerance(fold, place(l, fold.first), together));
  }
  // At the end each class is one run of the line.
  std::vector<std::size_t> order(rows);
  for (std::size_t row = 0; row < rows; ++row) order[row] = row;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return place(story.layers, a) < place(story.layers, b); });
  std::size_t runs = 1;
  for (std::size_t k = 1; k < rows; ++k) runs += labels[order[k]] != labels[order[k - 1]] ? 1 : 0;
  const std::size_t classes = std::set<std::int64_t>(labels.begin(), labels.end()).size();
  RC_ASSERT(made.correct < made.total || classes == 1 || runs == classes);
}

TEST(MergeTrace, WithoutLayersIsTheProjection) {
  const std::vector<double> x{0, 0, 1, 0, 5, 0, 6, 0};
  const MatrixView<const double> view(x.data(), 4, 2);
  const std::vector<std::int64_t> apart{0, 0, 1, 1};
  const std::vector<std::int64_t> one{7, 7, 7, 7};
  for (const Mode mode : {Mode::paper, Mode::stable}) {
    const MergeTrace story = merge_trace(construct(view, one, {.mode = mode}), mode, view);
    EXPECT_EQ(story.layers, 0);
    EXPECT_EQ(story.places, std::vector<double>(4, 0.0));
    const Construction made = construct(view, apart, {.mode = mode});
    const MergeTrace two = merge_trace(made, mode, view);
    const bool rising = two.places[0] < two.places[3];
    EXPECT_EQ(rising ? two.places[1] < two.places[2] : two.places[1] > two.places[2], true);
  }
}

}  // namespace
}  // namespace normscope::nets
