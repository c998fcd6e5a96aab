#include "reach_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>

namespace normscope::cli {
namespace {

using proof::Answer;
using proof::PointWeight;
using selectability::Logits;
using selectability::Probability;
using selectability::Survey;
using selectability::TokenReach;

constexpr SnapshotKind kind{.name = "reach",
                            .version = 6,
                            .others = "another model or tolerance",
                            .former = "normscope.reach_state/"};

Digest fingerprint(const Logits& logits, double tolerance, unsigned threads) {
  Packer inputs;
  inputs.put(logits.tokens);
  inputs.put(logits.width);
  inputs.put(logits.rounding);
  inputs.put<std::uint8_t>(logits.sphere ? 1 : 0);
  inputs.put<std::uint8_t>(logits.centers ? 1 : 0);
  inputs.put(tolerance);
  inputs.put(piecewise_sha256(std::as_bytes(std::span(logits.rows)), threads));
  inputs.put(piecewise_sha256(std::as_bytes(std::span(logits.offsets)), threads));
  return sha256(inputs.bytes());
}

/// Whether a token's answer needs a saved proof: one decided by its own direction alone does not.
bool is_kept(const TokenReach& token) {
  if (!token.done || token.answer == Answer::undecided || token.unbounded == Answer::undecided) return false;
  return token.answer == Answer::no || !token.witness.empty() || !token.weights.empty();
}

void put(Packer& to, std::size_t index, const TokenReach& token) {
  to.put<std::uint64_t>(index);
  to.put<std::uint8_t>(token.answer == Answer::yes ? 1 : 0);
  to.put<std::uint8_t>(token.unbounded == Answer::yes ? 1 : 0);
  to.put(token.lower);
  to.put(token.upper);
  to.put<std::uint64_t>(token.runner_up);
  to.put(token.weights);
  to.put(token.unbounded_weights);
  to.put(token.witness);
  to.put(token.unbounded_witness);
}

/// Saves the two points that prove a token's bounds on its largest probability, for tokens that have both.
/// With eps = 0 the bounds depend on more than the points and are computed again.
void put_points(Packer& to, const Logits& logits, const Survey& survey) {
  std::vector<std::uint64_t> kept;
  for (const std::size_t token : survey.refined) {
    const Probability& known = survey.probabilities[token];
    if (!logits.sphere && !known.point.empty() && !known.tangent.empty()) kept.push_back(token);
  }
  to.put(kept);
  for (const std::uint64_t token : kept) {
    to.put(survey.probabilities[token].point);
    to.put(survey.probabilities[token].tangent);
  }
}

bool are_shares(const std::vector<PointWeight>& shares, std::size_t ids) {
  return std::all_of(shares.begin(), shares.end(), [ids](const PointWeight& share) {
    return share.id < ids && std::isfinite(share.weight) && share.weight >= 0.0;
  });
}

bool is_point(const std::vector<double>& point, std::size_t width) {
  return point.empty() || (point.size() == width && std::all_of(point.begin(), point.end(), [](double value) {
                             return std::isfinite(value);
                           }));
}

/// Reads tokens in ascending order of their indices.
class StateReader {
 public:
  StateReader(std::span<const std::byte> payload, const Logits& logits, std::string source)
      : from_(payload, fmt::format("{}: {}", source, misfit)), logits_(logits), source_(std::move(source)) {}

  /// Reads the number of tokens that follow.
  std::uint64_t count() {
    std::uint64_t count = 0;
    from_.get(count);
    expect(count <= logits_.tokens);
    return count;
  }

  std::size_t next(std::vector<TokenReach>& tokens) {
    std::uint64_t index = 0;
    from_.get(index);
    expect(index >= first_ && index < logits_.tokens);
    first_ = index + 1;
    TokenReach& token = tokens[index];
    token.done = true;
    token.answer = answer();
    token.unbounded = answer();
    from_.get(token.lower);
    from_.get(token.upper);
    expect(!std::isnan(token.lower) && !std::isnan(token.upper));
    std::uint64_t runner_up = 0;
    from_.get(runner_up);
    expect(runner_up < logits_.tokens);
    token.runner_up = runner_up;
    from_.get(token.weights);
    from_.get(token.unbounded_weights);
    expect(are_shares(token.weights, logits_.tokens) &&
           are_shares(token.unbounded_weights, logits_.tokens + 1));
    from_.get(token.witness);
    from_.get(token.unbounded_witness);
    expect(is_point(token.witness, logits_.width) && is_point(token.unbounded_witness, logits_.width + 1));
    return index;
  }

  /// Which leads were computed, and the number of tokens processed for that.
  void leads(Survey& survey) {
    std::vector<std::uint64_t> sharp;
    from_.get(sharp);
    survey.sharp.assign(logits_.tokens, false);
    for (const std::uint64_t token : sharp) {
      expect(token < logits_.tokens);
      survey.sharp[token] = true;
    }
    std::uint64_t worked = 0;
    from_.get(worked);
    survey.worked = worked;
  }

  /// The points of probabilities, two per token; none if they were computed for another gap.
  void points(double gap, std::vector<std::size_t>& tokens, std::vector<std::vector<double>>& points) {
    double saved_gap = 0.0;
    from_.get(saved_gap);
    std::vector<std::uint64_t> kept;
    from_.get(kept);
    for (const std::uint64_t token : kept) {
      expect(!logits_.sphere && token < logits_.tokens && (tokens.empty() || token > tokens.back()));
      tokens.push_back(token);
      for (int i = 0; i < 2; ++i) {
        from_.get(points.emplace_back());
        expect(!points.back().empty() && is_point(points.back(), logits_.width));
      }
    }
    expect(from_.at_end());
    if (saved_gap == gap) return;
    tokens.clear();
    points.clear();
  }

 private:
  static constexpr const char* misfit = "holds what reach did not save; delete it to start again";

  void expect(bool holds) const {
    if (!holds) throw Error(ErrorCode::Format, fmt::format("{}: {}", source_, misfit));
  }
  Answer answer() {
    std::uint8_t code = 0;
    from_.get(code);
    expect(code <= 1);
    return code == 1 ? Answer::yes : Answer::no;
  }

  Unpacker from_;
  const Logits& logits_;
  std::string source_;
  std::uint64_t first_ = 0;
};

}  // namespace

ReachState::ReachState(std::filesystem::path path, const Logits& logits, selectability::ReachOptions options,
                       double probability_gap)
    : path_(std::move(path)),
      logits_(logits),
      options_(std::move(options)),
      probability_gap_(probability_gap) {
  if (!path_.empty()) fingerprint_ = fingerprint(logits, options_.tolerance, options_.threads);
}

bool ReachState::exists() const {
  if (path_.empty()) return false;
  return options_.team->any(options_.team->is_first() && std::filesystem::exists(path_));
}

Survey ReachState::load() const {
  std::vector<std::byte> payload;
  if (options_.team->is_first()) payload = load_snapshot(path_, kind, fingerprint_);
  payload = gathered(payload, *options_.team).front();
  Survey survey;
  survey.tokens.resize(logits_.tokens);
  std::vector<std::size_t> saved;
  StateReader reader(payload, logits_, path_.string());
  for (std::uint64_t left = reader.count(); left > 0; --left) saved.push_back(reader.next(survey.tokens));
  reader.leads(survey);
  std::vector<std::vector<double>> points;
  reader.points(probability_gap_, survey.refined, points);
  // Each member checks its part, and ends all if a proof does not hold.
  const auto part = [&](std::size_t member) {
    return saved.begin() + static_cast<std::ptrdiff_t>(options_.team->first_of(member, saved.size()));
  };
  const std::size_t rank = options_.team->rank();
  const std::vector<std::size_t> unproved =
      selectability::unproved(logits_, survey.tokens, {part(rank), part(rank + 1)}, options_);
  if (!unproved.empty()) {
    throw Error(
        ErrorCode::Format,
        fmt::format(
            "{}: holds an answer for token {} that its proof does not support; delete it to start again",
            path_.string(), unproved.front()));
  }
  // Bounds are not saved; they are recomputed from the points.
  survey.probabilities.resize(logits_.tokens);
  if (survey.refined.empty()) return survey;
  std::vector<Probability> proved =
      selectability::prove_probabilities(logits_, survey.refined, points, options_.threads);
  for (std::size_t i = 0; i < proved.size(); ++i) {
    survey.probabilities[survey.refined[i]] = std::move(proved[i]);
  }
  return survey;
}

void ReachState::save(const Survey& survey) const {
  if (path_.empty() || !options_.team->is_first()) return;
  Packer tokens;
  std::uint64_t count = 0;
  std::vector<std::uint64_t> sharp;
  for (std::size_t i = 0; i < survey.tokens.size(); ++i) {
    if (i < survey.sharp.size() && survey.sharp[i]) sharp.push_back(i);
    if (!is_kept(survey.tokens[i])) continue;
    put(tokens, i, survey.tokens[i]);
    ++count;
  }
  Packer payload;
  payload.put(count);
  for (const std::byte value : tokens.bytes()) payload.put(value);
  payload.put(sharp);
  payload.put<std::uint64_t>(survey.worked);
  payload.put(probability_gap_);
  put_points(payload, logits_, survey);
  save_snapshot(path_, kind, fingerprint_, payload.bytes());
}

}  // namespace normscope::cli
