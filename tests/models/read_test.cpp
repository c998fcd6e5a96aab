#include <vector>

#include <gtest/gtest.h>

#include <normscope/models/model.hpp>

#include "synthetic.hpp"

namespace normscope::models {
namespace {

using test::Synthetic;

/// Output features 1 and 2 of five, of three inputs, in either layout.
Linear part(Layout layout) {
  return {.role = "query",
          .weight = {"w", 0, 15},
          .bias = Slice{"b", 0, 5},
          .layout = layout,
          .in = 3,
          .stored_out = 5,
          .first_out = 1,
          .out = 2};
}

files::Checkpoint stored(Layout layout) {
  Synthetic file;
  if (layout == Layout::out_in) {
    file.add("w", {5, 3});
  } else {
    file.add("w", {3, 5});
  }
  return file.add("b", {5}).open();
}

TEST(ReadLinear, ReadsEitherLayoutAsRowsOfOutputs) {
  for (const Layout layout : {Layout::out_in, Layout::in_out}) {
    const files::Checkpoint checkpoint = stored(layout);
    const std::vector<double> all = files::read(*checkpoint.find("w"));
    const auto at = [&](std::size_t out, std::size_t in) {
      return layout == Layout::out_in ? all[out * 3 + in] : all[in * 5 + out];
    };
    Linear linear = part(layout);
    EXPECT_EQ(read_weight(checkpoint, linear, 0, 2),
              (std::vector<double>{at(1, 0), at(1, 1), at(1, 2), at(2, 0), at(2, 1), at(2, 2)}));
    EXPECT_EQ(read_weight(checkpoint, linear, 1, 1), (std::vector<double>{at(2, 0), at(2, 1), at(2, 2)}));
    linear.out_indices = {4, 0};
    EXPECT_EQ(read_weight(checkpoint, linear, 0, 2),
              (std::vector<double>{at(4, 0), at(4, 1), at(4, 2), at(0, 0), at(0, 1), at(0, 2)}));
  }
}

TEST(ReadLinear, ReadsItsPartOfTheBias) {
  const files::Checkpoint checkpoint = stored(Layout::out_in);
  const std::vector<double> all = files::read(*checkpoint.find("b"));
  Linear linear = part(Layout::out_in);
  EXPECT_EQ(read_bias(checkpoint, linear), (std::vector<double>{all[1], all[2]}));
  linear.out_indices = {3, 5};
  EXPECT_THROW((void)read_bias(checkpoint, linear), Error);
  linear.bias.reset();
  EXPECT_TRUE(read_bias(checkpoint, linear).empty());
}

TEST(ReadLinear, RefusesWhatIsNotThere) {
  const files::Checkpoint checkpoint = stored(Layout::out_in);
  Linear linear = part(Layout::out_in);
  linear.first_out = 4;
  EXPECT_THROW((void)read_weight(checkpoint, linear, 0, 2), Error);
  linear.weight.tensor = "v";
  EXPECT_THROW((void)read_weight(checkpoint, linear, 0, 2), Error);
}

}  // namespace
}  // namespace normscope::models
