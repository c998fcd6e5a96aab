#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/verify/result.hpp>

namespace normscope::verify {

struct VerifyOptions {
  unsigned threads = 0;
  Progress progress{};
};

/// Arrays of certificates that were written into a folder, by name.
class Folder {
 public:
  virtual ~Folder() = default;
  /// The values of NAME.npy.
  ///
  /// Errors    as a reader of arrays
  [[nodiscard]] virtual std::vector<double> read(const std::string& name) const = 0;
};

/// Checks every statement of a `select` result. `keys` are the keys of the result, after the norm if there
/// was one; each of their entries may then be off by 16 u of the largest, because kernels of other machines
/// round differently.
///
/// Errors    Format, Shape; Cancelled
///
/// Accuracy  a statement that holds in exact arithmetic by more than 64 u of the magnitudes in it passes, and
///           one that does not hold fails (tests: VerifySelect.GoodResultsPass, VerifySelect.ForgedOnesFail)
[[nodiscard]] Verification verify_select(const Result& result, MatrixView<const double> keys,
                                         bool behind_norm, const Folder* folder,
                                         const VerifyOptions& options = {});

/// Rows of several classes, sorted by class.
struct ClassRows {
  std::vector<MatrixView<const double>> rows{};
  /// The number of each row in the array that it came from, as weights name it.
  std::vector<std::vector<std::size_t>> numbers{};
  std::vector<std::int64_t>
      labels{};  ///< every label of the array, ascending; none where there are no labels
};

/// Checks every statement of a `separate` result.
///
/// Errors    Format, Shape; Cancelled
[[nodiscard]] Verification verify_separate(const Result& result, const ClassRows& classes,
                                           const VerifyOptions& options = {});

/// What a `reach` result says of a head beside its numbers, read anew.
struct HeadFacts {
  std::optional<std::string> norm_name{};
  bool tied = false;
  std::vector<std::string> notes{};
  std::vector<std::string> names{};  ///< of tokens; empty where no file of names is known
};

/// A vocabulary's head: logits are l = scale · (W h + c) with h the norm's output, and C tanh(l/C) with a
/// soft cap C.
///
/// Shapes    unembedding (tokens × norm.width), bias (tokens, or none)
struct VocabularyHead {
  NormSpec norm{};
  MatrixView<const double> unembedding{};
  std::span<const double> bias{};
  double scale = 1.0;
  double soft_cap = 0.0;  ///< 0 for none
  HeadFacts facts{};
};

/// Checks every statement of a `reach` result.
///
/// Errors    Format, Shape; Unsupported for several groups; Cancelled
[[nodiscard]] Verification verify_reach(const Result& result, const VocabularyHead& head,
                                        const Folder* folder, const VerifyOptions& options = {});

}  // namespace normscope::verify
