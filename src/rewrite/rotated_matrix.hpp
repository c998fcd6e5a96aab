#pragma once

#include <vector>

#include <normscope/rewrite/rotation.hpp>

#include "matrix.hpp"

/// Matrices that read a rotated residual stream, or write to it.
namespace normscope::rewrite {

/// Writes W diag(gain) Qᵀ, whose rows read Q n; fills the errors of `certificate` and `part`.
void rotate_inputs(const StoredMatrix& matrix, const NormSpec& norm, const Rotation& rotation,
                   unsigned threads, const Sink& sink, Certificate& certificate, UndoPart& part);

/// Writes Q W, or, if `centers`, Q (W minus its mean over the output features). `reader` is a norm that reads
/// the stream.
void rotate_outputs(const StoredMatrix& matrix, const NormSpec& reader, bool centers,
                    const Rotation& rotation, unsigned threads, const Sink& sink, Certificate& certificate,
                    UndoPart& part);

/// Writes the matrix as it was before `edit`, which is one of these. `matrix.tensor` is that of the output.
void restore_rotated(const StoredMatrix& matrix, const UndoEdit& edit, std::span<const double> factors,
                     const Rotation& rotation, unsigned threads, const Sink& sink);

}  // namespace normscope::rewrite
