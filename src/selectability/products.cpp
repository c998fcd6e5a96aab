#include "products.hpp"

#include <normscope/numeric/product.hpp>

namespace normscope::selectability {

void multiply(const float* a, std::size_t rows, const float* b, std::size_t columns, std::size_t width,
              float* scores) {
  const Factor<float> left(a, rows, width, width);
  const Factor<float> right(b, columns, width, width);
  normscope::multiply(left, right.transposed(), MatrixView<float>(scores, rows, columns));
}

}  // namespace normscope::selectability
