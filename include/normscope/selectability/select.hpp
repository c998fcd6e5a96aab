#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/minimum_norm.hpp>
#include <normscope/proof/separate.hpp>

/// Which keys of a set some query can give the strictly highest score: the vertices of the convex hull that
/// have no duplicate. Every answer comes with a certificate; `verify.hpp` checks it from the keys alone.
namespace normscope::selectability {

enum class Selectability { selectable, unselectable, undecided };

/// "selectable", "unselectable" or "undecided".
[[nodiscard]] std::string_view to_string(Selectability answer);

/// What decided a key.
enum class Proof {
  none,
  alone,          ///< the only key: every query selects it
  own_direction,  ///< its own query, the key minus the mean of all keys
  query,          ///< a query that was searched for
  weights,        ///< a convex combination of other keys
  duplicate,      ///< an equal key, which ties with it for every query
  exact           ///< integers, found in rational arithmetic by `decide_exactly`
};

/// The spelling in results: the names above, but "twin" for a duplicate.
[[nodiscard]] std::string_view to_string(Proof proof);

/// All proofs, in the order of results.
inline constexpr std::array every_proof{Proof::alone,   Proof::own_direction, Proof::query,
                                        Proof::weights, Proof::duplicate,     Proof::exact};

struct Verdict {
  Selectability answer = Selectability::undecided;
  Proof proof = Proof::none;
  /// Selectable: a proved lower bound of min_j qᵀ(k_i − k_j)/|q|, the distance of the key from the hull of
  /// the others along its query q; +infinity for the only key. With Proof::exact it may be 0, where q has
  /// more digits than doubles.
  double margin = 0.0;
  /// Not selectable: |Σ λ_j k_j − k_i|, at most `tolerance` times `scale`, and in each column at most
  /// `tolerance` times that column's of `extents`; with Proof::exact what the rounding of λ leaves.
  double residual = 0.0;
  std::vector<double> query{};                ///< of Proof::query and Proof::exact
  std::vector<proof::PointWeight> weights{};  ///< λ >= 0 with sum 1 on other keys
};

struct Options {
  /// A key without a proved query counts as inside the hull of the others if its distance from it is at most
  /// this fraction of `Selection::scale`, and in each column of `Selection::extents`. With 0 only equal keys
  /// are proved not selectable before `decide_exactly`.
  double tolerance = 1e-12;
  /// Directions in which the keys extend less than this fraction of their largest extent are ignored, so that
  /// no query is searched for in the rounding errors of a projection. Columns of very different extents are
  /// measured in units of their own.
  double rank_tolerance = 1e-12;
  unsigned threads = 0;
};

/// The result of rational arithmetic for a key.
struct ExactVerdict {
  std::size_t key = 0;
  /// Whether a hyperplane separates the key, as A, from all other keys, as B: yes for a selectable one.
  proof::ExactSeparation separation{};
};

struct Margins {
  double least = 0.0;
  double median = 0.0;
  double largest = 0.0;
};

struct Selection {
  std::vector<Verdict> keys{};
  std::vector<double> center{};   ///< mean of the keys
  double scale = 0.0;             ///< largest distance of a coordinate from it
  std::vector<double> extents{};  ///< the same of each column
  double tolerance = 0.0;
  std::vector<ExactVerdict> exact{};  ///< of the keys that `decide_exactly` took up, in order

  [[nodiscard]] std::size_t count(Selectability answer) const;
  [[nodiscard]] std::size_t count(Proof proof) const;
  /// Statistics of the finite margins of selectable keys; empty if there are none.
  [[nodiscard]] std::optional<Margins> margins() const;
  /// The query that selects key `index`; empty unless it is selectable.
  ///
  /// Requires  `keys` are the keys of this selection
  [[nodiscard]] std::vector<double> query(MatrixView<const double> all, std::size_t index) const;
};

/// Decides every row of `keys`. First all keys at once by q = k − mean, in blocked products; the remaining
/// ones by the whitened query Σ⁺(k − mean), and then by the distance from the hull of the others. That
/// problem is solved over a working set, to which each pass over all keys adds those that score higher.
/// Products are in float32, and every bound includes their rounding; cases within the rounding are computed
/// again in twice the precision of float64.
///
/// Source    [Brody, Alon, Yahav 2023, section 3.2, theorem 1]; [Grivas, Bogoychev, Lopez 2022] the question
///
/// Shapes    keys (any rows, width >= 1)
///
/// Errors    Shape; Argument for keys that `expect_accepted` refuses
///
/// Accuracy  a selectable key's margin is a lower bound in exact arithmetic (tests:
///           Select.EveryAnswerIsProved, test_answers_hold_in_rational_arithmetic); the answer does not
///           depend on the number of threads (test: Select.ThreadsDoNotChangeABit)
///
/// Cost      at most rows² · width flops where its own query selects every key, and a few passes of
///           rows · width for each other key; memory for `keys` in float32, never rows²
[[nodiscard]] Selection select_keys(MatrixView<const double> keys, const Options& options = {},
                                    const Progress& progress = {});

/// Selects keys in steps, for long runs: `resume` continues from the `state` saved after any step. A state
/// holds the answers that were searched for, with their proofs; those that one product decides are computed
/// again.
class Search {
 public:
  /// Requires  `keys` outlive the search
  ///
  /// Errors    as `select_keys`
  Search(MatrixView<const double> keys, const Options& options);
  Search(Search&& other) noexcept;
  Search& operator=(Search&& other) noexcept;
  ~Search();

  [[nodiscard]] bool done() const;
  void step();
  /// Reports the current phase, the work done in it and its total.
  void report(const Progress& progress) const;
  /// A snapshot of all answers searched for so far, and of what the next step needs.
  [[nodiscard]] std::string state() const;
  /// Continues from a state, to bitwise the same answers; `source` names the state in messages.
  ///
  /// Requires  no step was done
  ///
  /// Errors    Format for bytes that are not a state, are damaged, or hold an answer that its proof does not
  ///           support; Argument for a state of other keys or options
  ///           (test: SelectState.AForgedStateIsRefused)
  void resume(std::string_view state, const std::string& source = "the state");
  /// Requires  done()
  [[nodiscard]] Selection result() &&;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Decides selectability in rational arithmetic where floating point cannot.

/// Decides exactly, for the keys as stored, each key that is undecided in `selection` or unselectable by
/// weights with a residual, starting from those weights. Keys with a proved margin, equal keys and a single
/// key are skipped, since their proofs do not depend on rounding. An exact answer replaces that of the key,
/// with Proof::exact. `Selection::exact` lists every key that was tried, those beyond `limits` with the
/// reason.
///
/// Source    [Dantzig 1963] as in `proof::separate_exactly`, one key against all others
///
/// Shapes    keys: those that `selection` is of
///
/// Errors    Unsupported where built without GMP; Cancelled
///
/// Accuracy  exact (tests: ExactSelect.AgreesWithPlanarHulls, ExactSelect.OneBitDecides,
///           test_exact_answers_hold_in_integers)
///
/// Cost      a key inside the hull of the keys that carry it: one system of their order; others as
///           `proof::separate` and from there `proof::separate_exactly`, with all keys
void decide_exactly(MatrixView<const double> keys, Selection& selection,
                    const proof::ExactLimits& limits = {}, unsigned threads = 0,
                    const Progress& progress = {});

// Checks of certificates from the keys alone, without trust in the search.

/// min_j queryᵀ(k_index − k_j)/|query| over all other keys: a lower bound in exact arithmetic. −infinity for
/// a query that is zero, not finite or of another width; +infinity when there is no other key.
///
/// Cost      O(rows · width); keys near the minimum are computed again in twice the precision
[[nodiscard]] double verified_margin(MatrixView<const double> keys, std::size_t index,
                                     std::span<const double> query);

/// |Σ λ_j k_j − k_index| with λ divided by its sum, an upper bound in exact arithmetic; +infinity for weights
/// that are negative, not finite, without a sum, on the key itself or on one that is not there.
[[nodiscard]] double verified_residual(MatrixView<const double> keys, std::size_t index,
                                       std::span<const proof::PointWeight> weights);

/// These distances for each coordinate by itself; empty for such weights.
[[nodiscard]] std::vector<double> verified_distances(MatrixView<const double> keys, std::size_t index,
                                                     std::span<const proof::PointWeight> weights);

/// Whether the verdict on key `index` is proved for these keys.
///
/// Errors    Unsupported for Proof::exact where built without GMP
[[nodiscard]] bool verify(MatrixView<const double> keys, const Selection& selection, std::size_t index);

/// Whether every verdict is proved.
[[nodiscard]] bool verify(MatrixView<const double> keys, const Selection& selection, unsigned threads = 0);

/// Attention weights of a query on each key, the softmax of its scores:  e^{qᵀk_i} / Σ_j e^{qᵀk_j}.
///
/// Shapes    keys (rows >= 1, width), query (width); result (rows)
///
/// Errors    Shape; Argument for a score that is not finite
///
/// Accuracy  1e-15 for scores of a few units, finite for scores of any size (test: Weights.AreTheSoftmax)
[[nodiscard]] std::vector<double> attention_weights(MatrixView<const double> keys,
                                                    std::span<const double> query);

// How often random keys cannot be selected, over their width and number.

struct RandomTable {
  std::size_t least_width = 3;
  std::size_t most_width = 15;
  std::size_t least_count = 3;
  std::size_t most_count = 60;
  std::size_t runs = 100;  ///< sets of keys per cell
  std::uint64_t seed = 1;
  /// Applied to every set of keys first; nothing when empty.
  std::function<void(MatrixView<double> keys)> transform{};
};

struct RandomCell {
  std::size_t width = 0;
  std::size_t count = 0;
  double any = 0.0;   ///< share of sets with at least one key that cannot be selected
  double mean = 0.0;  ///< mean share of such keys
  std::size_t undecided = 0;
};

/// Decides sets of independent normal keys, cell by cell. The caption of the paper's figure names
/// the mean share, but its colours agree with `any`.
///
/// Source    [Brody, Alon, Yahav 2023, figures 1c and 1d]
///
/// Errors    Argument for ranges that are empty or runs = 0; Cancelled
///
/// Accuracy  the answer does not depend on the number of threads (test: RandomTable.ThreadsDoNotChangeABit)
[[nodiscard]] std::vector<RandomCell> random_table(const RandomTable& table, unsigned threads = 0,
                                                   const Progress& progress = {});

/// A row of the paper's figure: the numbers that its colours stand for, widths 3 to 12.
struct FigureRow {
  std::size_t count = 0;
  std::array<double, 10> shares{};
};

/// Fifteen rows of figure 1c, decoded to 0.01; each of 100 sets of keys per cell.
///
/// Source    [Brody, Alon, Yahav 2023, figure 1c]
[[nodiscard]] const std::vector<FigureRow>& figure_1c();

}  // namespace normscope::selectability
