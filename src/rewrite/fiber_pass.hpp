#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "matrix.hpp"

namespace normscope::rewrite {

/// A block of fibers (vectors along one axis) of a stored matrix: n rows of `length` numbers each.
struct Fibers {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t length = 0;
  std::span<const double> old;
  std::span<const double> exact;   ///< rewritten, in float64
  std::span<const double> stored;  ///< the same rounded to the dtype

  [[nodiscard]] std::span<const double> row(std::span<const double> of, std::size_t index) const {
    return of.subspan(index * length, length);
  }
};

/// Rewrites a stored matrix if changed values depend on all values of their fiber, a row or column of the
/// file. Columns need the matrix in memory, in its dtype.
class FiberPass {
 public:
  FiberPass(const StoredMatrix& matrix, bool along_rows, unsigned threads)
      : matrix_(matrix), along_rows_(along_rows), threads_(threads) {}

  /// Replaces the fibers [first, first + n) in `values` by rewritten ones.
  using Change = std::function<void(std::span<double> values, std::size_t first)>;
  /// Elements of the slice whose bytes are not those of the rewritten values.
  using Patches = std::pair<std::span<const std::uint64_t>, std::span<const std::byte>>;

  /// Errors    Unsupported for a value that is not finite or leaves the dtype's range
  void rewrite(const Change& change, const std::function<void(const Fibers&)>& use, const Sink& sink,
               const Patches& patches = {});

 private:
  void rewrite_block(std::size_t first, std::size_t count, const Change& change,
                     const std::function<void(const Fibers&)>& use);
  void convert(std::size_t count, bool decodes, std::span<double> values, std::size_t first);
  void patch(std::size_t begin, std::size_t end, const Patches& patches, std::size_t& next);

  const StoredMatrix& matrix_;
  bool along_rows_;
  unsigned threads_;
  std::vector<std::byte> bytes_;  ///< of a block of rows, or of the whole matrix
  std::size_t first_row_ = 0;     ///< of `bytes_`
  std::vector<double> old_;
  std::vector<double> exact_;
  std::vector<double> stored_;
};

}  // namespace normscope::rewrite
