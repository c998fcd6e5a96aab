#include <normscope/analysis/ranges.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/lanes.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::analysis {

namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2.0;

/// Σ y, Σ |y| and Σ y² of some entries y.
struct EntrySums {
  double sum = 0.0, size = 0.0, square = 0.0;
};

/// Those of y = g ⊙ w − middle; g is 1 where `gain` is null.
NORMSCOPE_LANES_CLONES EntrySums sums_of(const double* gain, const double* row, std::size_t n,
                                         double middle) {
  constexpr std::size_t step = lane_count<double>;
  Lanes<double> sum{}, size{}, square{};
  std::size_t i = 0;
  for (; i + step <= n; i += step) {
    Lanes<double> y;
    std::memcpy(&y, row + i, sizeof y);
    if (gain != nullptr) {
      Lanes<double> g;
      std::memcpy(&g, gain + i, sizeof g);
      y *= g;
    }
    y -= middle;
    sum += y;
    size += y < 0.0 ? -y : y;
    square += y * y;
  }
  EntrySums sums{total<double>(sum), total<double>(size), total<double>(square)};
  for (; i < n; ++i) {
    const double y = (gain != nullptr ? gain[i] * row[i] : row[i]) - middle;
    sums.sum += y;
    sums.size += std::abs(y);
    sums.square += y * y;
  }
  return sums;
}

/// Those of g ⊙ w in the block that begins at `begin`, less `middle`.
EntrySums block_sums(const NormSpec& spec, std::span<const double> row, std::size_t begin,
                     double middle = 0.0) {
  const double* const gain = spec.gain.empty() ? nullptr : spec.gain.data() + begin;
  return sums_of(gain, row.data() + begin, spec.block_width(), middle);
}

/// What the block's entries lose in Π.
double mean_of(const NormSpec& spec, const EntrySums& block) {
  return spec.centers() ? block.sum / static_cast<double>(spec.block_width()) : 0.0;
}

}  // namespace

double Interval::size() const { return std::max(std::abs(lower), std::abs(upper)); }

Interval interval(const NormSpec& spec, std::span<const double> row, double bias) {
  const EntrySums shifts = sums_of(spec.bias.data(), row.data(), spec.bias.size(), 0.0);
  const double centre = bias + shifts.sum;
  double sizes = std::abs(bias) + shifts.size;  // sum of the magnitudes of all terms
  double half = 0.0;
  double variance = 0.0;
  if (spec.elementwise()) {
    half = sums_of(spec.gain.empty() ? nullptr : spec.gain.data(), row.data(), spec.width, 0.0).size;
    sizes += half;
    variance = half * half;  // saturated everywhere
  } else {
    const std::size_t n = spec.block_width();
    const double directions = static_cast<double>(n) - (spec.centers() ? 1.0 : 0.0);
    for (std::size_t begin = 0; begin < spec.width; begin += n) {
      const EntrySums block = block_sums(spec, row, begin);
      sizes += spec.radius() * std::sqrt(block.square);
      if (directions < 1.0) continue;
      const double square =
          spec.centers() ? block_sums(spec, row, begin, mean_of(spec, block)).square : block.square;
      half += spec.radius() * std::sqrt(square);
      variance += spec.squared_radius() * square / directions;
    }
  }
  const double rounding = (4.0 * static_cast<double>(spec.width) + 64.0) * unit * sizes;
  return {.lower = centre - half - rounding,
          .upper = centre + half + rounding,
          .typical = std::sqrt(centre * centre + variance)};
}

void attaining_input(const NormSpec& spec, std::span<const double> row, bool upper, std::span<double> x) {
  const double sign = upper ? 1.0 : -1.0;
  if (spec.elementwise()) {
    // tanh and erf are 1 to the last bit from 40 on.
    const double slope = spec.alpha == 0.0 ? 1.0 : spec.alpha;
    for (std::size_t i = 0; i < spec.width; ++i) {
      const double wanted = sign * spec.gain_at(i) * row[i];
      x[i] = wanted == 0.0 ? 0.0 : (std::copysign(40.0, wanted) - spec.shift) / slope;
    }
    return;
  }
  const std::size_t n = spec.block_width();
  for (std::size_t begin = 0; begin < spec.width; begin += n) {
    const double mean = mean_of(spec, block_sums(spec, row, begin));
    double largest = 0.0;
    for (std::size_t i = begin; i < begin + n; ++i) {
      x[i] = sign * (spec.gain_at(i) * row[i] - mean);
      largest = std::max(largest, std::abs(x[i]));
    }
    // eps changes the output by at most n 2^-53 of itself.
    const double factor = largest > 0.0 ? std::max(1.0, std::sqrt(spec.eps)) * 0x1p+26 / largest : 0.0;
    for (std::size_t i = begin; i < begin + n; ++i) x[i] *= factor;
  }
}

namespace {

/// The ranges of some rows of a map; their ends have no attained values yet.
struct Part {
  End lowest{}, highest{};
  std::vector<double> lowest_row{}, highest_row{};  ///< of the map
  double typical = 0.0;
  std::vector<std::size_t> never_positive{}, never_negative{};
  bool any = false;

  void add(std::size_t row, const Interval& interval) {
    if (!any || interval.lower < lowest.bound) lowest = {.row = row, .bound = interval.lower};
    if (!any || interval.upper > highest.bound) highest = {.row = row, .bound = interval.upper};
    any = true;
    typical = std::max(typical, interval.typical);
    if (interval.upper <= 0.0) never_positive.push_back(row);
    if (interval.lower >= 0.0) never_negative.push_back(row);
  }

  void add(Part&& other) {
    if (!other.any) return;
    if (!any || other.lowest.bound < lowest.bound) {
      lowest = other.lowest;
      lowest_row = std::move(other.lowest_row);
    }
    if (!any || other.highest.bound > highest.bound) {
      highest = other.highest;
      highest_row = std::move(other.highest_row);
    }
    any = true;
    typical = std::max(typical, other.typical);
    never_positive.insert(never_positive.end(), other.never_positive.begin(), other.never_positive.end());
    never_negative.insert(never_negative.end(), other.never_negative.begin(), other.never_negative.end());
  }
};

/// The rows of a linear map behind a norm.
class Rows {
 public:
  Rows(const files::Checkpoint& checkpoint, const models::Linear& linear, const NormSpec& norm)
      : checkpoint_(checkpoint), linear_(linear), norm_(norm), bias_(models::read_bias(checkpoint, linear)) {
    if (linear.in != norm.width) {
      throw Error(ErrorCode::Shape, fmt::format("reads {} features, expected {}", linear.in, norm.width));
    }
  }

  [[nodiscard]] Part all(unsigned threads, const Progress& progress) const {
    const std::size_t blocks = (static_cast<std::size_t>(linear_.out) + at_once_ - 1) / at_once_;
    const std::size_t together = std::size_t{4} * thread_count(threads);
    Part all;
    for (std::size_t first = 0; first < blocks; first += together) {
      progress("reading weights", first, blocks);
      std::vector<Part> parts(std::min(together, blocks - first));
      parallel_for(parts.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t k = begin; k < end; ++k) parts[k] = block((first + k) * at_once_);
      });
      for (Part& part : parts) all.add(std::move(part));
    }
    return all;
  }

  /// The value of the end's row at the input that approaches it.
  [[nodiscard]] double attained(const End& end, const std::vector<double>& row, bool upper) const {
    std::vector<double> x(norm_.width);
    attaining_input(norm_, row, upper, x);
    const MatrixView<double> view{x.data(), 1, norm_.width};
    norm::forward(norm_, view, view);
    return std::inner_product(row.begin(), row.end(), x.begin(), bias_at(end.row));
  }

 private:
  [[nodiscard]] double bias_at(std::size_t row) const { return bias_.empty() ? 0.0 : bias_[row]; }

  [[nodiscard]] Part block(std::size_t first) const {
    const std::size_t count = std::min<std::size_t>(at_once_, linear_.out - first);
    const std::vector<double> weights = models::read_weight(checkpoint_, linear_, first, count);
    Part part;
    for (std::size_t row = 0; row < count; ++row) {
      const Interval found =
          interval(norm_, {weights.data() + row * norm_.width, norm_.width}, bias_at(first + row));
      if (!std::isfinite(found.lower) || !std::isfinite(found.upper)) {
        throw Error(ErrorCode::Argument, fmt::format("row {} has no finite range", first + row));
      }
      part.add(first + row, found);
    }
    const auto weights_of = [&](std::size_t row) {
      const auto begin = weights.begin() + static_cast<std::ptrdiff_t>((row - first) * norm_.width);
      return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(norm_.width));
    };
    part.lowest_row = weights_of(part.lowest.row);
    part.highest_row = weights_of(part.highest.row);
    return part;
  }

  const files::Checkpoint& checkpoint_;
  const models::Linear& linear_;
  const NormSpec& norm_;
  std::vector<double> bias_;
  std::size_t at_once_ = static_cast<std::size_t>(models::rows_at_once(linear_));
};

/// The context that the ranges of all readers of a model are computed in.
struct Run {
  const files::Checkpoint& checkpoint;
  unsigned threads;
  const Progress& progress;
};

/// Multiplications of the budget for one weight: it is decoded, enclosed and summed three times.
constexpr double work_for_a_weight = 4.0;

/// Adds the work for a map to `spent`, unless that exceeds the budget.
bool afford(const models::Linear& linear, std::size_t width, double budget, double& spent) {
  const double work = work_for_a_weight * static_cast<double>(linear.out) * static_cast<double>(width);
  if (spent + work > budget) return false;
  spent += work;
  return true;
}

ReaderRanges of_reader(const Run& run, const models::Linear& linear, const NormSpec& norm, bool is_within) {
  ReaderRanges result{
      .role = linear.role, .weight = linear.weight.selector(), .rows = static_cast<std::size_t>(linear.out)};
  if (!is_within) {
    result.refused = "left out, beyond the budget for ranges";
    result.left_out = true;
    return result;
  }
  try {
    const Rows rows(run.checkpoint, linear, norm);
    Part all = rows.all(run.threads, run.progress);
    result.lowest = all.lowest;
    result.highest = all.highest;
    result.lowest.attained = rows.attained(all.lowest, all.lowest_row, false);
    result.highest.attained = rows.attained(all.highest, all.highest_row, true);
    result.typical = all.typical;
    result.never_positive = std::move(all.never_positive);
    result.never_negative = std::move(all.never_negative);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled) throw;
    result.refused = error.what();
  }
  return result;
}

/// `readers_within`; adds their work to `spent`.
std::vector<std::vector<bool>> select_readers(const models::Model& model, double budget, double& spent) {
  std::vector<std::vector<bool>> within;
  for (const models::Norm& norm : model.norms) {
    within.emplace_back();
    for (const models::Linear& reader : norm.readers) {
      within.back().push_back(afford(reader, norm.width, budget, spent));
    }
  }
  return within;
}

/// The median, for an even number of values the upper one of the middle two; reorders the values.
double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The features of the norm's own output, which a row of the identity reads.
void add_features(const NormSpec& norm, NormRanges& result) {
  std::vector<double> sizes(norm.width);
  std::vector<double> typical(norm.width);
  // The row has one nonzero entry, so only its block matters.
  const std::size_t n = norm.elementwise() ? 1 : norm.block_width();
  const double width = static_cast<double>(n);
  const double reach = norm.elementwise() ? 1.0
                       : norm.centers()   ? norm.radius() * std::sqrt((width - 1.0) / width)
                                          : norm.radius();
  const double rms =
      norm.elementwise() || (norm.centers() && n < 2) ? reach : norm.radius() / std::sqrt(width);
  for (std::size_t i = 0; i < norm.width; ++i) {
    const double bias = norm.bias.empty() ? 0.0 : norm.bias[i];
    const double gain = std::abs(norm.gain_at(i));
    sizes[i] = (reach * gain + std::abs(bias)) * (1.0 + 0x1p-48);
    typical[i] = std::hypot(rms * gain, bias);
    if (sizes[i] > result.largest || i == 0) {
      result.largest = sizes[i];
      result.feature = i;
      result.typical = typical[i];
    }
  }
  if (!std::isfinite(result.largest)) {
    throw Error(ErrorCode::Argument, "its output has no finite range");
  }
  result.median = median(sizes);
  result.median_typical = median(typical);
}

NormRanges of_norm(const Run& run, const models::Norm& norm, const std::vector<bool>& within) {
  NormRanges result{.name = norm.name};
  try {
    const NormSpec spec = models::read_widest_norm(run.checkpoint, norm);
    validate(spec);
    add_features(spec, result);
    for (std::size_t i = 0; i < norm.readers.size(); ++i) {
      result.readers.push_back(of_reader(run, norm.readers[i], spec, within[i]));
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled) throw;
    result = {.name = norm.name, .refused = error.what()};
  }
  return result;
}

/// The soft cap of a scaled bound, rounded outward.
double capped(double bound, const models::Vocabulary& vocabulary, double outward) {
  const double scaled = bound * vocabulary.logit_scale;
  if (vocabulary.soft_cap <= 0.0) return scaled + outward * 0x1p-50 * std::abs(scaled);
  const double cap = vocabulary.soft_cap;
  return cap * std::tanh(scaled / cap) + outward * 0x1p-48 * cap;
}

/// The ranges of the logits: those of the head's rows, which are usually among the readers of its norm.
ReaderRanges of_unembedding(const Run& run, const models::Linear& unembedding, const models::Norm& norm,
                            const NormRanges& known, double left) {
  for (const ReaderRanges& reader : known.readers) {
    if (reader.weight == unembedding.weight.selector() && reader.rows == unembedding.out) return reader;
  }
  double spent = 0.0;
  return of_reader(run, unembedding, models::read_norm(run.checkpoint, norm),
                   afford(unembedding, norm.width, left, spent));
}

LogitRanges of_logits(const models::Vocabulary& vocabulary, const ReaderRanges& rows,
                      const std::string& norm) {
  const bool turned = vocabulary.logit_scale < 0.0;
  const auto end_of = [&](const End& end, double outward) {
    return End{.row = end.row,
               .bound = capped(end.bound, vocabulary, outward),
               .attained = capped(end.attained, vocabulary, 0.0)};
  };
  return {.norm = norm,
          .tokens = rows.rows,
          .lowest = end_of(turned ? rows.highest : rows.lowest, -1.0),
          .highest = end_of(turned ? rows.lowest : rows.highest, 1.0),
          .scale = vocabulary.logit_scale,
          .soft_cap = vocabulary.soft_cap};
}

void add_logits(const Run& run, const models::Model& model, double left, ModelRanges& result) {
  const bool is_left_out = model.vocabulary && !model.vocabulary->final_norm.empty() &&
                           models::find_norm(model, model.vocabulary->final_norm) == nullptr;
  result.logits_refused = is_left_out ? "the norm that they read is left out" : models::why_no_logits(model);
  if (!result.logits_refused.empty()) return;
  const models::Vocabulary& vocabulary = *model.vocabulary;
  const models::Norm* const norm = models::find_norm(model, vocabulary.final_norm);
  const NormRanges& known = result.norms[static_cast<std::size_t>(norm - model.norms.data())];
  const ReaderRanges rows = of_unembedding(run, *vocabulary.unembedding, *norm, known, left);
  result.logits_refused = known.refused.empty() ? rows.refused : known.refused;
  if (result.logits_refused.empty()) result.logits = of_logits(vocabulary, rows, norm->name);
}

}  // namespace

double ReaderRanges::size() const { return std::max(std::abs(lowest.bound), std::abs(highest.bound)); }

double ReaderRanges::ratio() const { return typical > 0.0 ? size() / typical : 0.0; }

double NormRanges::unevenness() const { return median > 0.0 ? largest / median : 0.0; }

std::vector<std::vector<bool>> readers_within(const models::Model& model, double budget) {
  double spent = 0.0;
  return select_readers(model, budget, spent);
}

ModelRanges of_model(const files::Checkpoint& checkpoint, const models::Model& model, unsigned threads,
                     const Progress& progress, double budget) {
  const Run run{checkpoint, threads, progress};
  double spent = 0.0;
  const std::vector<std::vector<bool>> within = select_readers(model, budget, spent);
  ModelRanges result;
  for (std::size_t i = 0; i < model.norms.size(); ++i) {
    result.norms.push_back(of_norm(run, model.norms[i], within[i]));
  }
  add_logits(run, model, budget - spent, result);
  return result;
}

std::vector<std::string> not_covered(const models::Model& model) {
  std::vector<std::string> sentences;
  for (const models::Norm& norm : model.norms) {
    for (const models::Linear& reader : norm.readers) {
      const auto reads_more = [&](const models::Head& head) {
        const std::optional<models::Linear>* const parts[] = {&head.query, &head.key, &head.value};
        return head.between && std::any_of(std::begin(parts), std::end(parts), [&](const auto* part) {
                 return *part && (*part)->weight.tensor == reader.weight.tensor;
               });
      };
      const auto head = std::find_if(model.heads.begin(), model.heads.end(), reads_more);
      if (head == model.heads.end()) continue;
      const std::string sentence = fmt::format(
          "\"{}\" reads \"{}\" in one layer, which reads {}: its range covers the layers that read a norm",
          reader.weight.tensor, head->between->weight.tensor, head->norm);
      if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
        sentences.push_back(sentence);
      }
    }
  }
  return sentences;
}

RangeSummary summarize(const ModelRanges& found) {
  RangeSummary result;
  for (const NormRanges& norm : found.norms) {
    if (!norm.refused.empty()) continue;
    if (result.most_uneven == nullptr || norm.unevenness() > result.most_uneven->unevenness()) {
      result.most_uneven = &norm;
    }
    for (const ReaderRanges& reader : norm.readers) {
      ++result.readers;
      if (!reader.refused.empty()) continue;
      if (result.known == 0 || reader.ratio() < result.least_ratio) result.least_ratio = reader.ratio();
      ++result.known;
      result.most_ratio = std::max(result.most_ratio, reader.ratio());
      result.never_positive += reader.never_positive.size();
      result.never_negative += reader.never_negative.size();
      if (result.largest == nullptr || reader.size() > result.largest->size()) {
        result.largest = &reader;
        result.largest_norm = &norm;
      }
    }
  }
  return result;
}

double int8_steps(double size, double typical) { return size > 0.0 ? 127.0 * typical / size : 0.0; }

std::size_t overflowing(const ModelRanges& found, const NumberType& type) {
  std::size_t count = 0;
  for (const NormRanges& norm : found.norms) {
    for (const ReaderRanges& reader : norm.readers) {
      if (reader.refused.empty() && reader.size() > type.largest) ++count;
    }
  }
  return count;
}

}  // namespace normscope::analysis
