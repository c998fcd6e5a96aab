#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/core/view.hpp>

namespace normscope::signature {

/// Divides rows into a fixed number of slices. Each slice is summed for itself and the sums are added in
/// order, so results depend neither on threads nor on the number of members of a team, each of which has
/// consecutive slices.
class RowSlices {
 public:
  static constexpr std::size_t count = 64;
  struct Block {
    std::size_t slice = 0;  ///< counted from the member's first
    std::size_t first = 0;  ///< row
    std::size_t rows = 0;
  };

  /// Requires  at most `count` members; `team` outlives this
  RowSlices(std::size_t rows, const Team& team) : rows_(rows), team_(&team) {}

  [[nodiscard]] std::size_t rows() const { return rows_; }
  /// The slices of this member, and its rows from `begin` to `end`.
  [[nodiscard]] std::size_t own_slices() const { return first_slice(rank() + 1) - first_slice(rank()); }
  [[nodiscard]] std::size_t begin() const { return row_of(first_slice(rank())); }
  [[nodiscard]] std::size_t end() const { return row_of(first_slice(rank() + 1)); }
  /// The member's rows in blocks of about `size`, at most 3/2 of it, none of which is in two slices.
  [[nodiscard]] std::vector<Block> blocks(std::size_t size) const;

  /// Sum over all slices of all members.
  ///
  /// Shapes    of_slices[own slice] (entries), each of the length of `result`
  void sum(const std::vector<std::vector<double>>& of_slices, std::span<double> result) const;

  /// Sends a value of every row to all members: before, each has those of its own rows; after, of all rows.
  ///
  /// Requires  of_rows.size() == rows()
  template <typename T>
  void gather(std::vector<T>& of_rows) const {
    complete(std::as_writable_bytes(std::span(of_rows)),
             [&](std::size_t slice) { return row_of(slice) * sizeof(T); });
  }

 private:
  /// Completes `bytes` in all members, in which a slice begins at `place(slice)`.
  template <typename Place>
  void complete(std::span<std::byte> bytes, const Place& place) const {
    std::vector<std::size_t> begins(team_->size() + 1);
    for (std::size_t member = 0; member < begins.size(); ++member)
      begins[member] = place(first_slice(member));
    team_->gather(bytes, begins);
  }

  [[nodiscard]] std::size_t rank() const { return team_->rank(); }
  [[nodiscard]] std::size_t first_slice(std::size_t member) const { return team_->first_of(member, count); }
  [[nodiscard]] std::size_t row_of(std::size_t slice) const { return rows_ * slice / count; }

  std::size_t rows_;
  const Team* team_;
};

/// xᵀ A x + v·x + k as the unknown of a least squares problem; A symmetric.
struct Quadric {
  std::vector<double> matrix{};  ///< A (width × width), row-major
  std::vector<double> linear{};  ///< v
  double constant = 0.0;         ///< k

  explicit Quadric(std::size_t width = 0) : matrix(width * width), linear(width) {}
  void add(double factor, const Quadric& other);
  [[nodiscard]] double dot(const Quadric& other) const;
};

/// The linear map from quadrics to their values at given points, and its transpose, applied without forming
/// its matrix of rows × width²/2. Each takes about rows × width²/2 multiplications; a team shares the rows.
class Design {
 public:
  /// Shapes    points (slices.end() − slices.begin() × width): the rows of this member
  ///
  /// Requires  `points` outlive this
  Design(MatrixView<const double> points, const RowSlices& slices, unsigned threads)
      : points_(points), slices_(slices), threads_(threads) {}

  enum class Arithmetic { float32, float64 };

  [[nodiscard]] std::size_t rows() const { return slices_.rows(); }
  [[nodiscard]] std::size_t width() const { return points_.width(); }
  /// Values at all points, in every member.
  ///
  /// Accuracy  float32: a small multiple of 2⁻²⁴ of Σ |x_i A_ij x_j|; A x is computed in float32, x·A x in
  ///           float64 (test: Extract.FindsTheAxesOfTheWeights)
  void values(const Quadric& quadric, Arithmetic arithmetic, std::vector<double>& result) const;
  /// Σ_rows weight (x xᵀ, x, 1), with the trace of its matrix removed: the transpose of
  /// `values` on matrices without trace.
  ///
  /// Accuracy  float32: sums over at most 768 rows in float32, those in float64
  void transposed(const std::vector<double>& weights, Arithmetic arithmetic, Quadric& result) const;

 private:
  template <typename T>
  void values_of(const Quadric& quadric, std::vector<double>& result) const;
  template <typename T>
  void transposed_of(const std::vector<double>& weights, Quadric& result) const;
  /// Adds a block's part of the columns from `begin` to `end` of the transpose: matrix, linear part,
  /// constant.
  template <typename T>
  void add_columns(const RowSlices::Block& block, const std::vector<double>& weights, std::size_t begin,
                   std::size_t end, std::span<double> sums) const;

  [[nodiscard]] MatrixView<const double> block_of(const RowSlices::Block& block) const;

  MatrixView<const double> points_;
  RowSlices slices_;
  unsigned threads_;
};

/// Least squares by conjugate gradients, as an iteration whose state can be saved.
///
/// The quadric is |x|² + `found()`, where the matrix of `found()` has trace zero; its values at the points
/// are minimized. Iterations are in float32. When they stagnate, the residual is computed in float64 and the
/// iteration restarts with it. The fit ends when a restart reduces the residual by less than 2 %.
class ConjugateGradients {
 public:
  explicit ConjugateGradients(const Design& design);

  /// One iteration. Returns false after convergence.
  [[nodiscard]] bool round();

  [[nodiscard]] const Quadric& found() const { return found_; }  ///< as of the last restart
  [[nodiscard]] std::size_t rounds() const { return rounds_; }
  /// Root mean square of the values, as of the last restart.
  [[nodiscard]] double residual() const { return residual_; }
  /// Smallest and largest Ritz value of the preconditioned normal matrix: what is known of its spectrum.
  struct Ritz {
    double least = 0.0, largest = 0.0;
  };
  [[nodiscard]] Ritz ritz() const;

  void save(Packer& to) const;
  /// Errors    Format for a state of other sizes
  void load(Unpacker& from);

 private:
  void restart();
  void precondition(const Quadric& gradient, Quadric& result) const;

  const Design& design_;
  Quadric found_;
  Quadric step_;  ///< since the restart
  Quadric direction_;
  std::vector<double> left_{};  ///< the residual
  double slope_ = 0.0;          ///< gradient · preconditioned gradient
  double residual_ = 0.0;
  std::size_t rounds_ = 0;
  bool started_ = false;
  bool finished_ = false;
  std::vector<double> gains_{};             ///< decrease of |left|² in each round since the restart
  std::vector<double> alphas_{}, betas_{};  ///< of the longest run of rounds, for the Ritz values
  std::vector<double> first_alphas_{}, first_betas_{};
};

}  // namespace normscope::signature
