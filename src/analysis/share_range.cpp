#include <normscope/analysis/share_range.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "mlp_range.hpp"

namespace normscope::analysis {
namespace {

using Kind = forward::Component::Kind;

/// A sum of intervals, rounded outwards by a bound of the errors of `terms` operations on each.
class IntervalSum {
 public:
  void add(double one, double other, double error) {
    lower_ += std::min(one, other) - error;
    upper_ += std::max(one, other) + error;
    sizes_ += std::max(std::abs(one), std::abs(other)) + error;
    ++terms_;
  }
  [[nodiscard]] Interval result() const {
    const double error = rounding(terms_ + 64) * sizes_;
    return {.lower = lower_ - error, .upper = upper_ + error};
  }

 private:
  double lower_ = 0.0, upper_ = 0.0, sizes_ = 0.0;
  std::ptrdiff_t terms_ = 0;
};

/// The extremes of direction·row over rows.
Interval of_rows(std::span<const double> rows, std::span<const double> direction) {
  Interval found{.lower = infinity, .upper = -infinity};
  const auto terms = static_cast<std::ptrdiff_t>(direction.size());
  for (std::size_t first = 0; first < rows.size(); first += direction.size()) {
    const std::span<const double> row = rows.subspan(first, direction.size());
    const double read = plain_dot(direction, row);
    const double error = 2.0 * rounding(terms + 16) * euclidean_norm(direction) * euclidean_norm(row);
    found = {.lower = std::min(found.lower, read - error), .upper = std::max(found.upper, read + error)};
  }
  return found;
}

/// The extremes of direction·row over all rows of an embedding.
Interval of_table(const files::Checkpoint& checkpoint, const models::Linear& table,
                  std::span<const double> direction) {
  models::Linear rows = table;
  rows.layout = models::Layout::out_in;
  rows.in = table.out;
  rows.out = rows.stored_out = table.in;
  Interval found{.lower = infinity, .upper = -infinity};
  constexpr std::uint64_t most_together = 1024;
  for (std::uint64_t first = 0; first < rows.out; first += most_together) {
    const std::uint64_t count = std::min(most_together, rows.out - first);
    const Interval some = of_rows(models::read_weight(checkpoint, rows, first, count), direction);
    found = {.lower = std::min(found.lower, some.lower), .upper = std::max(found.upper, some.upper)};
  }
  return found;
}

/// The interval times a factor, rounded outwards.
Interval times(double factor, const Interval& of) {
  const double error =
      4.0 * unit_roundoff * std::abs(factor) * std::max(std::abs(of.lower), std::abs(of.upper));
  const auto [least, most] = std::minmax({factor * of.lower, factor * of.upper});
  return {.lower = least - error, .upper = most + error};
}

/// The values of an activation function between two inputs. Each falls to its least value, if it falls at
/// all, and rises from there.
Interval activated_between(models::Activation activation, const Interval& x) {
  const auto at = [&](double input) { return forward::activated(activation, input); };
  double lowest = 0.0;
  switch (activation) {
    case models::Activation::gelu: lowest = -0.75179162; break;
    case models::Activation::gelu_tanh: lowest = -0.75246142; break;
    case models::Activation::silu: lowest = -1.27846454; break;
    case models::Activation::relu:
    case models::Activation::squared_relu: break;
  }
  const double below = at(x.lower), above = at(x.upper);
  const double least = at(std::clamp(lowest, x.lower, x.upper));
  // The place of the least value has nine digits, which is more than its value needs.
  const double error = 1e-15 + 1e-14 * std::max(std::abs(below), std::abs(above));
  return {.lower = std::min({least, below, above}) - error, .upper = std::max(below, above) + error};
}

/// What the columns of an output map read of a direction: (Wᵀ v)_j for `count` of them.
struct Columns {
  std::vector<double> reads{}, sizes{};  ///< Σ W_ij v_i, and Σ |W_ij v_i|
};

Columns columns_of(const files::Checkpoint& checkpoint, const models::Linear& out, std::size_t first,
                   std::size_t count, std::span<const double> direction, double scale) {
  Columns columns{std::vector<double>(count), std::vector<double>(count)};
  const auto in = static_cast<std::size_t>(out.in);
  const std::vector<double> weight = models::read_weight(checkpoint, out, 0, out.out);
  for (std::size_t i = 0; i < direction.size(); ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      const double term = scale * direction[i] * weight[i * in + first + j];
      columns.reads[j] += term;
      columns.sizes[j] += std::abs(term);
    }
  }
  return columns;
}

/// What the rows of a map read behind a norm with one divisor.
BallReads reads_behind(const NormSpec& norm, std::vector<double> rows, std::span<const double> bias) {
  BallReads reads{.rows = std::move(rows)};
  const std::size_t width = norm.width;
  for (std::size_t j = 0; j < bias.size(); ++j) {
    const std::span<double> row(reads.rows.data() + j * width, width);
    reads.intervals.push_back(interval(norm, row, bias[j]));
    double centre = bias[j], sizes = std::abs(bias[j]), square = 0.0;
    for (std::size_t i = 0; i < width; ++i) {
      centre += row[i] * norm.bias_at(i);
      sizes += std::abs(row[i] * norm.bias_at(i));
      row[i] *= norm.radius() * norm.gain_at(i);
      square += row[i] * row[i];
    }
    if (norm.centers()) center(row);
    reads.centres.push_back(centre);
    reads.lengths.push_back(euclidean_norm(row));
    reads.errors.push_back(2.0 * rounding(static_cast<std::ptrdiff_t>(width) + 64) *
                           (sizes + std::sqrt(square)));
  }
  return reads;
}

/// Units, times the square of their norm's width, of MLPs that are bounded together.
constexpr double most_bounded_together = 0x1p33;

/// Makes the range smaller where bounds of all units together do.
void narrow(const BallUnits& units, double error, unsigned threads, ShareRange& range) {
  for (const double sign : {-1.0, 1.0}) {
    std::optional<BallBound> bound = bound_units(units, sign, threads);
    if (!bound) continue;
    const double value = bound->value + error;
    if (sign > 0.0 && value < range.interval.upper) {
      range.interval.upper = value;
      range.above = std::move(bound->proof);
    } else if (sign < 0.0 && -value > range.interval.lower) {
      range.interval.lower = -value;
      range.below = std::move(bound->proof);
    }
  }
}

ShareRange without_proof(const Interval& interval) { return {.interval = interval}; }

}  // namespace

ShareSource share_source(const forward::Component& of) {
  const bool has_bias = of.out != nullptr && of.out->bias;
  switch (of.kind) {
    case Kind::embedding:
    case Kind::position: return of.after == nullptr ? ShareSource::rows : ShareSource::none;
    case Kind::attention_bias:
    case Kind::mlp_bias: return of.after == nullptr || !has_bias ? ShareSource::constant : ShareSource::none;
    case Kind::head:
      return of.after == nullptr && of.in != nullptr && of.reads != nullptr ? ShareSource::head
                                                                            : ShareSource::none;
    case Kind::mlp:
      if (of.after != nullptr) return has_bias || of.after->bias ? ShareSource::none : ShareSource::norm;
      return of.in != nullptr && of.reads != nullptr ? ShareSource::mlp : ShareSource::none;
  }
  NORMSCOPE_ASSERT(false);
  return ShareSource::none;
}

const models::Linear* table_of(const models::Model& model, const forward::Component& of) {
  if (share_source(of) != ShareSource::rows) return nullptr;
  const char* const role = of.kind == Kind::embedding ? "token embedding" : "position embedding";
  for (const models::Norm& norm : model.norms) {
    for (const models::Linear& writer : norm.writers) {
      if (writer.role == role) return &writer;
    }
  }
  return nullptr;
}

std::optional<ShareRange> share_range(const files::Checkpoint& checkpoint, const models::Model& model,
                                      const forward::Component& of, std::span<const double> direction,
                                      unsigned threads) {
  const double scale = model.decoder->branch_scale;
  switch (share_source(of)) {
    case ShareSource::none: return std::nullopt;
    case ShareSource::rows: {
      const models::Linear* const table = table_of(model, of);
      if (table == nullptr) return std::nullopt;
      return without_proof(times(of.kind == Kind::embedding ? model.decoder->embedding_scale : 1.0,
                                 of_table(checkpoint, *table, direction)));
    }
    case ShareSource::constant: {
      const std::vector<double> bias = of.after != nullptr ? models::read_norm(checkpoint, *of.after).bias
                                                           : models::read_bias(checkpoint, *of.out);
      return without_proof(times(scale, of_rows(bias, direction)));
    }
    case ShareSource::norm:
      return without_proof(times(scale, interval(models::read_norm(checkpoint, *of.after), direction, 0.0)));
    case ShareSource::head:
    case ShareSource::mlp: break;
  }
  if (of.kind == Kind::mlp && model.decoder->clamped_gate) return std::nullopt;
  const NormSpec norm = models::read_norm(checkpoint, *of.reads);
  const auto count = static_cast<std::size_t>(of.in->out);
  const auto terms = static_cast<std::ptrdiff_t>(direction.size() + count + norm.width);
  const Columns columns = columns_of(checkpoint, *of.out, of.first_input, count, direction, scale);
  const std::vector<double> weight = models::read_weight(checkpoint, *of.in, 0, count);
  std::vector<double> bias = models::read_bias(checkpoint, *of.in);
  bias.resize(count);
  IntervalSum sum;
  if (of.kind == Kind::head) {
    std::vector<double> row(norm.width), sizes(norm.width);
    double constant = 0.0, error = 0.0;
    for (std::size_t j = 0; j < count; ++j) {
      constant += columns.reads[j] * bias[j];
      error += columns.sizes[j] * std::abs(bias[j]);
      for (std::size_t i = 0; i < norm.width; ++i) {
        row[i] += columns.reads[j] * weight[j * norm.width + i];
        sizes[i] += columns.sizes[j] * std::abs(weight[j * norm.width + i]);
      }
    }
    const double radius = norm.elementwise() ? 1.0 : norm.radius();
    for (std::size_t i = 0; i < norm.width; ++i) {
      error += sizes[i] * (radius * std::abs(norm.gain_at(i)) + std::abs(norm.bias_at(i)));
    }
    const Interval value = interval(norm, row, constant);
    // The weights of attention add up to 1, but for rounding that these terms cover.
    sum.add(value.lower, value.upper, 4.0 * rounding(terms + 64) * error);
    return without_proof(sum.result());
  }
  std::vector<double> gate, gate_bias(count);
  if (of.gate != nullptr) {
    gate = models::read_weight(checkpoint, *of.gate, 0, count);
    gate_bias = models::read_bias(checkpoint, *of.gate);
    gate_bias.resize(count);
  }
  const models::Activation activation = *model.decoder->activation;
  const auto input = [&](const std::vector<double>& rows, const std::vector<double>& biases, std::size_t j) {
    return interval(norm, {rows.data() + j * norm.width, norm.width}, biases[j]);
  };
  double misread = 0.0;
  for (std::size_t j = 0; j < count; ++j) {
    const Interval in = input(weight, bias, j);
    Interval unit;
    if (of.gate != nullptr) {
      const Interval factor = activated_between(activation, input(gate, gate_bias, j));
      const auto [least, most] = std::minmax({factor.lower * in.lower, factor.lower * in.upper,
                                              factor.upper * in.lower, factor.upper * in.upper});
      unit = {.lower = least, .upper = most};
    } else {
      unit = activated_between(activation, in);
    }
    const double size = std::max(std::abs(unit.lower), std::abs(unit.upper));
    const double error = 2.0 * rounding(terms + 64) * columns.sizes[j] * size;
    sum.add(columns.reads[j] * unit.lower, columns.reads[j] * unit.upper, error);
    misread += error;
  }
  ShareRange range{.interval = sum.result()};
  const double work = static_cast<double>(count) * static_cast<double>(norm.width * norm.width);
  if (!norm.elementwise() && norm.groups == 1 && work <= most_bounded_together) {
    BallUnits units{.activation = activation, .width = norm.width, .reads = columns.reads};
    if (of.gate != nullptr) {
      units.z = reads_behind(norm, std::move(gate), gate_bias);
      units.x = reads_behind(norm, weight, bias);
    } else {
      units.z = reads_behind(norm, weight, bias);
    }
    narrow(units, 2.0 * misread, threads, range);
  }
  return range;
}

}  // namespace normscope::analysis
