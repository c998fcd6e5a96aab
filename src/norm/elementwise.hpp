#pragma once

#include <span>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

#include "kernel_jobs.hpp"

/// The elementwise kinds: y_i = g_i f(α x_i + s) + b_i, with one function f per kind.
namespace normscope::norm::detail {

/// `normalize`, `add_normalize` and `normalize_backward` of these kinds, and their reference definitions.
template <typename T>
void elementwise_forward(const ForwardJob<T>& job, unsigned threads);
template <typename T>
void elementwise_backward(const BackwardJob<T>& job, const Gradients<T>& gradients, unsigned threads);

/// out = g α f'(αx + s) v, for J v and Jᵀ v alike.
void elementwise_jacobian(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> v,
                          MatrixView<double> out, unsigned threads);
/// out = g α² f''(αx + s) u v.
void elementwise_second(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> u,
                        MatrixView<const double> v, MatrixView<double> out, unsigned threads);
/// Σ_i (g_i α² f''(αx_i + s))² of a row.
double elementwise_curvature(const NormSpec& spec, std::span<const double> x);

}  // namespace normscope::norm::detail
