#include "compare_maps.hpp"

#include <algorithm>
#include <cmath>

namespace normscope::rewrite {
namespace {

constexpr std::uint64_t compared_elements = std::uint64_t{1} << 20U;

/// b - a, where the same value that is not finite is no difference.
double difference(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)) ? 0.0 : b - a; }

/// 1 for what is not finite.
double relative(double error, double scale) {
  return std::isfinite(error) && std::isfinite(scale) ? error / scale : 1.0;
}

double ratio(double squared_error, double squared_length) {
  if (squared_error == 0.0) return 0.0;
  return relative(std::sqrt(squared_error), squared_length == 0.0 ? 1.0 : std::sqrt(squared_length));
}

std::uint64_t outputs_of_block(const models::Linear& map) {
  return std::max<std::uint64_t>(1, compared_elements / std::max<std::uint64_t>(1, map.in));
}

struct Sums {
  double composite = 0.0;
  double raw = 0.0;
  double twice = 0.0;
  double length = 0.0;
  double weight = 0.0;
  double old_bias = 0.0;
  double new_bias = 0.0;
  double magnitude = 0.0;
};

}  // namespace

double relative_change(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) {
    const auto is_zero = [](double value) { return value == 0.0; };
    const bool absent = (a.empty() && std::all_of(b.begin(), b.end(), is_zero)) ||
                        (b.empty() && std::all_of(a.begin(), a.end(), is_zero));
    return absent ? 0.0 : 1.0;
  }
  double error = 0.0;
  double length = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double change = difference(a[i], b[i]);
    error += change * change;
    length += a[i] * a[i];
  }
  return ratio(error, length);
}

ReaderComparison compare_readers(const MapOfFile& before, const MapOfFile& after) {
  ReaderComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  const std::vector<double> new_bias = read_bias(after.file, after.map);
  const std::uint64_t in = before.map.in;
  for (std::uint64_t first = 0; first < before.map.out; first += outputs_of_block(before.map)) {
    const std::uint64_t count = std::min(outputs_of_block(before.map), before.map.out - first);
    const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
    const std::vector<double> new_weight = read_weight(after.file, after.map, first, count);
    for (std::uint64_t i = 0; i < count; ++i) {
      Sums sums;
      for (std::uint64_t j = 0; j < in; ++j) {
        const double a = old_weight[i * in + j];
        const double b = new_weight[i * in + j];
        const double a_gain = a * before.norm.gain_at(j);
        const double b_gain = b * after.norm.gain_at(j);
        const double composite = difference(a_gain, b_gain);
        const double raw = difference(a, b);
        const double twice = difference(a_gain, b);
        sums.composite += composite * composite;
        sums.raw += raw * raw;
        sums.twice += twice * twice;
        sums.length += a_gain * a_gain;
        sums.weight += a * a;
        sums.old_bias += a * before.norm.bias_at(j);
        sums.new_bias += b * after.norm.bias_at(j);
        sums.magnitude += std::abs(a * before.norm.bias_at(j)) + std::abs(b * after.norm.bias_at(j));
      }
      result.composite = std::max(result.composite, ratio(sums.composite, sums.length));
      result.raw = std::max(result.raw, ratio(sums.raw, sums.weight));
      result.folded_twice = std::max(result.folded_twice, ratio(sums.twice, sums.length));
      const double old_constant = old_bias.empty() ? 0.0 : old_bias[first + i];
      const double new_constant = new_bias.empty() ? 0.0 : new_bias[first + i];
      const double error = std::abs(difference(old_constant + sums.old_bias, new_constant + sums.new_bias));
      const double scale = std::abs(old_constant) + std::abs(new_constant) + sums.magnitude;
      if (error != 0.0) result.bias = std::max(result.bias, relative(error, scale));
    }
  }
  return result;
}

WriterComparison compare_writers(const MapOfFile& before, const MapOfFile& after) {
  WriterComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::uint64_t in = before.map.in;
  struct Input {
    double error = 0.0;
    double error_sum = 0.0;
    double length = 0.0;
    double sum = 0.0;
  };
  // One more for the bias.
  std::vector<Input> inputs(in + 1);
  const auto add = [](Input& input, double a, double b) {
    const double change = difference(a, b);
    input.error += change * change;
    input.error_sum += change;
    input.length += a * a;
    input.sum += a;
  };
  for (std::uint64_t first = 0; first < before.map.out; first += outputs_of_block(before.map)) {
    const std::uint64_t count = std::min(outputs_of_block(before.map), before.map.out - first);
    const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
    const std::vector<double> new_weight = read_weight(after.file, after.map, first, count);
    for (std::uint64_t at = 0; at < count * in; ++at) add(inputs[at % in], old_weight[at], new_weight[at]);
  }
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  const std::vector<double> new_bias = read_bias(after.file, after.map);
  for (std::uint64_t i = 0; i < before.map.out; ++i) {
    add(inputs[in], old_bias.empty() ? 0.0 : old_bias[i], new_bias.empty() ? 0.0 : new_bias[i]);
  }
  const double features = static_cast<double>(before.map.out);
  for (const Input& input : inputs) {
    // NaN stays, since it is not less than 0.
    const double centered = std::max(input.error - input.error_sum * input.error_sum / features, 0.0);
    result.raw = std::max(result.raw, ratio(input.error, input.length));
    // Relative to the whole vector written: a constant row has length 0 after its mean is subtracted.
    result.centered = std::max(result.centered, ratio(centered, input.length));
  }
  return result;
}

}  // namespace normscope::rewrite
