#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <normscope/nets/train.hpp>

#include "frame/experiment.hpp"

/// Folds in training: a norm's inputs, the image of the unit sphere under a linear layer, pass the origin.
namespace normscope::lab::ln_nets {

/// How the image of the unit sphere under x ↦ Wx + b lies around the origin.
struct Fold {
  double distance = 0.0;  ///< |W⁻¹b|, the length of the x that is mapped to the origin
  /// Degree of x ↦ u(Wx + b) on the sphere, in the plane its winding number: the sign of det W if distance <
  /// 1, else 0, which is a fold.
  int degree = 0;
};

/// Requires  as many inputs as outputs, W not singular
///
/// Accuracy  degrees against an integral over the sphere (test: Folds.DegreesAreThoseOfTheIntegral)
[[nodiscard]] Fold fold_of(const nets::Layer& layer);

/// Scales the bias of the net's second layer so that its fold's distance is at least `least` and at most
/// `most`.
///
/// Requires  two layers or more of one width, least <= most
void keep_fold(nets::Trainer& trainer, double least, double most);

/// Steps whose degree differs from that of the step before.
[[nodiscard]] std::vector<std::size_t> changes(std::span<const int> degrees);

/// The share of windows of `length` steps, from step 1 on and ending at `first` at the latest, that have
/// fewer of the ascending `events` than the window at `first`; ties count half. Empty if there is no such
/// window.
[[nodiscard]] std::optional<double> rank_of_window(std::span<const std::size_t> events, std::size_t first,
                                                   std::size_t length);

/// Trains the run's net of two spherical norms ("start" and "least": the distance of the second layer's fold
/// at the beginning, and the least one, to which it is moved after a step that ends below; 0: as it is).
/// Measures "accuracy" and "changes" of the degree every 100 steps, and at the end "test_accuracy", "to_95"
/// (as `train`), "degree", "distance", "changes_to_95" and, if there is a transition (`nets::transitions`;
/// the largest):
///   "transition"        its first step
///   "rank"              `rank_of_window` of changes within 100 steps of its steepest window, among windows
///                       before it
///   "gradient_rise"     ln of the median length of the gradient in the steepest window over that of the 200
///                       steps before
/// and, if the degree changes before step to_95, "loss_after_change" and "loss_elsewhere", the mean change of
/// ln loss in ten steps after a change and after other steps.
///
/// Errors    as nets::Trainer; it is performed at once and saves no progress
void train_with_folds(Run& run, std::shared_ptr<const nets::Dataset> data, const nets::Dataset& test);

}  // namespace normscope::lab::ln_nets
