#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/files/array.hpp>

/// Identifies the model behind given outputs. The logits after a final norm lie on one ellipsoid, by which a
/// model can be recognized, and which can be estimated from outputs alone.
///
/// Source    [Finlayson, Ren, Swayamdipta 2026] the ellipse as a signature; certificates, the extraction in
///           O(width⁴) and its error bars are ours
namespace normscope::signature {

/// The rounding error of a number of a type, half an ulp.
struct Precision {
  Dtype dtype = Dtype::F64;
  double unit = 0.0;      ///< relative to the number
  double smallest = 0.0;  ///< absolute, near zero
};

/// Errors    Unsupported for a dtype other than F64, F32, F16 and BF16
[[nodiscard]] Precision precision_of(Dtype dtype);

struct OutputOptions {
  double temperature = 1.0;          ///< the logits were divided by it
  double soft_cap = 0.0;             ///< C of C tanh(z/C), 0 without one: undone
  std::optional<Dtype> precision{};  ///< type in which the logits were computed; inferred if not stated
  std::size_t vocabulary = 0;        ///< number of tokens if rows have ids; else their width
};

/// One row with temperature and cap undone: logits up to a constant per row.
struct OutputRow {
  std::vector<std::size_t> tokens{};  ///< ascending as given; empty for every token in order
  std::vector<double> logits{};
  /// Bound of the rounding error of each logit after it was computed: four roundings of the given number.
  std::vector<double> slack{};
  std::vector<double> noise{};  ///< its standard deviation for one rounding
  double spread = 0.0;          ///< largest minus smallest
};

/// Rows of logits or log-probabilities in a file, read row by row.
class Outputs {
 public:
  /// `ids` has the token of each value, or one row of tokens for all rows. Without it a row has every token.
  /// The last axis of `values` is a row.
  ///
  /// Errors    Shape; Unsupported for a type that holds no logits; Argument for a temperature that is not
  ///           positive, for probabilities in place of their logarithms, for ids that are no tokens or repeat
  Outputs(files::OpenedArray values, const std::optional<files::OpenedArray>& ids, OutputOptions options);
  Outputs(const Outputs&) = delete;
  Outputs(Outputs&&) = default;

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t width() const { return width_; }  ///< values in a row
  [[nodiscard]] std::size_t vocabulary() const { return options_.vocabulary; }
  [[nodiscard]] bool whole() const { return ids_.empty(); }
  [[nodiscard]] const Precision& precision() const { return precision_; }
  [[nodiscard]] bool precision_is_stated() const { return options_.precision.has_value(); }
  [[nodiscard]] double soft_cap() const { return options_.soft_cap; }
  [[nodiscard]] const std::string& name() const { return values_.name(); }

  /// Values of a row as they are stored. Thread-safe.
  ///
  /// Shapes    values (width)
  void stored(std::size_t row, std::span<double> values) const;
  /// A row as `OutputRow`; values of −inf, which a sampler writes for excluded tokens, are left out.
  /// Thread-safe.
  ///
  /// Errors    Argument, naming the row, for NaN, +inf and rows whose values are all the same
  [[nodiscard]] OutputRow row(std::size_t row) const;
  /// Reads rows that must have every token.
  ///
  /// Errors    Argument for −inf as well
  ///
  /// Requires  whole()
  void whole_row(std::size_t row, std::span<double> logits) const;
  /// Whether the first rows' exponentials sum to 1: log-probabilities, from which a cap cannot be undone.
  [[nodiscard]] bool are_log_probabilities() const;

 private:
  void find_precision();
  void read_ids(const files::OpenedArray& ids);
  void refuse_probabilities() const;
  void undo(double value, double& logit, double& slack, double& noise) const;

  files::OpenedArray values_;
  OutputOptions options_;
  Precision precision_{};
  std::size_t rows_ = 0;
  std::size_t width_ = 0;
  std::vector<std::size_t> ids_{};   ///< of every value, or one row of them
  std::vector<std::byte> buffer_{};  ///< of an array that is not stored as it is
  std::span<const std::byte> bytes_{};
};

}  // namespace normscope::signature
