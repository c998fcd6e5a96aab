#pragma once

#include <cstddef>

#include <normscope/norm/kernels.hpp>

/// What the kernels, compiled once an instruction set, take and give.
namespace normscope::norm::detail {

struct ByColumns;

/// A call of `normalize`, or of `add_normalize` where `residual` has data.
template <typename T>
struct ForwardJob {
  const Layer<T>& layer;
  MatrixView<const T> x;
  MatrixView<const T> residual;
  MatrixView<T> sum;
  MatrixView<T> y;
  bool stream;   ///< past the caches, which y would only sweep
  bool at_hand;  ///< few enough entries to stay in the cache of a core
  ByColumns* columns = nullptr;
};

/// A call of `normalize_backward`.
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

/// Where a run of rows adds its share of the parameters' gradients; null where they are not wanted.
template <typename T>
struct Shares {
  Wide<T>* gain;
  Wide<T>* bias;
};

/// Sums over a run of a block's entries d = x − base and of a = g · dy, which merge into those of longer
/// runs. Without default values: a stack of them is no work to make.
struct Moments {
  double count;
  double offset;   ///< mean of d
  double squares;  ///< Σ (d − offset)², or Σ x² where nothing is centred
  double total;    ///< Σ a
  double along;    ///< Σ a d, or Σ a x
};

/// A run's moments, and what they are about.
struct Run {
  Moments moments;
  double base;
};

/// Few long rows of one group, whose columns are split: all are measured, then joined by one thread, then
/// applied to. A job with this takes columns where it would take rows.
struct ByColumns {
  enum class Step { measure, join, apply };
  Step step;
  Run* runs;  ///< a row's runs in order, `stride` from those of the next; once joined, all in the first
  std::size_t stride;
  bool ordinary;  ///< once joined: whether all rows are, else there is nothing to apply
};

/// `a` becomes the moments of both.
inline void merge(Moments& a, const Moments& b) {
  const double count = a.count + b.count;
  const double apart = b.offset - a.offset;
  a.offset += apart * (b.count / count);
  a.squares += b.squares + apart * apart * (a.count * b.count / count);
  a.total += b.total;
  a.along += b.along;
  a.count = count;
}

/// Merges runs as they come, equal ones first, so that rounding grows with the logarithm of their number;
/// the order depends on that number alone. All are taken about the first one's base.
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

/// dx of rows [first, last), or columns, and their shares added to what is there.
void backward_rows(const BackwardJob<double>& job, std::size_t first, std::size_t last, Shares<double> to);
void backward_rows(const BackwardJob<float>& job, std::size_t first, std::size_t last, Shares<float> to);
void backward_rows(const BackwardJob<Bfloat16>& job, std::size_t first, std::size_t last,
                   Shares<Bfloat16> to);
void backward_rows(const BackwardJob<Float16>& job, std::size_t first, std::size_t last, Shares<Float16> to);

/// One block of a row, which starts at feature `begin`, in double and scaled: for rows whose squares leave
/// the range of Wide<T>, whose deviations are all zero, or that hold no numbers.
template <typename T>
void plain_forward(const Layer<T>& layer, std::size_t begin, const T* x, T* y);
template <typename T>
void plain_backward(const Layer<T>& layer, std::size_t begin, const T* x, const T* dy, T* dx, Shares<T> to);

}  // namespace normscope::norm::detail
