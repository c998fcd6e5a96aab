#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/nets/net.hpp>

/// Projection Merge: constructs an LN-Net of width 3 that gives each of m samples its label.
///
/// The samples are projected onto a line. One layer folds the line about the midpoint between two clusters of
/// one class, which merges them; with coordinate w,
///   w' = sqrt(1 + ((w − c) / r)²).
/// After at most m − C layers each of the C classes is one run of the line, and thresholds separate the
/// classes.
///
/// Source    [Ni et al. 2024, Algorithm 1]
namespace normscope::nets {

/// How folds are chosen and represented by three neurons.
enum class Mode : std::uint8_t {
  /// As published: folds about the two smallest values of a class with r half their distance, in p = 1/w, at
  /// alternating ends. Needs about 0.065 m decimal digits, so it fails beyond about 130 samples.
  paper,
  /// Folds only the near end, with r smaller by a factor κ, rejects folds that bring two classes together,
  /// and stores p in one neuron, which keeps the relative accuracy of small numbers.
  stable,
};

struct ConstructOptions {
  Mode mode = Mode::stable;
  std::uint64_t seed = 1;         ///< of the projections
  bool first_label_wins = false;  ///< equal rows with different labels: keep the first label, or throw
  /// Precision of the computation. If empty: float64, and in stable mode double-double if that fails.
  std::optional<Precision> precision{};
  double eps = 0.0;                ///< eps of the norm the net is for, at most 1; see `construct`
  bool early_stop = true;          ///< stop when every class is one run rather than one cluster
  std::filesystem::path resume{};  ///< state of an unfinished construction, read and written; empty for none
  std::size_t save_every = 8192;   ///< layers between two states
  unsigned threads = 0;
};

/// Without a pair, the fold is a monotone layer that only breaks ties between clusters.
inline constexpr std::size_t no_row = std::numeric_limits<std::size_t>::max();

/// The fold of one layer, in the coordinate that it folds: the projection for the first, 1/p after that (p
/// itself in paper mode). The projection is that of the rows divided by 2^k if `construct` scales them.
struct Fold {
  std::size_t first = no_row;   ///< a row of the cluster on the near side
  std::size_t second = no_row;  ///< a row of the one it is merged with
  double midpoint = 0.0;
  double radius = 0.0;
  double gap = 0.0;  ///< smallest distance, in units of half the pair's, between classes the fold interleaves
  std::size_t runs = 0;  ///< of equal labels along the line after the layer
};

struct Construction {
  Net net;
  std::vector<Fold> folds;     ///< one a layer
  std::size_t distinct = 0;    ///< number of distinct rows
  std::size_t relabelled = 0;  ///< rows that took the label of an equal earlier row
  std::size_t attempts = 1;    ///< combinations of κ, projection and precision tried
  std::size_t correct = 0;     ///< rows that `labels(net, x)` gives the requested label
  std::size_t total = 0;
};

/// Constructs an LN-Net of three neurons per layer for the rows of `x` and their labels.
///
/// Equal rows count as one sample. A single class needs no layer: the net is a constant head. The result is
/// checked with `labels`, which shares no code with the construction. In stable mode other κ, other
/// projections and then double-double are tried until every row is right; in paper mode the result may be
/// wrong, which demonstrates the limits of the published algorithm.
///
/// The construction assumes a norm without eps. For one with eps, all weights and biases of a layer are
/// multiplied by 2^128, to which LN is invariant and next to which eps is negligible.
///
/// Rows far from one in size are divided by a power of two 2^k, and the first layer's weights with them, so
/// that the squares of its norm stay in range: the nets for 2^k x and x differ only in that factor (test:
/// Construct.RowsOfEverySize). With an eps, rows must not be below 2^-860, and in double-double not beyond
/// 2^985.
///
/// Shapes    x (rows, width), labels (rows)
///
/// Errors    Shape if there are no rows, no features or not one label a row; Argument for a number that is
///           not finite or an eps beyond 0 to 1, naming both rows for equal rows with different labels, and
///           for rows that no projection tells apart; Cancelled, leaving the state in `options.resume`;
///           Format for a state of other data
///
/// Accuracy  exact: every row gets its label, also for 60,000 rows (test: Construct.ManyRandomLabels); in
///           double-double for samples at 10^-25 of the others' distance (test: Construct.CrowdedSamples); a
///           resumed construction gives the same bits (test: Construct.ResumesToTheSameBits)
///
/// Cost      O(rows · layers), about a nanosecond per step; O(rows · width) for each projection
[[nodiscard]] Construction construct(MatrixView<const double> x, std::span<const std::int64_t> labels,
                                     const ConstructOptions& options = {}, const Progress& progress = {});

/// Random labels of `classes` classes.
[[nodiscard]] std::vector<std::int64_t> random_labels(std::size_t rows, std::size_t classes,
                                                      std::uint64_t seed);

// The effect of Projection Merge on samples, layer by layer, for plotting.

/// A linear layer to three neurons, then LN. The neurons are U z with z = (wᵀx − midpoint, radius), and LN
/// gives √3 U z/|z|, where the columns of U are an orthonormal basis of the plane orthogonal to (1, 1, 1).
/// The second coordinate of z/|z| depends on |wᵀx − midpoint| only: the layer folds the line at the midpoint.
///
/// Source    [Ni et al. 2024, XOR by one layer]
///
/// Errors    Shape for a direction without entries
///
/// Accuracy  against the definition (test: MergeTrace.OneFoldSolvesExclusiveOr)
[[nodiscard]] Layer one_fold(std::span<const double> direction, double midpoint, double radius);

/// The point of the unit circle that three neurons represent after LN; `mode` determines the signs of U.
[[nodiscard]] std::array<double, 2> circle_point(Mode mode, std::span<const double> neurons);

/// The coordinate of `place` after a fold of the line: with h = sqrt(1 + ((place − midpoint)/radius)²), 1/h
/// in paper mode and h/√2, the inverse of the third neuron, in stable mode.
[[nodiscard]] double folded_place(Mode mode, const Fold& fold, double place);

struct MergeTrace {
  std::size_t rows = 0;
  std::size_t layers = 0;
  std::vector<double> direction{};  ///< of the projection
  /// (layers + 1) × rows: position on the line before each fold and after the last.
  std::vector<double> places{};
  std::vector<double> neurons{};  ///< layers × rows × 3
  std::vector<double> circle{};   ///< layers × rows × 2, position on the unit circle
};

/// The positions for a `construction` made in `mode` without eps, for rows of `x`. They are computed by
/// evaluating the net (`trace`), not taken from the construction's predictions.
///
/// Shapes    x (rows, net.in())
///
/// Errors    Shape, Argument: see `evaluate`
///
/// Accuracy  for a place x before a fold and h as in `folded_place`, the place x' behind it is within
///           1e-14 ((1 + |x| + |midpoint|)/radius + h x') of `folded_place`
///           (test: MergeTrace.PlacesAreFoldedLayerByLayer)
[[nodiscard]] MergeTrace merge_trace(const Construction& construction, Mode mode, MatrixView<const double> x);

}  // namespace normscope::nets
