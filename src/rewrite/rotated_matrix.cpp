#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

#include "matrix.hpp"
#include "matrix_rewrite.hpp"

namespace normscope::rewrite {
namespace {

/// A block of fibers (vectors along one axis) of a stored matrix: n rows of `length` numbers each.
struct Fibers {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t length = 0;
  std::span<const double> old;
  std::span<const double> exact;   ///< rewritten, in float64
  std::span<const double> stored;  ///< the same rounded to the dtype

  [[nodiscard]] std::span<const double> row(std::span<const double> of, std::size_t index) const {
    return of.subspan(index * length, length);
  }
};

/// Rewrites a stored matrix if changed values depend on all values of their fiber, a row or column of the
/// file. Columns need the matrix in memory, in its dtype.
class FiberPass {
 public:
  FiberPass(const StoredMatrix& matrix, bool along_rows, unsigned threads)
      : matrix_(matrix), along_rows_(along_rows), threads_(threads) {}

  /// Replaces the fibers [first, first + n) in `values` by rewritten ones.
  using Change = std::function<void(std::span<double> values, std::size_t first)>;
  /// Elements of the slice whose bytes are not those of the rewritten values.
  using Patches = std::pair<std::span<const std::uint64_t>, std::span<const std::byte>>;

  /// Errors    Unsupported for a value that is not finite or leaves the dtype's range
  void rewrite(const Change& change, const std::function<void(const Fibers&)>& use, const Sink& sink,
               const Patches& patches = {});

 private:
  void rewrite_block(std::size_t first, std::size_t count, const Change& change,
                     const std::function<void(const Fibers&)>& use);
  void convert(std::size_t count, bool decodes, std::span<double> values, std::size_t first);
  void patch(std::size_t begin, std::size_t end, const Patches& patches, std::size_t& next);

  const StoredMatrix& matrix_;
  bool along_rows_;
  unsigned threads_;
  std::vector<std::byte> bytes_;  ///< of a block of rows, or of the whole matrix
  std::size_t first_row_ = 0;     ///< of `bytes_`
  std::vector<double> old_;
  std::vector<double> exact_;
  std::vector<double> stored_;
};

constexpr std::size_t elements_of_a_block = std::size_t{1} << 18U;
constexpr std::size_t bytes_written_at_a_time = std::size_t{1} << 20U;
/// Number of columns that are gathered together, so that whole cache lines of each row are used.
constexpr std::size_t columns_at_a_time = 64;

using models::Layout;

constexpr double of_that_bound = 1.0 + 1e-9;

double distance_of(std::span<const double> a, std::span<const double> b) {
  double squares = 0.0;
  for (std::size_t j = 0; j < a.size(); ++j) squares += (a[j] - b[j]) * (a[j] - b[j]);
  return std::sqrt(squares);
}

bool fibers_are_rows(const StoredMatrix& matrix, bool of_inputs) {
  return (matrix.map.layout == Layout::out_in) == of_inputs;
}

/// Undoes an edit of the stored fibers [first, first + n) in `values`.
struct Undone {
  const Rotation& rotation;
  std::span<const double> factors;  ///< of the features; empty without a gain
  std::span<const double> means;    ///< of the fibers; empty without centring
  unsigned threads;

  void operator()(std::span<double> values, std::size_t first) const {
    rotation.apply_transposed(values, threads);
    const std::size_t width = rotation.width();
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (!factors.empty()) values[at] = factors[at % width] == 0.0 ? 0.0 : values[at] / factors[at % width];
      if (!means.empty()) values[at] += means[first + at / width];
    }
  }
};

/// Undoes every block after it is written, for trial: keeps the values that a gain of 0 loses, and measures
/// the error of the others.
class UndoCheck {
 public:
  UndoCheck(const StoredMatrix& matrix, bool along_rows, const Undone& undone, UndoPart& part)
      : matrix_(matrix), along_rows_(along_rows), undone_(undone), part_(part) {}

  void check(const Fibers& fibers, double& roundings) {
    const Dtype dtype = matrix_.tensor.dtype;
    restored_.assign(fibers.stored.begin(), fibers.stored.end());
    undone_(restored_, fibers.first);
    bytes_.resize(restored_.size() * bits(dtype) / 8);
    encode(dtype, restored_, bytes_);
    decode(dtype, bytes_, restored_);
    for (std::size_t i = 0; i < fibers.count; ++i) {
      const std::span<const double> old = fibers.row(fibers.old, i);
      const double unit = unit_roundoff(dtype) * length_of(old);
      for (std::size_t j = 0; j < fibers.length; ++j) {
        if (!undone_.factors.empty() && undone_.factors[j] == 0.0) {
          keep(fibers.first + i, j, old[j]);
        } else if (unit > 0.0) {
          roundings =
              std::max(roundings, std::abs(restored_[i * fibers.length + j] - old[j]) / unit * of_that_bound);
        }
      }
    }
  }

  /// Sorts the kept values in the order of the file.
  void finish() {
    std::sort(kept_.begin(), kept_.end());
    const std::size_t size = bits(matrix_.tensor.dtype) / 8;
    part_.values.resize(kept_.size() * size);
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      part_.at.push_back(kept_[i].first);
      encode(matrix_.tensor.dtype, {&kept_[i].second, 1}, std::span(part_.values).subspan(i * size, size));
    }
  }

 private:
  void keep(std::size_t fiber, std::size_t feature, double value) {
    if (kept_.size() > most_kept) return;
    const std::uint64_t columns = matrix_.columns();
    kept_.emplace_back(along_rows_ ? fiber * columns + feature : feature * columns + fiber, value);
  }

  const StoredMatrix& matrix_;
  bool along_rows_;
  const Undone& undone_;
  UndoPart& part_;
  std::vector<std::pair<std::uint64_t, double>> kept_;
  std::vector<double> restored_;
  std::vector<std::byte> bytes_;
};

/// Every probe as a row.
std::vector<double> rows_of_probes(const std::vector<Probe>& probes) {
  std::vector<double> rows(probe_count * probes.size());
  for (std::size_t k = 0; k < probe_count; ++k) {
    for (std::size_t j = 0; j < probes.size(); ++j) rows[k * probes.size() + j] = probes[j][k];
  }
  return rows;
}

double dot_of(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

double sum_of(std::span<const double> x) {
  double sum = 0.0;
  for (const double value : x) sum += value;
  return sum;
}

/// What rounding makes of a row whose rotation reads `norm`, and the largest value of its output.
struct ReaderError {
  double bound;
  double range;
};

ReaderError reader_error(const NormSpec& norm, const KeptParts& kept, std::size_t output,
                         const Rotation& rotation, std::span<const double> old, std::span<const double> exact,
                         std::span<const double> stored) {
  const double radius = longest_output(norm);
  const double row = length_of(exact);
  const double error = distance_of(stored, exact);
  const double squares = row * row;
  // Q maps ones to ones where the norm subtracts a mean, so the sum of W G stays.
  ReaderError result{radius * (error + 2.0 * rotation.error() * row),
                     half_range(norm, squares, sum_of(exact))};
  if (!kept.old_bias.empty()) {
    const double before = dot_of(old, kept.old_bias);
    result.bound +=
        std::abs(dot_of(stored, kept.new_bias) - before) + rounding_of_constants(kept, row + error);
    if (!kept.constants.empty()) result.range += std::abs(before + kept.constants[output]);
  }
  result.bound *= of_that_bound;
  return result;
}

std::vector<double> gains_of(const NormSpec& norm) {
  std::vector<double> gains(norm.width);
  for (std::size_t j = 0; j < norm.width; ++j) gains[j] = norm.gain_at(j);
  return gains;
}

}  // namespace

/// Decodes the fibers of a block from `bytes_`, or encodes them to it.
void FiberPass::convert(std::size_t count, bool decodes, std::span<double> values, std::size_t first) {
  const Dtype dtype = matrix_.tensor.dtype;
  const std::size_t size = bits(dtype) / 8;
  const std::size_t columns = matrix_.columns();
  if (along_rows_) {
    parallel_for(count, 1, threads_, [&](std::size_t from, std::size_t to) {
      const std::span<std::byte> bytes = std::span(bytes_).subspan(
          (first + from - first_row_) * columns * size, (to - from) * columns * size);
      const std::span<double> part = values.subspan(from * columns, (to - from) * columns);
      decodes ? decode(dtype, bytes, part) : encode(dtype, part, bytes);
    });
    return;
  }
  const std::size_t rows = matrix_.rows();
  parallel_for(rows, 64, threads_, [&](std::size_t from, std::size_t to) {
    std::vector<double> part(count);
    for (std::size_t row = from; row < to; ++row) {
      const std::span<std::byte> bytes =
          std::span(bytes_).subspan((row * columns + first) * size, count * size);
      if (decodes) decode(dtype, bytes, part);
      for (std::size_t i = 0; i < count; ++i) {
        double& value = values[i * rows + row];
        decodes ? value = part[i] : part[i] = value;
      }
      if (!decodes) encode(dtype, part, bytes);
    }
  });
}

void FiberPass::rewrite_block(std::size_t first, std::size_t count, const Change& change,
                              const std::function<void(const Fibers&)>& use) {
  const std::size_t length = along_rows_ ? matrix_.columns() : matrix_.rows();
  old_.resize(count * length);
  stored_.resize(count * length);
  convert(count, true, old_, first);
  expect_finite(matrix_.tensor, old_, old_, old_);
  exact_ = old_;
  change(exact_, first);
  convert(count, false, exact_, first);
  convert(count, true, stored_, first);
  expect_finite(matrix_.tensor, old_, exact_, stored_);
  use({first, count, length, old_, exact_, stored_});
}

void FiberPass::patch(std::size_t begin, std::size_t end, const Patches& patches, std::size_t& next) {
  const std::size_t size = bits(matrix_.tensor.dtype) / 8;
  for (; next < patches.first.size() && patches.first[next] < end; ++next) {
    std::copy_n(patches.second.begin() + static_cast<std::ptrdiff_t>(next * size), size,
                bytes_.begin() + static_cast<std::ptrdiff_t>((patches.first[next] - begin) * size));
  }
}

void FiberPass::rewrite(const Change& change, const std::function<void(const Fibers&)>& use, const Sink& sink,
                        const Patches& patches) {
  const std::size_t size = bits(matrix_.tensor.dtype) / 8;
  const std::size_t columns = matrix_.columns();
  const std::size_t rows = matrix_.rows();
  const auto load = [&](std::size_t first, std::size_t count) {
    std::vector<std::byte> buffer;
    const std::uint64_t begin = matrix_.map.weight.offset + first * columns;
    const auto found = matrix_.tensor.bytes.part(begin * size, count * columns * size).fetch(buffer);
    buffer.empty() ? bytes_.assign(found.begin(), found.end()) : bytes_.swap(buffer);
    first_row_ = first;
  };
  std::size_t next = 0;
  if (along_rows_) {
    const std::size_t block =
        std::max<std::size_t>(1, elements_of_a_block / std::max<std::size_t>(1, columns));
    for (std::size_t first = 0; first < rows; first += block) {
      const std::size_t count = std::min(block, rows - first);
      load(first, count);
      rewrite_block(first, count, change, use);
      patch(first * columns, (first + count) * columns, patches, next);
      std::copy(bytes_.begin(), bytes_.end(), sink(bytes_.size()).begin());
    }
    return;
  }
  load(0, rows);
  for (std::size_t first = 0; first < columns; first += columns_at_a_time) {
    rewrite_block(first, std::min(columns_at_a_time, columns - first), change, use);
  }
  patch(0, rows * columns, patches, next);
  for (std::size_t at = 0; at < bytes_.size(); at += bytes_written_at_a_time) {
    const std::size_t written = std::min(bytes_written_at_a_time, bytes_.size() - at);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), written, sink(written).begin());
  }
}

void rotate_inputs(const StoredMatrix& matrix, const NormSpec& norm, const KeptParts& kept,
                   const Rotation& rotation, unsigned threads, const Sink& sink, Certificate& certificate,
                   UndoPart& part) {
  const bool along_rows = fibers_are_rows(matrix, true);
  const std::size_t width = rotation.width();
  const std::vector<double> gains = gains_of(norm);
  std::vector<double> old_inputs = rows_of_probes(norm_probes(norm));
  std::vector<double> new_inputs = old_inputs;
  rotation.apply(new_inputs);
  for (std::size_t at = 0; at < old_inputs.size(); ++at) old_inputs[at] *= gains[at % width];

  const Undone undone{rotation, gains, {}, threads};
  UndoCheck check(matrix, along_rows, undone, part);
  std::mutex mutex;
  FiberPass(matrix, along_rows, threads)
      .rewrite(
          [&](std::span<double> values, std::size_t /*first*/) {
            for (std::size_t at = 0; at < values.size(); ++at) values[at] *= gains[at % width];
            rotation.apply(values, threads);
          },
          [&](const Fibers& fibers) {
            parallel_for(fibers.count, 1, threads, [&](std::size_t from, std::size_t to) {
              Certificate worst;
              for (std::size_t i = from; i < to; ++i) {
                const auto old = fibers.row(fibers.old, i);
                const auto exact = fibers.row(fibers.exact, i);
                const auto stored = fibers.row(fibers.stored, i);
                const auto [bound, scale] =
                    reader_error(norm, kept, fibers.first + i, rotation, old, exact, stored);
                worst.bound = std::max(worst.bound, bound);
                if (scale == 0.0) continue;
                worst.relative_bound = std::max(worst.relative_bound, bound / scale);
                for (std::size_t k = 0; k < probe_count; ++k) {
                  const auto new_input = std::span<const double>(new_inputs).subspan(k * width, width);
                  const double before =
                      dot_of(old, std::span<const double>(old_inputs).subspan(k * width, width));
                  worst.observed_in_double =
                      std::max(worst.observed_in_double, std::abs(dot_of(exact, new_input) - before) / scale);
                  worst.observed_as_stored = std::max(worst.observed_as_stored,
                                                      std::abs(dot_of(stored, new_input) - before) / scale);
                }
              }
              const std::scoped_lock lock(mutex);
              certificate.bound = std::max(certificate.bound, worst.bound);
              certificate.relative_bound = std::max(certificate.relative_bound, worst.relative_bound);
              certificate.observed_in_double =
                  std::max(certificate.observed_in_double, worst.observed_in_double);
              certificate.observed_as_stored =
                  std::max(certificate.observed_as_stored, worst.observed_as_stored);
            });
            check.check(fibers, certificate.undo_roundings);
          },
          sink);
  check.finish();
}

void rotate_outputs(const StoredMatrix& matrix, const NormSpec& reader, const KeptParts* head, bool centers,
                    const Rotation& rotation, unsigned threads, const Sink& sink, Certificate& certificate,
                    UndoPart& part) {
  const bool along_rows = fibers_are_rows(matrix, false);
  const std::size_t width = rotation.width();
  const std::size_t inputs = matrix.map.in;
  if (centers) part.means.resize(inputs);
  std::vector<double> ones(inputs, 1.0);
  const std::vector<Probe> probes = writer_probes(ones, 0);
  std::vector<double> old_stream(probe_count * width);
  std::vector<double> exact_stream(probe_count * width);
  std::vector<double> stored_stream(probe_count * width);
  const auto add_to = [&](std::vector<double>& stream, std::span<const double> written, const Probe& probe) {
    for (std::size_t k = 0; k < probe_count; ++k) {
      for (std::size_t j = 0; j < width; ++j) stream[k * width + j] += probe[k] * written[j];
    }
  };
  const Undone undone{rotation, {}, part.means, threads};
  UndoCheck check(matrix, along_rows, undone, part);
  FiberPass(matrix, along_rows, threads)
      .rewrite(
          [&](std::span<double> values, std::size_t first) {
            for (std::size_t i = 0; centers && i * width < values.size(); ++i) {
              CompensatedSum sum;
              const std::span<double> fiber = values.subspan(i * width, width);
              for (const double value : fiber) sum.add(value);
              part.means[first + i] = sum.value() / static_cast<double>(width);
              for (double& value : fiber) value -= part.means[first + i];
            }
            rotation.apply(values, threads);
          },
          [&](const Fibers& fibers) {
            for (std::size_t i = 0; i < fibers.count; ++i) {
              const auto old = fibers.row(fibers.old, i);
              const auto exact = fibers.row(fibers.exact, i);
              const auto stored = fibers.row(fibers.stored, i);
              const double scale = length_of(exact);
              const double bound =
                  (distance_of(stored, exact) + (2.0 * rotation.error() + 0x1p-50) * length_of(old)) *
                  of_that_bound;
              certificate.bound = std::max(certificate.bound, bound);
              if (scale > 0x1p-40 * length_of(old)) {
                certificate.relative_bound = std::max(certificate.relative_bound, bound / scale);
              }
              if (head != nullptr) {
                const auto [of_logit, range] =
                    reader_error(reader, *head, fibers.first + i, rotation, old, exact, stored);
                if (range > 0.0)
                  certificate.relative_bound = std::max(certificate.relative_bound, of_logit / range);
              }
              const Probe& probe = probes[fibers.first + i];
              add_to(old_stream, old, probe);
              add_to(exact_stream, exact, probe);
              add_to(stored_stream, stored, probe);
            }
            check.check(fibers, certificate.undo_roundings);
          },
          sink);
  check.finish();
  NormSpec after = reader;
  if (centers) after.kind = NormKind::rms;
  for (std::size_t k = 0; k < probe_count; ++k) {
    const auto stream = [&](const std::vector<double>& of) {
      return std::span<const double>(of).subspan(k * width, width);
    };
    std::vector<double> before = normalized(reader, stream(old_stream));
    rotation.apply(before);
    const auto error = [&](const std::vector<double>& of) {
      return distance_of(normalized(after, stream(of)), before) / longest_output(reader);
    };
    certificate.observed_in_double = std::max(certificate.observed_in_double, error(exact_stream));
    certificate.observed_as_stored = std::max(certificate.observed_as_stored, error(stored_stream));
  }
}

void restore_rotated(const StoredMatrix& matrix, const UndoEdit& edit, std::span<const double> factors,
                     const Rotation& rotation, unsigned threads, const Sink& sink) {
  const bool along_rows = fibers_are_rows(matrix, edit.change == Change::rotate_inputs);
  const Undone undone{rotation, factors, edit.part.means, threads};
  FiberPass(matrix, along_rows, threads)
      .rewrite([&](std::span<double> values, std::size_t first) { undone(values, first); },
               [](const Fibers&) {}, sink, {edit.part.at, edit.part.values});
}

}  // namespace normscope::rewrite
