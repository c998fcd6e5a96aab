#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// Statistics of the rows x that enter a norm when a model runs. For a block of n entries with mean m (0 for
/// kinds that do not centre) and R² = n (1 for spherical), the norm divides x − m by
/// σ = √(|x − m|²/R² + eps).
namespace normscope::analysis {

/// The distribution of a positive number over many blocks.
struct Spread {
  double least = 0.0, most = 0.0;
  double low = 0.0, median = 0.0, high = 0.0;  ///< 5 %, 50 % and 95 %, to 1.1 %
  double mean = 0.0;
  double deviation = 0.0;  ///< standard deviation
};

/// One feature over the rows.
struct Feature {
  std::size_t coordinate = 0;
  double rms = 0.0;       ///< root mean square over the rows
  double share = 0.0;     ///< of Σ |x|² over all rows and entries
  double largest = 0.0;   ///< |x_i|
  std::uint64_t row = 0;  ///< where it is largest, from 0 in the order in which rows were added
};

/// A principal axis of the norm's image.
struct AxisUse {
  std::size_t rank = 0;  ///< 0: the longest
  double length = 0.0;
  double available = 0.0;  ///< its share of Σ of the squared semi-axes
  double used = 0.0;       ///< its share of Σ |y − bias|² over the rows
};

struct Summary {
  std::uint64_t rows = 0;        ///< rows with finite entries; all numbers below are about these
  std::uint64_t not_finite = 0;  ///< rows left out
  Spread sigma{};                ///< of every block
  /// Share of Σ |x|² along all-ones, of each block: what projection removes, or would remove for kinds that
  /// do not centre. 0 where all rows are 0.
  double ones_share = 0.0;
  double most_ones_share = 0.0;  ///< the largest of a single row
  /// |x − m|/(R σ), the distance from the centre in units of the sphere's radius: 1 but for eps.
  double least_radius = 0.0, mean_radius = 0.0;
  /// √(mean (σ/σ̄ − 1)²), σ̄ the mean of σ: root mean square of the relative error of y − bias if every row is
  /// divided by σ̄ instead of its own σ.
  double frozen_scale_error = 0.0;
  double largest_output = 0.0;      ///< |y_i| over all rows and features; `NormRanges::largest` bounds it
  std::vector<Feature> features{};  ///< with the largest shares, in order
  std::vector<AxisUse> axes{};      ///< the longest, in order
  /// Participation ratio (tr C)²/tr C² of C = E (y − bias)(y − bias)ᵀ, estimated from pairs of sampled rows,
  /// and the same of the whole image (`norm::effective_dimension`). 0 for fewer than two sampled rows.
  double used_dimension = 0.0, available_dimension = 0.0;
  std::size_t sampled = 0;
  double mean_curvature = 0.0, most_curvature = 0.0;  ///< `norm::curvature` of the sampled rows
};

struct ObserverOptions {
  std::size_t axes = 8;         ///< longest principal axes whose use is measured
  std::size_t features = 8;     ///< listed with the largest shares
  std::size_t sample = 256;     ///< rows kept, chosen evenly from all
  std::size_t contexts = 0;     ///< contexts kept, chosen evenly from all that `add_contexts` was given
  std::size_t positions = 128;  ///< first rows of a context that are kept
  std::uint64_t seed = 1;       ///< of those choices
};

/// Collects the statistics of one norm in a single pass.
///
/// Source    [Sun, Chen, Kolter, Liu 2024] massive activations; the error of a frozen scale is ours
///
/// Accuracy  sums 1e-12 relative, up to 2^26 rows (test: Observer.AgreesWithTwoPasses); the order of rows and
///           their division into calls change results by rounding only
///
/// Cost      O(width · axes) a row; memory O(width · (axes + sample + contexts · positions)) for any number
///           of rows
class Observer {
 public:
  /// Errors    Argument, Shape: see `validate`; Unsupported for elementwise kinds, which divide by no σ
  explicit Observer(const NormSpec& spec, const ObserverOptions& options = {});
  Observer(Observer&&) noexcept;
  Observer& operator=(Observer&&) noexcept;
  ~Observer();

  /// Adds rows that entered the norm, as float, double, Float16 or Bfloat16. Rows with an entry that is not
  /// finite are counted and left out.
  ///
  /// Shapes    x (any rows, spec.width)
  ///
  /// Errors    Shape
  template <typename T>
  void add(MatrixView<const T> x);

  /// Keeps contexts, as many as the options say. `x` holds one after the other, `length` rows each; those
  /// with fewer than two rows or with an entry that is not finite are left out. It adds nothing to the
  /// statistics.
  ///
  /// Requires  `length` divides the rows
  ///
  /// Errors    Shape
  template <typename T>
  void add_contexts(MatrixView<const T> x, std::size_t length);

  /// Adds what `other` was given, as if its rows came after those here: sums differ by rounding only, and
  /// samples are uniform over both (test: Observer.MergesAsIfOneHadSeenAll).
  ///
  /// Errors    Argument for an observer of another norm, or with other options
  void merge(const Observer& other);
  /// The state, and one of an observer of the same norm and options.
  ///
  /// Errors    Format for bytes that are none
  [[nodiscard]] std::vector<std::byte> packed() const;
  void unpack(std::span<const std::byte> bytes);

  [[nodiscard]] const NormSpec& spec() const;
  [[nodiscard]] Summary summary() const;
  /// The rows kept of those that `add` was given, chosen evenly.
  [[nodiscard]] MatrixView<const double> sample() const;
  /// The first rows of the contexts kept.
  [[nodiscard]] std::vector<MatrixView<const double>> contexts() const;
  /// σ̄, the mean of σ over all blocks; 0 without rows.
  [[nodiscard]] double mean_sigma() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A norm of a model and the statistics of the rows that entered it.
struct ObservedNorm {
  std::string name;
  const NormSpec& spec;
  std::uint64_t calls = 0;  ///< of the norm
  Summary summary{};
};

}  // namespace normscope::analysis
