#include "compare_steps.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

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

/// Whether the norm's outputs have no mean over all features, so that what a map does with it has no effect.
bool centers(const NormSpec& norm) { return facts(norm.kind).centers && norm.groups == 1; }

struct Sums {
  double composite = 0.0;
  double composite_sum = 0.0;
  double raw = 0.0;
  double twice = 0.0;
  double length = 0.0;
  double weight = 0.0;
  double old_bias = 0.0;
  double new_bias = 0.0;
  double magnitude = 0.0;

  /// Of the composite, without that of its mean over the inputs where that has no effect. NaN stays.
  [[nodiscard]] double composite_error(std::uint64_t inputs, bool without_mean) const {
    if (!without_mean) return composite;
    return std::max(composite - composite_sum * composite_sum / static_cast<double>(inputs), 0.0);
  }
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

std::vector<double> weights_of(const MapOfFile& map, std::uint64_t first, std::uint64_t count) {
  if (map.blocks == nullptr || map.blocks->matrices.empty())
    return read_weight(map.file, map.map, first, count);
  const std::uint64_t size = map.blocks->size;
  const std::uint64_t in = map.map.in;
  const std::uint64_t begin = first / size;
  const std::uint64_t end = (first + count + size - 1) / size;
  const std::vector<double> stored = read_weight(map.file, map.map, begin * size, (end - begin) * size);
  std::vector<double> result(count * in);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t block = (first + i) / size;
    const double* const factors = map.blocks->matrices.data() + (first + i) * size;
    for (std::uint64_t k = 0; k < size; ++k) {
      const double* const row = stored.data() + ((block - begin) * size + k) * in;
      for (std::uint64_t j = 0; factors[k] != 0.0 && j < in; ++j) result[i * in + j] += factors[k] * row[j];
    }
  }
  return result;
}

std::vector<double> bias_of(const MapOfFile& map, std::vector<double>* terms) {
  std::vector<double> bias = read_bias(map.file, map.map);
  if (map.blocks == nullptr) return bias;
  const std::vector<double>& shift = map.blocks->shift;
  if (bias.empty()) return shift;
  if (!map.blocks->matrices.empty()) {
    const std::uint64_t size = map.blocks->size;
    const std::vector<double> stored = bias;
    if (terms != nullptr) terms->assign(bias.size(), 0.0);
    for (std::uint64_t i = 0; i < bias.size(); ++i) {
      bias[i] = 0.0;
      for (std::uint64_t k = 0; k < size; ++k) {
        const double term = map.blocks->matrices[i * size + k] * stored[i / size * size + k];
        bias[i] += term;
        if (terms != nullptr) (*terms)[i] += std::abs(term);
      }
    }
  }
  for (std::uint64_t i = 0; i < shift.size(); ++i) bias[i] += shift[i];
  return bias;
}

ReaderComparison compare_readers(const MapOfFile& before, const MapOfFile& after) {
  ReaderComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  std::vector<double> terms;
  const std::vector<double> new_bias = bias_of(after, &terms);
  const std::uint64_t in = before.map.in;
  const bool subtract_means = centers(before.norm) && centers(after.norm);
  for (std::uint64_t first = 0; first < before.map.out; first += outputs_of_block(before.map)) {
    const std::uint64_t count = std::min(outputs_of_block(before.map), before.map.out - first);
    const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
    const std::vector<double> new_weight = weights_of(after, first, count);
    // The weights of a turned map say nothing without its norm's gain, which is no diagonal of them.
    const std::vector<double> turned =
        after.turn == nullptr ? std::vector<double>() : rows_of(after, first, count);
    for (std::uint64_t i = 0; i < count; ++i) {
      Sums sums;
      for (std::uint64_t j = 0; j < in; ++j) {
        const double a = old_weight[i * in + j];
        const double b = new_weight[i * in + j];
        const double a_gain = a * before.norm.gain_at(j);
        const double b_gain = turned.empty() ? b * after.norm.gain_at(j) : turned[i * in + j];
        const double composite = difference(a_gain, b_gain);
        const double raw = turned.empty() ? difference(a, b) : composite;
        const double twice = turned.empty() ? difference(a_gain, b) : composite;
        sums.composite += composite * composite;
        sums.composite_sum += composite;
        sums.raw += raw * raw;
        sums.twice += twice * twice;
        sums.length += a_gain * a_gain;
        sums.weight += a * a;
        sums.old_bias += a * before.norm.bias_at(j);
        sums.new_bias += b * after.norm.bias_at(j);
        sums.magnitude += std::abs(a * before.norm.bias_at(j)) + std::abs(b * after.norm.bias_at(j));
      }
      result.composite =
          std::max(result.composite, ratio(sums.composite_error(in, subtract_means), sums.length));
      result.raw = std::max(result.raw, ratio(sums.raw, sums.weight));
      result.folded_twice = std::max(result.folded_twice, ratio(sums.twice, sums.length));
      const double old_constant = old_bias.empty() ? 0.0 : old_bias[first + i];
      const double new_constant = new_bias.empty() ? 0.0 : new_bias[first + i];
      const double error = std::abs(difference(old_constant + sums.old_bias, new_constant + sums.new_bias));
      const double scale = std::abs(old_constant) + std::abs(new_constant) + sums.magnitude +
                           (terms.empty() ? 0.0 : terms[first + i]);
      if (error != 0.0) result.bias = std::max(result.bias, relative(error, scale));
    }
  }
  return result;
}

ReaderComparison compare_unembeddings(const MapOfFile& before, const MapOfFile& after) {
  ReaderComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::uint64_t in = before.map.in;
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  const std::vector<double> new_bias = read_bias(after.file, after.map);
  const bool subtract_means = centers(before.norm) && centers(after.norm);
  // The composite and the constant of each output, for both maps.
  const auto each_output = [&](const auto& use) {
    for (std::uint64_t first = 0; first < before.map.out; first += outputs_of_block(before.map)) {
      const std::uint64_t count = std::min(outputs_of_block(before.map), before.map.out - first);
      const std::vector<double> a = rows_of(before, first, count);
      const std::vector<double> b = rows_of(after, first, count);
      const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
      const std::vector<double> new_weight = read_weight(after.file, after.map, first, count);
      for (std::uint64_t i = 0; i < count; ++i) {
        double constant =
            (new_bias.empty() ? 0.0 : new_bias[first + i]) - (old_bias.empty() ? 0.0 : old_bias[first + i]);
        double scale = std::abs(new_bias.empty() ? 0.0 : new_bias[first + i]) +
                       std::abs(old_bias.empty() ? 0.0 : old_bias[first + i]);
        for (std::uint64_t j = 0; j < in; ++j) {
          const double of_old = old_weight[i * in + j] * before.norm.bias_at(j);
          const double of_new = new_weight[i * in + j] * after.norm.bias_at(j);
          constant += of_new - of_old;
          scale += std::abs(of_old) + std::abs(of_new);
        }
        use(a.data() + i * in, b.data() + i * in, constant, scale);
      }
    }
  };
  std::vector<double> shift(in);
  double constant_shift = 0.0;
  const double outputs = static_cast<double>(before.map.out);
  each_output([&](const double* a, const double* b, double constant, double) {
    for (std::uint64_t j = 0; j < in; ++j) shift[j] += (b[j] - a[j]) / outputs;
    constant_shift += constant / outputs;
  });
  each_output([&](const double* a, const double* b, double constant, double scale) {
    Sums sums;
    for (std::uint64_t j = 0; j < in; ++j) {
      const double change = b[j] - a[j] - shift[j];
      sums.composite += change * change;
      sums.composite_sum += change;
      sums.length += a[j] * a[j];
    }
    result.composite =
        std::max(result.composite, ratio(sums.composite_error(in, subtract_means), sums.length));
    const double error = std::abs(constant - constant_shift);
    if (error != 0.0) result.bias = std::max(result.bias, relative(error, scale + std::abs(constant_shift)));
  });
  result.raw = result.folded_twice = result.composite;
  return result;
}

namespace {

/// How a vector that is written to a stream changes.
struct WrittenVector {
  double error = 0.0, error_sum = 0.0, length = 0.0;

  void add(double before, double change) {
    error += change * change;
    error_sum += change;
    length += before * before;
  }
  /// Relative to the whole vector: a constant one has length 0 after its mean is subtracted.
  void compare(std::uint64_t features, WriterComparison& result) const {
    // NaN stays, since it is not less than 0.
    const double centered = std::max(error - error_sum * error_sum / static_cast<double>(features), 0.0);
    result.raw = std::max(result.raw, ratio(error, length));
    result.centered = std::max(result.centered, ratio(centered, length));
  }
};

}  // namespace

WriterComparison compare_writers(const MapOfFile& before, const MapOfFile& after) {
  WriterComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::uint64_t in = before.map.in;
  // One more for the bias.
  std::vector<WrittenVector> inputs(in + 1);
  const auto add = [](WrittenVector& input, double a, double b) { input.add(a, difference(a, b)); };
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
  for (const WrittenVector& input : inputs) input.compare(before.map.out, result);
  return result;
}

WriterComparison compare_changed_writers(const MapOfFile& before, const MapOfFile& after,
                                         const std::vector<std::uint64_t>& inputs) {
  WriterComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const models::Linear old_map = transposed(before.map);
  models::Linear new_map = transposed(after.map);
  new_map.out_indices = inputs;
  const std::uint64_t width = old_map.in;
  const auto compare = [&](const double* a, const double* b) {
    WrittenVector written;
    for (std::uint64_t j = 0; j < width; ++j) written.add(a[j], b[j] - a[j]);
    written.compare(width, result);
  };
  for (std::uint64_t first = 0; first < old_map.out; first += outputs_of_block(old_map)) {
    const std::uint64_t count = std::min(outputs_of_block(old_map), old_map.out - first);
    const std::vector<double> a = rows_of({before.file, old_map, before.norm}, first, count);
    const std::vector<double> b =
        rows_of({after.file, new_map, after.norm, after.turn, after.blocks}, first, count);
    for (std::uint64_t k = 0; k < count; ++k) compare(a.data() + k * width, b.data() + k * width);
  }
  std::vector<double> old_bias = read_bias(before.file, before.map);
  std::vector<double> new_bias = read_bias(after.file, after.map);
  old_bias.resize(width);
  new_bias.resize(width);
  if (after.blocks != nullptr && !after.blocks->shift.empty()) {
    for (std::uint64_t j = 0; j < width; ++j) new_bias[j] += after.blocks->shift[j];
  }
  if (after.turn != nullptr) after.turn->apply_transposed(new_bias);
  compare(old_bias.data(), new_bias.data());
  return result;
}

}  // namespace normscope::rewrite
