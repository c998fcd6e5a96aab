#include "matrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

#include "matrix_pass.hpp"

namespace normscope::rewrite {
namespace {

using model::Layout;

/// Covers the rounding of one float64 operation on the gain (1 + w), one on the weight, and that of the bound
/// itself.
constexpr double in_double = 0x1p-51;
constexpr double of_the_bound = 1.0 + 1e-9;
/// Of a mean, which is subtracted, relative to the length of what it is the mean of.
constexpr double of_a_mean = 0x1p-50;
/// Of a product and a quotient, or a difference and a sum.
constexpr double two_roundings = 2.02;

/// Lengths of an output's row W_i, or of what an input writes, and of the rounding errors in it.
struct Lengths {
  double exact = 0.0;  ///< squared
  double error = 0.0;  ///< squared
  double old = 0.0;    ///< squared
};

void add(Lengths& lengths, const Block& block, std::size_t at) {
  const double error = block.stored[at] - block.exact[at];
  lengths.exact += block.exact[at] * block.exact[at];
  lengths.error += error * error;
  lengths.old += block.old[at] * block.old[at];
}

/// Adds every element of `block` to the lengths of its output (`of_outputs`) or its input feature.
void add(std::vector<Lengths>& lengths, const Block& block, const StoredMatrix& matrix, bool of_outputs,
         unsigned threads) {
  const bool by_row = (matrix.map.layout == Layout::out_in) == of_outputs;
  const std::size_t columns = matrix.columns();
  parallel_for(by_row ? block.rows : columns, by_row ? 1 : 64, threads,
               [&](std::size_t from, std::size_t to) {
                 for (std::size_t row = by_row ? from : 0; row < (by_row ? to : block.rows); ++row) {
                   for (std::size_t column = by_row ? 0 : from; column < (by_row ? columns : to); ++column) {
                     add(lengths[by_row ? block.first + row : column], block, row * columns + column);
                   }
                 }
               });
}

void raise(double& largest, double value) { largest = std::max(largest, value); }

/// The row that the errors of one output make: stored - exact, for each input feature.
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

/// The smallest number of the dtype that has all its digits.
double smallest_normal(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return 0x1p-1022;
    case Dtype::F16: return 0x1p-14;
    default: return 0x1p-126;  // F32, BF16
  }
}

double rounded(Dtype dtype, double value) {
  std::array<std::byte, sizeof(double)> bytes{};
  const std::span<std::byte> encoded = std::span(bytes).first(bits(dtype) / 8);
  encode(dtype, {&value, 1}, encoded);
  decode(dtype, encoded, {&value, 1});
  return value;
}

/// Adds the elements of `block` that W' / g does not bring back to two roundings: those that lost digits
/// below the dtype's normal numbers, or all of them where g is 0.
void keep_what_is_lost(const Block& block, const StoredMatrix& matrix, const NormSpec& norm, unsigned threads,
                       UndoPart& part) {
  const Dtype dtype = matrix.tensor.dtype;
  const double smallest = smallest_normal(dtype);
  const std::size_t columns = matrix.columns();
  const bool out_in = matrix.map.layout == Layout::out_in;
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, double>> lost;
  parallel_for(block.rows, 1, threads, [&](std::size_t from, std::size_t to) {
    for (std::size_t at = from * columns; at < to * columns; ++at) {
      if (std::abs(block.stored[at]) >= smallest) continue;
      if (block.old[at] == 0.0 && !std::signbit(block.old[at])) continue;
      const double gain = norm.gain_at(out_in ? at % columns : block.first + at / columns);
      if (gain != 0.0 && rounded(dtype, block.stored[at] / gain) == block.old[at]) continue;
      const std::scoped_lock lock(mutex);
      if (part.at.size() + lost.size() <= most_kept) {
        lost.emplace_back(block.first * columns + at, block.old[at]);
      }
    }
  });
  std::sort(lost.begin(), lost.end());
  const std::size_t size = bits(dtype) / 8;
  for (const auto& [at, value] : lost) {
    part.at.push_back(at);
    part.values.resize(part.values.size() + size);
    encode(dtype, {&value, 1}, std::span(part.values).last(size));
  }
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

void restore(const StoredMatrix& matrix, const UndoEdit& edit, std::span<const double> factors,
             unsigned threads, const Sink& sink) {
  const bool out_in = matrix.map.layout == Layout::out_in;
  const std::size_t size = bits(matrix.tensor.dtype) / 8;
  const std::size_t columns = matrix.columns();
  std::size_t next = 0;
  MatrixPass(matrix, threads)
      .rewrite(
          [&](std::size_t row, std::size_t column, double value) {
            const std::size_t input = out_in ? column : row;
            if (edit.change == Change::center_outputs) return value + edit.part.means[input];
            return factors[input] == 0.0 ? 0.0 : value / factors[input];
          },
          [&](const Block& block, std::span<std::byte> bytes) {
            const std::uint64_t begin = block.first * columns;
            for (; next < edit.part.at.size() && edit.part.at[next] < begin + block.rows * columns; ++next) {
              const auto at = static_cast<std::size_t>(edit.part.at[next] - begin);
              std::copy_n(edit.part.values.begin() + static_cast<std::ptrdiff_t>(next * size), size,
                          bytes.begin() + static_cast<std::ptrdiff_t>(at * size));
            }
            sink(bytes);
          });
}

double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return 0x1p-53;
    case Dtype::F32: return 0x1p-24;
    case Dtype::F16: return 0x1p-11;
    default: return 0x1p-8;  // BF16
  }
}

void scale_inputs(const StoredMatrix& matrix, const NormSpec& norm, double longest, unsigned threads,
                  const Sink& sink, Certificate& certificate, UndoPart& part) {
  const std::vector<Probe> outputs_of_norm = norm_probes(norm);
  std::vector<Probe> scaled = outputs_of_norm;
  for (std::size_t j = 0; j < scaled.size(); ++j) {
    for (double& value : scaled[j]) value *= norm.gain_at(j);
  }
  const bool out_in = matrix.map.layout == Layout::out_in;
  std::vector<Lengths> lengths(matrix.map.stored_out);
  const std::vector<Outputs> outputs =
      MatrixPass(matrix, threads)
          .rewrite([&](std::size_t row, std::size_t column,
                       double value) { return value * norm.gain_at(out_in ? column : row); },
                   scaled, outputs_of_norm, sink,
                   [&](const Block& block) {
                     add(lengths, block, matrix, true, threads);
                     keep_what_is_lost(block, matrix, norm, threads, part);
                   });

  const double radius = longest_output(norm);
  std::size_t worst = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const double scale = radius * std::sqrt(lengths[i].exact);
    const double bound = (radius * std::sqrt(lengths[i].error) + in_double * scale) * of_the_bound;
    raise(certificate.bound, bound / radius * longest);
    if (scale == 0.0) continue;
    if (bound / scale > certificate.relative_bound) worst = i;
    raise(certificate.relative_bound, bound / scale);
    for (std::size_t k = 0; k < probe_count; ++k) {
      raise(certificate.observed_in_double, std::abs(outputs[i].exact[k] - outputs[i].old[k]) / scale);
      raise(certificate.observed_as_stored, std::abs(outputs[i].stored[k] - outputs[i].old[k]) / scale);
    }
  }
  // The input that the errors of the worst row point to.
  if (lengths.empty() || lengths[worst].error == 0.0) return;
  const std::vector<double> errors = errors_of(matrix, worst, norm);
  std::vector<double> row = errors;
  for (double& value : row) value *= 1e6 / std::sqrt(lengths[worst].error);
  raise(certificate.observed_as_stored,
        std::abs(product(errors, normalized(norm, row))) / (radius * std::sqrt(lengths[worst].exact)));
}

void center_outputs(const StoredMatrix& matrix, const NormSpec& reader, unsigned threads, const Sink& sink,
                    Certificate& certificate, UndoPart& part) {
  const bool out_in = matrix.map.layout == Layout::out_in;
  const std::size_t columns = matrix.columns();
  const double features = static_cast<double>(matrix.map.stored_out);
  std::vector<CompensatedSum> sums(matrix.map.in);
  MatrixPass pass(matrix, threads);
  pass.read([&](const Block& block) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        sums[out_in ? column : block.first + row].add(block.old[row * columns + column]);
      }
    }
  });
  std::vector<double> means(matrix.map.in);
  std::transform(sums.begin(), sums.end(), means.begin(),
                 [&](const CompensatedSum& s) { return s.value() / features; });
  const auto largest = std::max_element(means.begin(), means.end(),
                                        [](double a, double b) { return std::abs(a) < std::abs(b); });
  const std::vector<Probe> inputs = writer_probes(means, static_cast<std::size_t>(largest - means.begin()));
  std::vector<Lengths> lengths(matrix.map.in);
  const std::vector<Outputs> outputs = pass.rewrite(
      [&](std::size_t row, std::size_t column, double value) { return value - means[out_in ? column : row]; },
      inputs, inputs, sink, [&](const Block& block) { add(lengths, block, matrix, false, threads); });

  part.means = std::move(means);

  for (const Lengths& length : lengths) {
    const double exact = std::sqrt(length.exact);
    const double bound = (std::sqrt(length.error) + of_a_mean * std::sqrt(length.old)) * of_the_bound;
    raise(certificate.bound, bound);
    // What has no length but its mean becomes zero up to the rounding of the mean.
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

FoldedBias folded_bias(const StoredMatrix& matrix, std::span<const double> bias) {
  const bool out_in = matrix.map.layout == Layout::out_in;
  const std::size_t columns = matrix.columns();
  std::vector<CompensatedSum> sums(matrix.map.stored_out);
  FoldedBias result{std::vector<double>(matrix.map.stored_out), std::vector<double>(matrix.map.stored_out)};
  MatrixPass(matrix, 1).read([&](const Block& block) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        const std::size_t output = out_in ? block.first + row : column;
        const double term = block.old[row * columns + column] * bias[out_in ? column : block.first + row];
        sums[output].add(term);
        result.magnitude[output] += std::abs(term);
      }
    }
  });
  std::transform(sums.begin(), sums.end(), result.sum.begin(),
                 [](const CompensatedSum& s) { return s.value(); });
  return result;
}

}  // namespace normscope::rewrite
