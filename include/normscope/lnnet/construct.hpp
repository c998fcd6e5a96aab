#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
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
  std::uint64_t seed = 1;          ///< of the projections
  bool first_label_wins = false;   ///< equal rows with different labels: keep the first label, or throw
  bool early_stop = true;          ///< stop when every class is one run rather than one cluster
  std::filesystem::path resume{};  ///< state of an unfinished construction, read and written; empty for none
  std::size_t save_every = 8192;   ///< layers between two states
  unsigned threads = 0;
};

/// No pair: the fold is a monotone layer that only moves the clusters apart from a tie.
inline constexpr std::size_t no_row = std::numeric_limits<std::size_t>::max();

/// What one layer does, in the coordinate it folds: the projection for the first, 1/p after that
/// (p itself in paper mode).
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
  std::size_t attempts = 1;    ///< projections and κ tried
  std::size_t correct = 0;     ///< rows that `labels(net, x)` gives the wanted label
  std::size_t total = 0;
};

/// An LN-Net of three neurons a layer for the rows of `x` and their labels.
///
/// Rows that are equal are one sample. A single class needs no layer: the net is a constant head. The
/// result is checked with `labels`; in stable mode other κ and projections are tried until every row is
/// right, in paper mode it may come out wrong, which is the point.
///
/// Shapes    x (rows, width), labels (rows)
/// Errors    Shape if there are no rows, no features or not one label a row; Argument for a number that is
///           not finite, and naming both rows for equal rows with different labels or rows that no projection
///           tells apart; Cancelled, leaving the state in `options.resume`; Format for a state of other data
/// Accuracy  exact: every row gets its label, 60,000 of them as well (test: Construct.ManyRandomLabels);
///           a resumed construction gives the same bits (test: Construct.ResumesToTheSameBits)
/// Cost      O(rows · layers) with about a nanosecond a step; O(rows · width) for each projection
[[nodiscard]] Construction construct(MatrixView<const double> x, std::span<const std::int64_t> labels,
                                     const ConstructOptions& options = {}, const Progress& progress = {});

}  // namespace normscope::lnnet
