#include "compare_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include <normscope/core/lanes.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::rewrite {
namespace {

/// Elements of each of both maps that a thread holds at a time. Inputs in rows are read across all rows for
/// each block of outputs, so that blocks are larger there.
constexpr std::uint64_t compared_elements = std::uint64_t{1} << 16U;
constexpr std::uint64_t compared_across = std::uint64_t{1} << 20U;

/// b - a, where the same value that is not finite is no difference.
double difference(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)) ? 0.0 : b - a; }

/// 1 for what is not finite.
double relative(double error, double scale) {
  return std::isfinite(error) && std::isfinite(scale) ? error / scale : 1.0;
}

/// 1 for what differs from zero, or from what is so small that its square is.
double ratio(double squared_error, double squared_length) {
  if (squared_error == 0.0) return 0.0;
  if (squared_length < 0x1p-960) return 1.0;
  return relative(std::sqrt(squared_error), std::sqrt(squared_length));
}

std::uint64_t outputs_of_block(const models::Linear& map) {
  const std::uint64_t elements = map.layout == models::Layout::out_in ? compared_elements : compared_across;
  return std::max<std::uint64_t>(1, elements / std::max<std::uint64_t>(1, map.in));
}

/// Calls `use(block, first, count)` with each block of outputs, on several threads.
template <typename Use>
void each_block(const models::Linear& map, std::uint64_t outputs, const Use& use) {
  const std::uint64_t blocks = (map.out + outputs - 1) / outputs;
  parallel_for(static_cast<std::size_t>(blocks), 1, 0, [&](std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block) {
      const std::uint64_t first = block * outputs;
      use(block, first, std::min(outputs, map.out - first));
    }
  });
}

std::uint64_t blocks_of(const models::Linear& map, std::uint64_t outputs) {
  return (map.out + outputs - 1) / outputs;
}

/// Whether the bytes of both weights are equal, which is a small part of the work of comparing numbers.
bool same_bytes(const MapOfFile& before, const MapOfFile& after) {
  const models::Linear& a = before.map;
  const models::Linear& b = after.map;
  if (after.turn != nullptr || after.blocks != nullptr || a.layout != b.layout || a.in != b.in ||
      a.out != b.out || a.stored_out != b.stored_out || a.first_out != b.first_out ||
      a.out_indices != b.out_indices || a.weight.count != b.weight.count || !a.not_modelled.empty() ||
      !b.not_modelled.empty()) {
    return false;
  }
  const auto stored = [](const MapOfFile& of) -> std::optional<files::StoredBytes> {
    const files::Tensor* const tensor = of.file.find(of.map.weight.tensor);
    const models::Slice& slice = of.map.weight;
    if (tensor == nullptr || !is_floating(tensor->dtype) || tensor->blocks != nullptr) return {};
    if (slice.offset > tensor->elements() || slice.count > tensor->elements() - slice.offset) return {};
    const std::uint64_t width = bits(tensor->dtype) / 8;
    return tensor->bytes.part(slice.offset * width, slice.count * width);
  };
  const auto of_old = stored(before);
  const auto of_new = stored(after);
  return of_old && of_new &&
         before.file.find(a.weight.tensor)->dtype == after.file.find(b.weight.tensor)->dtype &&
         files::equal(*of_old, *of_new);
}

/// Whether the norm's outputs have no mean over all features, so that what a map does with it has no effect.
bool centers(const NormSpec& norm) { return facts(norm.kind).centers && norm.groups == 1; }

/// What is known of one output of both maps.
struct Sums {
  double composite = 0.0;
  double composite_sum = 0.0;
  double raw = 0.0;
  double twice = 0.0;
  double length = 0.0;
  double length_sum = 0.0;
  double weight = 0.0;
  double old_bias = 0.0;
  double new_bias = 0.0;
  double magnitude = 0.0;

  /// The error of the composite, without that of its mean over the inputs where that has no effect; at least
  /// what rounding leaves of it. NaN stays.
  [[nodiscard]] double composite_error(std::uint64_t inputs, bool without_mean) const {
    if (!without_mean) return composite;
    return std::max(composite - composite_sum * composite_sum / static_cast<double>(inputs),
                    1e-15 * composite);
  }
  /// Likewise of OLD's composite.
  [[nodiscard]] double composite_length(std::uint64_t inputs, bool without_mean) const {
    if (!without_mean) return length;
    return std::max(length - length_sum * length_sum / static_cast<double>(inputs), 0.0);
  }
  [[nodiscard]] bool is_finite() const {
    return std::isfinite(composite + composite_sum + raw + twice + length + weight);
  }
};

/// Rows of both maps, and what their norms multiply them by; `turned` in place of the second product.
struct RowPair {
  const double* a = nullptr;
  const double* b = nullptr;
  const double* old_gain = nullptr;
  const double* new_gain = nullptr;
  const double* turned = nullptr;
};

/// One input of a row, of which a value that is not finite may be the same in both.
void add_input(const RowPair& row, std::size_t j, Sums& sums) {
  const double a = row.a[j];
  const double b = row.b[j];
  const double a_gain = a * row.old_gain[j];
  // The weights of a turned map say nothing without its norm's gain, which is no diagonal of them.
  const double b_gain = row.turned == nullptr ? b * row.new_gain[j] : row.turned[j];
  const double composite = difference(a_gain, b_gain);
  const double raw = row.turned == nullptr ? difference(a, b) : composite;
  const double twice = row.turned == nullptr ? difference(a_gain, b) : composite;
  sums.composite += composite * composite;
  sums.composite_sum += composite;
  sums.raw += raw * raw;
  sums.twice += twice * twice;
  sums.length += a_gain * a_gain;
  sums.length_sum += a_gain;
  sums.weight += a * a;
}

/// The first inputs of a row, in whole vectors, with plain differences; returns their number.
NORMSCOPE_LANES_CLONES std::size_t add_lanes(const RowPair& row, std::size_t inputs, Sums& sums) {
  constexpr std::size_t step = lane_count<double>;
  Lanes<double> composite{}, composite_sum{}, raw{}, twice{}, length{}, length_sum{}, weight{};
  std::size_t j = 0;
  for (; j + step <= inputs; j += step) {
    Lanes<double> a, b, old_gain, new_gain;
    std::memcpy(&a, row.a + j, sizeof a);
    std::memcpy(&b, row.b + j, sizeof b);
    std::memcpy(&old_gain, row.old_gain + j, sizeof old_gain);
    std::memcpy(&new_gain, row.new_gain + j, sizeof new_gain);
    const Lanes<double> a_gain = a * old_gain;
    const Lanes<double> change = b * new_gain - a_gain;
    composite += change * change;
    composite_sum += change;
    raw += (b - a) * (b - a);
    twice += (b - a_gain) * (b - a_gain);
    length += a_gain * a_gain;
    length_sum += a_gain;
    weight += a * a;
  }
  sums.composite = total<double>(composite);
  sums.composite_sum = total<double>(composite_sum);
  sums.raw = total<double>(raw);
  sums.twice = total<double>(twice);
  sums.length = total<double>(length);
  sums.length_sum = total<double>(length_sum);
  sums.weight = total<double>(weight);
  return j;
}

/// Whether both composites have the same values.
bool rows_equal(const RowPair& row, std::size_t inputs) {
  for (std::size_t j = 0; j < inputs; ++j) {
    const double b = row.turned == nullptr ? row.b[j] * row.new_gain[j] : row.turned[j];
    if (difference(row.a[j] * row.old_gain[j], b) != 0.0) return false;
  }
  return true;
}

Sums sums_of(const RowPair& row, std::size_t inputs) {
  if (row.turned == nullptr) {
    Sums sums;
    for (std::size_t j = add_lanes(row, inputs, sums); j < inputs; ++j) add_input(row, j, sums);
    if (sums.is_finite() && (sums.composite != 0.0 || rows_equal(row, inputs))) return sums;
  }
  Sums sums;
  for (std::size_t j = 0; j < inputs; ++j) add_input(row, j, sums);
  // Squares of small differences are zero.
  if (sums.composite == 0.0 && !rows_equal(row, inputs)) sums.composite = sums.raw = 1.0;
  return sums;
}

}  // namespace

std::vector<double> gains_of(const NormSpec& norm, std::size_t features) {
  return norm.gain.empty() ? std::vector<double>(features, 1.0)
                           : std::vector<double>(norm.gain.begin(), norm.gain.end());
}

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

ReaderComparison compare_readers(const MapOfFile& before, const MapOfFile& after,
                                 std::vector<double>* errors) {
  ReaderComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  std::vector<double> terms;
  const std::vector<double> new_bias = bias_of(after, &terms);
  const std::uint64_t in = before.map.in;
  const std::vector<double> old_gain = gains_of(before.norm, in);
  const std::vector<double> new_gain = gains_of(after.norm, in);
  if (old_gain == new_gain && before.norm.bias == after.norm.bias && old_bias == new_bias &&
      same_bytes(before, after)) {
    return result;
  }
  if (errors != nullptr) errors->assign(before.map.out, 0.0);
  const bool subtract_means = centers(before.norm) && centers(after.norm);
  const bool has_bias = !before.norm.bias.empty() || !after.norm.bias.empty();
  const std::uint64_t outputs = outputs_of_block(before.map);
  std::vector<ReaderComparison> found(blocks_of(before.map, outputs));
  each_block(before.map, outputs, [&](std::size_t block, std::uint64_t first, std::uint64_t count) {
    ReaderComparison& worst = found[block];
    const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
    const std::vector<double> new_weight = weights_of(after, first, count);
    const std::vector<double> turned =
        after.turn == nullptr ? std::vector<double>() : rows_of(after, first, count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const RowPair row{old_weight.data() + i * in, new_weight.data() + i * in, old_gain.data(),
                        new_gain.data(), turned.empty() ? nullptr : turned.data() + i * in};
      Sums sums = sums_of(row, in);
      for (std::uint64_t j = 0; j < in && has_bias; ++j) {
        const double of_old = row.a[j] * before.norm.bias_at(j);
        const double of_new = row.b[j] * after.norm.bias_at(j);
        sums.old_bias += of_old;
        sums.new_bias += of_new;
        if (of_old != of_new) sums.magnitude += std::abs(of_old) + std::abs(of_new);
      }
      const double composite =
          ratio(sums.composite_error(in, subtract_means), sums.composite_length(in, subtract_means));
      worst.composite = std::max(worst.composite, composite);
      worst.raw = std::max(worst.raw, ratio(sums.raw, sums.weight));
      worst.folded_twice = std::max(worst.folded_twice, ratio(sums.twice, sums.length));
      const double old_constant = old_bias.empty() ? 0.0 : old_bias[first + i];
      const double new_constant = new_bias.empty() ? 0.0 : new_bias[first + i];
      const double error = std::abs(difference(old_constant + sums.old_bias, new_constant + sums.new_bias));
      const double scale = std::abs(old_constant) + std::abs(new_constant) + sums.magnitude +
                           (terms.empty() ? 0.0 : terms[first + i]);
      const double of_bias = error == 0.0 ? 0.0 : relative(error, scale);
      worst.bias = std::max(worst.bias, of_bias);
      if (errors != nullptr) (*errors)[first + i] = std::max(composite, of_bias);
    }
  });
  for (const ReaderComparison& worst : found) {
    result.composite = std::max(result.composite, worst.composite);
    result.raw = std::max(result.raw, worst.raw);
    result.folded_twice = std::max(result.folded_twice, worst.folded_twice);
    result.bias = std::max(result.bias, worst.bias);
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
      const bool has_bias = !before.norm.bias.empty() || !after.norm.bias.empty();
      const std::vector<double> old_weight =
          has_bias ? read_weight(before.file, before.map, first, count) : std::vector<double>();
      const std::vector<double> new_weight =
          has_bias ? read_weight(after.file, after.map, first, count) : std::vector<double>();
      for (std::uint64_t i = 0; i < count; ++i) {
        double constant =
            (new_bias.empty() ? 0.0 : new_bias[first + i]) - (old_bias.empty() ? 0.0 : old_bias[first + i]);
        // Without NEW's bias, which the common shift may make as large as it likes.
        double scale = std::abs(old_bias.empty() ? 0.0 : old_bias[first + i]);
        for (std::uint64_t j = 0; j < in && has_bias; ++j) {
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
    if (error != 0.0) result.bias = std::max(result.bias, relative(error, scale));
  });
  result.raw = result.folded_twice = result.composite;
  return result;
}

namespace {

/// How the vectors change that a map writes to a stream, one for each input, of which each row has an entry.
struct WrittenVectors {
  std::vector<double> error, error_sum, length;

  explicit WrittenVectors(std::size_t inputs) : error(inputs), error_sum(inputs), length(inputs) {}

  /// One feature of all of them.
  void add(const double* before, const double* after) {
    for (std::size_t j = 0; j < error.size(); ++j) {
      const double change = difference(before[j], after[j]);
      error[j] += change * change;
      error_sum[j] += change;
      length[j] += before[j] * before[j];
    }
  }
  void add(const WrittenVectors& others) {
    for (std::size_t j = 0; j < error.size(); ++j) {
      error[j] += others.error[j];
      error_sum[j] += others.error_sum[j];
      length[j] += others.length[j];
    }
  }
  void compare(std::uint64_t features, WriterComparison& result, bool is_centered,
               std::vector<double>* errors) const {
    for (std::size_t j = 0; j < error.size(); ++j) {
      Sums sums;
      sums.composite = error[j];
      sums.composite_sum = error_sum[j];
      const double raw = ratio(error[j], length[j]);
      const double centered = ratio(sums.composite_error(features, true), length[j]);
      result.raw = std::max(result.raw, raw);
      result.centered = std::max(result.centered, centered);
      if (errors != nullptr) (*errors)[j] = is_centered ? centered : raw;
    }
  }
};

/// Compares one vector that is written to a stream. Relative to the whole vector: a constant one has length 0
/// after its mean is subtracted. `terms`: squares of what has been added to it.
void compare_written(const double* before, const double* after, const std::vector<double>& ones,
                     WriterComparison& result, double terms = 0.0) {
  Sums sums = sums_of({before, after, ones.data(), ones.data()}, ones.size());
  sums.length += terms;
  result.raw = std::max(result.raw, ratio(sums.composite, sums.length));
  result.centered = std::max(result.centered, ratio(sums.composite_error(ones.size(), true), sums.length));
}

}  // namespace

WriterComparison compare_writers(const MapOfFile& before, const MapOfFile& after, bool centered,
                                 std::vector<double>* errors) {
  const bool is_same = same_bytes(before, after);
  // There the vectors are rows.
  if (before.map.layout == models::Layout::in_out && after.map.layout == models::Layout::in_out && !is_same) {
    return compare_changed_writers(before, after, {}, centered, errors);
  }
  WriterComparison result{before.map.weight.selector(), after.map.weight.selector()};
  std::vector<double> old_bias = read_bias(before.file, before.map);
  std::vector<double> new_bias = read_bias(after.file, after.map);
  old_bias.resize(before.map.out);
  new_bias.resize(before.map.out);
  compare_written(old_bias.data(), new_bias.data(), std::vector<double>(before.map.out, 1.0), result);
  if (is_same) return result;
  if (errors != nullptr) errors->assign(before.map.in, 0.0);
  const auto in = static_cast<std::size_t>(before.map.in);
  // A fixed number of parts, so that sums do not depend on the number of threads.
  const std::uint64_t outputs = std::max(outputs_of_block(before.map), (before.map.out + 15) / 16);
  std::vector<WrittenVectors> parts(blocks_of(before.map, outputs), WrittenVectors(in));
  each_block(before.map, outputs, [&](std::size_t block, std::uint64_t begin, std::uint64_t all) {
    const std::uint64_t step = outputs_of_block(before.map);
    for (std::uint64_t first = begin; first < begin + all; first += step) {
      const std::uint64_t count = std::min(step, begin + all - first);
      const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
      const std::vector<double> new_weight = read_weight(after.file, after.map, first, count);
      for (std::uint64_t i = 0; i < count; ++i)
        parts[block].add(old_weight.data() + i * in, new_weight.data() + i * in);
    }
  });
  for (std::size_t block = 1; block < parts.size(); ++block) parts.front().add(parts[block]);
  parts.front().compare(before.map.out, result, centered, errors);
  return result;
}

WriterComparison compare_changed_writers(const MapOfFile& before, const MapOfFile& after,
                                         const std::vector<std::uint64_t>& inputs, bool centered,
                                         std::vector<double>* errors) {
  WriterComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const models::Linear old_map = transposed(before.map);
  models::Linear new_map = transposed(after.map);
  new_map.out_indices = inputs;
  const std::uint64_t width = old_map.in;
  if (errors != nullptr) errors->assign(old_map.out, 0.0);
  const std::vector<double> ones(width, 1.0);
  const std::uint64_t inputs_of_block = outputs_of_block(old_map);
  std::vector<WriterComparison> found(blocks_of(old_map, inputs_of_block));
  each_block(old_map, inputs_of_block, [&](std::size_t block, std::uint64_t first, std::uint64_t count) {
    const std::vector<double> a = rows_of({before.file, old_map, before.norm}, first, count);
    const std::vector<double> b =
        rows_of({after.file, new_map, after.norm, after.turn, after.blocks}, first, count);
    for (std::uint64_t k = 0; k < count; ++k) {
      WriterComparison vector;
      compare_written(a.data() + k * width, b.data() + k * width, ones, vector);
      found[block].raw = std::max(found[block].raw, vector.raw);
      found[block].centered = std::max(found[block].centered, vector.centered);
      if (errors != nullptr) (*errors)[first + k] = centered ? vector.centered : vector.raw;
    }
  });
  for (const WriterComparison& worst : found) {
    result.raw = std::max(result.raw, worst.raw);
    result.centered = std::max(result.centered, worst.centered);
  }
  std::vector<double> old_bias = read_bias(before.file, before.map);
  std::vector<double> new_bias = read_bias(after.file, after.map);
  old_bias.resize(width);
  new_bias.resize(width);
  if (after.blocks != nullptr && !after.blocks->shift.empty()) {
    for (std::uint64_t j = 0; j < width; ++j) new_bias[j] += after.blocks->shift[j];
  }
  if (after.turn != nullptr) after.turn->apply_transposed(new_bias);
  compare_written(old_bias.data(), new_bias.data(), ones, result,
                  after.blocks == nullptr ? 0.0 : after.blocks->shift_terms);
  return result;
}

}  // namespace normscope::rewrite
