#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/norm/norm.hpp>

#include "nets/nets.hpp"

namespace normscope::nets {
namespace {

using test::random_layer;
using test::random_net;
using test::random_values;

/// Evaluates one row by the definition.
std::vector<double> definition(const Layer& layer, const std::vector<double>& x) {
  std::vector<double> y = layer.bias;
  for (std::size_t o = 0; o < layer.out; ++o) {
    for (std::size_t i = 0; i < layer.in; ++i) y[o] += layer.weight[o * layer.in + i] * x[i];
  }
  if (layer.activation == Activation::norm) {
    const MatrixView<double> row(y.data(), 1, y.size());
    norm::forward(layer.norm, row, row);
  }
  for (double& value : y) {
    if (layer.activation == Activation::relu) value = std::max(value, 0.0);
    if (layer.activation == Activation::gelu) value *= 0.5 * (1.0 + std::erf(value / std::sqrt(2.0)));
  }
  return y;
}

RC_GTEST_PROP(Net, LayersAreTheNorm, (std::uint64_t seed)) {
  const Net net = random_net(seed);
  const std::vector<double> x = random_values(3 * 4, seed + 100);
  const std::vector<double> outputs = evaluate(net, {x.data(), 3, 4});
  const std::vector<std::vector<double>> activations = trace(net, {x.data(), 3, 4});
  for (std::size_t row = 0; row < 3; ++row) {
    std::vector<double> now(x.begin() + static_cast<std::ptrdiff_t>(4 * row),
                            x.begin() + static_cast<std::ptrdiff_t>(4 * row + 4));
    for (std::size_t l = 0; l < net.layers.size(); ++l) {
      const std::vector<double> expected = definition(net.layers[l], now);
      // Layer by layer, so that an ill-conditioned layer does not amplify the errors of earlier ones.
      for (std::size_t i = 0; i < expected.size(); ++i) {
        now.resize(expected.size());
        now[i] = activations[l][row * expected.size() + i];
        RC_ASSERT(std::abs(now[i] - expected[i]) <= 1e-13 * (10.0 + std::abs(expected[i])));
      }
    }
    const std::vector<double> expected = definition(net.head, now);
    for (std::size_t i = 0; i < 2; ++i) RC_ASSERT(std::abs(outputs[row * 2 + i] - expected[i]) <= 1e-12);
    RC_ASSERT(labels(net, {x.data(), 3, 4})[row] == (outputs[row * 2 + 1] > outputs[row * 2] ? -1 : 7));
  }
}

TEST(Net, EveryKindIsTheNormOfTheTableOrRefused) {
  const std::vector<double> x = random_values(3 * 4, 7);
  for (const NormKindFacts& row : norm_kinds) {
    Net net{.layers = {random_layer(4, 6, Activation::norm, 3)},
            .head = random_layer(6, 1, Activation::none, 4)};
    net.layers[0].norm.kind = row.kind;
    const MatrixView<const double> rows(x.data(), 3, 4);
    if (is_elementwise(row.kind)) {
      EXPECT_THROW((void)trace(net, rows), Error) << row.name;
      continue;
    }
    const std::vector<double> given = trace(net, rows)[0];
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<double> expected =
          definition(net.layers[0], {x.begin() + static_cast<std::ptrdiff_t>(4 * i),
                                     x.begin() + static_cast<std::ptrdiff_t>(4 * i + 4)});
      for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(given[6 * i + j], expected[j], 1e-13) << row.name;
    }
  }
}

TEST(Net, LayersAreTheNormFarFromZero) {
  constexpr std::size_t width = 4;
  std::vector<double> identity(width * width);
  for (std::size_t i = 0; i < width; ++i) identity[i * width + i] = 1.0;
  const NormSpec norm{.width = width, .eps = 0.0};
  Net net{.layers = {{.in = width,
                      .out = width,
                      .weight = identity,
                      .bias = std::vector<double>(width),
                      .activation = Activation::norm,
                      .norm = norm}},
          .head = {.in = width, .out = 1, .weight = std::vector<double>(width), .bias = {0.0}}};
  for (const double far : {0.0, 1e3, 1e6, 1e9}) {
    std::vector<double> x = random_values(width, 3);
    for (double& value : x) value += far;
    std::vector<double> expected(width);
    norm::forward(norm, {x.data(), 1, width}, {expected.data(), 1, width});
    const std::vector<double> given = trace(net, {x.data(), 1, width})[0];
    for (std::size_t i = 0; i < width; ++i) EXPECT_NEAR(given[i], expected[i], 1e-13 * (far + 10.0)) << far;
  }
}

TEST(Net, RowsAndThreadsDoNotChangeBits) {
  const Net net = random_net(1);
  const std::size_t rows = 1000;
  const std::vector<double> x = random_values(rows * 4, 2);
  const std::vector<double> one = evaluate(net, {x.data(), rows, 4}, 1);
  EXPECT_EQ(one, evaluate(net, {x.data(), rows, 4}, 5));
  for (const std::size_t row : {0UL, 63UL, 64UL, 999UL}) {
    const std::vector<double> alone = evaluate(net, {x.data() + row * 4, 1, 4});
    EXPECT_EQ(alone, std::vector<double>(one.begin() + row * 2, one.begin() + row * 2 + 2));
  }
  EXPECT_TRUE(evaluate(net, {x.data(), 0, 4}).empty());
}

TEST(Net, ABlockWithoutDeviationGivesTheBias) {
  Net net;
  net.layers = {random_layer(2, 3, Activation::norm, 3)};
  net.layers[0].weight.assign(6, 0.0);
  net.layers[0].bias.assign(3, 0.5);
  net.layers[0].norm = {.width = 3, .eps = 0.0, .bias = {1.0, 2.0, 3.0}};
  net.head = random_layer(3, 2, Activation::none, 4);
  const std::vector<double> x = {1.0, 2.0};
  EXPECT_EQ(trace(net, {x.data(), 1, 2})[0], (std::vector<double>{1.0, 2.0, 3.0}));
}

TEST(Net, DoubleDoubleKeepsWhatDoublesLose) {
  // (1 + 2^-80) − 1 in the layer, and it is what decides the class.
  Net net;
  net.precision = Precision::double_double;
  net.layers = {
      {.in = 1, .out = 1, .weight = {1.0}, .bias = {-1.0}, .weight_low = {0x1p-80}, .bias_low = {0.0}}};
  net.head = {.in = 1,
              .out = 2,
              .weight = {0.0, 1.0},
              .bias = {0.0, -0x1p-81},
              .weight_low = {0.0, 0.0},
              .bias_low = {0.0, 0.0}};
  const std::vector<double> x = {1.0};
  EXPECT_EQ(evaluate(net, {x.data(), 1, 1}), (std::vector<double>{0.0, 0x1p-81}));
  EXPECT_EQ(trace(net, {x.data(), 1, 1})[0], std::vector<double>{0x1p-80});
  EXPECT_EQ(labels(net, {x.data(), 1, 1}), std::vector<std::int64_t>{1});
  net.precision = Precision::float64;
  EXPECT_THROW(validate(net), Error);
}

RC_GTEST_PROP(Net, DoubleDoubleIsTheSameNet, (std::uint64_t seed)) {
  Net net = random_net(seed);
  net.layers[3].activation = Activation::none;
  const std::vector<double> x = random_values(70 * 4, seed + 100);
  const std::vector<double> plain = evaluate(net, {x.data(), 70, 4});
  for (Layer& layer : net.layers)
    layer.weight_low.resize(layer.weight.size()), layer.bias_low.resize(layer.out);
  net.head.weight_low.resize(net.head.weight.size());
  net.head.bias_low.resize(net.head.out);
  net.precision = Precision::double_double;
  const std::vector<double> wide = evaluate(net, {x.data(), 70, 4}, 3);
  for (std::size_t i = 0; i < plain.size(); ++i) RC_ASSERT(std::abs(plain[i] - wide[i]) <= 1e-9);
}

TEST(Net, BrokenNetsAreNamed) {
  const auto complaint = [](const Net& net) -> std::string {
    try {
      validate(net);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint(random_net(5)), "");
  Net net = random_net(5);
  net.layers[1].bias.pop_back();
  EXPECT_EQ(complaint(net), "net: layer 1: bias has 5 entries, expected 6");
  net = random_net(5);
  net.layers[3].in = 5;
  net.layers[3].weight.resize(25);
  EXPECT_EQ(complaint(net), "net: layer 3: reads 5 features, the layer before it writes 6");
  net = random_net(5);
  net.layers[2].norm.width = 4;
  EXPECT_EQ(complaint(net), "net: layer 2: norm has width 4, expected 6");
  net = random_net(5);
  net.layers[0].weight[3] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(complaint(net), "net: layer 0: weight[3] is inf, expected a finite number");
  net = random_net(5);
  net.head.activation = Activation::relu;
  EXPECT_EQ(complaint(net), "net: head: has activation relu, expected none");
  net = random_net(5);
  net.classes.push_back(3);
  EXPECT_EQ(complaint(net), "net: has 3 classes, the head has 2 outputs");
  net = random_net(5);
  net.layers[0].bias_low = {1.0};
  EXPECT_EQ(complaint(net), "net: layer 0: low part of bias has 1 entries, expected 0");
  net.precision = Precision::double_double;
  EXPECT_EQ(complaint(net), "net: layer 0: low part of weight has 0 entries, expected 24");
  net.layers[0].weight_low.resize(24, 1.0);
  EXPECT_NE(
      complaint(net).find("net: layer 0: low part of weight[0] is 1, expected less than the rounding of"),
      std::string::npos);
  const std::vector<double> x(6);
  EXPECT_THROW(static_cast<void>(evaluate(random_net(5), {x.data(), 2, 3})), Error);
}

}  // namespace
}  // namespace normscope::nets
