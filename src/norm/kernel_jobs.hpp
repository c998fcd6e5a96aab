#pragma once

#include <cstddef>
#include <span>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>
#include <normscope/norm/kernels.hpp>

/// Arguments and results of the kernels, which are compiled once per instruction set.
namespace normscope::norm::detail {

/// Elements as numbers in double, and back.
inline double number(double value) { return value; }
inline double number(float value) { return static_cast<double>(value); }
inline double number(Bfloat16 value) { return static_cast<double>(to_float(value)); }
inline double number(Float16 value) { return static_cast<double>(to_float(value)); }
inline void put(double value, double& to) { to = value; }
inline void put(double value, float& to) { to = static_cast<float>(value); }
inline void put(double value, Bfloat16& to) { to = to_bfloat16(static_cast<float>(value)); }
inline void put(double value, Float16& to) { to = to_float16(static_cast<float>(value)); }

struct ByColumns;

/// Arguments of `normalize`, or of `add_normalize` if `residual` has data.
template <typename T>
struct ForwardJob {
  const Layer<T>& layer;
  MatrixView<const T> x;
  MatrixView<const T> residual;
  MatrixView<T> sum;
  MatrixView<T> y;
  bool stream;   ///< whether stores bypass the caches
  bool at_hand;  ///< whether the data fit into the cache of a core
  ByColumns* columns = nullptr;
};

/// Arguments of `normalize_backward`.
template <typename T>
struct BackwardJob {
  const Layer<T>& layer;
  MatrixView<const T> x;
  MatrixView<const T> dy;
  MatrixView<T> dx;
  bool stream;
  bool at_hand;
  ByColumns* columns = nullptr;
};

/// Where a range of rows adds its part of the parameters' gradients; null if a gradient is not wanted.
template <typename T>
struct Shares {
  Wide<T>* gain;
  Wide<T>* bias;
};

/// Sums over a run of a block's entries d = x − base and of a = g · dy, which can be merged into those of
/// longer runs. Without default values, so that an array of them needs no initialization.
struct Moments {
  double count;
  double offset;   ///< mean of d
  double squares;  ///< Σ (d − offset)², or Σ x² without centring
  double total;    ///< Σ a
  double along;    ///< Σ a d, or Σ a x
};

/// Moments of a run, with its base.
struct Run {
  Moments moments;
  double base;
};

/// A few long rows of one group, whose columns are split among threads: all rows are measured, one thread
/// merges their runs, then all are normalized. A job with such a split takes ranges of columns instead of
/// rows.
struct ByColumns {
  enum class Step { measure, join, apply };
  Step step;
  Run* runs;  ///< of a row, in order; the first holds the merged result
  std::size_t stride;
  bool ordinary;  ///< after merging: whether all rows are in range; otherwise nothing is normalized
};

/// Merges `b` into `a`.
inline void merge(Moments& a, const Moments& b) {
  const double count = a.count + b.count;
  const double apart = b.offset - a.offset;
  a.offset += apart * (b.count / count);
  a.squares += b.squares + apart * apart * (a.count * b.count / count);
  a.total += b.total;
  a.along += b.along;
  a.count = count;
}

/// Merges runs as they arrive, runs of equal length first, so that rounding grows with the logarithm of their
/// number. The order depends only on that number. All use the base of the first run.
class Cascade {
 public:
  explicit Cascade(const Run& first) : base_(first.base) { runs_[0] = first.moments; }
  void add(const Run& run) {
    Moments& m = runs_[depth_++];
    m = run.moments;
    m.offset += run.base - base_;
    m.along += (run.base - base_) * m.total;
    for (std::size_t carry = ++added_; carry % 2 == 0; carry /= 2) merge_last();
  }
  [[nodiscard]] Run total() {
    while (depth_ > 1) merge_last();
    return {runs_[0], base_};
  }

 private:
  void merge_last() {
    --depth_;
    merge(runs_[depth_ - 1], runs_[depth_]);
  }

  Moments runs_[64];
  double base_;
  std::size_t depth_ = 1;
  std::size_t added_ = 1;
};

/// Rows [first, last), or columns.
void forward_rows(const ForwardJob<double>& job, std::size_t first, std::size_t last);
void forward_rows(const ForwardJob<float>& job, std::size_t first, std::size_t last);
void forward_rows(const ForwardJob<Bfloat16>& job, std::size_t first, std::size_t last);
void forward_rows(const ForwardJob<Float16>& job, std::size_t first, std::size_t last);

/// dx of rows [first, last), or columns; adds their gradient sums.
void backward_rows(const BackwardJob<double>& job, std::size_t first, std::size_t last, Shares<double> to);
void backward_rows(const BackwardJob<float>& job, std::size_t first, std::size_t last, Shares<float> to);
void backward_rows(const BackwardJob<Bfloat16>& job, std::size_t first, std::size_t last,
                   Shares<Bfloat16> to);
void backward_rows(const BackwardJob<Float16>& job, std::size_t first, std::size_t last, Shares<Float16> to);

/// Normalizes one block of a row, which starts at feature `begin`, in double with scaling: for rows whose
/// squares leave the range of Wide<T>, whose deviations are all zero, or that contain NaN or infinity.
template <typename T>
void plain_forward(const Layer<T>& layer, std::size_t begin, const T* x, T* y);
template <typename T>
void plain_backward(const Layer<T>& layer, std::size_t begin, const T* x, const T* dy, T* dx, Shares<T> to);

// The elementwise kinds: y_i = g_i f(α x_i + s) + b_i, with one function f per kind.

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
