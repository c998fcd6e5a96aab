#pragma once

#include <cstddef>
#include <span>

#include <normscope/core/error.hpp>

/// Conventions of the whole library: a matrix is `rows` vectors of `width` features, row-major,
/// the last axis is the features; strides count elements, not bytes. Views own nothing.
namespace normscope {

/// `rows` × `width` elements whose rows start `stride` elements apart.
///
/// Requires  stride >= width
template <typename T>
class MatrixView {
 public:
  MatrixView() = default;
  MatrixView(T* data, std::size_t rows, std::size_t width, std::size_t stride)
      : data_(data), rows_(rows), width_(width), stride_(stride) {
    NORMSCOPE_ASSERT(stride >= width);
  }
  MatrixView(T* data, std::size_t rows, std::size_t width) : MatrixView(data, rows, width, width) {}

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] T* data() const { return data_; }

  [[nodiscard]] std::span<T> row(std::size_t index) const {
    NORMSCOPE_ASSERT(index < rows_);
    return {data_ + index * stride_, width_};
  }

  // NOLINTNEXTLINE(google-explicit-constructor): a writable view is a readable one
  operator MatrixView<const T>() const { return {data_, rows_, width_, stride_}; }

 private:
  T* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t width_ = 0;
  std::size_t stride_ = 0;
};

}  // namespace normscope
