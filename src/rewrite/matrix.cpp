#include "matrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/files/source.hpp>

#include "matrix_rewrite.hpp"

namespace normscope::rewrite {
namespace {

using models::Layout;

/// Covers the rounding of one float64 operation on the gain (1 + w), of one on the weight, and of the bound
/// itself.
constexpr double in_double = 0x1p-51;
constexpr double of_the_bound = 1.0 + 1e-9;
/// Rounding of a mean that is subtracted, relative to the length of the vector.
constexpr double of_a_mean = 0x1p-50;
/// Roundings of a product and a quotient, or of a difference and a sum.
constexpr double two_roundings = 2.02;

struct FloatFormat {
  double unit_roundoff;
  double smallest_normal;
};

FloatFormat float_format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return {0x1p-53, 0x1p-1022};
    case Dtype::F32: return {0x1p-24, 0x1p-126};
    case Dtype::F16: return {0x1p-11, 0x1p-14};
    case Dtype::BF16: return {0x1p-8, 0x1p-126};
    default: break;
  }
  throw Error(ErrorCode::Unsupported,
              fmt::format("rewrite: weights of type {}, expected F64, F32, F16 or BF16", to_string(dtype)));
}

void raise(double& largest, double value) { largest = std::max(largest, value); }

/// The errors of one output as a row: stored - exact, for each input feature.
std::vector<double> errors_of(const StoredMatrix& matrix, std::size_t output, const NormSpec& norm) {
  std::vector<double> errors(matrix.map.in);
  std::vector<std::byte> encoded(bits(matrix.tensor.dtype) / 8);
  const bool out_in = matrix.map.layout == Layout::out_in;
  for (std::size_t j = 0; j < errors.size(); ++j) {
    const std::uint64_t at = out_in ? output * matrix.columns() + j : j * matrix.columns() + output;
    const double exact = read(matrix.tensor, matrix.map.weight.offset + at, 1).front() * norm.gain_at(j);
    double stored = 0.0;
    encode(matrix.tensor.dtype, {&exact, 1}, encoded);
    decode(matrix.tensor.dtype, encoded, {&stored, 1});
    errors[j] = stored - exact;
  }
  return errors;
}

double product(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double rounded(Dtype dtype, double value) {
  std::array<std::byte, sizeof(double)> bytes{};
  const std::span<std::byte> encoded = std::span(bytes).first(bits(dtype) / 8);
  encode(dtype, {&value, 1}, encoded);
  decode(dtype, encoded, {&value, 1});
  return value;
}

/// Whether W' / g does not bring W back to two roundings, though it is below the dtype's normal numbers: it
/// lost digits there, or all of them where g is 0.
bool is_lost(Dtype dtype, double old, double stored, double gain) {
  return gain == 0.0 || rounded(dtype, stored / gain) != old;
}

/// Collects the elements that an undo has to be given, from several threads.
class LostValues {
 public:
  void add(std::uint64_t at, double value) {
    const std::scoped_lock lock(mutex_);
    if (lost_.size() <= most_kept) lost_.emplace_back(at, value);
  }

  /// Puts them in the order of the file.
  void move_to(Dtype dtype, UndoPart& part) {
    std::sort(lost_.begin(), lost_.end());
    const std::size_t size = bits(dtype) / 8;
    part.values.resize(lost_.size() * size);
    for (std::size_t i = 0; i < lost_.size(); ++i) {
      part.at.push_back(lost_[i].first);
      encode(dtype, {&lost_[i].second, 1}, std::span(part.values).subspan(i * size, size));
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, double>> lost_;
};

[[noreturn]] void refuse_value(const files::Tensor& tensor, double old, double rewritten) {
  throw Error(ErrorCode::Unsupported,
              std::isfinite(old)
                  ? fmt::format("rewrite: tensor {}: {:g} becomes {:g}, which {} cannot hold",
                                files::quote(tensor.name), old, rewritten, to_string(tensor.dtype))
                  : fmt::format("rewrite: tensor {} has the value {}, expected finite weights",
                                files::quote(tensor.name), std::isnan(old) ? "nan" : "inf"));
}

}  // namespace

double undo_roundings(const Plan& plan, const Edit& edit) {
  if (edit.change == Change::center_outputs) return two_roundings;
  if (edit.change != Change::scale_inputs) return 0.0;
  const NormSpec& spec = plan.specs[*edit.norm];
  for (const double gain : spec.gain) {
    int exponent = 0;
    if (gain != 0.0 && std::abs(std::frexp(gain, &exponent)) != 0.5) return two_roundings;
  }
  return 0.0;
}

void expect_finite(const files::Tensor& tensor, std::span<const double> old, std::span<const double> exact,
                   std::span<const double> stored) {
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (!std::isfinite(stored[i])) refuse_value(tensor, old[i], exact[i]);
  }
}

void expect_held(const files::Tensor& tensor, std::span<const double> old, std::span<const double> exact) {
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (!std::isfinite(rounded(tensor.dtype, exact[i]))) refuse_value(tensor, old[i], exact[i]);
  }
}

void restore(const StoredMatrix& matrix, const UndoEdit& edit, std::span<const double> factors,
             unsigned threads, const Sink& sink) {
  const Dtype dtype = matrix.tensor.dtype;
  const std::size_t size = bits(dtype) / 8;
  const std::size_t columns = matrix.columns();
  const bool out_in = matrix.map.layout == Layout::out_in;
  const auto restored = [&](std::size_t input, double value) {
    if (edit.change == Change::center_outputs) return value + edit.part.means[input];
    return factors[input] == 0.0 ? value : value / factors[input];
  };
  std::size_t next = 0;
  for_each_block(matrix, [&](std::size_t first, std::size_t rows, std::span<const std::byte> bytes) {
    const std::span<std::byte> rewritten = sink(bytes.size());
    parallel_for(rows, 1, threads, [&](std::size_t from, std::size_t to) {
      std::vector<double> old(columns);
      std::vector<double> exact(columns);
      for (std::size_t row = from; row < to; ++row) {
        decode(dtype, bytes.subspan(row * columns * size, columns * size), old);
        for (std::size_t j = 0; j < columns; ++j) exact[j] = restored(out_in ? j : first + row, old[j]);
        expect_held(matrix.tensor, old, exact);
        encode(dtype, exact, rewritten.subspan(row * columns * size, columns * size));
      }
    });
    const std::uint64_t begin = first * columns;
    for (; next < edit.part.at.size() && edit.part.at[next] < begin + rows * columns; ++next) {
      const auto at = static_cast<std::size_t>(edit.part.at[next] - begin);
      std::copy_n(edit.part.values.begin() + static_cast<std::ptrdiff_t>(next * size), size,
                  rewritten.begin() + static_cast<std::ptrdiff_t>(at * size));
    }
  });
}

std::vector<double> store(const files::Tensor& tensor, std::span<const double> values, const Sink& sink) {
  const std::span<std::byte> encoded = sink(values.size() * bits(tensor.dtype) / 8);
  std::vector<double> stored(values.size());
  encode(tensor.dtype, values, encoded);
  decode(tensor.dtype, encoded, stored);
  expect_finite(tensor, values, values, stored);
  return stored;
}

double smallest_normal(Dtype dtype) { return float_format_of(dtype).smallest_normal; }

double unit_roundoff(Dtype dtype) { return float_format_of(dtype).unit_roundoff; }

double length_of(std::span<const double> x) { return std::sqrt(product(x, x)); }

double half_range(const NormSpec& norm, double squares, double sum) {
  const bool centers = norm.centers() && norm.groups == 1;
  const double mean = centers ? sum * sum / static_cast<double>(norm.width) : 0.0;
  // What is left of a constant row is its rounding.
  return squares - mean > 0x1p-40 * squares ? norm.radius() * std::sqrt(squares - mean) : 0.0;
}

std::vector<double> half_ranges(const StoredMatrix& matrix, const NormSpec& norm, unsigned threads) {
  double largest = 0.0;
  for (std::size_t j = 0; j < norm.width; ++j) raise(largest, std::abs(norm.gain_at(j)));
  std::vector<double> result(matrix.map.stored_out);
  if (largest == 0.0) return result;
  // A power of two keeps all products within the range of the dtype.
  const double unit = std::exp2(std::ceil(std::log2(largest)));
  std::vector<double> gain(norm.width);
  for (std::size_t j = 0; j < gain.size(); ++j) gain[j] = norm.gain_at(j) / unit;
  const std::vector<Probe> ones(norm.width, Probe{1.0});
  std::vector<std::byte> unused;
  const auto [outputs, lengths] =
      rewrite_matrix(matrix, {.factor = gain}, ones, ones, true, threads, [&](std::size_t size) {
        unused.resize(size);
        return std::span(unused);
      });
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = unit * half_range(norm, lengths[i].exact, outputs[i].exact[0]);
  }
  return result;
}

double rounding_of_constants(const KeptParts& kept, double row) {
  return 0x1p-51 * static_cast<double>(kept.new_bias.size()) * row * length_of(kept.new_bias);
}

void scale_inputs(const StoredMatrix& matrix, const NormSpec& norm, const KeptParts& kept, unsigned threads,
                  const Sink& sink, Certificate& certificate, UndoPart& part) {
  constexpr std::size_t of_bias = 1;
  constexpr std::size_t of_ones = 3;
  const bool keeps_bias = !kept.old_bias.empty();
  const bool migrates = !kept.old_gain.empty();
  std::vector<Probe> new_inputs = norm_probes(norm);
  std::vector<Probe> old_inputs = new_inputs;
  std::vector<double> gain(norm.width);
  for (std::size_t j = 0; j < gain.size(); ++j) {
    gain[j] = norm.gain_at(j);
    for (double& value : old_inputs[j]) value *= gain[j];
    if (norm.centers()) old_inputs[j][of_ones] = gain[j];
    if (!keeps_bias) continue;
    old_inputs[j][of_bias] = kept.old_bias[j];
    new_inputs[j][of_bias] = kept.new_bias[j];
  }
  const Dtype dtype = matrix.tensor.dtype;
  const std::size_t columns = matrix.columns();
  const bool out_in = matrix.map.layout == Layout::out_in;
  LostValues lost;
  const MatrixSums sums = rewrite_matrix(
      matrix, {.factor = gain}, old_inputs, new_inputs, true, threads, sink,
      [&](std::uint64_t at, double old, double stored) {
        const double factor = gain[static_cast<std::size_t>(out_in ? at % columns : at / columns)];
        if (is_lost(dtype, old, stored, factor)) lost.add(at, old);
      });
  lost.move_to(dtype, part);
  const std::vector<OutputSums>& outputs = sums.outputs;
  const std::vector<Lengths>& lengths = sums.lengths;

  // Where scales migrate, ranges are needed only if something rounds.
  std::vector<double> ranges;
  bool rounds = !migrates || kept.gain_error > 0.0;
  for (const Lengths& length : lengths) rounds = rounds || length.error > 0.0;
  for (std::size_t j = 0; j < kept.old_bias.size(); ++j) {
    rounds = rounds || kept.new_bias[j] * gain[j] != kept.old_bias[j];
  }
  if (migrates && rounds) {
    NormSpec before = norm;
    before.gain = kept.old_gain;
    ranges = half_ranges(matrix, before, threads);
  }
  const double radius = longest_output(norm);
  const auto largest_output = [&](std::size_t i) {
    if (!rounds) return radius * std::sqrt(lengths[i].exact) * kept.largest_gain;
    const double half = migrates ? ranges[i] : half_range(norm, lengths[i].exact, outputs[i].old[of_ones]);
    if (!keeps_bias || kept.constants.empty()) return half;
    return half + std::abs(outputs[i].old[of_bias] + kept.constants[i]);
  };
  // Inputs are tried without the gain that the norm keeps.
  const auto scale_of = [&](std::size_t i) {
    return migrates ? radius * std::sqrt(lengths[i].exact) : largest_output(i);
  };
  std::size_t worst = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const double row = std::sqrt(lengths[i].exact);
    const double error = std::sqrt(lengths[i].error);
    double bound = radius * (kept.largest_gain * (error + in_double * row) + kept.gain_error * row);
    if (keeps_bias && rounds) {
      bound += std::abs(outputs[i].stored[of_bias] - outputs[i].old[of_bias]) +
               rounding_of_constants(kept, row + error);
    }
    bound *= of_the_bound;
    raise(certificate.bound, bound);
    const double largest = largest_output(i);
    if (largest == 0.0) continue;
    if (bound / largest > certificate.relative_bound) worst = i;
    raise(certificate.relative_bound, bound / largest);
    for (std::size_t k = 0; k < probe_count; ++k) {
      if ((k == of_bias && keeps_bias) || (k == of_ones && norm.centers())) continue;
      const double before = outputs[i].old[k];
      raise(certificate.observed_in_double, std::abs(outputs[i].exact[k] - before) / scale_of(i));
      raise(certificate.observed_as_stored, std::abs(outputs[i].stored[k] - before) / scale_of(i));
    }
  }
  // The input that the errors of the worst row point to.
  if (certificate.relative_bound == 0.0 || lengths[worst].error == 0.0) return;
  const std::vector<double> errors = errors_of(matrix, worst, norm);
  std::vector<double> row = errors;
  for (double& value : row) value *= 1e6 / std::sqrt(lengths[worst].error);
  raise(certificate.observed_as_stored, std::abs(product(errors, normalized(norm, row))) / scale_of(worst));
}

void center_outputs(const StoredMatrix& matrix, const NormSpec& reader, unsigned threads, const Sink& sink,
                    Certificate& certificate, UndoPart& part) {
  const double features = static_cast<double>(matrix.map.stored_out);
  std::vector<double> means = sums_over_outputs(matrix, threads).sum;
  for (double& mean : means) mean /= features;
  const auto largest = std::max_element(means.begin(), means.end(),
                                        [](double a, double b) { return std::abs(a) < std::abs(b); });
  const std::vector<Probe> inputs = writer_probes(means, static_cast<std::size_t>(largest - means.begin()));
  const auto [outputs, lengths] =
      rewrite_matrix(matrix, {.shift = means}, inputs, inputs, false, threads, sink);
  part.means = std::move(means);

  for (const Lengths& length : lengths) {
    const double exact = std::sqrt(length.exact);
    const double bound = (std::sqrt(length.error) + of_a_mean * std::sqrt(length.old)) * of_the_bound;
    raise(certificate.bound, bound);
    // A constant vector becomes zero up to the rounding of its mean.
    if (exact > 0x1p-40 * std::sqrt(length.old)) raise(certificate.relative_bound, bound / exact);
  }
  NormSpec without_mean = reader;
  without_mean.kind = NormKind::rms;
  for (std::size_t k = 0; k < probe_count; ++k) {
    std::vector<double> old(outputs.size());
    std::vector<double> exact(outputs.size());
    std::vector<double> stored(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      old[i] = outputs[i].old[k];
      exact[i] = outputs[i].exact[k];
      stored[i] = outputs[i].stored[k];
    }
    const std::vector<double> before = normalized(reader, old);
    const auto distance = [&](std::span<const double> row) {
      const std::vector<double> after = normalized(without_mean, row);
      double squares = 0.0;
      for (std::size_t i = 0; i < after.size(); ++i)
        squares += (after[i] - before[i]) * (after[i] - before[i]);
      return std::sqrt(squares) / longest_output(reader);
    };
    raise(certificate.observed_in_double, distance(exact));
    raise(certificate.observed_as_stored, distance(stored));
  }
}

}  // namespace normscope::rewrite
