#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>

#include "matrix.hpp"
#include "probes.hpp"

namespace normscope::rewrite {

/// Errors    Unsupported, naming the tensor and the first value that is not finite
void expect_finite(const checkpoint::Tensor& tensor, std::span<const double> old,
                   std::span<const double> exact, std::span<const double> stored);

/// Sums over the input features of the three matrices, for every output feature and probe.
struct Outputs {
  Probe old{};
  Probe exact{};  ///< rewritten, before rounding to the dtype
  Probe stored{};
};

/// A block of rows as they are read, rewritten in float64, and as stored.
struct Block {
  std::size_t first = 0;
  std::size_t rows = 0;
  std::span<const double> old;
  std::span<const double> exact;
  std::span<const double> stored;
};

/// One pass over a stored matrix, block by block.
class MatrixPass {
 public:
  MatrixPass(const StoredMatrix& matrix, unsigned threads) : matrix_(matrix), threads_(threads) {}

  /// Calls `use` with blocks whose `old` alone is set.
  void read(const std::function<void(const Block&)>& use);

  /// Writes `rewritten(row, column, value)` of every element to `sink`, calls `use` with every block, and
  /// applies the old and the new matrix to probes of the input features.
  ///
  /// Errors    Unsupported for a value
  /// that is not finite or leaves the dtype's range
  template <typename Rewritten>
  std::vector<Outputs> rewrite(const Rewritten& rewritten, std::span<const Probe> old_inputs,
                               std::span<const Probe> new_inputs, const Sink& sink,
                               const std::function<void(const Block&)>& use);

  /// Rewrites every element, and calls `use` with every block and its bytes, which it may change.
  template <typename Rewritten, typename Use>
  void rewrite(const Rewritten& rewritten, const Use& use);

 private:
  void load(std::size_t first, std::size_t rows);
  void encode_rows(std::size_t rows);
  void apply(const Block& block, std::span<const Probe> old_inputs, std::span<const Probe> new_inputs,
             std::vector<Outputs>& outputs) const;
  [[nodiscard]] std::size_t rows_of_block() const;

  const StoredMatrix& matrix_;
  unsigned threads_;
  std::vector<std::byte> bytes_;
  std::vector<double> old_;
  std::vector<double> exact_;
  std::vector<double> stored_;
};

template <typename Rewritten, typename Use>
void MatrixPass::rewrite(const Rewritten& rewritten, const Use& use) {
  const std::size_t columns = matrix_.columns();
  for (std::size_t first = 0; first < matrix_.rows(); first += rows_of_block()) {
    const std::size_t rows = std::min<std::size_t>(rows_of_block(), matrix_.rows() - first);
    load(first, rows);
    exact_.resize(old_.size());
    parallel_for(rows, 1, threads_, [&](std::size_t from, std::size_t to) {
      for (std::size_t row = from; row < to; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
          const std::size_t at = row * columns + column;
          exact_[at] = rewritten(first + row, column, old_[at]);
        }
      }
    });
    encode_rows(rows);
    use(Block{first, rows, old_, exact_, stored_}, std::span<std::byte>(bytes_));
  }
}

template <typename Rewritten>
std::vector<Outputs> MatrixPass::rewrite(const Rewritten& rewritten, std::span<const Probe> old_inputs,
                                         std::span<const Probe> new_inputs, const Sink& sink,
                                         const std::function<void(const Block&)>& use) {
  std::vector<Outputs> outputs(matrix_.map.stored_out);
  rewrite(rewritten, [&](const Block& block, std::span<std::byte> bytes) {
    apply(block, old_inputs, new_inputs, outputs);
    use(block);
    sink(bytes);
  });
  return outputs;
}

}  // namespace normscope::rewrite
