#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <normscope/core/error.hpp>
#include <normscope/core/lanes.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/models/token_names.hpp>

namespace normscope::analysis {

namespace {

constexpr std::uint64_t largest_embedding = std::uint64_t{1} << 27;
constexpr std::size_t embedding_rows_at_once = 256;
constexpr std::size_t listed_rows = 5;

/// The token embedding that writes to that stack's stream, with its tokens as rows.
std::optional<models::Linear> embedding_of(const Report& report, const std::string& stack) {
  for (const NormReport& one : report.norms) {
    if (one.norm.stack != stack || one.norm.placement == models::Placement::inside) continue;
    for (const models::Linear& writer : one.norm.writers) {
      if (writer.role != "token embedding" || writer.out != one.norm.width) continue;
      if (writer.in == 0 || writer.out > largest_embedding / writer.in) continue;
      models::Linear table = writer;
      table.layout = models::Layout::out_in;
      table.in = writer.out;
      table.out = table.stored_out = writer.in;
      return table;
    }
  }
  return {};
}

/// Sums over the rows of an embedding.
class Uses {
 public:
  Uses(std::vector<UnusualFeature*> features, std::size_t width)
      : features_(std::move(features)), squares_(width) {
    found_.resize(features_.size());
  }

  void add(std::size_t token, std::span<const double> row) {
    double length = 0.0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      squares_[i] += row[i] * row[i];
      length += row[i] * row[i];
    }
    if (!(length > 0.0)) return;
    for (std::size_t k = 0; k < features_.size(); ++k) {
      const double entry = row[features_[k]->coordinate];
      std::vector<EmbeddingRow>& rows = found_[k];
      if (rows.size() == listed_rows && std::abs(entry) <= std::abs(rows.back().entry)) continue;
      const auto place = std::find_if(rows.begin(), rows.end(), [&](const EmbeddingRow& other) {
        return std::abs(entry) > std::abs(other.entry);
      });
      rows.insert(place, {.token = token, .entry = entry, .share = entry * entry / length});
      if (rows.size() > listed_rows) rows.pop_back();
    }
  }

  /// The tokens' names are empty where the file has none.
  void finish(const std::vector<std::string>& names) {
    double total = 0.0;
    for (const double square : squares_) total += square;
    if (!(total > 0.0) || !std::isfinite(total)) return;
    for (std::size_t k = 0; k < features_.size(); ++k) {
      for (EmbeddingRow& row : found_[k]) {
        if (row.token < names.size()) row.name = names[row.token];
      }
      features_[k]->embedding = {
          squares_[features_[k]->coordinate] / (total / static_cast<double>(squares_.size())),
          std::move(found_[k])};
    }
  }

 private:
  std::vector<UnusualFeature*> features_;
  std::vector<double> squares_;  ///< of each column
  std::vector<std::vector<EmbeddingRow>> found_{};
};

std::vector<std::string> names_of(const files::Checkpoint& checkpoint, std::size_t tokens) {
  try {
    const auto file = models::find_token_names(checkpoint.files().front().parent_path(), tokens);
    if (file) return models::token_texts(models::read_token_names(*file, tokens));
  } catch (const Error&) {
    // Numbers then stand for the tokens; `reach_of_vocabulary` says what is wrong with the file.
  }
  return {};
}

}  // namespace

void add_embedding_uses(const files::Checkpoint& checkpoint, Report& report, const Progress& progress) {
  std::set<std::string> stacks;
  for (const UnusualFeature& feature : report.features) stacks.insert(feature.stack);
  for (const std::string& stack : stacks) {
    const std::optional<models::Linear> table = embedding_of(report, stack);
    if (!table) continue;
    std::vector<UnusualFeature*> features;
    for (UnusualFeature& feature : report.features) {
      if (feature.stack == stack && feature.coordinate < table->in) features.push_back(&feature);
    }
    Uses uses(features, table->in);
    try {
      for (std::size_t first = 0; first < table->out; first += embedding_rows_at_once) {
        progress("reading the embedding", first, table->out);
        const std::size_t count = std::min<std::size_t>(embedding_rows_at_once, table->out - first);
        const std::vector<double> rows = models::read_weight(checkpoint, *table, first, count);
        for (std::size_t k = 0; k < count; ++k) {
          uses.add(first + k, std::span(rows).subspan(k * table->in, table->in));
        }
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Cancelled) throw;
      continue;
    }
    uses.finish(names_of(checkpoint, table->out));
  }
}

namespace {

/// Gains kept to find features through depth: 256 MiB. Norms beyond are left out.
constexpr std::size_t most_stored = std::size_t{1} << 26;

/// How far a ratio to the median is from 1, in either direction.
double strangeness(double ratio) {
  return ratio == 0.0 ? std::numeric_limits<double>::infinity() : std::abs(std::log(ratio));
}

}  // namespace

void add_gain_shape(std::span<const double> gain, NormReport& report) {
  std::vector<double> magnitudes;
  for (const double g : gain) {
    if (g != 0.0) magnitudes.push_back(std::abs(g));
  }
  if (magnitudes.empty()) return;
  for (const double magnitude : magnitudes) {
    ++report.gain_sizes[static_cast<int>(std::floor(gain_bins_per_octave * std::log2(magnitude)))];
  }
  const double typical = median(std::move(magnitudes));
  const std::size_t block = (gain.size() + most_gain_blocks - 1) / most_gain_blocks;
  for (std::size_t begin = 0; begin < gain.size(); begin += block) {
    GainBlock furthest{begin, std::min(begin + block, gain.size()), begin, 1.0};
    for (std::size_t i = begin; i < furthest.end; ++i) {
      const double ratio = std::abs(gain[i]) / typical;
      if (i > begin && strangeness(ratio) <= strangeness(furthest.ratio)) continue;
      furthest.coordinate = i;
      furthest.ratio = ratio;
    }
    report.gain_blocks.push_back(furthest);
  }
}

void FeatureCollector::measure(std::size_t index, std::span<const double> gain, NormReport& report) {
  // If many features are erased, the median of the others is the reference.
  std::vector<double> magnitudes;
  for (const double g : gain) {
    if (g != 0.0) magnitudes.push_back(std::abs(g));
  }
  if (magnitudes.empty()) return;
  const double typical = median(std::move(magnitudes));
  Row row{.norm = index};
  row.ratios.reserve(gain.size());
  for (std::size_t i = 0; i < gain.size(); ++i) {
    const double ratio = std::abs(gain[i]) / typical;
    row.ratios.push_back(static_cast<float>(ratio));
    if (!report.largest_gain || ratio > report.largest_gain->ratio_to_median) {
      report.largest_gain = {i, gain[i], ratio};
    }
    if (ratio >= outlier_ratio) report.outliers.push_back({i, gain[i], ratio});
    if (ratio <= off_ratio) {
      report.switched_off.push_back({i, gain[i], ratio});
    } else if (gain[i] < 0.0) {
      ++report.sign_changes;
    }
  }
  std::stable_sort(report.outliers.begin(), report.outliers.end(),
                   [](const Outlier& a, const Outlier& b) { return a.ratio_to_median > b.ratio_to_median; });
  if (report.norm.placement == models::Placement::inside || stored_ + gain.size() > most_stored) return;
  stored_ += gain.size();
  rows_.push_back(std::move(row));
}

std::vector<UnusualFeature> FeatureCollector::features(const std::vector<NormReport>& norms) const {
  using Key = std::tuple<std::string, std::size_t, std::size_t>;  // stack, width, coordinate
  std::map<Key, UnusualFeature> found;
  const auto feature = [&](std::size_t norm, std::size_t coordinate) -> UnusualFeature& {
    UnusualFeature& it = found[{norms[norm].norm.stack, norms[norm].norm.width, coordinate}];
    it.coordinate = coordinate;
    it.stack = norms[norm].norm.stack;
    return it;
  };
  for (const Row& row : rows_) {
    for (const Outlier& off : norms[row.norm].switched_off) {
      feature(row.norm, off.coordinate).off.push_back(row.norm);
    }
    for (const Outlier& outlier : norms[row.norm].outliers) {
      feature(row.norm, outlier.coordinate).outliers.push_back(row.norm);
    }
  }
  std::vector<std::pair<UnusualFeature, double>> ranked;  // with the most unusual ratio
  for (auto& [key, one] : found) {
    double most = 0.0;
    for (const Row& row : rows_) {
      const models::Norm& norm = norms[row.norm].norm;
      if (norm.stack != std::get<0>(key) || norm.width != std::get<1>(key)) continue;
      const double ratio = static_cast<double>(row.ratios[one.coordinate]);
      one.norms.push_back(row.norm);
      one.ratios.push_back(ratio);
      most = std::max(most, strangeness(ratio));
    }
    ranked.emplace_back(std::move(one), most);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    const std::size_t more = a.first.unusual();
    const std::size_t less = b.first.unusual();
    return more != less ? more > less : a.second > b.second;
  });
  std::vector<UnusualFeature> result;
  for (std::size_t i = 0; i < std::min(ranked.size(), listed_features); ++i) {
    result.push_back(std::move(ranked[i].first));
  }
  return result;
}

namespace {

constexpr std::size_t listed_coordinates = 8;
/// Cosine from which a row counts as along the longest axis.
constexpr double along = 0.5;

/// Sums over some rows of W diag(g).
struct Sums {
  std::vector<double> squares{};  ///< of each column
  double removed = 0.0;
  std::size_t along_longest = 0;
};

/// Adds y² of each entry of y = g ⊙ w to `squares`; g is 1 where `gain` is null. Returns Σ y.
NORMSCOPE_LANES_CLONES double add_squares(const double* gain, const double* row, std::size_t n,
                                          double* squares) {
  constexpr std::size_t step = lane_count<double>;
  Lanes<double> sum{};
  std::size_t j = 0;
  for (; j + step <= n; j += step) {
    Lanes<double> y, square;
    std::memcpy(&y, row + j, sizeof y);
    if (gain != nullptr) {
      Lanes<double> g;
      std::memcpy(&g, gain + j, sizeof g);
      y *= g;
    }
    std::memcpy(&square, squares + j, sizeof square);
    square += y * y;
    std::memcpy(squares + j, &square, sizeof square);
    sum += y;
  }
  double row_total = total<double>(sum);
  for (; j < n; ++j) {
    const double y = gain != nullptr ? row[j] * gain[j] : row[j];
    squares[j] += y * y;
    row_total += y;
  }
  return row_total;
}

/// |w|² and w·v.
struct RowReading {
  double square = 0.0, dot = 0.0;
};

NORMSCOPE_LANES_CLONES RowReading reading_of(const double* row, std::span<const double> direction) {
  constexpr std::size_t step = lane_count<double>;
  Lanes<double> square{}, dot{};
  std::size_t j = 0;
  for (; j + step <= direction.size(); j += step) {
    Lanes<double> w, v;
    std::memcpy(&w, row + j, sizeof w);
    std::memcpy(&v, direction.data() + j, sizeof v);
    square += w * w;
    dot += w * v;
  }
  RowReading read{total<double>(square), total<double>(dot)};
  for (; j < direction.size(); ++j) {
    read.square += row[j] * row[j];
    read.dot += row[j] * direction[j];
  }
  return read;
}

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
    for (std::size_t begin = 0; begin < norm_.width; begin += block) {
      const double* const gain = norm_.gain.empty() ? nullptr : norm_.gain.data() + begin;
      const double total = add_squares(gain, row + begin, block, sums.squares.data() + begin);
      if (norm_.centers()) sums.removed += total * total / static_cast<double>(block);
    }
    if (longest_.empty()) return;
    // The longest axis is a direction of the norm's output, which the row itself reads.
    const RowReading read = reading_of(row, longest_);
    if (read.square > 0.0 && read.dot * read.dot >= along * along * read.square) ++sums.along_longest;
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
  const auto at_once = static_cast<std::size_t>(models::rows_at_once(linear));
  const std::size_t blocks = (linear.out + at_once - 1) / at_once;
  const std::size_t together = std::size_t{4} * thread_count(threads);
  Sums all{.squares = std::vector<double>(norm.width)};
  for (std::size_t first = 0; first < blocks; first += together) {
    poll("reading weights", first, blocks);
    std::vector<Sums> parts(std::min(together, blocks - first));
    parallel_for(parts.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const std::size_t row = (first + k) * at_once;
        parts[k] = sums.rows(row, std::min<std::size_t>(at_once, linear.out - row));
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

/// Adds the squares of the rows of `linear` to `squares`; false if they cannot be read.
bool add_squares(const files::Checkpoint& checkpoint, const models::Linear& linear, const NormSpec& norm,
                 std::vector<double>& squares, const Progress& progress) {
  if (linear.in != norm.width) return false;
  const ReaderSums sums(checkpoint, linear, norm, {});
  try {
    const auto at_once = static_cast<std::size_t>(models::rows_at_once(linear));
    for (std::size_t first = 0; first < linear.out; first += at_once) {
      progress("reading weights", first, linear.out);
      const Sums part = sums.rows(first, std::min<std::size_t>(at_once, linear.out - first));
      for (std::size_t j = 0; j < norm.width; ++j) squares[j] += part.squares[j];
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled) throw;
    return false;
  }
  return true;
}

/// A reader of a norm made of one linear map or several.
std::optional<CoordinateReader> reader_of(const files::Checkpoint& checkpoint,
                                          const std::vector<const models::Linear*>& parts,
                                          const NormSpec& norm, std::size_t coordinate,
                                          const Progress& progress) {
  std::vector<double> squares(norm.width);
  for (const models::Linear* part : parts) {
    if (!add_squares(checkpoint, *part, norm, squares, progress)) return {};
  }
  double total = 0.0;
  for (const double square : squares) total += square;
  if (!(total > 0.0) || !std::isfinite(total)) return {};
  const double share = squares[coordinate] / total;
  return CoordinateReader{.share = share, .over_mean = share * static_cast<double>(norm.width)};
}

bool is_of_heads(const models::Linear& linear) {
  return linear.role == "query" || linear.role == "key" || linear.role == "value";
}

/// The heads and the other maps that read `index` and are `within` the budget, by how they use the cause's
/// coordinate.
void add_readers_of(const files::Checkpoint& checkpoint, const Report& report, std::size_t index,
                    const NormSpec& spec, const std::vector<bool>& within, const Progress& progress,
                    Cause& cause) {
  const models::Norm& norm = report.norms[index].norm;
  const auto is_within = [&](const models::Linear& part) {
    for (std::size_t i = 0; i < norm.readers.size(); ++i) {
      if (norm.readers[i].weight.tensor == part.weight.tensor && !within[i]) return false;
    }
    return true;
  };
  const auto add = [&](std::optional<CoordinateReader> reader) {
    if (!reader) return;
    reader->norm = index;
    cause.readers.push_back(std::move(*reader));
  };
  for (std::size_t i = 0; i < report.model.heads.size(); ++i) {
    const models::Head& head = report.model.heads[i];
    if (head.norm != norm.name || head.between || !head.query || !head.key || !head.value) continue;
    if (!is_within(*head.query) || !is_within(*head.key) || !is_within(*head.value)) continue;
    auto reader = reader_of(checkpoint, {&*head.query, &*head.key, &*head.value}, spec,
                            cause.coordinates.front(), progress);
    if (reader) reader->head = i;
    add(std::move(reader));
  }
  for (const models::Linear& linear : norm.readers) {
    if (is_of_heads(linear) || !is_within(linear)) continue;
    auto reader = reader_of(checkpoint, {&linear}, spec, cause.coordinates.front(), progress);
    if (reader) reader->role = linear.role;
    add(std::move(reader));
  }
}

/// The head and the other map that use the coordinate most, of those that use it more than a typical one.
void keep_most(std::vector<CoordinateReader>& readers) {
  std::stable_sort(readers.begin(), readers.end(), [](const CoordinateReader& a, const CoordinateReader& b) {
    return a.over_mean > b.over_mean;
  });
  std::vector<CoordinateReader> kept;
  for (CoordinateReader& reader : readers) {
    if (reader.over_mean <= 1.0) break;
    const bool other = std::any_of(kept.begin(), kept.end(), [&](const CoordinateReader& one) {
      return one.head.has_value() == reader.head.has_value();
    });
    if (!other) kept.push_back(std::move(reader));
  }
  readers = std::move(kept);
}

}  // namespace

void add_coordinate_details(const files::Checkpoint& checkpoint, double budget, const Progress& progress,
                            Report& report) {
  const std::vector<std::vector<bool>> within = readers_within(report.model, budget);
  for (std::size_t k = 0; k < std::min(report.causes.size(), first_causes); ++k) {
    Cause& cause = report.causes[k];
    if (cause.coordinates.empty() || cause.norms.empty()) continue;
    const models::Norm& first = report.norms[cause.norms.front()].norm;
    std::vector<std::pair<std::size_t, NormSpec>> others;
    for (std::size_t i = 0; i < report.norms.size(); ++i) {
      const NormReport& one = report.norms[i];
      if (one.norm.stack != first.stack || one.norm.width != first.width ||
          one.norm.placement == models::Placement::inside || !one.gain || one.gain->median_abs == 0.0) {
        continue;
      }
      NormSpec spec = models::read_norm(checkpoint, one.norm);
      cause.ratios.push_back({i, std::abs(spec.gain_at(cause.coordinates.front())) / one.gain->median_abs});
      if (std::binary_search(cause.norms.begin(), cause.norms.end(), i)) {
        add_readers_of(checkpoint, report, i, spec, within[i], progress, cause);
      } else {
        others.emplace_back(i, std::move(spec));
      }
    }
    // The file may lack what reads the unusual norms.
    if (cause.readers.empty() && !cause.switched_off) {
      for (const auto& [i, spec] : others) {
        add_readers_of(checkpoint, report, i, spec, within[i], progress, cause);
      }
    }
    keep_most(cause.readers);
  }
}

void measure_readers(const files::Checkpoint& checkpoint, const NormSpec& norm,
                     std::span<const double> longest, const std::vector<bool>& within, unsigned threads,
                     const Progress& poll, NormReport& report) {
  for (std::size_t i = 0; i < report.norm.readers.size(); ++i) {
    const models::Linear& linear = report.norm.readers[i];
    if (linear.in != norm.width || !within[i]) continue;
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
