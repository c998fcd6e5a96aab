#include <normscope/nets/answers.hpp>

#include <algorithm>
#include <cmath>

#include <normscope/core/error.hpp>
#include <normscope/nets/evaluate.hpp>

namespace normscope::nets {

Recording::Recording(const TrainSpec& spec, const Dataset& data, std::size_t most)
    : Recording(spec, std::make_shared<const Dataset>(data), most) {}

Recording::Recording(const TrainSpec& spec, const std::shared_ptr<const Dataset>& data, std::size_t most)
    : trainer_(spec, data), past_(spec, data), most_(most) {
  NORMSCOPE_ASSERT(most >= 2);
  keep();
}

void Recording::keep() {
  parameters_.push_back(trainer_.parameters());
  if (parameters_.size() <= most_) return;
  for (std::size_t i = 1; 2 * i < parameters_.size(); ++i) parameters_[i].swap(parameters_[2 * i]);
  parameters_.resize((parameters_.size() + 1) / 2);
  distance_ *= 2;
}

void Recording::advance(std::size_t steps) {
  for (; steps > 0 && !trainer_.done(); --steps) {
    trainer_.step();
    if (trainer_.steps_done() % distance_ == 0) keep();
  }
}

std::size_t Recording::kept(std::size_t step) const {
  return step >= trainer_.steps_done() ? trainer_.steps_done() : step / distance_ * distance_;
}

const Trainer& Recording::at(std::size_t step) const {
  const std::size_t found = kept(step);
  if (found == trainer_.steps_done()) return trainer_;
  past_.set_parameters(parameters_[found / distance_]);
  return past_;
}

Net Recording::net(std::size_t step) const { return at(step).net(); }

Score Recording::score(std::size_t step) const { return at(step).score(); }

Score Recording::score(std::size_t step, const Dataset& data) const { return at(step).score(data); }

namespace {

/// Margin around the samples relative to their extent.
constexpr double margin = 0.08;

std::pair<double, double> extent(const Dataset& data, std::size_t axis) {
  double low = data.x[axis];
  double high = low;
  for (std::size_t row = 0; row < data.rows(); ++row) {
    low = std::min(low, data.view().row(row)[axis]);
    high = std::max(high, data.view().row(row)[axis]);
  }
  const double space = high > low ? margin * (high - low) : 1.0;
  return {low - space, high + space};
}

}  // namespace

Answers answers(const Net& net, MatrixView<const double> x, unsigned threads) {
  const std::vector<double> logits = evaluate(net, x, threads);
  const MatrixView<const double> rows(logits.data(), x.rows(), net.out());
  Answers result;
  result.classes.reserve(x.rows());
  result.probabilities.reserve(x.rows());
  for (std::size_t row = 0; row < x.rows(); ++row) {
    const auto logit = rows.row(row);
    const auto largest = std::max_element(logit.begin(), logit.end());
    double total = 0.0;
    for (const double value : logit) total += std::exp(value - *largest);
    const auto index = static_cast<std::size_t>(largest - logit.begin());
    result.classes.push_back(net.classes.empty() ? static_cast<std::int64_t>(index) : net.classes[index]);
    result.probabilities.push_back(1.0 / total);
  }
  return result;
}

std::vector<double> class_probabilities(const Net& net, MatrixView<const double> x, unsigned threads) {
  std::vector<double> shares = evaluate(net, x, threads);
  for (std::size_t begin = 0; begin < shares.size(); begin += net.out()) {
    const auto first = shares.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto end = first + static_cast<std::ptrdiff_t>(net.out());
    const double largest = *std::max_element(first, end);
    double total = 0.0;
    for (auto at = first; at != end; ++at) total += * at = std::exp(*at - largest);
    for (auto at = first; at != end; ++at) *at /= total;
  }
  return shares;
}

std::vector<double> Grid::centers() const {
  std::vector<double> points;
  points.reserve(2 * columns * rows);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      points.push_back(left + (static_cast<double>(column) + 0.5) * dx());
      points.push_back(bottom + (static_cast<double>(row) + 0.5) * dy());
    }
  }
  return points;
}

Grid grid_around(const Dataset& data, std::size_t cells) {
  NORMSCOPE_ASSERT(data.width == 2 && data.rows() >= 1 && cells >= 1);
  const auto [left, right] = extent(data, 0);
  const auto [bottom, top] = extent(data, 1);
  return {.left = left, .right = right, .bottom = bottom, .top = top, .columns = cells, .rows = cells};
}

std::vector<double> on_sphere(MatrixView<const double> places) {
  NORMSCOPE_ASSERT(places.width() == 2);
  std::vector<double> points;
  points.reserve(3 * places.rows());
  for (std::size_t row = 0; row < places.rows(); ++row) {
    const double angle = places.row(row)[0];
    const double height = places.row(row)[1];
    const double radius = std::sqrt(std::max(0.0, 1.0 - height * height));
    points.insert(points.end(), {radius * std::cos(angle), radius * std::sin(angle), height});
  }
  return points;
}

std::vector<double> on_map(MatrixView<const double> points) {
  NORMSCOPE_ASSERT(points.width() == 3);
  std::vector<double> places;
  places.reserve(2 * points.rows());
  for (std::size_t row = 0; row < points.rows(); ++row) {
    const auto at = points.row(row);
    const double length = std::hypot(at[0], at[1], at[2]);
    places.push_back(std::atan2(at[1], at[0]));
    places.push_back(length == 0.0 ? 0.0 : at[2] / length);
  }
  return places;
}

}  // namespace normscope::nets
