#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <normscope/core/snapshot.hpp>

#include "quadric.hpp"

namespace normscope::signature {

/// Least squares by conjugate gradients, as an iteration whose state can be saved.
///
/// The quadric is |x|² + `found()`, where the matrix of `found()` has trace zero; its values at the points
/// are minimized. Iterations are in float32. When they stagnate, the residual is computed in float64 and the
/// iteration restarts with it. The fit ends when a restart reduces the residual by less than 2 %.
class ConjugateGradients {
 public:
  explicit ConjugateGradients(const Design& design);

  /// One iteration. Returns false after convergence.
  [[nodiscard]] bool round();

  [[nodiscard]] const Quadric& found() const { return found_; }  ///< as of the last restart
  [[nodiscard]] std::size_t rounds() const { return rounds_; }
  /// Root mean square of the values, as of the last restart.
  [[nodiscard]] double residual() const { return residual_; }
  /// Smallest and largest Ritz value of the preconditioned normal matrix: what is known of its spectrum.
  struct Ritz {
    double least = 0.0, largest = 0.0;
  };
  [[nodiscard]] Ritz ritz() const;

  void save(Packer& to) const;
  /// Errors    Format for a state of other sizes
  void load(Unpacker& from);

 private:
  void restart();
  void precondition(const Quadric& gradient, Quadric& result) const;

  const Design& design_;
  Quadric found_;
  Quadric step_;  ///< since the restart
  Quadric direction_;
  std::vector<double> left_{};  ///< the residual
  double slope_ = 0.0;          ///< gradient · preconditioned gradient
  double residual_ = 0.0;
  std::size_t rounds_ = 0;
  bool started_ = false;
  bool finished_ = false;
  std::vector<double> gains_{};             ///< decrease of |left|² in each round since the restart
  std::vector<double> alphas_{}, betas_{};  ///< of the longest run of rounds, for the Ritz values
  std::vector<double> first_alphas_{}, first_betas_{};
};

}  // namespace normscope::signature
