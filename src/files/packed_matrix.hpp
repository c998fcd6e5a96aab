#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>

namespace normscope::files {

/// The distances of a level to its neighbours, 0 at an end.
struct Neighbours {
  float below = 0.0F, above = 0.0F;
  float nearest = 0.0F;
};

/// What each code stands for in units of the scale. All matrices of a scheme share one.
struct Levels {
  explicit Levels(std::vector<float> of_codes);

  std::vector<float> values;
  std::vector<Neighbours> neighbours;
};

/// 0 to 2^bits − 1, less 2^(bits − 1) if they are centred.
///
/// Requires  1 <= bits <= 8
[[nodiscard]] const Levels& integers(unsigned bits, bool centred = false);
/// Floats of four bits: two of exponent, one of mantissa.
[[nodiscard]] const Levels& floats_of_four_bits();
/// The values of all codes of F8_E4M3, F8_E5M2 or I8.
[[nodiscard]] const Levels& values_of(Dtype dtype);

/// What codes stand for, and what a quantizer leaves.
struct Coding {
  std::string name;
  const Levels& levels;
  std::uint64_t group = 1;  ///< columns that share a scale
  std::uint64_t group_bytes = 1;
  Dtype scales = Dtype::F32;  ///< F8_E8M0 for powers of two with an exponent of 8 bits
  bool rounds_scale = true;   ///< codes are chosen before the scale is rounded to its type
  bool adds_zero = false;  ///< zero points are added to quotients in the scale's type, which rounds the sum
  bool is_nearest = true;  ///< codes are the nearest ones, else they may be the next
  /// How far beyond an end of a group's range an original may lie: in steps there, and in units of the scale.
  double clipped_steps = 0.0;
  double clipped_units = 0.0;
  double least_scale_spacing = 0.0;  ///< half of it, for scales of 8 bits
};

/// Some rows of a matrix, taken apart.
struct Tile {
  std::vector<std::uint8_t> codes;  ///< rows × columns
  std::vector<double> scales;       ///< rows × groups
  std::vector<double> offsets;      ///< likewise, or empty for none
};

/// A matrix whose value is scale · level(code) + offset, with a scale and an offset for each group of
/// columns of a row. More axes than two are rows.
class PackedMatrix : public QuantizedSource {
 public:
  /// `group_of` has the group of each column where groups are not consecutive columns.
  PackedMatrix(std::string name, std::vector<std::uint64_t> shape, Coding coding,
               std::vector<std::uint32_t> group_of = {});

  [[nodiscard]] Tensor tensor() const;
  [[nodiscard]] std::uint64_t size() const override { return rows_ * columns_ * sizeof(float); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  void describe(std::uint64_t first, std::span<QuantizedElement> out) const override;
  [[nodiscard]] bool is_nearest() const override { return coding_.is_nearest; }

 protected:
  /// Fills `tile`, whose parts have their sizes, with rows [first, first + count).
  virtual void load(std::uint64_t first, std::uint64_t count, Tile& tile) const = 0;

  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] std::uint64_t columns() const { return columns_; }
  [[nodiscard]] std::uint64_t groups() const { return groups_; }
  [[nodiscard]] std::span<const std::uint64_t> shape() const { return shape_; }
  [[nodiscard]] const Coding& coding() const { return coding_; }

 private:
  [[nodiscard]] std::size_t group_at(std::uint64_t column) const;
  void take_apart(std::uint64_t first, std::uint64_t count, Tile& tile) const;
  void decode_tile(const Tile& tile, std::uint64_t rows, std::span<float> values) const;
  [[nodiscard]] QuantizedElement element(const Tile& tile, std::uint64_t column) const;

  std::string name_;
  std::vector<std::uint64_t> shape_;
  Coding coding_;
  std::vector<std::uint32_t> group_of_;
  BlockFormat format_;
  std::uint64_t rows_ = 1;
  std::uint64_t columns_ = 0;
  std::uint64_t groups_ = 0;
};

// How codes and scales are laid out. Tensors are those of the checkpoint, which outlives the matrix.

/// Rows of codes of `bits` bits, lowest first, in words of 32 bits; scales [rows, groups]. `offsets` are
/// biases of their shape, or zero points of `bits` bits, packed along the rows, less 2^(bits − 1).
struct BitStream {
  unsigned bits = 4;
  const Tensor* codes = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* biases = nullptr;
  const Tensor* zero_points = nullptr;
};
[[nodiscard]] std::unique_ptr<PackedMatrix> bit_stream(std::string name, std::vector<std::uint64_t> shape,
                                                       Coding coding, const BitStream& parts);

/// A byte a code; scales of blocks of `block_rows` rows and `Coding::group` columns.
[[nodiscard]] std::unique_ptr<PackedMatrix> byte_codes(std::string name, Coding coding, const Tensor& codes,
                                                       const Tensor& scales, std::uint64_t block_rows);

/// Transposed matrices in words of 32 bits, with scales [groups, rows] and zero points [groups, rows · bits /
/// 32]: GPTQ packs codes along the columns ([columns · bits / 32, rows]), AWQ along the rows, in its own
/// order ([columns, rows / 8]). `zero_less` is added to zero points.
struct Transposed {
  unsigned bits = 4;
  bool packs_rows = false;
  const Tensor* codes = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* zero_points = nullptr;
  int zero_less = 0;
};
[[nodiscard]] std::unique_ptr<PackedMatrix> transposed(std::string name, std::vector<std::uint64_t> shape,
                                                       Coding coding, const Transposed& parts,
                                                       std::vector<std::uint32_t> group_of);

}  // namespace normscope::files
