#pragma once

#include <algorithm>
#include <vector>

#include "kernels.hpp"
#include "tagger.hpp"

namespace normscope::lab::counting {

/// One recurrent layer over words side by side. Rows of inputs and states are (steps, size, lanes).
template <typename Real>
class Layer {
 public:
  Layer(TaggerCell cell, std::size_t inputs, std::size_t window, std::size_t width)
      : cell_(cell), inputs_(inputs), window_(window), width_(width) {}

  [[nodiscard]] std::size_t parameters() const { return rows() * (columns() + recurrent() + 1); }

  /// Reads `steps` rows, and the window − 1 rows before `in`.
  void forward(std::size_t steps, const Real* p, const Real* in) {
    const std::size_t n = width_ * lanes;
    const std::size_t maps = rows() * lanes;
    gates_.resize(steps * maps);
    states_.assign((steps + 1) * n, Real(0));
    hidden_.assign((steps + 1) * n, Real(0));
    shown_.resize(steps * n);
    for (std::size_t t = 0; t < steps; ++t) {
      Real* const z = gates_.data() + t * maps;
      for (std::size_t row = 0; row < rows(); ++row) std::fill_n(z + row * lanes, lanes, bias(p)[row]);
      multiply(rows(), columns(), p, window(in, t), z);
      const Real* const before = states_.data() + t * n;
      Real* const c = states_.data() + (t + 1) * n;
      Real* const h = hidden_.data() + (t + 1) * n;
      if (recurrent() > 0) multiply(rows(), width_, u(p), hidden_.data() + t * n, z);
      for (std::size_t at = 0; at < n; ++at) z[at] = squash(z[at]);
      for (std::size_t at = n; at < maps; ++at) z[at] = logistic(z[at]);
      const Real* const f = z + n;
      const Real* const o = f + n;
      const Real* const i = o + n;
      Real* const shown = shown_.data() + t * n;
      if (cell_ == TaggerCell::fo_qrnn) {
        for (std::size_t at = 0; at < n; ++at) c[at] = f[at] * before[at] + (Real(1) - f[at]) * z[at];
      } else {
        for (std::size_t at = 0; at < n; ++at) c[at] = f[at] * before[at] + i[at] * z[at];
      }
      for (std::size_t at = 0; at < n; ++at) shown[at] = cell_ == TaggerCell::lstm ? squash(c[at]) : c[at];
      for (std::size_t at = 0; at < n; ++at) h[at] = o[at] * shown[at];
    }
  }

  /// `d_hidden` is the derivative with respect to h. Adds to the gradient and, if `d_in` is given, to the
  /// derivative with respect to the inputs of a layer with a window of 1.
  void backward(std::size_t steps, const Real* p, const Real* in, const Real* d_hidden, Real* d_in,
                Real* gradient) {
    const std::size_t n = width_ * lanes;
    const std::size_t maps = rows() * lanes;
    delta_.resize(steps * maps);
    d_cell_.assign(n, Real(0));
    d_state_.assign(n, Real(0));
    const std::vector<Real> u_transposed = transposed(u(p), recurrent());
    for (std::size_t t = steps; t-- > 0;) {
      for (std::size_t at = 0; at < n; ++at) d_state_[at] += d_hidden[t * n + at];
      step_back(t);
      std::fill(d_state_.begin(), d_state_.end(), Real(0));
      if (recurrent() > 0) {
        multiply(width_, rows(), u_transposed.data(), delta_.data() + t * maps, d_state_.data());
      }
    }
    const Rows<Real> delta{delta_.data(), rows()};
    outer(steps, rows(), delta, columns(), {window(in, 0), inputs_}, gradient);
    if (recurrent() > 0) {
      outer(steps, rows(), delta, width_, {hidden_.data(), width_}, gradient + rows() * columns());
    }
    sum_up(steps, rows(), delta, gradient + rows() * (columns() + recurrent()));
    if (d_in == nullptr) return;
    const std::vector<Real> w_transposed = transposed(p, columns());
    for (std::size_t t = 0; t < steps; ++t) {
      multiply(columns(), rows(), w_transposed.data(), delta_.data() + t * maps, d_in + t * inputs_ * lanes);
    }
  }

  /// h after every step.
  [[nodiscard]] const Real* hidden() const { return hidden_.data() + width_ * lanes; }

 private:
  [[nodiscard]] std::size_t rows() const { return (cell_ == TaggerCell::fo_qrnn ? 3 : 4) * width_; }
  [[nodiscard]] std::size_t columns() const { return window_ * inputs_; }
  [[nodiscard]] std::size_t recurrent() const { return cell_ == TaggerCell::lstm ? width_ : 0; }
  [[nodiscard]] const Real* u(const Real* p) const { return p + rows() * columns(); }
  [[nodiscard]] const Real* bias(const Real* p) const { return p + rows() * (columns() + recurrent()); }
  /// The rows that step t reads, the oldest first.
  [[nodiscard]] const Real* window(const Real* in, std::size_t t) const {
    return in + t * inputs_ * lanes - (window_ - 1) * inputs_ * lanes;
  }

  [[nodiscard]] std::vector<Real> transposed(const Real* weight, std::size_t across) const {
    std::vector<Real> values(rows() * across);
    for (std::size_t row = 0; row < rows(); ++row) {
      for (std::size_t j = 0; j < across; ++j) values[j * rows() + row] = weight[row * across + j];
    }
    return values;
  }

  /// Derivatives with respect to the maps of step t, from those with respect to its h, d_state_, and its c,
  /// d_cell_, which is replaced by the derivative with respect to the previous c.
  void step_back(std::size_t t) {
    const std::size_t n = width_ * lanes;
    const Real* const z = gates_.data() + t * rows() * lanes;
    const Real* const f = z + n;
    const Real* const o = f + n;
    const Real* const i = o + n;
    const Real* const before = states_.data() + t * n;
    const Real* const shown = shown_.data() + t * n;
    Real* const d_z = delta_.data() + t * rows() * lanes;
    Real* const d_f = d_z + n;
    Real* const d_o = d_f + n;
    Real* const d_i = d_o + n;
    const bool coupled = cell_ == TaggerCell::fo_qrnn;
    for (std::size_t at = 0; at < n; ++at) {
      const Real slope = cell_ == TaggerCell::lstm ? Real(1) - shown[at] * shown[at] : Real(1);
      const Real d_c = d_cell_[at] + d_state_[at] * o[at] * slope;
      d_o[at] = d_state_[at] * shown[at] * o[at] * (Real(1) - o[at]);
      d_f[at] = d_c * (before[at] - (coupled ? z[at] : Real(0))) * f[at] * (Real(1) - f[at]);
      d_z[at] = d_c * (coupled ? Real(1) - f[at] : i[at]) * (Real(1) - z[at] * z[at]);
      if (!coupled) d_i[at] = d_c * z[at] * i[at] * (Real(1) - i[at]);
      d_cell_[at] = d_c * f[at];
    }
  }

  TaggerCell cell_;
  std::size_t inputs_;
  std::size_t window_;
  std::size_t width_;
  std::vector<Real> gates_{};   ///< z, f, o, i of every step
  std::vector<Real> states_{};  ///< c, starting with 0
  std::vector<Real> hidden_{};  ///< h, starting with 0
  std::vector<Real> shown_{};   ///< input of the output gate: tanh c of an lstm, else c
  std::vector<Real> delta_{};
  std::vector<Real> d_cell_{};
  std::vector<Real> d_state_{};
};

}  // namespace normscope::lab::counting
