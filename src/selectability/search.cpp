#include "search.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/assert.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/selectability/verify.hpp>

#include "extents.hpp"

namespace normscope::selectability {
namespace {

/// Keys searched together, so that their queries form a matrix; fewer if each takes long, because Ctrl-C
/// takes effect between steps.
std::size_t chunk_of(std::size_t width) {
  return std::clamp<std::size_t>((std::size_t{1} << 22U) / std::max<std::size_t>(1, width * width), 16, 1024);
}
/// Constraints that an iteration adds to a working set; a key inside the hull ends with up to width + 1
/// active ones.
std::size_t winners_taken(std::size_t width) { return 8 + width / 2; }
/// Iterations after which a key stays undecided.
constexpr std::size_t most_passes = 2000;
/// Relative deviation of a query's length from 1.
constexpr double length_error = 0x1p-40;

}  // namespace

/// The search state of one key.
struct Search::Parts::Contest {
  enum class Stage { own, whitened, hull };

  std::size_t place = 0;
  Stage stage = Stage::own;
  Query query{};
  std::vector<std::size_t> working{};
  std::size_t passes = 0;
  bool asked_front = false;  ///< whether only keys outside the front remain to be checked
  bool over = false;
};

Search::Parts::Parts(MatrixView<const double> keys, const Options& how)
    : options(how),
      given(keys),
      columns(scaled_columns(keys)),
      scaled(columns ? std::nullopt : scaled_keys(keys)),
      cloud(columns  ? columns->view()
            : scaled ? scaled->view()
                     : keys,
            how.threads),
      own(cloud),
      verdicts(keys.rows()),
      chunk(chunk_of(keys.width())),
      front(Rivals::none(cloud)) {
  for (std::size_t row = 0; row < verdicts.size(); ++row) {
    const std::size_t twin = cloud.twin(row);
    if (twin == Cloud::none) continue;
    verdicts[row].answer = Selectability::unselectable;
    verdicts[row].proof = Proof::twin;
    verdicts[row].weights = {{twin, 1.0}};
  }
}

std::size_t Search::Parts::chunks() const { return (open.size() + chunk - 1) / chunk; }

std::size_t Search::Parts::searched() const { return std::min(open.size(), chunks_done * chunk); }

void Search::Parts::collect() {
  for (std::size_t place = 0; place < cloud.size(); ++place) {
    const double margin = own.beaten(place) ? -1.0 : own.margin(place);
    if (margin > 0.0) {
      front.add(place);
      select(place, Proof::own_direction, margin, {});
    } else if (cloud.twin(cloud.row(place)) == Cloud::none) {
      open.push_back(place);
    } else {
      // Not an answer by itself, but this key may be a vertex of the hull.
      front.add(place);
    }
  }
  if (!open.empty()) span.emplace(cloud, options.rank_tolerance);
  adopt();
}

void Search::Parts::select(std::size_t place, Proof proof, double margin, std::vector<double> query) {
  Verdict& verdict = verdicts[cloud.row(place)];
  if (verdict.proof == Proof::twin) return;
  verdict.answer = Selectability::selectable;
  verdict.proof = proof;
  verdict.margin = std::scalbn(margin, cloud.exponent());
  verdict.query = std::move(query);
}

void Search::Parts::advance() {
  if (!own.done()) {
    own.step(options.threads);
    if (own.done()) collect();
    return;
  }
  std::vector<Contest> contests;
  for (std::size_t i = chunks_done * chunk; i < std::min(open.size(), (chunks_done + 1) * chunk); ++i) {
    contests.push_back({.place = open[i]});
    contests.back().stage = own.beaten(open[i]) ? Contest::Stage::whitened : Contest::Stage::own;
  }
  run_chunk(std::move(contests));
  ++chunks_done;
}

/// The query of the current stage; moves on to the next stage if there is none.
void Search::Parts::next_query(Contest& contest) {
  std::vector<double> z(cloud.width());
  cloud.centred(contest.place, z);
  Eigen::VectorXd vector = Eigen::Map<const Eigen::VectorXd>(z.data(), static_cast<Eigen::Index>(z.size()));
  if (contest.stage == Contest::Stage::whitened) vector = span->query(span->whitened(vector));
  const double length = vector.norm();
  contest.query.place = contest.place;
  // If the key is the mean, any query will do.
  vector = length > 0.0 && std::isfinite(length) ? Eigen::VectorXd(vector / length)
                                                 : Eigen::VectorXd(Eigen::VectorXd::Unit(vector.size(), 0));
  contest.query.direction.assign(vector.data(), vector.data() + vector.size());
}

/// Solves the subproblem over the working set: a new query, or an answer.
void Search::Parts::settle(Contest& contest) {
  Nearest found = nearest(cloud, *span, contest.place, contest.working, options.tolerance);
  Verdict& verdict = verdicts[cloud.row(contest.place)];
  contest.asked_front = false;
  if (found.kind == Nearest::Kind::inside) {
    contest.over = true;
    verdict.answer = Selectability::unselectable;
    verdict.proof = Proof::weights;
    verdict.residual = found.residual;
    verdict.weights = std::move(found.weights);
    return;
  }
  if (found.query.empty() || found.kind == Nearest::Kind::unclear || contest.passes >= most_passes) {
    contest.over = true;
    verdict.residual = found.residual;
    verdict.weights = std::move(found.weights);
    return;
  }
  contest.query.direction = std::move(found.query);
}

void Search::Parts::win(const Contest& contest, double margin) {
  // The query used was the key's own direction divided by its length, with rounding.
  const double own_margin = margin - 0x1p-48 * (cloud.length(contest.place) + cloud.length(0));
  if (contest.stage == Contest::Stage::own && own_margin > 0.0) {
    select(contest.place, Proof::own_direction, own_margin, {});
  } else {
    select(contest.place, Proof::query, margin, contest.query.direction);
  }
}

/// Scores the queries against the rivals. Keys with a violated constraint add it to their working set and
/// re-solve. The others are decided if the rivals are all keys (`proves`); otherwise only the front is
/// checked.
void Search::Parts::put(std::vector<Contest*>& contests, const Rivals& rivals, bool proves) {
  std::vector<Query> queries;
  queries.reserve(contests.size());
  for (const Contest* contest : contests) queries.push_back(contest->query);
  const std::vector<Challenge> answers =
      challenge(cloud, rivals, queries, winners_taken(cloud.width()), options.threads);
  std::vector<Contest*> beaten;
  for (std::size_t i = 0; i < contests.size(); ++i) {
    Contest& contest = *contests[i];
    ++contest.passes;
    if (answers[i].winners.empty()) {
      contest.asked_front = true;
      if (!proves) continue;
      contest.over = true;
      win(contest, answers[i].margin * (1.0 - length_error));
      front.add(contest.place);
      continue;
    }
    const std::size_t before = contest.working.size();
    for (const std::size_t winner : answers[i].winners) {
      if (std::find(contest.working.begin(), contest.working.end(), winner) == contest.working.end()) {
        contest.working.push_back(winner);
      }
      if (proves) front.add(winner);
    }
    // No new constraint, although one is violated: rounding decides, and the key stays undecided.
    if (contest.stage == Contest::Stage::hull && contest.working.size() == before) {
      contest.over = true;
      continue;
    }
    beaten.push_back(&contest);
  }
  parallel_for(beaten.size(), 1, options.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Contest& contest = *beaten[i];
      if (contest.stage == Contest::Stage::own) {
        contest.stage = Contest::Stage::whitened;
        next_query(contest);
      } else {
        contest.stage = Contest::Stage::hull;
        settle(contest);
      }
      contest.asked_front = false;
    }
  });
}

void Search::Parts::run_chunk(std::vector<Contest> contests) {
  for (Contest& contest : contests) next_query(contest);
  const Rivals everyone(cloud);
  while (true) {
    std::vector<Contest*> at_front;
    std::vector<Contest*> before_everyone;
    for (Contest& contest : contests) {
      if (contest.over) continue;
      // Queries whose own direction is too close to call are compared with all keys; so are all queries if
      // the front is no smaller.
      const bool skip = contest.asked_front || contest.stage == Contest::Stage::own || front.size() == 0 ||
                        2 * front.size() > cloud.size();
      (skip ? before_everyone : at_front).push_back(&contest);
    }
    if (at_front.empty() && before_everyone.empty()) break;
    if (!at_front.empty()) put(at_front, front, false);
    if (!before_everyone.empty()) put(before_everyone, everyone, true);
  }
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
  if (parts_->verdicts.size() <= 1 || parts_->cloud.size() <= 1) return true;
  return parts_->own.done() && parts_->chunks_done >= parts_->chunks();
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
    progress("chunk of hard keys", parts_->chunks_done, parts_->chunks());
  }
}

/// The results for the keys as given.
Selection Search::Parts::selection() {
  Selection selection{.keys = std::move(verdicts),
                      .center = cloud.center(),
                      .scale = cloud.scale(),
                      .extents = cloud.extents(),
                      .tolerance = options.tolerance};
  if (!columns && !scaled) return selection;
  selection = columns ? columns->of_given(given, std::move(selection), options.threads)
                      : scaled->multiplied(std::move(selection));
  for (std::size_t row = 0; row < selection.keys.size(); ++row) {
    Verdict& verdict = selection.keys[row];
    if (verdict.proof != Proof::twin) continue;
    // Keys may have become equal when small entries underflowed.
    verdict.residual = verified_residual(given, row, verdict.weights);
    if (verdict.residual == 0.0) continue;
    const bool is_near =
        verdict.residual <= selection.tolerance * selection.scale &&
        are_none(verified_distances(given, row, verdict.weights), selection.extents, selection.tolerance);
    verdict.proof = is_near ? Proof::weights : Proof::none;
    if (!is_near) verdict.answer = Selectability::undecided;
  }
  return selection;
}

Selection Search::result() && {
  NORMSCOPE_ASSERT(done());
  return parts_->selection();
}

}  // namespace normscope::selectability
