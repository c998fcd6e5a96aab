#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <normscope/core/packed.hpp>

#include "quadric.hpp"

namespace normscope::signature {

/// Least squares by conjugate gradients, in the state between two rounds, which can be saved.
///
/// The quadric is |x|² + (found), found's matrix without trace; the values at the points shall be zero.
/// Rounds are in float32; whenever they do not get further, the residual is computed anew in float64 and they
/// start again on what is left. Stops where that changes it by less than 2 %.
class ConjugateGradients {
 public:
  explicit ConjugateGradients(const Design& design);

  /// One round. Returns false once there is nothing to gain.
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
