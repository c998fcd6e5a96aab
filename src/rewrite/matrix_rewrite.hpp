#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <normscope/rewrite/plan.hpp>

#include "matrix.hpp"
#include "tile_kernel.hpp"

namespace normscope::rewrite {

/// Calls `use` with the rows of a stored matrix, some at a time, and their bytes.
using UseBlock = std::function<void(std::size_t first, std::size_t rows, std::span<const std::byte> bytes)>;
void for_each_block(const StoredMatrix& matrix, const UseBlock& use);

/// What a matrix becomes: x' = (x − shift_j) factor_j for what reads or writes input feature j; an empty span
/// leaves it out.
struct InputChange {
  std::span<const double> shift{};
  std::span<const double> factor{};
};

/// Sums of terms, and of their sizes.
struct WeightedSums {
  std::vector<double> sum;
  std::vector<double> magnitude;
};

/// Takes a value other than 0 that is stored below the normal numbers, and where it is; several threads call
/// it.
using SmallValue = std::function<void(std::uint64_t at, double old, double stored)>;

struct MatrixSums {
  std::vector<OutputSums> outputs;
  std::vector<Lengths> lengths;  ///< of outputs or input features
};

/// Rewrites a matrix in one pass, and applies the old and the new one to probes of the input features.
///
/// Shapes    probes (inputs)
///
/// Errors    Unsupported for a value that is not finite or leaves the dtype's range
///
/// Accuracy  sums do not depend on the number of threads
///           (test: RewriteTiles.SumsAreThoseOfTheDefinition)
[[nodiscard]] MatrixSums rewrite_matrix(const StoredMatrix& matrix, const InputChange& change,
                                        std::span<const Probe> old_inputs, std::span<const Probe> new_inputs,
                                        bool lengths_of_outputs, unsigned threads, const Sink& sink,
                                        const SmallValue& small = {});

/// Σ_j W_ij w_j of every output i, or Σ_i W_ij w_i of every input feature j, and the sums of the terms'
/// sizes; an empty span of weights stands for ones.
///
/// Errors    Unsupported for a value that is not finite
///
/// Accuracy  of a compensated sum
[[nodiscard]] WeightedSums sums_over_inputs(const StoredMatrix& matrix, std::span<const double> weights,
                                            unsigned threads);
[[nodiscard]] WeightedSums sums_over_outputs(const StoredMatrix& matrix, unsigned threads);

// Matrices that read a rotated residual stream, or write to it.

/// Writes W diag(gain) Qᵀ, whose rows read Q n; fills the errors of `certificate` and `part`.
void rotate_inputs(const StoredMatrix& matrix, const NormSpec& norm, const KeptParts& kept,
                   const Rotation& rotation, unsigned threads, const Sink& sink, Certificate& certificate,
                   UndoPart& part);

/// Writes Q W, or, if `centers`, Q (W minus its mean over the output features). `reader` is a norm that reads
/// the stream; `head` is what the last one keeps, if the matrix is a table that reads it too.
void rotate_outputs(const StoredMatrix& matrix, const NormSpec& reader, const KeptParts* head, bool centers,
                    const Rotation& rotation, unsigned threads, const Sink& sink, Certificate& certificate,
                    UndoPart& part);

/// Writes the matrix as it was before `edit`, which is one of these. `matrix.tensor` is that of the output.
void restore_rotated(const StoredMatrix& matrix, const UndoEdit& edit, std::span<const double> factors,
                     const Rotation& rotation, unsigned threads, const Sink& sink);

}  // namespace normscope::rewrite
