#include <normscope/lnnet/morph.hpp>

#include <algorithm>
#include <span>

#include <normscope/core/assert.hpp>
#include <normscope/lnnet/evaluate.hpp>

namespace normscope::lnnet {

MorphStates morph_states(const Net& net, MatrixView<const double> x) {
  MorphStates states{.width = x.width()};
  for (const Layer& layer : net.layers) states.width = std::max(states.width, layer.out);
  const auto add = [&](std::span<const double> entries, std::size_t features) {
    std::vector<double>& state = states.list.emplace_back(x.rows() * states.width);
    for (std::size_t row = 0; row < x.rows(); ++row) {
      for (std::size_t i = 0; i < features; ++i) state[row * states.width + i] = entries[row * features + i];
    }
  };
  add({x.data(), x.rows() * x.width()}, x.width());
  const std::vector<std::vector<double>> outputs = trace(net, x);
  for (std::size_t l = 0; l < outputs.size(); ++l) add(outputs[l], net.layers[l].out);
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

}  // namespace normscope::lnnet
