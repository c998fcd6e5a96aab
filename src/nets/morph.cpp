#include <normscope/nets/morph.hpp>

#include <algorithm>
#include <span>

#include <normscope/core/assert.hpp>
#include <normscope/nets/evaluate.hpp>

namespace normscope::nets {
namespace {

/// Appends rows of `features` entries, padded to the states' width.
void append(MorphStates& states, std::span<const double> entries, std::size_t features) {
  const std::size_t rows = entries.size() / features;
  std::vector<double>& state = states.list.emplace_back(rows * states.width);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < features; ++i) state[row * states.width + i] = entries[row * features + i];
  }
}

/// The input alone.
MorphStates states_of(const Net& net, MatrixView<const double> x) {
  MorphStates states{.width = x.width()};
  for (const Layer& layer : net.layers) states.width = std::max(states.width, layer.out);
  append(states, {x.data(), x.rows() * x.width()}, x.width());
  return states;
}

}  // namespace

MorphStates morph_states(const Net& net, MatrixView<const double> x) {
  const std::vector<std::vector<double>> outputs = trace(net, x);
  MorphStates states = states_of(net, x);
  for (std::size_t l = 0; l < outputs.size(); ++l) append(states, outputs[l], net.layers[l].out);
  return states;
}

MorphStates morph_steps(const Net& net, MatrixView<const double> x) {
  const std::vector<std::vector<double>> outputs = trace(net, x);
  MorphStates states = states_of(net, x);
  MatrixView<const double> before = x;
  for (std::size_t l = 0; l < outputs.size(); ++l) {
    // A net that is nothing but this layer's linear map.
    Net linear{.head = net.layers[l], .precision = net.precision};
    linear.head.activation = Activation::none;
    append(states, evaluate(linear, before), linear.head.out);
    append(states, outputs[l], linear.head.out);
    before = {outputs[l].data(), x.rows(), linear.head.out};
  }
  return states;
}

std::vector<double> morph_frame(const Net& net, const Dataset& data, double at) {
  const MorphStates states = morph_states(net, data.view());
  NORMSCOPE_ASSERT(at >= 0.0 && at <= static_cast<double>(states.list.size() - 1));
  const auto below = static_cast<std::size_t>(at);
  const std::vector<double>& from = states.list[below];
  const std::vector<double>& to = states.list[std::min(below + 1, states.list.size() - 1)];
  const double part = at - static_cast<double>(below);
  std::vector<double> frame(from.size());
  for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = (1.0 - part) * from[i] + part * to[i];
  return frame;
}

}  // namespace normscope::nets
