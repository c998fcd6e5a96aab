#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <normscope/core/dtype.hpp>
#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// Element types of activations besides float and double. They only store bits: kernels compute in `Wide<T>`
/// and round the result once, to nearest, ties to even; values beyond the type's range become infinite.
namespace normscope::norm {

/// The upper half of a float32.
struct Bfloat16 {
  std::uint16_t bits = 0;
};

/// IEEE binary16.
struct Float16 {
  std::uint16_t bits = 0;
};

/// A class for each type, since g++ and clang++ give different symbols to functions whose signatures contain
/// an expression such as is_same_v, and a program may be linked to a library that the other one has compiled.
template <typename T>
struct WideOf {
  using type = float;
};
template <>
struct WideOf<double> {
  using type = double;
};

/// The type of statistics, gains, biases and their gradients for rows of T.
template <typename T>
using Wide = typename WideOf<T>::type;

/// Converts `value` exactly.
[[nodiscard]] inline float to_float(Bfloat16 value) { return decode_bfloat16(value.bits); }
[[nodiscard]] inline float to_float(Float16 value) { return decode_float16(value.bits); }

/// The nearest element; NaN stays NaN.
[[nodiscard]] inline Bfloat16 to_bfloat16(float value) { return {encode_bfloat16(value)}; }
[[nodiscard]] inline Float16 to_float16(float value) { return {encode_float16(value)}; }

// Norms for batches of rows: the formulas at `NormKind` and their derivatives, with vector instructions
// chosen at run time. The plain definitions are `forward` and `backward` of `norm.hpp`, and every function
// here is tested against them.
//
//   std::vector<float> x(rows * 768), y(x.size()), gain(768, 1.0F);
//   normalize<float>({.width = 768, .gain = gain}, {x.data(), rows, 768}, {y.data(), rows, 768});
//
// T is double, float, Bfloat16 or Float16. Statistics, gain, bias and their gradients are `Wide<T>`;
// sums over a row run in its precision over 128 vectors at most and in double beyond that.
//
// Shapes    x, y and all other matrices (rows, layer.width), each with a stride of its own
//
// Errors    Argument, Shape: as `validate` for `NormSpec`, and for matrices and spans of other sizes; the
//           entries of gain and bias are not checked
//
// Accuracy  u is the rounding of Wide<T>; if T is narrower, half a unit of T's last place is added.
//           normalize: |y − exact| <= 64 u (|y − b| + |g|) + u |b| for every row, for any mean, range and
//           width; on rows of independent entries 6 u (tests: Kernels.MeetTheirBoundOnHardRows,
//           Kernels.AreAFewRoundingsFromExactOnOrdinaryRows)
//
// Bits      depend only on the row, the layer and the instruction set: not on the number of rows, the row's
//           index, its alignment, or `threads`; those of the gradients of gain and bias depend on all rows
//           and their order, and not on `threads` (tests: Kernels.BitsDoNotDependOnPlaceNeighboursOrThreads,
//           KernelsBackward.BitsDoNotDependOnThreadsOrWhatIsWanted, and for few wide rows
//           Kernels.BitsOfFewWideRowsDoNotDependOnThreads,
//           KernelsBackward.BitsOfFewWideRowsDoNotDependOnThreadsOrWhatIsWanted)
//
// Limits    if the processor rounds to bfloat16 in hardware, results below 2^-126 become zero
//
// Edges     a block whose deviations are all zero gives the bias, also with eps = 0, and has no gradient
//           then; NaN and infinity affect only their own block; zero rows and width 1 are allowed
//
// Threads   rows are split among `threads`, as in `parallel_for`; groups or columns if there are few rows;
//           small matrices use one thread
//
// Cost      O(width) per row; memory is allocated only for backward's sums and the moments of few wide rows,
//           at first use

/// A norm whose gain and bias are views, in the precision the kernels compute in.
template <typename T>
using Layer = BasicNorm<std::span<const Wide<T>>>;

/// `spec` as a layer, which views its gain and bias.
[[nodiscard]] inline Layer<double> view(const NormSpec& spec) {
  return {spec.kind, spec.width, spec.groups, spec.eps, spec.gain, spec.bias, spec.alpha, spec.shift};
}

/// y = norm(x) for each row.
///
/// Requires  y is x itself or does not overlap it
template <typename T>
void normalize(const Layer<T>& layer, MatrixView<const std::type_identity_t<T>> x,
               MatrixView<std::type_identity_t<T>> y, unsigned threads = 0);

/// sum = x + residual, y = norm(sum), as between two blocks of a transformer, in one pass. The bits are those
/// of an addition rounded to T, followed by `normalize`.
///
/// Requires  sum is x or residual itself or overlaps neither; y is one of the others or overlaps none
template <typename T>
void add_normalize(const Layer<T>& layer, MatrixView<const std::type_identity_t<T>> x,
                   MatrixView<const std::type_identity_t<T>> residual,
                   MatrixView<std::type_identity_t<T>> sum, MatrixView<std::type_identity_t<T>> y,
                   unsigned threads = 0);

/// Outputs for the gradients of the parameters; empty or null for a gradient that is not wanted. Only
/// elementwise kinds have those of α and s.
///
/// Shapes    gain, bias (width)
template <typename T>
struct Gradients {
  std::span<Wide<T>> gain{};
  std::span<Wide<T>> bias{};
  Wide<T>* alpha = nullptr;
  Wide<T>* shift = nullptr;
};

/// The gradients of a loss from dy = ∂loss/∂y; of the forward pass only x is needed:
///   dx = Jᵀ dy (formula at `vector_jacobian`),  dgain = Σ_rows dy · (y − b)/g,  dbias = Σ_rows dy
/// and for elementwise kinds, with t = αx + s,
///   dα = Σ_rows Σ_i dy_i g_i f'(t_i) x_i,  ds = Σ_rows Σ_i dy_i g_i f'(t_i)
///
/// Requires  dx is dy itself or overlaps neither dy nor x
///
/// Accuracy  dx: 64 u of |radius| (|a| + mean|a| + |ŷ| mean|a ŷ|)/s, a = g · dy, ŷ the output without gain
///           and bias, while a stays within 2^±60 (float64 2^±400); dgain, dbias: 32 u of the sum of the
///           magnitudes (1 + |ŷ|) |dy|, |dy|, for any number of rows; as `normalize` for every row x
///           (tests: KernelsBackward.MeetTheirBound, KernelsBackward.MeetTheirBoundOnHardRows,
///           KernelsBackward.MeetTheirBoundForGradientsOfEverySize)
template <typename T>
void normalize_backward(const Layer<T>& layer, MatrixView<const std::type_identity_t<T>> x,
                        MatrixView<const std::type_identity_t<T>> dy, MatrixView<std::type_identity_t<T>> dx,
                        const Gradients<T>& gradients = {}, unsigned threads = 0);

}  // namespace normscope::norm
