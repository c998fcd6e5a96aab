#include <normscope/nets/circle.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include <normscope/core/error.hpp>
#include <normscope/nets/evaluate.hpp>

namespace normscope::nets {

Curves thinned(std::span<const double> loss, std::span<const double> accuracy, std::size_t record_every,
               std::size_t most) {
  NORMSCOPE_ASSERT(most >= 1 && loss.size() == accuracy.size());
  const std::size_t stride = std::max<std::size_t>(1, (loss.size() + most - 1) / most);
  Curves shown;
  const auto add = [&](std::size_t i) {
    shown.step.push_back(static_cast<double>(i * record_every));
    shown.loss.push_back(loss[i]);
    shown.accuracy.push_back(accuracy[i]);
  };
  for (std::size_t i = 0; i < loss.size(); i += stride) add(i);
  if (!loss.empty() && (loss.size() - 1) % stride != 0) add(loss.size() - 1);
  return shown;
}

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

namespace {

using std::numbers::pi;

}  // namespace

double stretched(double t, double x, double eps) {
  return t * x / std::sqrt(1.0 + (t * t - 1.0) * x * x + eps);
}

double folded(double t, double x, double eps) { return (x + t) / std::sqrt(1.0 + 2.0 * t * x + t * t + eps); }

double surface(double x, double y, double eps) { return x / std::sqrt(x * x + y * y + eps); }

double stretched_share(double t, double level) {
  NORMSCOPE_ASSERT(t >= 0.0 && level > 0.0 && level < 1.0);
  return 2.0 / pi * std::atan(t * std::sqrt(1.0 - level * level) / level);
}

double fold_minimum(double t) {
  NORMSCOPE_ASSERT(t > 1.0);
  return std::sqrt(1.0 - 1.0 / (t * t));
}

double fold_speed(double t) {
  NORMSCOPE_ASSERT(t >= 0.0 && t != 1.0);
  return 1.0 / std::abs(1.0 - t);
}

double fold_speed_of_shift(double t) {
  NORMSCOPE_ASSERT(t >= 0.0 && t != 1.0);
  return 1.0 / std::abs(1.0 - t * t);
}

int fold_winding(double t, std::size_t points) {
  NORMSCOPE_ASSERT(points >= 3 && t != 1.0);
  const auto angle = [&](std::size_t i) {
    const double theta = 2.0 * pi * static_cast<double>(i) / static_cast<double>(points);
    return std::atan2(std::sin(theta), std::cos(theta) + t);
  };
  double turned = 0.0;
  for (std::size_t i = 0; i < points; ++i) turned += std::remainder(angle(i + 1) - angle(i), 2.0 * pi);
  return static_cast<int>(std::lround(turned / (2.0 * pi)));
}

std::vector<double> moved(Move move, double t, MatrixView<const double> points) {
  NORMSCOPE_ASSERT(points.width() == 2);
  std::vector<double> result;
  result.reserve(2 * points.rows());
  for (std::size_t row = 0; row < points.rows(); ++row) {
    const double x = points.row(row)[0];
    result.push_back(move == Move::stretch ? t * x : x + t);
    result.push_back(points.row(row)[1]);
  }
  return result;
}

std::vector<double> normalized(MatrixView<const double> points, double eps) {
  NORMSCOPE_ASSERT(points.width() == 2);
  std::vector<double> result;
  result.reserve(2 * points.rows());
  for (std::size_t row = 0; row < points.rows(); ++row) {
    const auto at = points.row(row);
    const double length = std::sqrt(at[0] * at[0] + at[1] * at[1] + eps);
    for (const double value : at) result.push_back(length > 0.0 ? value / length : 0.0);
  }
  return result;
}

}  // namespace normscope::nets
