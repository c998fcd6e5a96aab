#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/plan.hpp>

/// Compares old and new composites of a rewrite on rows that entered a norm when a model ran.
namespace normscope::rewrite {

/// Inputs of one norm.
struct Activations {
  std::size_t norm = 0;      ///< index in `models::Model::norms`
  std::size_t given = 0;     ///< rows that there were
  std::vector<double> rows;  ///< those tried (n × width)
};

/// Largest number of rows tried for each norm, spread evenly over those given.
inline constexpr std::size_t most_rows = 256;

struct ReaderOnRows {
  std::string reader;
  /// Largest |y' - y| of an output, in units of the certificates: of the largest value that the output can
  /// take.
  double largest = 0.0;
  double relative = 0.0;  ///< largest |y' - y| / |y| of a row's outputs
};

struct NormOnRows {
  std::string norm;
  std::size_t given = 0;
  std::size_t tried = 0;
  double mean_share = 0.0;  ///< largest share of a row's squared length along (1, ..., 1)
  std::vector<ReaderOnRows> readers{};
};

/// Computes y = W (G n(x) + b) + c of `before` and of `after`, which is `before` rewritten by `plan`, in
/// float64 from the values stored in both. If the stream of a norm is centred, `after` has an RMSNorm and
/// reads x minus its mean.
///
/// Errors    as `models::read_norm` and `models::read_weight`
///
/// Cost      4 n flops for every weight of the readers
[[nodiscard]] std::vector<NormOnRows> compare_on_rows(const files::Checkpoint& before,
                                                      const files::Checkpoint& after,
                                                      const models::Model& model, const Plan& plan,
                                                      const std::vector<Activations>& activations,
                                                      unsigned threads = 0);

/// The error of one rewritten tensor, proved and measured. Errors are those of an output feature, relative to
/// the largest value that the feature can take in the old model: h_i + |W_i b + c_i|, where h_i = r |W_i G Π|
/// for a row W_i that reads a norm of radius r with gain G and bias b, Π subtracts the mean where the norm
/// does, and c_i is the reader's bias. Certificates of matrices take h_i alone unless the norm keeps its
/// bias; then they contain what the roundings of W_i and of b do to W_i b. Gains and biases that a norm keeps
/// therefore have a relative error of 0. Those of a matrix or bias that writes to a stream are relative to
/// the length of the vector that one input feature, one row of a table, or the bias writes. Outputs without a
/// largest value, and vectors of length 0, up to rounding in float64, have no relative error.
struct Certificate {
  std::string tensor;  ///< in the form that the command accepts
  Change change = Change::zero;
  std::string norm{};  ///< whose gain or bias it took, or that reads what it writes
  Dtype dtype = Dtype::F32;
  double rounding = 0.0;        ///< unit roundoff of the dtype
  double bound = 0.0;           ///< largest absolute error of an output, for every input, or of a kept value
  double relative_bound = 0.0;  ///< proved
  /// Largest relative difference of old and new outputs over the inputs tried: before rounding to the dtype,
  /// and as stored. For changes without inputs to try, 0 and the largest error of a value.
  double observed_in_double = 0.0;
  double observed_as_stored = 0.0;
  /// Largest error of a value that `undo` restores, in units of `rounding` times the larger of that value and
  /// the value that is stored in its place less its gain, or times the smallest number of the dtype; 0 where
  /// it restores every bit.
  double undo_roundings = 0.0;
};

struct Result {
  std::vector<Certificate> certificates{};
  std::vector<std::filesystem::path> files{};  ///< that were written, without the folder
  std::vector<std::string> not_copied{};       ///< files of the folder that hold other weights
  std::vector<std::string> configuration{};    ///< changes of config.json, in words
  std::vector<NormOnRows> on_rows{};           ///< of the activations given
  std::size_t taken_over = 0;                  ///< files that an earlier process had finished
  std::filesystem::path recipe{};              ///< what `undo` needs, one of `files`; empty without changes
  std::string not_undone{};                    ///< why there is no recipe
};

/// Text of the document that is written beside the weights: `rewrite.json` in a folder,
/// `<output>.rewrite.json` beside a file.
using Describe = std::function<std::string(const Result&)>;

/// Writes `checkpoint` with the changes of `plan` to `output`: a file if the checkpoint is one file that was
/// named, otherwise a folder with the same shards, its config.json and its other small files. Every changed
/// value is computed in float64 and rounded once. The output appears complete or not at all; shards that a
/// killed process had finished are reused (test: tests/cli/rewrite_resume_test.py).
///
/// Errors    Argument if `output` is the input or a folder that is not empty; Unsupported as
///           `expect_something`, or where a value leaves the range of its dtype or is not finite; Io, also if
///           another process writes there; Cancelled
///
/// Accuracy  every certificate's bound (tests: Rewrite.BoundsHoldForEveryInputTried,
///           tests/cli/rewrite_bounds_test.py)
///
/// Cost      each matrix is read once, twice if its means are subtracted; twice more for a bias that takes a
///           norm's, and once more where scales migrate and round
///
/// Memory    48 MiB, what the checkpoint's files hold while they are read, 300 bytes a row and column of the
///           largest matrix, the tensors' names, the recipe, and where streams are rotated the largest matrix
///           in its dtype
[[nodiscard]] Result write(const files::Checkpoint& checkpoint, const models::Model& model, const Plan& plan,
                           const std::filesystem::path& output, unsigned threads = 0,
                           const Progress& progress = {}, const Describe& describe = {},
                           const std::vector<Activations>& activations = {});

/// The error of one restored slice.
struct Restored {
  std::string tensor;  ///< in the form that the command accepts
  Change change = Change::zero;
  Dtype dtype = Dtype::F32;
  double rounding = 0.0;   ///< unit roundoff of the dtype
  double roundings = 0.0;  ///< as `Certificate::undo_roundings`
};

struct Restoration {
  std::vector<Restored> tensors{};
  std::vector<std::filesystem::path> files{};  ///< that were written, without the folder
  std::vector<std::string> not_copied{};       ///< files of the folder that hold other weights
  std::size_t taken_over = 0;                  ///< files that an earlier process had finished
};

/// Restores the input of the rewrite that made `rewritten` and writes it to `output`, in the same way as
/// `write`, from the recipe beside its weights. Vectors, and matrices that were multiplied by powers of two,
/// are restored bit for bit, others to the error that the recipe states.
///
/// Errors    as `write`; Io without a recipe; Format for a damaged one; Argument for that of another file
///
/// Accuracy  test: RewriteUndo.RestoresEveryTensorWithinItsBound
[[nodiscard]] Restoration undo(const files::Checkpoint& rewritten, const std::filesystem::path& output,
                               unsigned threads = 0, const Progress& progress = {});

}  // namespace normscope::rewrite
