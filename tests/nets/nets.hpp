#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <normscope/nets/net.hpp>

#include "support/norms.hpp"

namespace normscope::test {

/// A layer with random weights.
inline nets::Layer random_layer(std::size_t in, std::size_t out, nets::Activation activation,
                                std::uint64_t seed) {
  return {.in = in,
          .out = out,
          .weight = random_values(in * out, seed),
          .bias = random_values(out, seed + 1),
          .activation = activation,
          .norm = {.width = activation == nets::Activation::norm ? out : 0}};
}

/// 4 → 6 norm → 6 norm → 6 grouped rms with gain and bias → 5 gelu → 3 relu → 2, of classes 7 and -1.
inline nets::Net random_net(std::uint64_t seed) {
  using nets::Activation;
  nets::Net net;
  net.layers = {random_layer(4, 6, Activation::norm, seed), random_layer(6, 6, Activation::norm, seed + 10),
                random_layer(6, 6, Activation::norm, seed + 20),
                random_layer(6, 5, Activation::gelu, seed + 30),
                random_layer(5, 3, Activation::relu, seed + 40)};
  net.layers[2].norm = {.kind = NormKind::rms,
                        .width = 6,
                        .groups = 2,
                        .eps = 1e-3,
                        .gain = random_values(6, seed + 50),
                        .bias = random_values(6, seed + 51)};
  net.head = random_layer(3, 2, Activation::none, seed + 60);
  net.classes = {7, -1};
  return net;
}

}  // namespace normscope::test
