#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>
#include <normscope/lnnet/net.hpp>

/// Projection Merge: an LN-Net of width 3 that gives each of m samples the label it is told to.
///
/// The samples are projected onto a line. One layer folds the line about the middle of two clusters of
/// one class, which makes them one cluster: with coordinate w,
///   w' = sqrt(1 + ((w − c) / r)²).
/// After at most m − C layers each of the C classes is one run of the line, and thresholds tell them apart.
///
/// Source    [Ni et al. 2024, Algorithm 1]
namespace normscope::lnnet {

/// How the folds are chosen and written as three neurons.
enum class Mode : std::uint8_t {
  /// As published: folds about the two smallest values of a class with r half their distance, in p = 1/w,
  /// alternating ends. Needs about 0.065 m decimal digits, so it fails beyond some 130 samples.
  paper,
  /// Folds the near end only, with r smaller by a factor κ, refuses folds that bring two classes together,
  /// and writes p into one neuron, where a small number keeps its relative accuracy.
  stable,
};

struct ConstructOptions {
  Mode mode = Mode::stable;
  std::uint64_t seed = 1;         ///< of the projections
  bool first_label_wins = false;  ///< equal rows with different labels: keep the first label, or throw
  /// What to compute in. Without one: float64, and in stable mode double-double where that fails.
  std::optional<Precision> precision{};
  double eps = 0.0;                ///< of the norm the net is for, at most 1; see `construct`
  bool early_stop = true;          ///< stop when every class is one run rather than one cluster
  std::filesystem::path resume{};  ///< state of an unfinished construction, read and written; empty for none
  std::size_t save_every = 8192;   ///< layers between two states
  unsigned threads = 0;
};

/// No pair: the fold is a monotone layer that only moves the clusters apart from a tie.
inline constexpr std::size_t no_row = std::numeric_limits<std::size_t>::max();

/// What one layer does, in the coordinate it folds: the projection for the first, 1/p after that
/// (p itself in paper mode). The projection is that of the rows over 2^k where `construct` scales them.
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
  std::size_t distinct = 0;    ///< rows that differ
  std::size_t relabelled = 0;  ///< rows that took the label of an equal row before them
  std::size_t attempts = 1;    ///< κ, projections and precisions tried
  std::size_t correct = 0;     ///< rows that `labels(net, x)` gives the wanted label
  std::size_t total = 0;
};

/// An LN-Net of three neurons a layer for the rows of `x` and their labels.
///
/// Rows that are equal are one sample. A single class needs no layer: the net is a constant head. The
/// result is checked with `labels`, which shares nothing with what makes it; in stable mode other κ, other
/// projections and then double-double are tried until every row is right, in paper mode it may come out
/// wrong, which is the point.
///
/// The construction is for a norm without eps. For one with, all weights and biases of a layer are
/// multiplied by 2^128, which LN does not see and beside which eps is nothing.
///
/// Rows far from one in size are divided by a power of two 2^k, and the first layer's weights with them, so
/// that the squares of its norm stay in range: 2^k x and x get the same net but for that
/// (test: Construct.RowsOfEverySize). Beside an eps they must not be below 2^-860, and double-double takes
/// none beyond 2^985.
///
/// Shapes    x (rows, width), labels (rows)
/// Errors    Shape if there are no rows, no features or not one label a row; Argument for a number that is
///           not finite or an eps beyond 0 to 1, naming both rows for equal rows with different labels, and
///           for rows that no projection tells apart; Cancelled, leaving the state in `options.resume`;
///           Format for a state of other data
/// Accuracy  exact: every row gets its label, 60,000 of them as well (test: Construct.ManyRandomLabels);
///           in double-double, samples 10^-25 of the others' distance apart (test: Construct.CrowdedSamples);
///           a resumed construction gives the same bits (test: Construct.ResumesToTheSameBits)
/// Cost      O(rows · layers) with about a nanosecond a step; O(rows · width) for each projection
[[nodiscard]] Construction construct(MatrixView<const double> x, std::span<const std::int64_t> labels,
                                     const ConstructOptions& options = {}, const Progress& progress = {});

}  // namespace normscope::lnnet
