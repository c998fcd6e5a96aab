#include "contest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/parallel.hpp>

#include "sphere.hpp"

namespace normscope::selectability {
namespace {

bool has_two_points(const Field& field) {
  return field.logits->sphere && field.logits->dimension() == 1 && !field.last_is_positive;
}

/// In one dimension the sphere consists of two points; the token is checked at each.
Outcome decide_two_points(const Field& field, std::size_t token, double relative) {
  Outcome outcome{.token = token};
  double most = -std::numeric_limits<double>::infinity();
  for (const std::vector<double>& point : two_points(*field.logits)) {
    std::vector<Standing> standing(1);
    standing[0].token = token;
    standing[0].point = point;
    standing[0].within = 4.0 * field.logits->scale;  // names at least one token, however low its logit
    look(field, standing, 1);
    const double lower =
        standing[0].lower - 2.0 * field.logits->scale * distance_to_sphere(*field.logits, point);
    if (lower > outcome.lower) {
      outcome.lower = lower;
      outcome.witness = point;
    }
    outcome.ends.push_back(standing[0].rivals.front());
    most = std::max(most, lead_at_most(field, token, point, outcome.ends.back()));
  }
  outcome.upper = most;
  // The tie threshold counts the rows of both tokens.
  const std::vector<convex::Share> ends = {{outcome.ends[0], 0.5}, {outcome.ends[1], 0.5}};
  outcome.answer = outcome.lower > 0.0                                  ? convex::Answer::yes
                   : outcome.upper <= tie(field, token, ends, relative) ? convex::Answer::no
                                                                        : convex::Answer::undecided;
  return outcome;
}

/// Number of constraints added per iteration: few at first, later up to half the size of the working set.
constexpr std::size_t fewest_rivals = 16;
constexpr std::size_t most_rivals = 256;

struct Contender {
  Outcome outcome;
  Standing standing;
  convex::BallSolver solver;
  bool open = true;
  bool solved = false;  ///< whether the solver's own rows have been checked
  double least_tie = std::numeric_limits<double>::infinity();  ///< of the solver\'s rows

  Contender(const Field& field, std::size_t token)
      : outcome{.token = token},
        standing{.token = token, .point = own_direction(*field.logits, token)},
        solver(field.logits->width) {}

  Contender(const Field& field, Start start)
      : outcome{.token = start.token},
        standing{.token = start.token,
                 .point = std::move(start.point),
                 .within = start.lower + 4.0 * field.single->error},
        solver(field.logits->width) {
    for (const std::size_t rival : start.rivals) meet(field, rival, 0.0);
  }

  /// Uses the result of the last evaluation: sets the answer, or the next point.
  void advance(const Field& field, double relative, double gap, double enough) {
    const double tolerance = field.logits->tolerance(relative);
    ++outcome.rounds;
    take_standing(field);
    if (outcome.lower > 0.0 && (outcome.upper - outcome.lower <= gap || outcome.lower >= enough)) {
      outcome.largest = outcome.upper - outcome.lower <= gap;
      return close(convex::Answer::yes);
    }
    if (outcome.only_inside && gap == std::numeric_limits<double>::infinity()) return close(outcome.answer);
    if (!learn(field, relative, std::max(tolerance, standing.within)) && solved) {
      outcome.largest = true;
      if (outcome.lower > 0.0) return close(convex::Answer::yes);
      // All violated constraints are in the working set already; only rounding remains.
      outcome.answer = is_none(field, relative) ? convex::Answer::no : convex::Answer::undecided;
      return close(outcome.answer);
    }
    if (solver.rows() == 0) return close(outcome.answer);
    convex::BallSolver::State state = solver.solve(1e-15, 0.25 * std::min(tolerance, least_tie));
    solved = true;
    const double upper = upper_bound(field, outcome.token, state.shares);
    if (upper < outcome.upper) {
      outcome.upper = upper;
      outcome.weights = std::move(state.shares);
    }
    if (is_none(field, relative)) return close(convex::Answer::no);
    standing.point = std::move(state.point);
    // If the lead is below the bound from the working set, new violated constraints exist.
    if (std::isfinite(gap)) standing.within = std::max(0.0, state.lower);
    for (double& value : standing.point) value *= 1.0 - 0x1p-49;
  }

 private:
  /// A lead at a possible output of the norm. With eps = 0 that is the sphere: a point inside the ball is
  /// replaced by one on the sphere.
  void take_standing(const Field& field) {
    double lower = standing.lower;
    const bool sphere = field.logits->sphere && !field.last_is_positive;
    if (sphere) {
      const double distance = distance_to_sphere(*field.logits, standing.point);
      const bool inside = std::isinf(distance);
      if (inside && lower > 0.0 && !(outcome.lower > 0.0)) {
        std::optional<std::vector<double>> point = lift(field, outcome.token, standing.point, 1);
        outcome.only_inside = !point;
        if (point) {
          outcome.lower = lead_on_sphere(field, outcome.token, *point, 1);
          outcome.witness = std::move(*point);
        }
      }
      lower =
          inside ? -std::numeric_limits<double>::infinity() : lower - 2.0 * field.logits->scale * distance;
    }
    if (lower > outcome.lower) {
      outcome.lower = lower;
      outcome.witness = standing.point;
      outcome.only_inside = outcome.only_inside && !(lower > 0.0);
    }
  }

  /// Adds the violated constraints: tokens over which the lead is not larger than rounding. Returns false if
  /// none is new.
  bool learn(const Field& field, double relative, double tolerance) {
    bool any = false;
    for (std::size_t k = 0; k < standing.rivals.size(); ++k) {
      if (standing.leads[k] <= tolerance) any = meet(field, standing.rivals[k], relative) || any;
    }
    return any;
  }

  /// Whether the upper bound, with the tie threshold of the rows that prove it, shows that the token never
  /// leads.
  [[nodiscard]] bool is_none(const Field& field, double relative) const {
    return outcome.upper <= tie(field, outcome.token, outcome.weights, relative);
  }

  /// Adds a constraint; returns false if it is already in the working set.
  bool meet(const Field& field, std::size_t rival, double relative) {
    if (solver.holds(rival)) return false;
    if (rival < field.logits->tokens) {
      least_tie = std::min(least_tie, relative * field.logits->own[rival].size);
    }
    std::vector<double> row(field.logits->width);
    const double offset = field.difference(outcome.token, rival, row);
    solver.add(rival, row, offset);
    return true;
  }

  void close(convex::Answer answer) {
    outcome.answer = answer;
    open = false;
  }
};

std::vector<Outcome> hold(const Field& field, std::vector<Contender> contenders, double gap, double enough,
                          const ReachOptions& options) {
  for (std::size_t round = 0; round < options.rounds; ++round) {
    std::vector<Contender*> open;
    std::vector<Standing> standings;
    for (Contender& contender : contenders) {
      if (!contender.open) continue;
      open.push_back(&contender);
      standings.push_back(std::move(contender.standing));
      standings.back().most_rivals = std::clamp(contender.solver.rows() / 2, fewest_rivals, most_rivals);
    }
    if (open.empty()) break;
    look(field, standings, options.threads);
    for (std::size_t i = 0; i < open.size(); ++i) open[i]->standing = std::move(standings[i]);
    parallel_for(open.size(), 1, options.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) open[i]->advance(field, options.tolerance, gap, enough);
    });
  }
  std::vector<Outcome> outcomes;
  for (Contender& contender : contenders) outcomes.push_back(std::move(contender.outcome));
  return outcomes;
}

}  // namespace

std::vector<Outcome> contest(const Field& field, const std::vector<std::size_t>& tokens,
                             const ReachOptions& options) {
  if (has_two_points(field)) {
    std::vector<Outcome> outcomes;
    for (const std::size_t token : tokens) {
      outcomes.push_back(decide_two_points(field, token, options.tolerance));
    }
    return outcomes;
  }
  std::vector<Contender> contenders;
  contenders.reserve(tokens.size());
  for (const std::size_t token : tokens) contenders.emplace_back(field, token);
  constexpr double any = std::numeric_limits<double>::infinity();
  return hold(field, std::move(contenders), any, any, options);
}

std::vector<Outcome> largest_leads(const Field& field, std::vector<Start> starts, double gap, double enough,
                                   const ReachOptions& options) {
  if (has_two_points(field)) {
    std::vector<std::size_t> tokens;
    for (const Start& start : starts) tokens.push_back(start.token);
    std::vector<Outcome> outcomes = contest(field, tokens, options);
    for (Outcome& outcome : outcomes) outcome.largest = true;
    return outcomes;
  }
  std::vector<Contender> contenders;
  contenders.reserve(starts.size());
  for (Start& start : starts) contenders.emplace_back(field, std::move(start));
  return hold(field, std::move(contenders), gap, enough, options);
}

}  // namespace normscope::selectability
