#include <normscope/nets/majority.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/nets/adam.hpp>

namespace normscope::nets::majority {
namespace {

constexpr double majority_beta1 = 0.9;
constexpr double majority_beta2 = 0.999;
constexpr double majority_eps = 1e-8;

/// Independent random streams: for the data, the initial values, and each epoch's order.
std::uint64_t stream(std::uint64_t seed, std::uint64_t which) {
  return seed * 0x9e3779b97f4a7c15U + which * 0xbf58476d1ce4e5b9U;
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

template <class Size>
double length(const double* x) {
  constexpr std::size_t width = Size::width;
  double square = 0.0;
  for (std::size_t f = 0; f < width; ++f) square += x[f] * x[f];
  return std::sqrt(square);
}

/// Angle in degrees between the lines along `x` and along all-ones.
template <class Size>
double angle_to_ones(const double* x) {
  constexpr std::size_t width = Size::width;
  constexpr double degrees = 57.295779513082320877;
  double sum = 0.0;
  for (std::size_t f = 0; f < width; ++f) sum += x[f];
  const double norm = length<Size>(x) * std::sqrt(static_cast<double>(width));
  return norm == 0.0 ? 90.0 : degrees * std::acos(std::min(1.0, std::abs(sum) / norm));
}

/// Divergence of one token's attention over the positions of a sequence from uniform.
template <class Size>
double divergence(const double* score, const Counts& counts) {
  constexpr std::size_t classes = Size::classes;
  const double largest = *std::max_element(score, score + classes);
  double sum = 0.0;
  double weighted = 0.0;
  double positions = 0.0;
  for (std::size_t j = 0; j < classes; ++j) {
    const double weight = counts[j] * std::exp(score[j] - largest);
    sum += weight;
    weighted += weight * (score[j] - largest);
    positions += counts[j];
  }
  return std::log(positions) + weighted / sum - std::log(sum);
}

}  // namespace

template <class Size>
Training<Size>::Training(const Recipe& recipe, std::uint64_t seed)
    : recipe_(recipe),
      seed_(seed),
      data_(make_data(recipe.task, stream(seed, 0))),
      network_(recipe.norm),
      parameters_(initial_parameters<Size>(stream(seed, 1))),
      class_parts_(Size::classes, 0.0),
      order_(data_.training.size()),
      test_rows_(data_.test.size()) {
  if (recipe.task.classes != Size::classes) {
    throw Error(ErrorCode::Argument, fmt::format("majority: a task of {} classes for a network of {}",
                                                 recipe.task.classes, Size::classes));
  }
  if (recipe.batch == 0) throw Error(ErrorCode::Argument, "majority: batches of 0, expected at least 1");
  std::iota(test_rows_.begin(), test_rows_.end(), 0U);
  const double tokens = static_cast<double>(recipe.task.length * data_.training.size());
  for (const Counts& counts : data_.training.counts) {
    for (std::size_t j = 0; j < Size::classes; ++j) class_parts_[j] += counts[j] / tokens;
  }
  order_epoch();
}

template <class Size>
std::size_t Training<Size>::steps_an_epoch() const {
  return (order_.size() + recipe_.batch - 1) / recipe_.batch;
}

template <class Size>
void Training<Size>::order_epoch() {
  std::iota(order_.begin(), order_.end(), 0U);
  Random random(stream(seed_, 2 + step_ / steps_an_epoch()));
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
}

template <class Size>
void Training<Size>::advance() {
  const std::size_t in_epoch = step_ % steps_an_epoch();
  if (in_epoch == 0) order_epoch();
  const std::size_t first = in_epoch * recipe_.batch;
  const std::span rows =
      std::span<const std::uint32_t>(order_).subspan(first, std::min(recipe_.batch, order_.size() - first));
  const Outcome outcome = network_.evaluate(parameters_, data_.training, rows, gradient_);

  const double epochs = static_cast<double>(step_) / static_cast<double>(steps_an_epoch());
  const double rate = recipe_.rate * std::max(0.0, 1.0 - epochs / recipe_.schedule_epochs);
  const double time = static_cast<double>(step_ + 1);
  const double correction1 = 1.0 / (1.0 - std::pow(majority_beta1, time));
  const double correction2 = 1.0 / (1.0 - std::pow(majority_beta2, time));
  for (std::size_t i = 0; i < Layout<Size>::count; ++i) {
    nets::update_moments<double>(gradient_[i], majority_beta1, majority_beta2, first_moments_[i],
                                 second_moments_[i]);
    parameters_[i] -=
        rate * first_moments_[i] * correction1 / (std::sqrt(second_moments_[i] * correction2) + majority_eps);
  }
  ++step_;
  if (losses_.size() == steps_an_epoch()) {
    losses_.erase(losses_.begin());
    rights_.erase(rights_.begin());
  }
  losses_.push_back(outcome.loss);
  rights_.push_back(outcome.right);
}

template <class Size>
Outcome Training<Size>::trained() const {
  NORMSCOPE_ASSERT(!losses_.empty());
  return {.loss = mean(losses_), .right = mean(rights_)};
}

template <class Size>
Outcome Training<Size>::tested() {
  return network_.evaluate(parameters_, data_.test, test_rows_);
}

template <class Size>
AttentionMeasures Training<Size>::attention() const {
  const AttentionTables<Size> tables = this->tables();
  AttentionMeasures result;
  double square = 0.0;
  for (std::size_t i = 0; i < Size::classes; ++i) {
    result.angle += class_parts_[i] * angle_to_ones<Size>(tables.query[i]);
    result.query_length += class_parts_[i] * length<Size>(tables.query[i]);
    const double key = length<Size>(tables.key[i]);
    result.key_length += key / static_cast<double>(Size::classes);
    square += key * key / static_cast<double>(Size::classes);
  }
  const double variance = std::max(0.0, square - result.key_length * result.key_length);
  result.key_spread = std::sqrt(variance) / result.key_length;

  // The test set is ordered by majority, so a part of it is sampled evenly.
  const std::size_t sequences = std::min(recipe_.read_sequences, data_.test.size());
  const double tokens = static_cast<double>(recipe_.task.length * sequences);
  for (std::size_t i = 0; i < sequences; ++i) {
    const Counts& counts = data_.test.counts[i * data_.test.size() / sequences];
    for (std::size_t own = 0; own < Size::classes; ++own) {
      if (counts[own] > 0)
        result.divergence += counts[own] / tokens * divergence<Size>(tables.score[own], counts);
    }
  }
  return result;
}

template <class Size>
std::vector<std::byte> Training<Size>::progress() const {
  Packer packer;
  for (const auto* part : {&parameters_, &first_moments_, &second_moments_, &losses_, &rights_})
    packer.put(*part);
  return packer.bytes();
}

template <class Size>
void Training<Size>::restore(std::size_t step, std::span<const std::byte> progress) {
  Unpacker unpacker(progress);
  for (auto* part : {&parameters_, &first_moments_, &second_moments_, &losses_, &rights_})
    unpacker.get(*part);
  unpacker.finish();
  const std::size_t kept = std::min(step, steps_an_epoch());
  if (parameters_.size() != Layout<Size>::count || first_moments_.size() != Layout<Size>::count ||
      second_moments_.size() != Layout<Size>::count || losses_.size() != kept || rights_.size() != kept) {
    throw Error(ErrorCode::Format,
                fmt::format("majority: progress of another training than one at step {}", step));
  }
  step_ = step;
  order_epoch();
}

template class Training<Eight>;
template class Training<Three>;

}  // namespace normscope::nets::majority
