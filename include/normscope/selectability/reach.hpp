#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/proof/ball.hpp>
#include <normscope/selectability/logits.hpp>

/// Which tokens a model can ever output: those whose logit is strictly the largest somewhere.
namespace normscope::selectability {

/// Answer, bounds and proofs of one token.
struct TokenReach {
  bool done = false;
  /// After the norm: for u in the unit ball, or on the unit sphere where eps = 0.
  proof::Answer answer = proof::Answer::undecided;
  /// Without the norm's bound, for u of any length: whether the token is argmaxable [Grivas et al. 2022].
  proof::Answer unbounded = proof::Answer::undecided;
  /// Proved: the logit leads by at least `lower` at the witness, and nowhere by more than `upper`.
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  /// |u| <= 1, with eps = 0 within 2⁻³⁰ of 1; empty where it is the token's own row divided by its length.
  std::vector<double> witness{};
  /// Weights on other tokens that prove `upper`; empty where `runner_up` alone proves it.
  std::vector<proof::PointWeight> weights{};
  /// Weights on other tokens that prove that it is not argmaxable; the weight on the index `tokens` is that
  /// of the constraint that the length is positive.
  std::vector<proof::PointWeight> unbounded_weights{};
  /// If argmaxable but not reachable: a point (u, s), s > 0, of the unit ball in one more dimension at which
  /// the token's row (A, stretch a₀) of `without_ball` leads.
  std::vector<double> unbounded_witness{};
  /// The token with the highest other logit in the direction of the token's own row.
  std::size_t runner_up = 0;
  /// eps = 0, where the norm gives points of the sphere only: the token leads at some point inside the ball,
  /// and a point of the sphere was neither found nor excluded. The answer is undecided.
  bool only_inside = false;
};

/// What a budget of 1, as the command and Python take it, allows: a billion multiplications.
inline constexpr double budget_unit = 1e9;

struct ReachOptions {
  unsigned threads = 0;
  /// A token is unreachable if its lead is proved to be at most this times the size of the rows in the proof,
  /// which is at most the scale. One that a point shows to lead is reachable, by however little: a token that
  /// leads by less than that may be either (test: Reach.ToleranceOverrulesNoPointWhereATokenLeads).
  double tolerance = 1e-12;
  /// Whether the product of all tokens with all tokens is computed first. It takes tokens² · width
  /// operations, however few tokens are not `done`.
  bool screen = true;
  std::size_t rounds = 200;  ///< most iterations for a token, which then stays undecided
  Progress progress{};
  /// Work after which no further batch of tokens is started, counted anew by `decide` (after the first
  /// product), for the smallest leads and for the probabilities; the remaining tokens and steps stay as they
  /// are. The unit is a multiplication, eight of float32 counting as one. Unlike time, it gives the same
  /// result on every machine; with several processes, a batch is larger.
  double work = std::numeric_limits<double>::infinity();
  /// Processes that share the tokens. Each holds all logits, and gets the same result, bit for bit, whatever
  /// their number.
  const Team* team = &alone();
};

/// Decides every token that is not `done`, within the limit of work. `tokens` is empty or the
/// result of an interrupted call. One matrix product, half of A Aᵀ, decides the tokens that lead in the
/// direction of their own row. For each other token, linear inequalities over the ball are solved for a
/// working set of rows, until a point or weights prove an answer.
///
/// Errors    Cancelled, with `tokens` holding what is decided so far; Shape
///
/// Accuracy  every bound is proved, including the rounding of float32 where that is used (tests:
///           Reach.EveryAnswerIsProved, Reach.AgreesWithBruteForceOverTheDisc)
///
/// Cost      tokens² width for the product; then tokens · width per round and undecided token. Memory is
///           never tokens²
void decide(const Logits& logits, std::vector<TokenReach>& tokens, const ReachOptions& options);

/// The reachable tokens, the smallest proved lead first.
[[nodiscard]] std::vector<std::size_t> reachable_by_lead(const std::vector<TokenReach>& tokens);

/// Narrows the bounds of the leads of the reachable tokens `asked` to 1e-6 of the scale, as far as rounding
/// allows.
///
/// Errors    Cancelled
///
/// Cost      tokens · width per round and token
void sharpen(const Logits& logits, std::vector<TokenReach>& tokens, const std::vector<std::size_t>& asked,
             const ReachOptions& options);

/// Narrows the bounds of the `wanted` reachable tokens that are closest to unreachable, those whose largest
/// lead is smallest, until no other token can be among them. `sharp` tells for each token whether its bounds
/// are final, `worked` how many tokens have been processed: an interrupted call continues from there.
///
/// Returns   number of tokens that might still be among them: 0, unless work ran out or `most` were processed
///
/// Errors    Cancelled
///
/// Accuracy  where it returns 0, no other reachable token has a smaller largest lead, beyond the 1e-6 of the
///           scale of `sharpen` (test: Survey.NoTokenIsNearerThanThoseNamed)
[[nodiscard]] std::size_t sharpen_nearest(const Logits& logits, std::vector<TokenReach>& tokens,
                                          std::vector<bool>& sharp, std::size_t& worked, std::size_t wanted,
                                          std::size_t most, const ReachOptions& options);

/// The point of the ball at which a reachable token leads by `lower`.
///
/// Requires  answer yes, from `decide`: for a witness that is empty, the direction of the token's row is
///           returned
[[nodiscard]] std::vector<double> witness(const Logits& logits, std::size_t token, const TokenReach& reach);

/// The weights on other tokens that prove `upper`; none for one that is infinite.
[[nodiscard]] std::vector<proof::PointWeight> upper_weights(const TokenReach& reach);

/// How leads without the norm's bound are measured: rows are (A, stretch a₀), where the stretch is a power of
/// two that brings offsets to the rows' size, and a lead of at most `tie` counts as a tie.
struct WithoutBall {
  double stretch = 1.0;
  double tie = 0.0;
};
[[nodiscard]] WithoutBall without_ball(const Logits& logits, double tolerance);

/// Those of the tokens `asked` whose answers and bounds are not proved for these logits; trusts nothing else
/// in `tokens` (test: Reach.ForgedProofsAreFound).
///
/// Errors    Cancelled
///
/// Cost      tokens · width for each
[[nodiscard]] std::vector<std::size_t> unproved(const Logits& logits, const std::vector<TokenReach>& tokens,
                                                const std::vector<std::size_t>& asked,
                                                const ReachOptions& options);

/// Whether answer and bounds of one token are proved.
[[nodiscard]] bool verify(const Logits& logits, std::size_t token, const TokenReach& reach,
                          double tolerance = 1e-12);

/// Bounds of the largest probability that the softmax of the logits gives a token anywhere in the ball.
struct Probability {
  double lower = 0.0;
  double upper = 1.0;
  std::vector<double> point{};    ///< |u| <= 1 that attains `lower`; empty if the witness of the lead does
  std::vector<double> tangent{};  ///< |u| <= 1 whose gradient proves `upper`; empty if the lead proves it
  /// Probabilities that prove `upper` in place of those at `tangent`, where these depend on rounding; see
  /// `proof::LogSoftmaxMaximum`.
  std::vector<proof::PointWeight> weights{};

  /// The tangent point to state as proof of `upper`; empty if `weights` or the lead prove it.
  [[nodiscard]] std::span<const double> proving_tangent() const {
    return weights.empty() ? std::span<const double>(tangent) : std::span<const double>();
  }
};

/// The bounds that follow from the lead alone: with a lead of at least l somewhere and at most m everywhere,
///   1/(1 + (tokens − 1) e^−l) <= p <= 1/(1 + e^−m).
///
/// Accuracy  proved (test: Probability.LeadsBoundProbabilities)
[[nodiscard]] Probability probability_from_lead(const TokenReach& reach, std::size_t tokens);

struct ProbabilityOptions {
  double gap = 1e-3;             ///< gap between the bounds of a log-probability
  std::size_t iterations = 300;  ///< per token; see `proof::largest_log_softmax`
  unsigned threads = 0;
  Progress progress{};
};

/// The largest probability of each token `asked`, log-probabilities to `gap`; see
/// `proof::largest_log_softmax`. With eps = 0 lower bounds are attained on the sphere; upper bounds are
/// those of the ball, larger where a point inside is better.
///
/// Errors    Cancelled; Shape
///
/// Cost      a few to 300 iterations of 4 tokens width operations per token
[[nodiscard]] std::vector<Probability> largest_probabilities(const Logits& logits,
                                                             std::span<const std::size_t> asked,
                                                             const ProbabilityOptions& options);

/// The bounds that given points prove, a point and a tangent of each token in turn, without searching for
/// others: for the points that `largest_probabilities` found, bitwise the same bounds.
///
/// Requires  eps > 0
///
/// Errors    Shape
///
/// Accuracy  (test: Survey.PointsOfProbabilitiesProveTheSameBoundsAgain)
[[nodiscard]] std::vector<Probability> prove_probabilities(const Logits& logits,
                                                           std::span<const std::size_t> asked,
                                                           const std::vector<std::vector<double>>& points,
                                                           unsigned threads);

/// What is known of a whole vocabulary: each token's answer, its largest lead and its largest probability.
struct Survey {
  std::vector<TokenReach> tokens{};
  std::vector<Probability> probabilities{};
  std::vector<std::size_t> refined{};  ///< tokens whose probabilities were computed, not only bounded
  std::vector<bool> sharp{};           ///< tokens whose largest lead was computed
  std::size_t worked = 0;              ///< tokens processed for that
  std::size_t wanted = 0;              ///< number of nearest tokens requested
  /// Work that was skipped because work ran out, as numbers of tokens.
  struct LeftOut {
    std::size_t tokens = 0;         ///< tokens that are not decided
    std::size_t leads = 0;          ///< tokens that might be among the nearest
    std::size_t probabilities = 0;  ///< tokens whose probability was requested

    [[nodiscard]] bool nothing() const { return tokens == 0 && leads == 0 && probabilities == 0; }
  };
  LeftOut left_out{};

  /// Tokens decided with this answer, in order.
  [[nodiscard]] std::vector<std::size_t> with(proof::Answer answer) const;
  /// Up to `most` reachable tokens with the smallest largest lead, in the order of its upper bound, as far as
  /// leads were computed.
  [[nodiscard]] std::vector<std::size_t> nearest(std::size_t most) const;
  /// Up to `most` tokens with the smallest bound on their probability, the smallest first.
  [[nodiscard]] std::vector<std::size_t> least_probable(std::size_t most) const;
  /// Number of tokens that cannot have the largest logit for a hidden state of any length.
  [[nodiscard]] std::size_t unargmaxable() const;
};

/// Which largest probabilities `finish` computes: only those requested, the extreme ones (all in a small
/// vocabulary), or all.
enum class Probabilities { quick, extremes, full };

struct SurveyOptions {
  /// Number of tokens with the smallest largest lead, and with the smallest largest probability, to compute.
  std::size_t nearest = 20;
  Probabilities probabilities = Probabilities::extremes;
  std::vector<std::size_t> asked{};  ///< tokens whose largest probability is always computed
  double probability_gap = 1e-3;     ///< gap between the bounds of a log-probability
};

/// After `decide`: computes the largest leads of the tokens that lead least, and the largest probabilities
/// requested, within `options.work`. Continues from what an interrupted call left in the survey, to the same
/// numbers. In an unfinished survey, `bound_by_leads` fills in the rest.
///
/// Errors    Cancelled
///
/// Accuracy  (tests: Survey.NoTokenIsNearerThanThoseNamed, Survey.LeftOutWorkIsCountedAndCompletedLater)
///
/// Cost      tokens · width per round and token computed
void finish_survey(const Logits& logits, Survey& survey, const SurveyOptions& wanted,
                   const ReachOptions& options);

/// Bounds by its lead alone every probability that was not computed.
void bound_by_leads(Survey& survey);

/// The state of an interrupted survey, saved in a snapshot for its logits and tolerance: the proofs of all
/// decided tokens' answers and bounds, the tokens whose leads were computed, and the points that prove
/// largest probabilities. Tokens that lead at their own direction are not saved, because one product decides
/// them again. A resumed run writes the same bytes. Of a team, the first member reads and writes the file.
class ReachState {
 public:
  /// No file if the name is empty.
  ///
  /// Requires  `logits` outlive the state
  ReachState(std::filesystem::path path, const Logits& logits, ReachOptions options, double probability_gap);

  /// Whether there is a file to resume from.
  [[nodiscard]] bool exists() const;
  /// Errors    Io; Format for a file that is not a state, is damaged, or has a proof that does not hold for
  ///           the logits; Argument for one of other logits
  [[nodiscard]] Survey load() const;
  /// Does nothing if there is no file name.
  ///
  /// Errors    Io
  void save(const Survey& survey) const;

 private:
  std::filesystem::path path_;
  const Logits& logits_;
  ReachOptions options_;
  double probability_gap_;
  Digest fingerprint_{};
};

}  // namespace normscope::selectability
