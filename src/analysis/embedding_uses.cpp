#include "embedding_uses.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <normscope/core/error.hpp>
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
    const auto file = models::find_token_names(checkpoint.files().front().parent_path());
    if (file) return models::read_token_names(*file, tokens);
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

}  // namespace normscope::analysis
