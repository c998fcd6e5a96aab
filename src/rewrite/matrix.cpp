#include "matrix.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace

double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return 0x1p-53;
    case Dtype::F32: return 0x1p-24;
    case Dtype::F16: return 0x1p-11;
    default: return 0x1p-8;  // BF16
  }
}

void scale_inputs(const StoredMatrix& matrix, const NormSpec& norm, double longest, unsigned threads,
                  const Sink& sink, Certificate& certificate) {
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
                   [&](const Block& block) { add(lengths, block, matrix, true, threads); });

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
                    Certificate& certificate) {
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
