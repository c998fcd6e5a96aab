#include <normscope/analysis/attribution.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <normscope/analysis/share_range.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/text.hpp>

#include "reruns.hpp"

namespace normscope::analysis {
namespace {

/// What a norm divides each row by.
std::vector<double> divisors_of(const NormSpec& norm, MatrixView<const double> rows) {
  std::vector<double> divisors;
  for (std::size_t t = 0; t < rows.rows(); ++t) {
    std::vector<double> row(rows.row(t).begin(), rows.row(t).end());
    if (norm.centers()) center(row);
    divisors.push_back(std::sqrt(sum_of_squares(row) / norm.squared_radius() + norm.eps));
  }
  return divisors;
}

/// A component's row at the position that is read, and what replaces it.
struct Addend {
  std::string name{};
  std::optional<forward::Component> component{};
  std::vector<double> row{};
  std::vector<double> mean{};   ///< over the positions; empty for rows of a file
  std::vector<double> reads{};  ///< v·x at each position, for the reading's direction v; likewise
  std::vector<double> replacement{};
};

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a);
  for (std::size_t i = 0; i < a.size(); ++i) result[i] -= b[i];
  return result;
}

/// The unembedding's row of a token, with the factor of logits in it.
struct LogitRow {
  std::vector<double> weights{};
  double constant = 0.0;
};

LogitRow reader_of(const files::Checkpoint& checkpoint, const models::Model& model,
                   const AttributeOptions& options) {
  const models::Vocabulary& vocabulary = *model.vocabulary;
  const models::Linear& map = *vocabulary.unembedding;
  const std::vector<double> bias = models::read_bias(checkpoint, map);
  LogitRow reader{.weights = std::vector<double>(static_cast<std::size_t>(map.in))};
  const auto add = [&](std::size_t token, double sign) {
    if (token >= map.out) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("attribute: target {} is not in the vocabulary, expected 0 to {}", token, map.out - 1));
    }
    const double factor = sign * vocabulary.logit_scale;
    const std::vector<double> row = models::read_weight(checkpoint, map, token, 1);
    for (std::size_t i = 0; i < row.size(); ++i) reader.weights[i] += factor * row[i];
    if (!bias.empty()) reader.constant += factor * bias[token];
  };
  add(options.target, 1.0);
  if (options.against) add(*options.against, -1.0);
  return reader;
}

class Attributor {
 public:
  Attributor(const files::Checkpoint& checkpoint, const models::Model& model,
             std::span<const std::size_t> tokens, const AttributeOptions& options, const Progress& progress)
      : checkpoint_(checkpoint),
        model_(model),
        options_(options),
        progress_(progress),
        decoder_(checkpoint, model, options.threads) {
    if (options.removal == Removal::given && !options.replacements) {
      throw Error(ErrorCode::Argument, "attribute: there are no replacements, expected a row a component");
    }
    result_.model = &model;
    result_.tokens.assign(tokens.begin(), tokens.end());
    result_.target = options.target;
    result_.against = options.against;
    result_.removal = options.removal;
    result_.norm = decoder_.norms().back();
    if (tokens.empty()) {
      throw Error(ErrorCode::Argument, "attribute: the context has no tokens, expected at least one");
    }
    result_.at = options.at.value_or(tokens.size() - 1);
    if (result_.at >= tokens.size()) {
      throw Error(ErrorCode::Argument,
                  fmt::format("attribute: position {} is not in the text, expected 0 to {}", result_.at,
                              tokens.size() - 1));
    }
    // What comes later has no effect on the position that is read.
    first_pass_.context = context_ = tokens.first(result_.at + 1);
  }

  Attribution attributed() {
    const LogitRow reader = reader_of(checkpoint_, model_, options_);
    const NormSpec norm = models::read_norm(checkpoint_, model_.norms[result_.norm]);
    collect(reading_direction(norm, reader.weights));
    const NormReading reading(norm, reader.weights, reader.constant, stream_);
    result_.divisor = reading.divisor();
    result_.value = reading.value();
    result_.constant = reading.constant();
    expect_sum();
    const std::vector<std::size_t> kept = kept_components();
    for (const Addend& addend : addends_) {
      const std::vector<double> change = difference(addend.replacement, addend.row);
      result_.changes.insert(result_.changes.end(), change.begin(), change.end());
      result_.components.push_back({.name = addend.name,
                                    .component = addend.component,
                                    .share = reading.share(addend.row),
                                    .credits = reading.credits(addend.row),
                                    .effect = reading.effect(change)});
      for (std::size_t t = 0; t < addend.reads.size(); ++t) {
        result_.components.back().shares.push_back(addend.reads[t] / divisors_[t]);
      }
    }
    result_.bounds = bound_subsets(reading, {result_.changes.data(), addends_.size(), stream_.size()},
                                   options_.subsets, progress_, options_.threads);
    if (!kept.empty()) add_circuit(reading, kept);
    if (!options_.components) {
      for (const Addend& addend : addends_) first_pass_.replacements.push_back(addend.replacement);
      add_reruns(checkpoint_, decoder_, first_pass_, reading, options_, result_, progress_);
      if (options_.anywhere) add_ranges(reading);
    }
    result_.reading = reading;
    return std::move(result_);
  }

 private:
  void collect(const std::vector<double>& direction) {
    const std::vector<forward::Component>& components = decoder_.components();
    const bool own = !options_.components;
    (void)decoder_.run_apart(
        context_,
        {.change =
             [&](std::size_t /*index*/, MatrixView<double> rows) {
               if (!own) return;
               first_pass_.computed.emplace_back(rows);
               if (with_means_) first_pass_.means.push_back(column_means(rows));
             },
         .collect =
             [&](std::size_t index, MatrixView<const double> rows) {
               if (!own) return;
               NORMSCOPE_ASSERT(index == addends_.size());
               const std::span<const double> row = rows.row(result_.at);
               Addend addend{components[index].name(), components[index], {row.begin(), row.end()}};
               if (with_means_) addend.mean = column_means(rows);
               addend.replacement =
                   options_.removal == Removal::mean ? addend.mean : std::vector<double>(rows.width());
               for (std::size_t t = 0; t < rows.rows(); ++t) {
                 addend.reads.push_back(plain_dot(direction, rows.row(t)));
               }
               addends_.push_back(std::move(addend));
             },
         .observe =
             [&](std::size_t norm, MatrixView<const double> rows) {
               add_folds(norm, rows);
               if (own) {
                 first_pass_.entered.emplace_back(rows.data(), rows.data() + rows.rows() * rows.width());
               }
               if (norm != result_.norm) return;
               divisors_ = divisors_of(models::read_norm(checkpoint_, model_.norms[norm]), rows);
               const std::span<const double> row = rows.row(result_.at);
               stream_.assign(row.begin(), row.end());
             }},
        progress_);
    if (!own) add_rows();
    if (options_.removal == Removal::given) add_replacements();
  }

  void expect_width(MatrixView<const double> rows, const char* what) const {
    if (rows.width() == stream_.size()) return;
    throw Error(ErrorCode::Shape, fmt::format("attribute: the {} have {} features, expected {} as the stream",
                                              what, rows.width(), stream_.size()));
  }

  void add_rows() {
    const MatrixView<const double> rows = *options_.components;
    expect_width(rows, "components");
    if (options_.removal == Removal::mean) {
      throw Error(ErrorCode::Argument,
                  "attribute: components from a file have no means, expected their replacements");
    }
    for (std::size_t k = 0; k < rows.rows(); ++k) {
      const std::span<const double> row = rows.row(k);
      addends_.push_back({.name = fmt::format("row {}", k),
                          .row = {row.begin(), row.end()},
                          .replacement = std::vector<double>(row.size())});
    }
  }

  void add_replacements() {
    const MatrixView<const double> rows = *options_.replacements;
    expect_width(rows, "replacements");
    if (rows.rows() != addends_.size()) {
      throw Error(ErrorCode::Shape,
                  fmt::format("attribute: {} replacements, expected one for each of {} components",
                              rows.rows(), addends_.size()));
    }
    for (std::size_t k = 0; k < rows.rows(); ++k) {
      addends_[k].replacement.assign(rows.row(k).begin(), rows.row(k).end());
    }
  }

  void add_folds(std::size_t index, MatrixView<const double> rows) {
    const NormSpec norm = models::read_norm(checkpoint_, model_.norms[index]);
    if (norm.elementwise() || norm.groups != 1) return;
    for (std::size_t t = 0; t < rows.rows(); ++t) {
      std::vector<double> row(rows.row(t).begin(), rows.row(t).end());
      if (norm.centers()) center(row);
      const double square = sum_of_squares(row);
      const double whole = square + norm.squared_radius() * norm.eps;
      const double radius = whole > 0.0 ? std::sqrt(square / whole) : 0.0;
      if (radius < fold_radius) result_.folds.push_back({index, t, radius});
    }
  }

  /// Throws unless the components add up to the stream.
  void expect_sum() {
    const auto count = static_cast<std::ptrdiff_t>(addends_.size());
    // Heads are added before they join the stream, and parts of a norm's output are rounded apart.
    const double allowed =
        std::max(options_.tolerance, rounding(4 * count + static_cast<std::ptrdiff_t>(stream_.size())));
    double worst = 0.0;
    double size = 0.0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < stream_.size(); ++i) {
      CompensatedSum sum;
      double sizes = std::abs(stream_[i]);
      for (const Addend& addend : addends_) {
        sum.add(addend.row[i]);
        sizes += std::abs(addend.row[i]);
      }
      size = std::max(size, sizes);
      const double miss = std::abs(sum.value() - stream_[i]);
      if (miss <= worst) continue;
      worst = miss;
      where = i;
    }
    worst = worst == 0.0 ? 0.0 : worst / size;
    result_.miss = worst;
    if (worst <= allowed) return;
    throw Error(
        ErrorCode::Argument,
        fmt::format("attribute: the components do not add up to the row that enters {}: feature {} "
                    "misses by {:.3g} of the largest sizes added, expected at most {:.3g}; add a row for "
                    "the rest",
                    model_.norms[result_.norm].name, where, worst, allowed));
  }

  [[nodiscard]] std::vector<std::size_t> kept_components() const {
    std::vector<std::size_t> kept;
    for (const std::string& name : options_.kept) {
      const auto at = std::find_if(addends_.begin(), addends_.end(),
                                   [&](const Addend& addend) { return addend.name == name; });
      if (at == addends_.end()) {
        throw Error(ErrorCode::Argument,
                    fmt::format("attribute: \"{}\" is not a component, expected names such as {} and {}",
                                printable(name), addends_.front().name, addends_.back().name));
      }
      kept.push_back(static_cast<std::size_t>(at - addends_.begin()));
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    return kept;
  }

  /// A share a/s with a in an interval, for every s of at least the divisor.
  void add_ranges(const NormReading& reading) {
    for (std::size_t k = 0; k < result_.components.size(); ++k) {
      progress_("ranges", k, result_.components.size());
      std::optional<ShareRange> found =
          share_range(checkpoint_, model_, decoder_.components()[k], reading.direction(), options_.threads);
      if (!found) continue;
      constexpr double outwards = 1.0 + 8.0 * unit_roundoff;
      found->interval.lower = std::min(0.0, found->interval.lower) * outwards / reading.divisor();
      found->interval.upper = std::max(0.0, found->interval.upper) * outwards / reading.divisor();
      result_.components[k].anywhere = std::move(found);
    }
  }

  void add_circuit(const NormReading& reading, const std::vector<std::size_t>& kept) {
    std::vector<bool> removed(addends_.size(), true);
    for (const std::size_t k : kept) removed[k] = false;
    std::vector<double> total(stream_.size());
    for (std::size_t k = 0; k < addends_.size(); ++k) {
      if (!removed[k]) continue;
      const Addend& addend = addends_[k];
      const std::vector<double>& by = options_.components ? addend.replacement : addend.mean;
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += by[i] - addend.row[i];
    }
    result_.circuit = Circuit{.kept = kept, .effect = reading.effect(total)};
  }

  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  const AttributeOptions& options_;
  const Progress& progress_;
  forward::Decoder decoder_;
  const bool with_means_ = options_.removal == Removal::mean || !options_.kept.empty();
  std::span<const std::size_t> context_{};
  Attribution result_{};
  std::vector<Addend> addends_{};
  std::vector<double> stream_{};
  std::vector<double> divisors_{};  ///< of the final norm, at each position
  FirstPass first_pass_{};
};

}  // namespace

double sum_tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return 1e-12;
    case Dtype::F32: return 1e-5;
    default: return 2e-2;
  }
}

Attribution attribute(const files::Checkpoint& checkpoint, const models::Model& model,
                      std::span<const std::size_t> tokens, const AttributeOptions& options,
                      const Progress& progress) {
  return Attributor(checkpoint, model, tokens, options, progress).attributed();
}

}  // namespace normscope::analysis
