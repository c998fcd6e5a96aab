#pragma once

#include <algorithm>
#include <cstddef>

#include "activation.hpp"

/// The output layer on h, for L words side by side as in `pass.hpp`.
namespace normscope::nets::rnn::detail {

/// out = V h + v, the parameters V and then v.
template <std::size_t L>
void outputs(std::size_t width, std::size_t count, const double* parameters, const double* h, double* out) {
  for (std::size_t o = 0; o < count; ++o) {
    double sum[L];
    for (std::size_t l = 0; l < L; ++l) sum[l] = parameters[count * width + o];
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t l = 0; l < L; ++l) sum[l] += parameters[o * width + j] * h[j * L + l];
    }
    for (std::size_t l = 0; l < L; ++l) out[o * L + l] = sum[l];
  }
}

/// Backpropagates `slopes` of the outputs: adds Vᵀ slopes to `d_h`, and adds to the gradients of V and v.
template <std::size_t L>
void outputs_back(std::size_t width, std::size_t count, const double* parameters, const double* h,
                  const double* slopes, double* d_h, double* gradient) {
  for (std::size_t o = 0; o < count; ++o) {
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t l = 0; l < L; ++l) {
        d_h[j * L + l] += parameters[o * width + j] * slopes[o * L + l];
        gradient[(o * width + j) * L + l] += slopes[o * L + l] * h[j * L + l];
      }
    }
    for (std::size_t l = 0; l < L; ++l) gradient[(count * width + o) * L + l] += slopes[o * L + l];
  }
}

/// Converts logits to probabilities, in place.
template <std::size_t L>
void softmax(std::size_t count, double* logits) {
  double most[L];
  double sum[L];
  for (std::size_t l = 0; l < L; ++l) {
    most[l] = logits[l];
    sum[l] = 0.0;
  }
  for (std::size_t o = 1; o < count; ++o) {
    for (std::size_t l = 0; l < L; ++l) most[l] = std::max(most[l], logits[o * L + l]);
  }
  for (std::size_t o = 0; o < count; ++o) {
    for (std::size_t l = 0; l < L; ++l) {
      logits[o * L + l] = decay(logits[o * L + l] - most[l]);
      sum[l] += logits[o * L + l];
    }
  }
  for (std::size_t o = 0; o < count; ++o) {
    for (std::size_t l = 0; l < L; ++l) logits[o * L + l] /= sum[l];
  }
}

}  // namespace normscope::nets::rnn::detail
