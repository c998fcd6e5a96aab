#include "matrix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

#include "matrix_pass.hpp"
#include "scale_kernel.hpp"

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

/// Whether W' / g does not bring W back to two roundings: it lost digits below the dtype's normal numbers, or
/// all of them where g is 0.
bool is_lost(Dtype dtype, double old, double stored, double gain) {
  if (std::abs(stored) >= smallest_normal(dtype)) return false;
  if (old == 0.0 && !std::signbit(old)) return false;
  return gain == 0.0 || rounded(dtype, stored / gain) != old;
}

void keep(std::span<const std::pair<std::uint64_t, double>> lost, Dtype dtype, UndoPart& part) {
  const std::size_t size = bits(dtype) / 8;
  for (const auto& [at, value] : lost) {
    part.at.push_back(at);
    part.values.resize(part.values.size() + size);
    encode(dtype, {&value, 1}, std::span(part.values).last(size));
  }
}

/// Adds the elements of `block` that are lost.
void keep_what_is_lost(const Block& block, const StoredMatrix& matrix, const NormSpec& norm, unsigned threads,
                       UndoPart& part) {
  const std::size_t columns = matrix.columns();
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, double>> lost;
  parallel_for(block.rows, 1, threads, [&](std::size_t from, std::size_t to) {
    for (std::size_t at = from * columns; at < to * columns; ++at) {
      const double gain = norm.gain_at(block.first + at / columns);
      if (!is_lost(matrix.tensor.dtype, block.old[at], block.stored[at], gain)) continue;
      const std::scoped_lock lock(mutex);
      if (part.at.size() + lost.size() <= most_kept) {
        lost.emplace_back(block.first * columns + at, block.old[at]);
      }
    }
  });
  std::sort(lost.begin(), lost.end());
  keep(lost, matrix.tensor.dtype, part);
}

/// Rows of a matrix that is stored out × in, times the gains, with what certifies them.
class RowScaling {
 public:
  RowScaling(const StoredMatrix& matrix, const NormSpec& norm, std::span<const Probe> old_probes,
             std::span<const Probe> new_probes, UndoPart& part)
      : matrix_(matrix),
        dtype_(matrix.tensor.dtype),
        width_(matrix.columns()),
        padded_((width_ + row_multiple - 1) / row_multiple * row_multiple),
        gain_(padded_),
        old_probes_(probe_count * padded_),
        new_probes_(probe_count * padded_),
        part_(part) {
    for (std::size_t j = 0; j < width_; ++j) {
      gain_[j] = norm.gain_at(j);
      for (std::size_t k = 0; k < probe_count; ++k) {
        old_probes_[k * padded_ + j] = old_probes[j][k];
        new_probes_[k * padded_ + j] = new_probes[j][k];
      }
    }
  }

  /// Calls `use` with the sums of every row.
  void run(unsigned threads, const Sink& sink,
           const std::function<void(std::size_t row, const RowSums& sums)>& use) {
    const std::size_t size = bits(dtype_) / 8;
    const std::size_t block =
        std::max<std::size_t>(1, bytes_of_a_block / std::max<std::size_t>(1, width_ * size));
    std::vector<std::byte> buffer;
    std::vector<std::byte> rewritten;
    std::vector<RowSums> sums;
    for (std::size_t first = 0; first < matrix_.rows(); first += block) {
      const std::size_t rows = std::min<std::size_t>(block, matrix_.rows() - first);
      const std::uint64_t begin = (matrix_.map.weight.offset + first * width_) * size;
      const std::span<const std::byte> bytes =
          matrix_.tensor.bytes.part(begin, rows * width_ * size).fetch(buffer);
      rewritten.resize(bytes.size());
      sums.resize(rows);
      lost_.clear();
      parallel_for(rows, 1, threads, [&](std::size_t from, std::size_t to) {
        Buffers buffers(dtype_, padded_);
        for (std::size_t row = from; row < to; ++row) {
          sums[row] = scale(first + row, bytes.subspan(row * width_ * size, width_ * size), buffers,
                            std::span(rewritten).subspan(row * width_ * size, width_ * size));
        }
      });
      keep_lost();
      for (std::size_t row = 0; row < rows; ++row) use(first + row, sums[row]);
      sink(rewritten);
    }
  }

 private:
  static constexpr std::size_t bytes_of_a_block = std::size_t{1} << 21U;

  /// A row as it is read and as it is written, zeros after its end. One pair is used.
  struct Buffers {
    Buffers(Dtype dtype, std::size_t padded)
        : halves(dtype == Dtype::BF16 ? 2 * padded : 0), floats(dtype == Dtype::F32 ? 2 * padded : 0) {}
    std::vector<std::uint16_t> halves;
    std::vector<float> floats;
  };

  [[nodiscard]] RowSums scale(std::size_t row, std::span<const std::byte> bytes, Buffers& buffers,
                              std::span<std::byte> rewritten) {
    const RowSums sums = dtype_ == Dtype::BF16  ? scaled(bytes, buffers.halves, rewritten)
                         : dtype_ == Dtype::F32 ? scaled(bytes, buffers.floats, rewritten)
                                                : RowSums{.is_regular = false};
    return sums.is_regular ? sums : scale_any(row, bytes, rewritten);
  }

  template <typename Stored>
  [[nodiscard]] RowSums scaled(std::span<const std::byte> bytes, std::vector<Stored>& buffer,
                               std::span<std::byte> rewritten) const {
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    Stored* const stored = buffer.data() + padded_;
    const RowSums sums =
        scale_row(buffer.data(), {gain_.data(), old_probes_.data(), new_probes_.data(), padded_}, stored);
    std::memcpy(rewritten.data(), stored, rewritten.size());
    return sums;
  }

  /// The same in any dtype, for rows that lose values or cannot be held.
  [[nodiscard]] RowSums scale_any(std::size_t row, std::span<const std::byte> bytes,
                                  std::span<std::byte> rewritten) {
    std::vector<double> old(width_);
    decode(dtype_, bytes, old);
    std::vector<double> exact(width_);
    std::vector<double> stored(width_);
    for (std::size_t j = 0; j < width_; ++j) exact[j] = old[j] * gain_[j];
    encode(dtype_, exact, rewritten);
    decode(dtype_, rewritten, stored);
    expect_finite(matrix_.tensor, old, exact, stored);
    RowSums sums;
    for (std::size_t j = 0; j < width_; ++j) {
      const double error = stored[j] - exact[j];
      sums.exact += exact[j] * exact[j];
      sums.error += error * error;
      for (std::size_t k = 0; k < probe_count; ++k) {
        sums.old_output[k] += old[j] * old_probes_[k * padded_ + j];
        sums.exact_output[k] += exact[j] * new_probes_[k * padded_ + j];
        sums.stored_output[k] += stored[j] * new_probes_[k * padded_ + j];
      }
      if (!is_lost(dtype_, old[j], stored[j], gain_[j])) continue;
      const std::scoped_lock lock(mutex_);
      if (part_.at.size() + lost_.size() <= most_kept) lost_.emplace_back(row * width_ + j, old[j]);
    }
    return sums;
  }

  void keep_lost() {
    std::sort(lost_.begin(), lost_.end());
    keep(lost_, dtype_, part_);
  }

  const StoredMatrix& matrix_;
  Dtype dtype_;
  std::size_t width_;
  std::size_t padded_;
  std::vector<double> gain_;
  std::vector<double> old_probes_;
  std::vector<double> new_probes_;
  UndoPart& part_;
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, double>> lost_;
};

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
            return factors[input] == 0.0 ? value : value / factors[input];
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
  std::vector<RowSums> sums(matrix.map.stored_out);
  if (matrix.map.layout == Layout::out_in) {
    RowScaling(matrix, norm, scaled, outputs_of_norm, part)
        .run(threads, sink, [&](std::size_t row, const RowSums& of_row) { sums[row] = of_row; });
  } else {
    std::vector<Lengths> lengths(matrix.map.stored_out);
    const std::vector<Outputs> outputs = MatrixPass(matrix, threads)
                                             .rewrite([&](std::size_t row, std::size_t /*column*/,
                                                          double value) { return value * norm.gain_at(row); },
                                                      scaled, outputs_of_norm, sink,
                                                      [&](const Block& block) {
                                                        add(lengths, block, matrix, true, threads);
                                                        keep_what_is_lost(block, matrix, norm, threads, part);
                                                      });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] = {lengths[i].exact, lengths[i].error, outputs[i].old, outputs[i].exact, outputs[i].stored};
    }
  }

  const double radius = longest_output(norm);
  std::size_t worst = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double scale = radius * std::sqrt(sums[i].exact);
    const double bound = (radius * std::sqrt(sums[i].error) + in_double * scale) * of_the_bound;
    raise(certificate.bound, bound / radius * longest);
    if (scale == 0.0) continue;
    if (bound / scale > certificate.relative_bound) worst = i;
    raise(certificate.relative_bound, bound / scale);
    for (std::size_t k = 0; k < probe_count; ++k) {
      const double before = sums[i].old_output[k];
      raise(certificate.observed_in_double, std::abs(sums[i].exact_output[k] - before) / scale);
      raise(certificate.observed_as_stored, std::abs(sums[i].stored_output[k] - before) / scale);
    }
  }
  // The input that the errors of the worst row point to.
  if (sums.empty() || sums[worst].error == 0.0) return;
  const std::vector<double> errors = errors_of(matrix, worst, norm);
  std::vector<double> row = errors;
  for (double& value : row) value *= 1e6 / std::sqrt(sums[worst].error);
  raise(certificate.observed_as_stored,
        std::abs(product(errors, normalized(norm, row))) / (radius * std::sqrt(sums[worst].exact)));
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
