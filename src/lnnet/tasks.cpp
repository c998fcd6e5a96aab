#include <normscope/lnnet/tasks.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

namespace normscope::lnnet {
namespace {

constexpr double pi = 3.14159265358979323846;
/// A label is a class number; more classes than this are a mistake in the file.
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
                fmt::format("{}: {} labels and {} entries of width {}, expected a label a row", who,
                            data.rows(), data.x.size(), data.width));
  }
  if (data.classes < 2) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {} class, expected at least 2", who, data.classes));
  }
  for (std::size_t i = 0; i < data.x.size(); ++i) {
    if (!std::isfinite(data.x[i])) {
      throw Error(ErrorCode::Argument, fmt::format("{}: row {} holds {}, expected finite numbers", who,
                                                   i / data.width, data.x[i]));
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

const std::vector<Task>& tasks() {
  static const std::vector<Task> all{
      {"spiral", "A net whose only nonlinearity is normalization, three wide, separates two spiral arms.",
       300, [](std::size_t rows, std::uint64_t seed) { return spiral(rows, seed); }},
      {"octants", "Deeper nets of width three separate a sphere cut into eight parts.", 1000, octants},
      {"xor", "One normalization makes XOR linearly separable, which no linear layer does.", 400,
       xor_corners},
      {"rings", "A circle inside a circle is separated.", 400, rings},
      {"random-labels", "Groups raise how many random labels a normalized net can learn.", 1000,
       random_labels, false},
  };
  return all;
}

const Task* find_task(std::string_view name) {
  for (const Task& task : tasks()) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

}  // namespace normscope::lnnet
