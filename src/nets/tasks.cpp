#include <normscope/nets/tasks.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <unordered_map>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/text.hpp>
#include <normscope/nets/train.hpp>

namespace normscope::nets {
namespace {

/// A label is a class number; more classes than this indicate an error in the file.
constexpr double label_limit = 0x1p24;

}  // namespace

void validate(std::string_view who, const Dataset& data) {
  if (data.rows() == 0 || data.width == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: the samples are {} x {}, expected at least one row and one feature", who,
                            data.rows(), data.width));
  }
  if (data.x.size() != data.rows() * data.width) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: {} labels and {} entries of width {}, expected one label per row", who,
                            data.rows(), data.x.size(), data.width));
  }
  if (data.classes < 2) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {} class, expected at least 2", who, data.classes));
  }
  for (std::size_t i = 0; i < data.x.size(); ++i) {
    if (!std::isfinite(data.x[i])) {
      throw Error(ErrorCode::Argument, fmt::format("{}: row {} holds {}, expected finite numbers", who,
                                                   i / data.width, shown(data.x[i])));
    }
  }
  for (std::size_t i = 0; i < data.rows(); ++i) {
    if (data.labels[i] >= data.classes) {
      throw Error(ErrorCode::Argument, fmt::format("{}: the label of row {} is {}, expected less than {}",
                                                   who, i, data.labels[i], data.classes));
    }
  }
}

Dataset dataset(std::string_view who, std::size_t width, std::vector<double> x,
                const std::vector<double>& labels) {
  Dataset data{.width = width, .x = std::move(x)};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!(labels[i] >= 0.0 && labels[i] < label_limit) || labels[i] != std::floor(labels[i])) {
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: the label of row {} is {}, expected an integer from 0 to {}", who, i,
                              labels[i], label_limit - 1.0));
    }
    data.labels.push_back(static_cast<std::uint32_t>(labels[i]));
    data.classes = std::max<std::size_t>(data.classes, data.labels.back() + 1U);
  }
  validate(who, data);
  return data;
}

Conflicts conflicts(const Dataset& data) {
  const auto bytes = [&](std::size_t row) {
    return std::string_view(reinterpret_cast<const char*>(data.x.data() + row * data.width),
                            data.width * sizeof(double));
  };
  std::unordered_map<std::string_view, std::size_t> first_rows;
  first_rows.reserve(data.rows());
  Conflicts result;
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const std::size_t first = first_rows.emplace(bytes(row), row).first->second;
    if (data.labels[first] == data.labels[row]) continue;
    if (result.rows++ == 0) {
      result.first = row;
      result.of = first;
    }
  }
  return result;
}

namespace {

using std::numbers::pi;
/// Number of new points on which a task's net is tested.
constexpr std::size_t test_rows = 4000;

}  // namespace

Dataset spiral(std::size_t rows, std::uint64_t seed, double turns) {
  Random random(seed);
  Dataset data{.width = 2, .classes = 2};
  for (std::size_t i = 0; i < rows; ++i) {
    const auto label = static_cast<std::uint32_t>(i % 2);
    const double s = 0.15 + 0.85 * random.uniform();
    const double angle = 2.0 * pi * turns * s + pi * label;
    data.x.push_back(s * std::cos(angle) + 0.02 * random.normal());
    data.x.push_back(s * std::sin(angle) + 0.02 * random.normal());
    data.labels.push_back(label);
  }
  return data;
}

Dataset octants(std::size_t rows, std::uint64_t seed) {
  Random random(seed);
  Dataset data{.width = 3, .classes = 2};
  while (data.rows() < rows) {
    const double x[3] = {random.normal(), random.normal(), random.normal()};
    const double length = std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    if (length == 0.0) continue;
    std::uint32_t positive = 0;
    for (const double value : x) {
      data.x.push_back(value / length);
      positive += value > 0.0 ? 1 : 0;
    }
    data.labels.push_back(positive % 2);
  }
  return data;
}

Dataset xor_corners(std::size_t rows, std::uint64_t seed) {
  Random random(seed);
  Dataset data{.width = 2, .classes = 2};
  for (std::size_t i = 0; i < rows; ++i) {
    std::uint32_t negative = 0;
    for (int axis = 0; axis < 2; ++axis) {
      const bool minus = random.below(2) != 0;
      data.x.push_back((minus ? -1.0 : 1.0) + 0.15 * random.normal());
      negative += minus ? 1 : 0;
    }
    data.labels.push_back(negative % 2);
  }
  return data;
}

Dataset rings(std::size_t rows, std::uint64_t seed) {
  Random random(seed);
  Dataset data{.width = 2, .classes = 2};
  for (std::size_t i = 0; i < rows; ++i) {
    const auto label = static_cast<std::uint32_t>(i % 2);
    const double radius = 1.0 + label + 0.1 * random.normal();
    const double angle = 2.0 * pi * random.uniform();
    data.x.push_back(radius * std::cos(angle));
    data.x.push_back(radius * std::sin(angle));
    data.labels.push_back(label);
  }
  return data;
}

Dataset random_labels(std::size_t rows, std::uint64_t seed) {
  Random random(seed);
  Dataset data{.width = 32, .classes = 10};
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t feature = 0; feature < data.width; ++feature) data.x.push_back(random.normal());
    data.labels.push_back(static_cast<std::uint32_t>(random.below(data.classes)));
  }
  return data;
}

Dataset with_noise(Dataset data, double deviation, std::uint64_t seed) {
  if (deviation == 0.0) return data;
  // Not the numbers that the samples themselves were drawn with.
  Random random(seed ^ 0x9e3779b97f4a7c15U);
  for (double& value : data.x) value += deviation * random.normal();
  return data;
}

const std::vector<Task>& tasks() {
  // Difference between the seeds of a task's samples and of its test.
  constexpr std::uint64_t far_away = 1'000'000;
  const auto fresh = [](auto make) {
    return [make](std::uint64_t seed) { return make(test_rows, seed + far_away); };
  };
  const auto one_turn = [](std::size_t rows, std::uint64_t seed) { return spiral(rows, seed); };
  static const std::vector<Task> all{
      {.name = "spiral",
       .claim = "A net whose only nonlinearity is normalization, three wide, separates two spiral arms.",
       .rows = 300,
       .make = one_turn,
       .test = fresh(one_turn)},
      // A run in four stalls at width 3, whatever the initial weights: docs/papers/winsor.md.
      {.name = "octants",
       .claim = "Deeper nets separate a sphere cut into eight parts.",
       .rows = 1000,
       .spec = {.depth = 4, .rate = 0.03, .schedule = Schedule::linear, .steps = 10000},
       .seeds = 5,
       .make = octants,
       .test = fresh(octants)},
      {.name = "xor",
       .claim = "One normalization makes XOR linearly separable, which no linear layer does.",
       .rows = 400,
       .spec = {.depth = 1, .steps = 2000},
       .make = xor_corners,
       .test = fresh(xor_corners)},
      {.name = "rings",
       .claim = "A circle inside a circle is separated.",
       .rows = 400,
       .spec = {.steps = 2000},
       .make = rings,
       .test = fresh(rings)},
      {.name = "random-labels",
       .claim = "Groups raise how many random labels a normalized net can learn.",
       .rows = 1000,
       .spec = {.width = 64, .depth = 1, .norm = NormKind::layer, .schedule = Schedule::cosine, .steps = 500},
       .make = [](std::size_t rows, std::uint64_t seed) { return random_labels(rows, seed); }},
  };
  return all;
}

std::string task_names() {
  std::string names;
  for (const Task& task : tasks()) names += task.name + ", ";
  return names + "mnist:DIR, cifar10:DIR, random-labels:mnist:DIR, random-labels:cifar10:DIR";
}

std::optional<Task> find_task(std::string_view name) {
  for (const Task& task : tasks()) {
    if (task.name == name) return task;
  }
  return image_task(name);
}

Net for_unscaled(Net net, double shift, double scale) {
  if (shift == 0.0 && scale == 1.0) return net;
  Layer& layer = net.layers.empty() ? net.head : net.layers.front();
  for (std::size_t o = 0; o < layer.out; ++o) {
    for (std::size_t i = 0; i < layer.in; ++i) {
      double& weight = layer.weight[o * layer.in + i];
      weight *= scale;
      layer.bias[o] -= weight * shift;
    }
  }
  return net;
}

}  // namespace normscope::nets
