#include <normscope/selectability/select.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "rows.hpp"
#include "search.hpp"

namespace normscope::selectability {
namespace {

/// Keys searched together, so that their queries form a matrix; fewer if each takes long, because Ctrl-C
/// takes effect between steps.
std::size_t chunk_of(std::size_t width) {
  return std::clamp<std::size_t>((std::size_t{1} << 22U) / std::max<std::size_t>(1, width * width), 16, 1024);
}
/// Constraints that an iteration adds to a working set; a key inside the hull ends with up to width + 1
/// active ones.
std::size_t constraints_per_iteration(std::size_t width) { return 8 + width / 2; }
/// Iterations after which a key stays undecided.
constexpr std::size_t most_passes = 2000;
/// Relative deviation of a query's length from 1.
constexpr double length_error = 0x1p-40;

}  // namespace

/// The search state of one key.
struct Search::Parts::KeySearch {
  enum class Stage { own, whitened, hull };

  std::size_t place = 0;
  Stage stage = Stage::own;
  Query query{};
  std::vector<std::size_t> working{};
  std::size_t passes = 0;
  bool asked_front = false;   ///< whether only keys outside the front remain to be checked
  bool has_violated = false;  ///< whether the last scores added to the working set
  bool open = true;
};

Search::Parts::Parts(MatrixView<const double> keys, const Options& how)
    : options(how),
      key_set(keys, how.threads),
      own(key_set),
      verdicts(keys.rows()),
      block(chunk_of(keys.width())),
      front(Constraints::none(key_set)) {
  for (std::size_t row = 0; row < verdicts.size(); ++row) {
    const std::size_t duplicate = key_set.duplicate(row);
    if (duplicate == KeySet::none) continue;
    verdicts[row].answer = Selectability::unselectable;
    verdicts[row].proof = Proof::duplicate;
    verdicts[row].weights = {{duplicate, 1.0}};
  }
}

std::size_t Search::Parts::blocks() const { return (open.size() + block - 1) / block; }

std::size_t Search::Parts::searched() const { return std::min(open.size(), blocks_done * block); }

void Search::Parts::collect() {
  for (std::size_t place = 0; place < key_set.size(); ++place) {
    const double margin = own.beaten(place) ? -1.0 : own.margin(place);
    if (margin > 0.0) {
      front.add(place);
      select(place, Proof::own_direction, margin, {});
    } else if (key_set.duplicate(key_set.row(place)) == KeySet::none) {
      open.push_back(place);
    } else {
      // Not an answer by itself, but this key may be a vertex of the hull.
      front.add(place);
    }
  }
  if (!open.empty()) span.emplace(key_set, options.rank_tolerance);
  use_restored();
}

void Search::Parts::select(std::size_t place, Proof proof, double margin, std::vector<double> query) {
  Verdict& verdict = verdicts[key_set.row(place)];
  if (verdict.proof == Proof::duplicate) return;
  verdict.answer = Selectability::selectable;
  if (const std::optional<int> exponent = key_set.exponent()) {
    verdict.proof = proof;
    verdict.margin = std::scalbn(margin, *exponent);
    verdict.query = std::move(query);
    return;
  }
  if (proof == Proof::own_direction) {
    query.resize(key_set.width());
    key_set.centred(place, query);
  }
  const double length = euclidean_norm(query);
  for (std::size_t i = 0; i < query.size(); ++i) query[i] = key_set.scaled(query[i], i);
  const BinaryScale by = BinaryScale::of(query);
  by.divide(query);
  // Entries that underflow change no score by more than `lost`.
  const double lost = 0x1p-700 * static_cast<double>(query.size());
  margin = by.divide(margin * length / euclidean_norm(query) * (1.0 - 0x1p-47)) - lost;
  if (!(margin > 0.0)) {
    verdict = {};
    return;
  }
  verdict.proof = Proof::query;
  verdict.margin = margin;
  verdict.query = std::move(query);
}

void Search::Parts::advance() {
  if (!own.done()) {
    own.step(options.threads);
    if (own.done()) collect();
    return;
  }
  std::vector<KeySearch> searches;
  for (std::size_t i = blocks_done * block; i < std::min(open.size(), (blocks_done + 1) * block); ++i) {
    searches.push_back({.place = open[i]});
    searches.back().stage = own.beaten(open[i]) ? KeySearch::Stage::whitened : KeySearch::Stage::own;
  }
  run_block(std::move(searches));
  ++blocks_done;
}

/// The query of the current stage; moves on to the next stage if there is none.
void Search::Parts::next_query(KeySearch& search) {
  std::vector<double> z(key_set.width());
  key_set.centred(search.place, z);
  Eigen::VectorXd vector = Eigen::Map<const Eigen::VectorXd>(z.data(), static_cast<Eigen::Index>(z.size()));
  if (search.stage == KeySearch::Stage::whitened) vector = span->query(span->whitened(vector));
  const double length = vector.norm();
  search.query.place = search.place;
  if (length > 0.0 && std::isfinite(length)) {
    vector /= length;
  } else {
    // A key that is the mean, as rounded, has no direction of its own; any query will do, and is stated.
    vector = Eigen::VectorXd::Unit(vector.size(), 0);
    if (search.stage == KeySearch::Stage::own) search.stage = KeySearch::Stage::whitened;
  }
  search.query.direction.assign(vector.data(), vector.data() + vector.size());
}

/// Solves the subproblem over the working set: a new query, or an answer.
void Search::Parts::solve_working_set(KeySearch& search) {
  Nearest found = nearest(key_set, *span, search.place, search.working, options.tolerance);
  Verdict& verdict = verdicts[key_set.row(search.place)];
  if (found.kind == Nearest::Kind::inside) {
    search.open = false;
    verdict.answer = Selectability::unselectable;
    verdict.proof = Proof::weights;
    verdict.residual = found.residual;
    verdict.weights = std::move(found.weights);
    return;
  }
  if (found.query.empty() || found.kind == Nearest::Kind::unclear || search.passes >= most_passes) {
    search.open = false;
    verdict.residual = found.residual;
    verdict.weights = std::move(found.weights);
    return;
  }
  search.query.direction = std::move(found.query);
}

void Search::Parts::mark_selectable(const KeySearch& search, double margin) {
  // The query used was the key's own direction divided by its length, with rounding.
  const double own_margin = margin - 0x1p-48 * (key_set.length(search.place) + key_set.length(0));
  if (search.stage == KeySearch::Stage::own && own_margin > 0.0) {
    select(search.place, Proof::own_direction, own_margin, {});
  } else {
    select(search.place, Proof::query, margin, search.query.direction);
  }
}

/// Scores the queries against the constraints. Keys with a violated constraint add it to their working set.
/// The others are decided if the constraints are all keys (`proves`); otherwise only the front is checked.
void Search::Parts::score(std::vector<KeySearch*>& searches, const Constraints& constraints, bool proves) {
  if (searches.empty()) return;
  std::vector<Query> queries;
  queries.reserve(searches.size());
  for (const KeySearch* search : searches) queries.push_back(search->query);
  const std::vector<ScoredQuery> answers = score_queries(
      key_set, constraints, queries, constraints_per_iteration(key_set.width()), options.threads);
  for (std::size_t i = 0; i < searches.size(); ++i) {
    KeySearch& search = *searches[i];
    ++search.passes;
    search.has_violated = !answers[i].violated.empty();
    search.asked_front = !search.has_violated;
    if (!search.has_violated) {
      if (!proves) continue;
      search.open = false;
      mark_selectable(search, answers[i].margin * (1.0 - length_error));
      front.add(search.place);
      continue;
    }
    const std::size_t before = search.working.size();
    for (const std::size_t winner : answers[i].violated) {
      if (std::find(search.working.begin(), search.working.end(), winner) == search.working.end()) {
        search.working.push_back(winner);
      }
      if (proves) front.add(winner);
    }
    // No new constraint, although one is violated: rounding decides, and the key stays undecided.
    search.open = search.stage != KeySearch::Stage::hull || search.working.size() > before;
  }
}

void Search::Parts::evaluate(std::vector<KeySearch*>& searches) {
  std::vector<KeySearch*> at_front;
  std::vector<KeySearch*> before_everyone;
  for (KeySearch* const search : searches) {
    // Queries whose own direction is too close to call are compared with all keys; so are all queries if
    // the front is no smaller.
    const bool skip = search->asked_front || search->stage == KeySearch::Stage::own || front.size() == 0 ||
                      2 * front.size() > key_set.size();
    (skip ? before_everyone : at_front).push_back(search);
  }
  score(at_front, front, false);
  score(before_everyone, Constraints(key_set), true);
}

void Search::Parts::next_stage(KeySearch& search) {
  if (!search.has_violated) return;
  if (search.stage == KeySearch::Stage::own) {
    search.stage = KeySearch::Stage::whitened;
    next_query(search);
  } else {
    search.stage = KeySearch::Stage::hull;
    solve_working_set(search);
  }
}

void Search::Parts::run_block(std::vector<KeySearch> searches) {
  for (KeySearch& search : searches) next_query(search);
  // A key that is not decided ends at `most_passes`.
  run_working_sets(
      searches, std::numeric_limits<std::size_t>::max(), options.threads,
      [this](std::vector<KeySearch*>& some) { evaluate(some); },
      [this](KeySearch& search) { next_stage(search); });
}

Search::Search(MatrixView<const double> keys, const Options& options)
    : parts_(std::make_unique<Parts>(keys, options)) {
  if (keys.rows() == 1) {
    parts_->verdicts[0].answer = Selectability::selectable;
    parts_->verdicts[0].proof = Proof::alone;
    parts_->verdicts[0].margin = std::numeric_limits<double>::infinity();
  }
}

Search::Search(Search&& other) noexcept = default;
Search& Search::operator=(Search&& other) noexcept = default;
Search::~Search() = default;

bool Search::done() const {
  if (parts_->verdicts.size() <= 1 || parts_->key_set.size() <= 1) return true;
  return parts_->own.done() && parts_->blocks_done >= parts_->blocks();
}

void Search::step() {
  NORMSCOPE_ASSERT(!done());
  parts_->advance();
}

void Search::report(const Progress& progress) const {
  const OwnDirection& own = parts_->own;
  if (!own.done()) {
    progress("block of keys", own.steps_done(), own.steps());
  } else {
    progress("chunk of hard keys", parts_->blocks_done, parts_->blocks());
  }
}

Selection Search::Parts::selection() {
  return {.keys = std::move(verdicts),
          .center = key_set.center(),
          .scale = key_set.scale(),
          .extents = key_set.extents(),
          .tolerance = options.tolerance};
}

Selection Search::result() && {
  NORMSCOPE_ASSERT(done());
  return parts_->selection();
}

std::string_view to_string(Selectability answer) {
  switch (answer) {
    case Selectability::selectable: return "selectable";
    case Selectability::unselectable: return "unselectable";
    case Selectability::undecided: return "undecided";
  }
  return "";
}

std::string_view to_string(Proof proof) {
  switch (proof) {
    case Proof::none: return "none";
    case Proof::alone: return "alone";
    case Proof::own_direction: return "own_direction";
    case Proof::query: return "query";
    case Proof::weights: return "weights";
    case Proof::duplicate: return "twin";
    case Proof::exact: return "exact";
  }
  return "";
}

std::size_t Selection::count(Proof proof) const {
  return static_cast<std::size_t>(std::count_if(
      keys.begin(), keys.end(), [&](const Verdict& verdict) { return verdict.proof == proof; }));
}

std::optional<Margins> Selection::margins() const {
  std::vector<double> margins;
  for (const Verdict& verdict : keys) {
    if (verdict.answer == Selectability::selectable && std::isfinite(verdict.margin))
      margins.push_back(std::max(0.0, verdict.margin));
  }
  if (margins.empty()) return {};
  std::sort(margins.begin(), margins.end());
  return Margins{margins.front(), margins[margins.size() / 2], margins.back()};
}

std::size_t Selection::count(Selectability answer) const {
  return static_cast<std::size_t>(std::count_if(
      keys.begin(), keys.end(), [answer](const Verdict& verdict) { return verdict.answer == answer; }));
}

std::vector<double> Selection::query(MatrixView<const double> all, std::size_t index) const {
  const Verdict& verdict = keys[index];
  if (verdict.answer != Selectability::selectable) return {};
  if (verdict.proof == Proof::query || verdict.proof == Proof::exact) return verdict.query;
  std::vector<double> result(all.row(index).begin(), all.row(index).end());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] -= center[i];
  return result;
}

Selection select_keys(MatrixView<const double> keys, const Options& options, const Progress& progress) {
  Search search(keys, options);
  while (!search.done()) {
    search.report(progress);
    search.step();
  }
  search.report(progress);
  return std::move(search).result();
}

std::vector<double> attention_weights(MatrixView<const double> keys, std::span<const double> query) {
  if (keys.rows() == 0 || keys.width() != query.size()) {
    throw Error(ErrorCode::Shape, fmt::format("attention weights: {} keys of width {}, a query of {}; "
                                              "expected at least one key, of the query's width",
                                              keys.rows(), keys.width(), query.size()));
  }
  std::vector<double> weights(keys.rows());
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    for (std::size_t c = 0; c < query.size(); ++c) weights[i] += query[c] * keys.row(i)[c];
    if (!std::isfinite(weights[i])) {
      throw Error(ErrorCode::Argument,
                  fmt::format("attention weights: the score of key {} is {}, expected a finite number", i,
                              weights[i]));
    }
  }
  // The largest score is subtracted, so that no exponential overflows.
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0.0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace normscope::selectability
