#include "readers.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include "components.hpp"

namespace normscope::analysis {
namespace {

constexpr std::size_t rows_at_once = 64;
constexpr std::size_t listed_coordinates = 8;
/// Cosine from which a row counts as along the longest axis.
constexpr double along = 0.5;

/// Sums over some rows of W diag(g).
struct Sums {
  std::vector<double> squares{};  ///< of each column
  double removed = 0.0;
  std::size_t along_longest = 0;
};

class ReaderSums {
 public:
  ReaderSums(const files::Checkpoint& checkpoint, const models::Linear& linear, const NormSpec& norm,
             std::span<const double> longest)
      : checkpoint_(checkpoint), linear_(linear), norm_(norm), longest_(longest) {}

  [[nodiscard]] Sums rows(std::size_t first, std::size_t count) const {
    const std::vector<double> weights = models::read_weight(checkpoint_, linear_, first, count);
    Sums sums{.squares = std::vector<double>(norm_.width)};
    for (std::size_t row = 0; row < count; ++row) add(weights.data() + row * norm_.width, sums);
    return sums;
  }

 private:
  void add(const double* row, Sums& sums) const {
    const std::size_t block = norm_.block_width();
    double length = 0.0;
    double dot = 0.0;
    for (std::size_t begin = 0; begin < norm_.width; begin += block) {
      double total = 0.0;
      for (std::size_t j = begin; j < begin + block; ++j) {
        const double entry = row[j] * norm_.gain_at(j);
        sums.squares[j] += entry * entry;
        total += entry;
      }
      if (norm_.centers()) sums.removed += total * total / static_cast<double>(block);
    }
    if (longest_.empty()) return;
    // The longest axis is a direction of the norm's output, which the row itself reads.
    for (std::size_t j = 0; j < norm_.width; ++j) {
      length += row[j] * row[j];
      dot += row[j] * longest_[j];
    }
    if (length > 0.0 && dot * dot >= along * along * length) ++sums.along_longest;
  }

  const files::Checkpoint& checkpoint_;
  const models::Linear& linear_;
  const NormSpec& norm_;
  std::span<const double> longest_;
};

std::optional<Reader> measured(const files::Checkpoint& checkpoint, std::size_t index,
                               const models::Linear& linear, const NormSpec& norm,
                               std::span<const double> longest, unsigned threads, const Progress& poll) {
  const ReaderSums sums(checkpoint, linear, norm, longest);
  const std::size_t blocks = (linear.out + rows_at_once - 1) / rows_at_once;
  const std::size_t together = std::size_t{4} * thread_count(threads);
  Sums all{.squares = std::vector<double>(norm.width)};
  for (std::size_t first = 0; first < blocks; first += together) {
    poll("reading weights", first, blocks);
    std::vector<Sums> parts(std::min(together, blocks - first));
    parallel_for(parts.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const std::size_t row = (first + k) * rows_at_once;
        parts[k] = sums.rows(row, std::min<std::size_t>(rows_at_once, linear.out - row));
      }
    });
    for (const Sums& part : parts) {
      for (std::size_t j = 0; j < norm.width; ++j) all.squares[j] += part.squares[j];
      all.removed += part.removed;
      all.along_longest += part.along_longest;
    }
  }
  double total = 0.0;
  for (const double square : all.squares) total += square;
  if (!(total > 0.0) || !std::isfinite(total)) return {};
  for (double& square : all.squares) square /= total;
  return Reader{.index = index,
                .removed = all.removed / total,
                .chance = norm.centers() ? 1.0 / static_cast<double>(norm.block_width()) : 0.0,
                .along_longest = all.along_longest,
                .features = largest_components(all.squares, listed_coordinates)};
}

}  // namespace

void measure_readers(const files::Checkpoint& checkpoint, const NormSpec& norm,
                     std::span<const double> longest, unsigned threads, const Progress& poll,
                     NormReport& report) {
  for (std::size_t i = 0; i < report.norm.readers.size(); ++i) {
    const models::Linear& linear = report.norm.readers[i];
    if (linear.in != norm.width) continue;
    try {
      if (auto reader = measured(checkpoint, i, linear, norm, longest, threads, poll)) {
        report.readers.push_back(std::move(*reader));
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Cancelled) throw;
      // Weights that cannot be read leave the rest of the report as it is.
    }
  }
}

}  // namespace normscope::analysis
