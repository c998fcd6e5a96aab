#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/nets/train.hpp>

namespace normscope::nets {
namespace {

using std::numbers::pi;
/// Number of halvings of the rate over a training with the step schedule.
constexpr double halvings = 8.0;

/// Parameters of the rule of `transitions`.
constexpr std::size_t transition_window = 100;
constexpr std::size_t transition_from = 200;
constexpr double transition_gain = 0.15;

void require(bool holds, const char* what, double value, const char* expected) {
  if (!holds) {
    throw Error(ErrorCode::Argument, fmt::format("train: {} is {}, expected {}", what, value, expected));
  }
}

}  // namespace

Optimizer optimizer(std::string_view name) {
  for (const Optimizer value : {Optimizer::adam, Optimizer::sgd}) {
    if (to_string(value) == name) return value;
  }
  throw Error(ErrorCode::Argument, fmt::format("unknown optimizer \"{}\", expected adam or sgd", name));
}

Schedule schedule(std::string_view name) {
  for (const Schedule value : {Schedule::constant, Schedule::cosine, Schedule::linear, Schedule::step}) {
    if (to_string(value) == name) return value;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("unknown schedule \"{}\", expected constant, cosine, linear or step", name));
}

Initialization initialization(std::string_view name) {
  for (const Initialization value : {Initialization::uniform, Initialization::orthogonal}) {
    if (to_string(value) == name) return value;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("unknown initialization \"{}\", expected uniform or orthogonal", name));
}

std::string_view to_string(Initialization value) {
  return value == Initialization::uniform ? "uniform" : "orthogonal";
}

std::string_view to_string(Optimizer value) { return value == Optimizer::adam ? "adam" : "sgd"; }

std::string_view to_string(Schedule value) {
  switch (value) {
    case Schedule::constant: return "constant";
    case Schedule::cosine: return "cosine";
    case Schedule::linear: return "linear";
    case Schedule::step: return "step";
  }
  return "";
}

void validate(const TrainSpec& spec) {
  const auto at_least_one = [](const char* what, std::size_t value) {
    require(value >= 1, what, static_cast<double>(value), "at least 1");
  };
  at_least_one("width", spec.width);
  at_least_one("groups", spec.groups);
  at_least_one("record_every", spec.record_every);
  if (spec.width % spec.groups != 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("train: {} groups do not divide width {}", spec.groups, spec.width));
  }
  if (is_elementwise(spec.norm)) {
    throw Error(ErrorCode::Argument,
                fmt::format("train: the norm is {}, which is elementwise; expected a kind "
                            "that normalizes",
                            to_string(spec.norm)));
  }
  if (spec.activation == Activation::norm && facts(spec.norm).centers && spec.depth > 0 &&
      spec.width == spec.groups) {
    throw Error(ErrorCode::Argument,
                fmt::format("train: width {} in {} leaves a layer norm one feature, which it makes "
                            "constant; expected at least 2",
                            spec.width, counted(spec.groups, "group")));
  }
  // For a constant row, 1/s has no gradient without eps.
  require(spec.eps > 0.0 && std::isfinite(spec.eps), "eps", spec.eps, "a finite number > 0");
  require(spec.rate > 0.0 && std::isfinite(spec.rate), "rate", spec.rate, "a finite number > 0");
  for (const auto& [what, value] :
       {std::pair{"momentum", spec.momentum}, {"beta1", spec.beta1}, {"beta2", spec.beta2}}) {
    require(value >= 0.0 && value < 1.0, what, value, "0 <= value < 1");
  }
  if (spec.precision != Dtype::F64 && spec.precision != Dtype::F32) {
    throw Error(ErrorCode::Argument, "train: precision is neither F64 nor F32");
  }
}

double rate_at(const TrainSpec& spec, std::size_t step) {
  const double progress =
      static_cast<double>(step) / static_cast<double>(std::max<std::size_t>(1, spec.steps));
  switch (spec.schedule) {
    case Schedule::constant: break;
    case Schedule::cosine: return spec.rate * 0.5 * (1.0 + std::cos(pi * progress));
    case Schedule::linear: return spec.rate * std::min(1.0, 2.0 * (1.0 - progress));
    case Schedule::step: return spec.rate * std::exp2(-std::floor(halvings * progress));
  }
  return spec.rate;
}

std::vector<Transition> transitions(std::span<const double> accuracy, std::size_t record_every) {
  const std::size_t window = std::max<std::size_t>(1, transition_window / record_every);
  std::vector<Transition> found;
  double best = 0.0;
  std::size_t last = 0;
  for (std::size_t i = 0; i + window < accuracy.size(); ++i) {
    best = std::max(best, accuracy[i]);
    const double gain = accuracy[i + window] - best;
    if (i * record_every < transition_from || gain < transition_gain) continue;
    if (!found.empty() && i - last <= window) {
      if (gain > found.back().gain) found.back() = {i * record_every, gain};
    } else {
      found.push_back({i * record_every, gain});
    }
    last = i;
  }
  return found;
}

std::size_t first_step_at(std::span<const double> accuracy, std::size_t record_every, double level,
                          std::size_t steps) {
  const auto at =
      std::find_if(accuracy.begin(), accuracy.end(), [&](double value) { return value >= level; });
  return at == accuracy.end() ? steps : static_cast<std::size_t>(at - accuracy.begin()) * record_every;
}

}  // namespace normscope::nets
