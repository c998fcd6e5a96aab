#include <normscope/rewrite/rewrite.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

#include "matrix.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using models::Linear;

/// Elements of a matrix in float64 at a time.
constexpr std::size_t elements_at_a_time = std::size_t{1} << 18U;

/// Outputs of a norm with gain and bias, for every row.
std::vector<double> outputs_of(const NormSpec& spec, const std::vector<double>& rows) {
  std::vector<double> result;
  result.reserve(rows.size());
  for (std::size_t at = 0; at < rows.size(); at += spec.width) {
    const std::vector<double> output = normalized(spec, std::span(rows).subspan(at, spec.width));
    for (std::size_t j = 0; j < spec.width; ++j) {
      result.push_back(output[j] * spec.gain_at(j) + spec.bias_at(j));
    }
  }
  return result;
}

double dot(const double* a, const double* b, std::size_t size) {
  double sum = 0.0;
  for (std::size_t j = 0; j < size; ++j) sum += a[j] * b[j];
  return sum;
}

/// One reader of one file, with the norm that it reads.
struct ReaderSide {
  const Checkpoint& file;
  const Linear& map;
  const std::vector<double>& inputs;
};

ReaderOnRows compare_reader(const ReaderSide& before, const ReaderSide& after, const NormSpec& norm,
                            unsigned threads) {
  ReaderOnRows result{after.map.weight.selector()};
  const std::size_t width = norm.width;
  const std::size_t rows = before.inputs.size() / width;
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  const std::vector<double> new_bias = read_bias(after.file, after.map);
  std::vector<double> differences(rows);  // squared lengths
  std::vector<double> lengths(rows);
  std::mutex mutex;
  const std::size_t block = std::max<std::size_t>(1, elements_at_a_time / width);
  for (std::size_t first = 0; first < before.map.out; first += block) {
    const std::size_t count = std::min<std::size_t>(block, before.map.out - first);
    const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
    const std::vector<double> new_weight = read_weight(after.file, after.map, first, count);
    parallel_for(rows, 1, threads, [&](std::size_t from, std::size_t to) {
      for (std::size_t row = from; row < to; ++row) {
        double largest = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
          const double* const w = old_weight.data() + i * width;
          double squares = 0.0;
          double sum = 0.0;
          double constant = old_bias.empty() ? 0.0 : old_bias[first + i];
          for (std::size_t j = 0; j < width; ++j) {
            squares += w[j] * w[j] * norm.gain_at(j) * norm.gain_at(j);
            sum += w[j] * norm.gain_at(j);
            constant += w[j] * norm.bias_at(j);
          }
          const double most = half_range(norm, squares, sum) + std::abs(constant);
          const double old_output = dot(w, before.inputs.data() + row * width, width) +
                                    (old_bias.empty() ? 0.0 : old_bias[first + i]);
          const double new_output =
              dot(new_weight.data() + i * width, after.inputs.data() + row * width, width) +
              (new_bias.empty() ? 0.0 : new_bias[first + i]);
          const double difference = new_output - old_output;
          differences[row] += difference * difference;
          lengths[row] += old_output * old_output;
          if (most > 0.0) largest = std::max(largest, std::abs(difference) / most);
        }
        const std::scoped_lock lock(mutex);
        result.largest = std::max(result.largest, largest);
      }
    });
  }
  for (std::size_t row = 0; row < rows; ++row) {
    if (lengths[row] > 0.0) {
      result.relative = std::max(result.relative, std::sqrt(differences[row] / lengths[row]));
    }
  }
  return result;
}

bool is_centered(const Plan& plan, std::size_t norm) {
  return std::any_of(plan.streams.begin(), plan.streams.end(), [&](const StreamPlan& stream) {
    return stream.centered && std::find(stream.norms.begin(), stream.norms.end(), norm) != stream.norms.end();
  });
}

}  // namespace

std::vector<NormOnRows> compare_on_rows(const Checkpoint& before, const Checkpoint& after,
                                        const models::Model& model, const Plan& plan,
                                        const std::vector<Activations>& activations, unsigned threads) {
  std::vector<NormOnRows> results;
  for (const Activations& item : activations) {
    const models::Norm& norm = model.norms[item.norm];
    const NormSpec old_spec = read_norm(before, norm);
    NormSpec new_spec = read_norm(after, norm);
    NormOnRows result{norm.name, item.given, item.rows.size() / norm.width};
    std::vector<double> new_rows = item.rows;
    const bool centered = is_centered(plan, item.norm);
    if (centered) new_spec.kind = NormKind::rms;
    for (std::size_t at = 0; at < new_rows.size(); at += norm.width) {
      const std::span<double> row = std::span(new_rows).subspan(at, norm.width);
      const double before_centring = dot(row.data(), row.data(), row.size());
      std::vector<double> without_mean(row.begin(), row.end());
      center(without_mean);
      const double rest = dot(without_mean.data(), without_mean.data(), row.size());
      if (before_centring > 0.0)
        result.mean_share = std::max(result.mean_share, 1.0 - rest / before_centring);
      if (centered) std::copy(without_mean.begin(), without_mean.end(), row.begin());
    }
    for (const RotationPlan& stream : plan.rotations) {
      const bool reads = std::find(stream.norms.begin(), stream.norms.end(), item.norm) != stream.norms.end();
      if (stream.rotation && reads) stream.rotation->apply(new_rows, threads);
    }
    const std::vector<double> old_inputs = outputs_of(old_spec, item.rows);
    const std::vector<double> new_inputs = outputs_of(new_spec, new_rows);
    for (const Linear& reader : norm.readers) {
      Linear moved = reader;
      const bool is_head = plan.untied && reader.weight.tensor == plan.untied->table;
      if (is_head) moved.weight.tensor = plan.untied->head;
      result.readers.push_back(
          compare_reader({before, reader, old_inputs}, {after, moved, new_inputs}, old_spec, threads));
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace normscope::rewrite
