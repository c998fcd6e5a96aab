#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "recipe.hpp"

namespace normscope::rewrite {

/// Returns room for the next `size` bytes of the output, which the caller fills before it asks for more.
using Sink = std::function<std::span<std::byte>(std::size_t size)>;

/// A stored matrix that is rewritten: `map` is all of it, `from` its elements in `tensor`.
struct StoredMatrix {
  const files::Tensor& tensor;
  const models::Linear& map;

  /// Rows of the file's layout.
  [[nodiscard]] std::uint64_t rows() const {
    return map.layout == models::Layout::out_in ? map.stored_out : map.in;
  }
  [[nodiscard]] std::uint64_t columns() const {
    return map.layout == models::Layout::out_in ? map.in : map.stored_out;
  }
};

/// Unit roundoff of a dtype: half the distance of 1 to the next number.
[[nodiscard]] double unit_roundoff(Dtype dtype);

/// The smallest positive number of a dtype that has all its digits.
[[nodiscard]] double smallest_normal(Dtype dtype);

/// Bound of `Certificate::undo_roundings` for an edit of the plan.
[[nodiscard]] double undo_roundings(const Plan& plan, const Edit& edit);

/// What a norm whose readers are rewritten keeps of its gain G and bias b, and how that is stored.
struct KeptParts {
  std::vector<double> old_bias{};   ///< b; empty if the norm keeps none
  std::vector<double> new_bias{};   ///< as it is stored, rotated with the stream
  std::vector<double> constants{};  ///< that the reader adds to its outputs; empty if not known
  std::vector<double> old_gain{};   ///< G, where the readers take scales of it; empty where they take all
  double largest_gain = 1.0;        ///< of those that are stored
  double gain_error = 0.0;          ///< largest of an entry of the stored gain
};

/// Half the width of the range of every output over all inputs of the norm: r |W_i G|, or r |W_i G Π| where
/// the norm subtracts the mean; no more than it for norms of groups and elementwise ones.
///
/// Cost      one pass over the matrix
[[nodiscard]] std::vector<double> half_ranges(const StoredMatrix& matrix, const NormSpec& norm,
                                              unsigned threads);
/// The same of one output, by the sum and the sum of squares of its row W_i G.
[[nodiscard]] double half_range(const NormSpec& norm, double squares, double sum);

/// Bound of the rounding of |W' b' − W b| in float64, by the length of a row of W'.
[[nodiscard]] double rounding_of_constants(const KeptParts& kept, double row);

/// Writes W diag(gain); fills the errors of `certificate`, and adds to `part` the elements that a division by
/// the gain does not restore.
void scale_inputs(const StoredMatrix& matrix, const NormSpec& norm, const KeptParts& kept, unsigned threads,
                  const Sink& sink, Certificate& certificate, UndoPart& part);

/// Writes W minus its mean over the output features; fills the errors of `certificate` and the means of
/// `part`. `reader` is a norm that reads the stream.
void center_outputs(const StoredMatrix& matrix, const NormSpec& reader, unsigned threads, const Sink& sink,
                    Certificate& certificate, UndoPart& part);

/// Writes the matrix as it was before `edit`. `matrix.tensor` is that of the output.
void restore(const StoredMatrix& matrix, const UndoEdit& edit, std::span<const double> factors,
             unsigned threads, const Sink& sink);

/// Errors    Unsupported, naming the tensor and the first value that is not finite
void expect_finite(const files::Tensor& tensor, std::span<const double> old, std::span<const double> exact,
                   std::span<const double> stored);
/// Errors    Unsupported, naming the tensor and the first value that its dtype cannot hold
void expect_held(const files::Tensor& tensor, std::span<const double> old, std::span<const double> exact);

/// Encodes `values`, refusing those that leave the dtype's range, and returns what was stored.
///
/// Errors    Unsupported, naming the tensor
std::vector<double> store(const files::Tensor& tensor, std::span<const double> values, const Sink& sink);

[[nodiscard]] double length_of(std::span<const double> x);

/// Number of inputs tried at a time.
inline constexpr std::size_t probe_count = 4;
using Probe = std::array<double, probe_count>;

/// Upper bound of the length of the norm's outputs before gain and bias.
[[nodiscard]] double longest_output(const NormSpec& spec);

/// The norm of one row without its gain and bias, by the definition.
[[nodiscard]] std::vector<double> normalized(const NormSpec& spec, std::span<const double> row);

/// Outputs of the norm, before gain and bias, for a random row, a row of random signs, and rows that peak
/// where the gain is largest and smallest: a Probe for each feature.
[[nodiscard]] std::vector<Probe> norm_probes(const NormSpec& spec);

/// Inputs of a map that writes to a stream: two random ones; the means of the vectors that its inputs write,
/// which is the input whose output has the largest mean; and the single input whose vector has the largest
/// mean relative to its deviations.
[[nodiscard]] std::vector<Probe> writer_probes(std::span<const double> means, std::size_t least_centered);

}  // namespace normscope::rewrite
