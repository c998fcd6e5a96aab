#include "field.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/product.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::selectability {
namespace {

constexpr std::size_t chunk = 2048;

struct Candidate {
  float score = 0.0F;
  std::size_t token = 0;

  bool operator<(const Candidate& other) const {
    return score != other.score ? score > other.score : token < other.token;
  }
};

/// What a chunk of tokens holds against one standing.
struct Seen {
  std::vector<Candidate> candidates{};
  float best = -std::numeric_limits<float>::infinity();
};

double own_score(const Field& field, const Standing& standing) {
  const std::span<const double> row = field.logits->view().row(standing.token);
  CompensatedSum total;
  total.add(field.logits->offsets[standing.token]);
  for (std::size_t i = 0; i < row.size(); ++i) total.add(row[i] * standing.point[i]);
  return total.value();
}

/// Candidates are all tokens of [begin, end) within twice float32's error of the standing's own score.
std::vector<Seen> see(const Field& field, const std::vector<Standing>& standings,
                      const std::vector<float>& points, const std::vector<float>& thresholds,
                      std::size_t begin, std::size_t end) {
  const std::size_t width = field.logits->width;
  std::vector<float> scores(standings.size() * (end - begin));
  const MatrixView<float> view(scores.data(), standings.size(), end - begin);
  multiply(Factor<float>(points.data(), standings.size(), width, width),
           Factor<float>(field.single->rows.data() + begin * width, end - begin, width, width).transposed(),
           view);
  std::vector<Seen> seen(standings.size());
  for (std::size_t s = 0; s < standings.size(); ++s) {
    const float* line = view.row(s).data();
    for (std::size_t j = begin; j < end; ++j) {
      if (j == standings[s].token) continue;
      const float score = line[j - begin] + field.single->offsets[j];
      seen[s].best = std::max(seen[s].best, score);
      if (score >= thresholds[s]) seen[s].candidates.push_back({score, j});
    }
  }
  return seen;
}

void settle(const Field& field, Standing& standing, std::vector<Candidate> candidates, double floor,
            std::size_t most_rivals) {
  std::sort(candidates.begin(), candidates.end());
  standing.lower = floor;
  std::vector<std::pair<double, std::size_t>> close;
  for (const Candidate& candidate : candidates) {
    // Enough is known once as many lead by more than float32 could hide.
    if (close.size() >= most_rivals && standing.lower <= 0.0 && standing.within <= 0.0) break;
    const double lead = lower_bound(field, standing.token, standing.point, candidate.token);
    standing.lower = std::min(standing.lower, lead);
    close.emplace_back(lead, candidate.token);
  }
  if (field.last_is_positive) {
    const std::size_t last = field.logits->tokens;
    const double lead = lower_bound(field, standing.token, standing.point, last);
    standing.lower = std::min(standing.lower, lead);
    close.emplace_back(lead, last);
  }
  std::sort(close.begin(), close.end());
  if (close.size() > most_rivals) close.resize(most_rivals);
  standing.rivals.clear();
  standing.leads.clear();
  for (const auto& [lead, token] : close) {
    standing.rivals.push_back(token);
    standing.leads.push_back(lead);
  }
}

}  // namespace

double Field::difference(std::size_t token, std::size_t other, std::span<double> row) const {
  if (other == logits->tokens) {
    std::fill(row.begin(), row.end(), 0.0);
    row.back() = logits->scale;
    return 0.0;
  }
  const std::span<const double> a = logits->view().row(token);
  const std::span<const double> b = logits->view().row(other);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = a[i] - b[i];
  return logits->offsets[token] - logits->offsets[other];
}

std::vector<double> own_direction(const Logits& logits, std::size_t token) {
  const std::span<const double> row = logits.view().row(token);
  std::vector<double> point(row.begin(), row.end());
  const double length = euclidean_norm(row);
  for (double& value : point) value = length > 0.0 ? value / length * (1.0 - 0x1p-49) : 0.0;
  return point;
}

void look(const Field& field, std::vector<Standing>& standings, std::size_t most_rivals, unsigned threads) {
  const std::size_t tokens = field.logits->tokens;
  const int exponent = field.single->exponent;
  std::vector<float> points;
  std::vector<double> own;
  std::vector<float> thresholds;
  for (const Standing& standing : standings) {
    for (const double value : standing.point) points.push_back(static_cast<float>(value));
    own.push_back(own_score(field, standing));
    thresholds.push_back(
        static_cast<float>(std::scalbn(own.back() - standing.within - 2.0 * field.single->error, -exponent)));
  }
  const std::size_t chunks = (tokens + chunk - 1) / chunk;
  std::vector<std::vector<Seen>> seen(chunks);
  parallel_for(chunks, 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      seen[k] = see(field, standings, points, thresholds, k * chunk, std::min(tokens, (k + 1) * chunk));
    }
  });
  parallel_for(standings.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t s = begin; s < end; ++s) {
      std::vector<Candidate> candidates;
      float best = -std::numeric_limits<float>::infinity();
      for (const std::vector<Seen>& part : seen) {
        candidates.insert(candidates.end(), part[s].candidates.begin(), part[s].candidates.end());
        best = std::max(best, part[s].best);
      }
      // Over those that are no candidates the lead is what float32 says less its error.
      const double others = own[s] - std::scalbn(static_cast<double>(best), exponent) - field.single->error;
      const double floor = candidates.empty() ? others : standings[s].within + 0.5 * field.single->error;
      settle(field, standings[s], std::move(candidates), floor, most_rivals);
      standings[s].lower -= 2.0 * field.logits->rounding;
    }
  });
}

double lower_bound(const Field& field, std::size_t token, std::span<const double> point, std::size_t other) {
  std::vector<double> row(point.size());
  const double offset = field.difference(token, other, row);
  // Each entry of the difference, and the offset, is rounded once.
  const double rounded = 0x1p-53 * (euclidean_norm(row) + std::abs(offset));
  return convex::verified_lower({row.data(), 1, row.size()}, {&offset, 1}, point) - rounded;
}

double upper_bound(const Field& field, std::size_t token, const std::vector<convex::Share>& weights) {
  std::vector<double> rows(weights.size() * field.logits->width);
  std::vector<double> offsets;
  std::vector<convex::Share> shares;
  double rounded = 0.0;
  for (const convex::Share& weight : weights) {
    if (weight.id >= field.rows() || weight.id == token) return std::numeric_limits<double>::infinity();
    const std::span<double> row(rows.data() + shares.size() * field.logits->width, field.logits->width);
    offsets.push_back(field.difference(token, weight.id, row));
    rounded = std::max(rounded, 0x1p-53 * (euclidean_norm(row) + std::abs(offsets.back())));
    shares.push_back({shares.size(), weight.weight});
  }
  const MatrixView<const double> view(rows.data(), shares.size(), field.logits->width);
  return convex::verified_upper(view, offsets, shares) + rounded + 2.0 * field.logits->rounding;
}

}  // namespace normscope::selectability
