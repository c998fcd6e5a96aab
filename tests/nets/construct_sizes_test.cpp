#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/norm/norm.hpp>

#include "nets/nets.hpp"

namespace normscope::nets {
namespace {

using nets::Activation;
using nets::labels;
using nets::Layer;
using nets::Net;
using nets::Precision;
using nets::trace;

using test::random_values;

std::vector<std::int64_t> labels_of(std::size_t rows) {
  Random random(52);
  std::vector<std::int64_t> labels(rows);
  for (std::int64_t& label : labels) label = static_cast<std::int64_t>(random.below(3));
  return labels;
}

TEST(Construct, RowsOfEverySize) {
  const std::size_t rows = 120;
  const std::vector<double> x = random_values(rows * 3, 51);
  const std::vector<std::int64_t> wanted = labels_of(rows);
  const Construction plain = construct({x.data(), rows, 3}, wanted);
  for (const int exponent : {-1000, -860, -664, -200, 90, 664, 1020}) {
    std::vector<double> scaled = x;
    for (double& value : scaled) value = std::scalbn(value, exponent);
    for (const double eps : {0.0, 1e-5}) {
      for (const Precision precision : {Precision::float64, Precision::double_double}) {
        // With an eps the first layer cannot scale up the smallest rows; double-double ends at 2^990.
        if ((eps > 0.0 && exponent < -860) || (precision == Precision::double_double && exponent > 980)) {
          EXPECT_THROW(static_cast<void>(
                           construct({scaled.data(), rows, 3}, wanted, {.precision = precision, .eps = eps})),
                       Error);
          continue;
        }
        const Construction made =
            construct({scaled.data(), rows, 3}, wanted, {.precision = precision, .eps = eps});
        EXPECT_EQ(made.correct, rows) << exponent << " " << eps;
        EXPECT_EQ(made.net.layers.size(), plain.net.layers.size());
        EXPECT_EQ(labels(made.net, {scaled.data(), rows, 3}), wanted) << exponent;
      }
    }
  }
  std::vector<double> tiny = x;
  for (double& value : tiny) value = std::scalbn(value, -664);
  EXPECT_EQ(construct({tiny.data(), rows, 3}, wanted, {.mode = Mode::paper}).correct,
            construct({x.data(), rows, 3}, wanted, {.mode = Mode::paper}).correct);
}

/// A linear map that changes nothing, and a norm.
Net plain_norm(std::size_t width, double eps, Precision precision) {
  std::vector<double> identity(width * width);
  for (std::size_t i = 0; i < width; ++i) identity[i * width + i] = 1.0;
  Net net{.layers = {{.in = width,
                      .out = width,
                      .weight = identity,
                      .bias = std::vector<double>(width),
                      .activation = Activation::norm,
                      .norm = {.width = width, .eps = eps}}},
          .head = {.in = width, .out = 1, .weight = std::vector<double>(width), .bias = {0.0}},
          .precision = precision};
  if (precision == Precision::double_double) {
    for (Layer* layer : {&net.layers[0], &net.head}) {
      layer->weight_low.resize(layer->weight.size());
      layer->bias_low.resize(layer->bias.size());
    }
  }
  return net;
}

TEST(Net, NormsTakeRowsOfEverySize) {
  const std::vector<double> row{1.0, -3.0, 4.0, 0.5, 0.25};
  for (const Precision precision : {Precision::float64, Precision::double_double}) {
    for (const double eps : {0.0, 1e-5}) {
      const Net net = plain_norm(5, eps, precision);
      for (const int exponent : {-1070, -900, -520, -300, 0, 300, 520, 900, 980, 1015}) {
        if (precision == Precision::double_double && exponent > 980) continue;
        std::vector<double> x = row;
        for (double& value : x) value = std::scalbn(value, exponent);
        std::vector<double> expected(5);
        norm::forward(net.layers[0].norm, {x.data(), 1, 5}, {expected.data(), 1, 5});
        const std::vector<double> given = trace(net, {x.data(), 1, 5})[0];
        // The mean of numbers of few digits is rounded to few.
        const double part = exponent < -1000 ? std::scalbn(1.0, -1073 - exponent) : 1e-14;
        for (std::size_t i = 0; i < 5; ++i) {
          EXPECT_NEAR(given[i], expected[i], part * std::abs(expected[2]) + 0x1p-1074)
              << exponent << " " << eps;
        }
      }
    }
  }
}

TEST(Net, LabelsMayRefuseRowsThatOverflow) {
  const std::vector<double> x = random_values(12, 1);
  const std::vector<std::int64_t> wanted{0, 1, 0, 1};
  const Net net = construct({x.data(), 4, 3}, wanted).net;
  const std::vector<double> huge(3, 1.7e308);
  EXPECT_EQ(labels(net, {huge.data(), 1, 3}).size(), 1U);
  EXPECT_THROW(static_cast<void>(labels(net, {huge.data(), 1, 3}, 1, {}, nets::Overflow::error)), Error);
  EXPECT_EQ(labels(net, {x.data(), 4, 3}, 1, {}, nets::Overflow::error), wanted);
}

}  // namespace
}  // namespace normscope::nets
