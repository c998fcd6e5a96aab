#include <normscope/nets/construct.hpp>

#include <cmath>

#include <normscope/core/error.hpp>
#include <normscope/nets/evaluate.hpp>

namespace normscope::nets {

namespace {

/// The direction onto which the net projects its rows, up to a factor.
std::vector<double> direction_of(const Net& net, Mode mode) {
  std::vector<double> direction(net.in(), 0.0);
  const Layer& first = net.layers.empty() ? net.head : net.layers.front();
  for (std::size_t c = 0; c < first.in; ++c) {
    if (!net.layers.empty()) {
      direction[c] = first.weight[c] * (mode == Mode::paper ? std::sqrt(2.0) : 1.0);
    } else if (first.out > 1) {
      direction[c] = first.weight[first.in + c] - first.weight[c];
    }
  }
  return direction;
}

}  // namespace

Layer one_fold(std::span<const double> direction, double midpoint, double radius) {
  if (direction.empty()) throw Error(ErrorCode::Shape, "one fold: a direction without entries");
  Layer layer{.in = direction.size(), .out = 3, .activation = Activation::norm};
  const double across = 1.0 / std::sqrt(2.0);
  for (const double sign : {across, -across, 0.0}) {
    for (const double weight : direction) layer.weight.push_back(sign * weight);
  }
  const double along = radius / std::sqrt(6.0);
  layer.bias = {along - across * midpoint, along + across * midpoint, -2.0 * along};
  layer.norm = {.width = 3, .eps = 0.0};
  return layer;
}

std::array<double, 2> circle_point(Mode mode, std::span<const double> neurons) {
  const double sign = mode == Mode::paper ? -1.0 : 1.0;
  return {(neurons[0] - neurons[1]) / std::sqrt(6.0), sign * neurons[2] / std::sqrt(2.0)};
}

double folded_place(Mode mode, const Fold& fold, double place) {
  const double height = std::hypot(1.0, (place - fold.midpoint) / fold.radius);
  return mode == Mode::paper ? 1.0 / height : height / std::sqrt(2.0);
}

MergeTrace merge_trace(const Construction& construction, Mode mode, MatrixView<const double> x) {
  const Net& net = construction.net;
  MergeTrace story{.rows = x.rows(), .layers = net.layers.size(), .direction = direction_of(net, mode)};
  const std::vector<std::vector<double>> outputs = trace(net, x);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    double place = 0.0;
    for (std::size_t c = 0; c < x.width(); ++c) place += story.direction[c] * x.row(row)[c];
    story.places.push_back(place);
  }
  for (const std::vector<double>& layer : outputs) {
    story.neurons.insert(story.neurons.end(), layer.begin(), layer.end());
    for (std::size_t row = 0; row < x.rows(); ++row) {
      const std::span<const double> neurons(layer.data() + 3 * row, 3);
      const std::array<double, 2> point = circle_point(mode, neurons);
      story.circle.insert(story.circle.end(), point.begin(), point.end());
      story.places.push_back(mode == Mode::paper ? point[1] : 1.0 / neurons[2]);
    }
  }
  return story;
}

}  // namespace normscope::nets
