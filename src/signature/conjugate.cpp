#include "quadric.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>

namespace normscope::signature {
namespace {

/// Number of iterations whose gains are added to decide whether the fit has converged.
constexpr std::size_t looked_back = 5;
/// Fraction of |left|² that these iterations must remove for the fit to continue.
constexpr double worth_it = 1e-3;
/// Fraction of the residual at a restart below which float32 has no more correct digits.
constexpr double end_of_float = 1e-12;
/// Fraction of the residual that a restart must remove.
constexpr double worth_a_restart = 0.02;
constexpr std::size_t most_rounds = 2000;

double squared_length(const std::vector<double>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

}  // namespace

ConjugateGradients::ConjugateGradients(const Design& design)
    : design_(design), found_(design.width()), step_(design.width()), direction_(design.width()) {}

void ConjugateGradients::precondition(const Quadric& gradient, Quadric& result) const {
  // For Gaussian points of covariance 1 the normal matrix is 2 n on matrices without trace, n on the rest.
  const double count = static_cast<double>(design_.rows());
  result = gradient;
  for (double& entry : result.matrix) entry /= 2.0 * count;
  for (double& entry : result.linear) entry /= count;
  result.constant /= count;
}

void ConjugateGradients::restart() {
  const std::size_t width = design_.width();
  found_.add(1.0, step_);
  Quadric whole = found_;
  for (std::size_t i = 0; i < width; ++i) whole.matrix[i * width + i] += 1.0;
  design_.values(whole, Design::Arithmetic::float64, left_);
  for (double& value : left_) value = -value;
  const double residual = std::sqrt(squared_length(left_) / static_cast<double>(design_.rows()));
  if (started_ && !(residual < (1.0 - worth_a_restart) * residual_)) {
    // The last change was at the level of rounding; it is undone if it made the residual larger.
    if (residual > residual_) found_.add(-1.0, step_);
    residual_ = std::min(residual, residual_);
    finished_ = true;
    return;
  }
  residual_ = residual;
  started_ = true;
  if (alphas_.size() > first_alphas_.size()) {
    first_alphas_ = alphas_;
    first_betas_ = betas_;
  }
  step_ = Quadric(width);
  gains_.clear();
  alphas_.clear();
  betas_.clear();
  Quadric gradient;
  design_.transposed(left_, Design::Arithmetic::float32, gradient);
  precondition(gradient, direction_);
  slope_ = gradient.dot(direction_);
  if (!(slope_ > 0.0)) finished_ = true;
}

bool ConjugateGradients::round() {
  if (!started_) restart();
  if (finished_) return false;
  std::vector<double> image;
  design_.values(direction_, Design::Arithmetic::float32, image);
  const double alpha = slope_ / squared_length(image);
  step_.add(alpha, direction_);
  for (std::size_t i = 0; i < left_.size(); ++i) left_[i] -= alpha * image[i];
  Quadric gradient;
  design_.transposed(left_, Design::Arithmetic::float32, gradient);
  Quadric conditioned;
  precondition(gradient, conditioned);
  const double slope = gradient.dot(conditioned);
  const double beta = slope / slope_;
  alphas_.push_back(alpha);
  betas_.push_back(beta);
  gains_.push_back(alpha * slope_);
  slope_ = slope;
  Quadric turned = std::move(conditioned);
  turned.add(beta, direction_);
  direction_ = std::move(turned);
  ++rounds_;
  const double size = squared_length(left_);
  const double begin = residual_ * residual_ * static_cast<double>(design_.rows());
  bool idle = !(alpha > 0.0) || !std::isfinite(alpha) || size < end_of_float * begin;
  if (gains_.size() >= 2 * looked_back) {
    const double gained = std::accumulate(gains_.end() - looked_back, gains_.end(), 0.0);
    idle = idle || gained < worth_it * size;
  }
  if (rounds_ >= most_rounds) finished_ = true;
  if (idle || finished_) restart();
  return !finished_;
}

ConjugateGradients::Ritz ConjugateGradients::ritz() const {
  const bool use_first = first_alphas_.size() >= alphas_.size();
  const std::vector<double>& alphas = use_first ? first_alphas_ : alphas_;
  const std::vector<double>& betas = use_first ? first_betas_ : betas_;
  const auto size = static_cast<Eigen::Index>(alphas.size());
  if (size == 0) return {};
  Eigen::MatrixXd lanczos = Eigen::MatrixXd::Zero(size, size);
  for (Eigen::Index k = 0; k < size; ++k) {
    const std::size_t at = static_cast<std::size_t>(k);
    lanczos(k, k) = 1.0 / alphas[at] + (k > 0 ? betas[at - 1] / alphas[at - 1] : 0.0);
    if (k > 0)
      lanczos(k, k - 1) = lanczos(k - 1, k) = std::sqrt(std::max(0.0, betas[at - 1])) / alphas[at - 1];
  }
  const Eigen::VectorXd values = symmetric_eigenvalues(lanczos);
  return {values[0], values[size - 1]};
}

namespace {

void put_quadric(Packer& to, const Quadric& quadric) {
  to.put(quadric.matrix);
  to.put(quadric.linear);
  to.put(quadric.constant);
}

void get_quadric(Unpacker& from, std::size_t width, Quadric& quadric) {
  from.get(quadric.matrix);
  from.get(quadric.linear);
  from.get(quadric.constant);
  if (quadric.matrix.size() != width * width || quadric.linear.size() != width) {
    throw Error(ErrorCode::Format, "signature: a saved state of another size");
  }
}

}  // namespace

void ConjugateGradients::save(Packer& to) const {
  for (const Quadric* quadric : {&found_, &step_, &direction_}) put_quadric(to, *quadric);
  to.put(left_);
  to.put(slope_);
  to.put(residual_);
  to.put<std::uint64_t>(rounds_);
  to.put<std::uint8_t>(started_ ? 1 : 0);
  to.put<std::uint8_t>(finished_ ? 1 : 0);
  for (const std::vector<double>* values : {&gains_, &alphas_, &betas_, &first_alphas_, &first_betas_})
    to.put(*values);
}

void ConjugateGradients::load(Unpacker& from) {
  for (Quadric* quadric : {&found_, &step_, &direction_}) get_quadric(from, design_.width(), *quadric);
  from.get(left_);
  from.get(slope_);
  from.get(residual_);
  std::uint64_t rounds = 0;
  from.get(rounds);
  rounds_ = rounds;
  std::uint8_t started = 0;
  std::uint8_t finished = 0;
  from.get(started);
  from.get(finished);
  started_ = started != 0;
  finished_ = finished != 0;
  for (std::vector<double>* values : {&gains_, &alphas_, &betas_, &first_alphas_, &first_betas_})
    from.get(*values);
  if ((started_ && left_.size() != design_.rows()) || alphas_.size() != betas_.size() ||
      first_alphas_.size() != first_betas_.size()) {
    throw Error(ErrorCode::Format, "signature: a saved state of another size");
  }
}

}  // namespace normscope::signature
