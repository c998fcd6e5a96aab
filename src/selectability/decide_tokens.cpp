#include "decide_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lead_oracle.hpp"
#include "rows.hpp"

namespace normscope::selectability {
namespace {

/// Number of constraints added per iteration: few at first, later up to half the size of the working set.
constexpr std::size_t fewest_constraints = 16;
constexpr std::size_t most_constraints = 256;

struct TokenSearch {
  Outcome outcome;
  EvaluationPoint evaluation;
  proof::BallSolver solver;
  bool open = true;
  bool solved = false;  ///< whether the solver's own rows have been checked
  double least_tie =
      std::numeric_limits<double>::infinity();  ///< smallest tie threshold of the solver's rows

  /// Starts at the token's own direction.
  TokenSearch(const LeadOracle& oracle, const Start& start, double relative)
      : outcome{.token = start.token},
        evaluation{.token = start.token, .point = own_direction(*oracle.logits, start.token)},
        solver(oracle.logits->width) {
    for (const std::size_t constraint : start.constraints) meet(oracle, constraint, relative);
  }

  TokenSearch(const LeadOracle& oracle, Start start)
      : outcome{.token = start.token},
        evaluation{.token = start.token,
                   .point = std::move(start.point),
                   .within = start.lower + 4.0 * oracle.single->error},
        solver(oracle.logits->width) {
    for (const std::size_t constraint : start.constraints) meet(oracle, constraint, 0.0);
  }

  /// Uses the result of the last evaluation: sets the answer, or the next point.
  void advance(const LeadOracle& oracle, double relative, double gap, double enough) {
    const double tolerance = oracle.logits->tolerance(relative);
    ++outcome.rounds;
    take_standing(oracle);
    if (outcome.lower > 0.0 && (outcome.upper - outcome.lower <= gap || outcome.lower >= enough)) {
      outcome.largest = outcome.upper - outcome.lower <= gap;
      return close(proof::Answer::yes);
    }
    if (outcome.only_inside && gap == std::numeric_limits<double>::infinity()) return close(outcome.answer);
    if (!learn(oracle, relative, std::max(tolerance, evaluation.within)) && solved) {
      outcome.largest = true;
      if (outcome.lower > 0.0) return close(proof::Answer::yes);
      // All violated constraints are in the working set already; only rounding remains.
      return close(proof::Answer::undecided);
    }
    if (solver.rows() == 0) return close(outcome.answer);
    proof::BallSolver::State state = solver.solve(1e-15, 0.25 * std::min(tolerance, least_tie));
    solved = true;
    const double upper = upper_bound(oracle, outcome.token, state.shares);
    if (upper < outcome.upper) {
      outcome.upper = upper;
      outcome.weights = std::move(state.shares);
    }
    if (is_none(oracle, relative)) return close(proof::Answer::no);
    evaluation.point = std::move(state.point);
    // If the lead is below the bound from the working set, new violated constraints exist.
    if (std::isfinite(gap)) evaluation.within = std::max(0.0, state.lower);
    for (double& value : evaluation.point) value *= 1.0 - 0x1p-49;
  }

 private:
  /// A lead at a possible output of the norm. With eps = 0 that is the sphere: a point inside the ball is
  /// replaced by one on the sphere.
  void take_standing(const LeadOracle& oracle) {
    double lower = evaluation.lower;
    if (oracle.logits->sphere) {
      const double distance = distance_to_sphere(*oracle.logits, evaluation.point);
      const bool inside = std::isinf(distance);
      if (inside && lower > 0.0 && !(outcome.lower > 0.0)) {
        std::optional<std::vector<double>> point = lift(oracle, outcome.token, evaluation.point, 1);
        outcome.only_inside = !point;
        if (point) {
          outcome.lower = lead_on_sphere(oracle, outcome.token, *point, 1);
          outcome.witness = std::move(*point);
        }
      }
      lower =
          inside ? -std::numeric_limits<double>::infinity() : lower - 2.0 * oracle.logits->scale * distance;
    }
    if (lower > outcome.lower) {
      outcome.lower = lower;
      outcome.witness = evaluation.point;
      outcome.only_inside = outcome.only_inside && !(lower > 0.0);
    }
  }

  /// Adds the violated constraints: tokens over which the lead is not larger than rounding. Returns false if
  /// none is new.
  bool learn(const LeadOracle& oracle, double relative, double tolerance) {
    bool any = false;
    for (std::size_t k = 0; k < evaluation.constraints.size(); ++k) {
      if (evaluation.leads[k] <= tolerance) any = meet(oracle, evaluation.constraints[k], relative) || any;
    }
    return any;
  }

  /// Whether the upper bound, with the tie threshold of the rows that prove it, shows that the token never
  /// leads.
  [[nodiscard]] bool is_none(const LeadOracle& oracle, double relative) const {
    return outcome.upper <= tie(oracle, outcome.token, outcome.weights, relative);
  }

  /// Adds a constraint; returns false if it is already in the working set.
  bool meet(const LeadOracle& oracle, std::size_t constraint, double relative) {
    if (solver.holds(constraint)) return false;
    if (constraint < oracle.logits->tokens) {
      least_tie = std::min(least_tie, relative * oracle.logits->own[constraint].size);
    }
    std::vector<double> row(oracle.logits->width);
    const double offset = oracle.difference(outcome.token, constraint, row);
    solver.add(constraint, row, offset);
    return true;
  }

  void close(proof::Answer answer) {
    outcome.answer = answer;
    open = false;
  }
};

/// Scores the points of the searches, with room for more constraints as their working sets grow.
void evaluate(const LeadOracle& oracle, std::vector<TokenSearch*>& searches, unsigned threads) {
  std::vector<EvaluationPoint> evaluations;
  for (TokenSearch* const search : searches) {
    evaluations.push_back(std::move(search->evaluation));
    evaluations.back().most_constraints =
        std::clamp(search->solver.rows() / 2, fewest_constraints, most_constraints);
  }
  evaluate_leads(oracle, evaluations, threads);
  for (std::size_t i = 0; i < searches.size(); ++i) searches[i]->evaluation = std::move(evaluations[i]);
}

std::vector<Outcome> solve(const LeadOracle& oracle, std::vector<TokenSearch> searches, double gap,
                           double enough, const ReachOptions& options) {
  run_working_sets(
      searches, options.rounds, options.threads,
      [&](std::vector<TokenSearch*>& open) { evaluate(oracle, open, options.threads); },
      [&](TokenSearch& search) { search.advance(oracle, options.tolerance, gap, enough); });
  std::vector<Outcome> outcomes;
  for (TokenSearch& search : searches) outcomes.push_back(std::move(search.outcome));
  return outcomes;
}

}  // namespace

std::vector<Outcome> decide_tokens(const LeadOracle& oracle, const std::vector<Start>& starts,
                                   const ReachOptions& options) {
  std::vector<TokenSearch> searches;
  searches.reserve(starts.size());
  for (const Start& start : starts) searches.emplace_back(oracle, start, options.tolerance);
  constexpr double any = std::numeric_limits<double>::infinity();
  return solve(oracle, std::move(searches), any, any, options);
}

std::vector<Outcome> largest_leads(const LeadOracle& oracle, std::vector<Start> starts, double gap,
                                   double enough, const ReachOptions& options) {
  std::vector<TokenSearch> searches;
  searches.reserve(starts.size());
  for (Start& start : starts) searches.emplace_back(oracle, std::move(start));
  return solve(oracle, std::move(searches), gap, enough, options);
}

}  // namespace normscope::selectability
