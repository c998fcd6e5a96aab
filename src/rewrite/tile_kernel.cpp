#include "tile_kernel.hpp"

#include <algorithm>

#include <normscope/core/dtype.hpp>
#include <normscope/core/error.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace normscope::rewrite {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::CappedTag<double, most_lanes>;
using Vector = hn::Vec<Doubles>;
using Floats = hn::Rebind<float, Doubles>;

/// How a format is read as float64, and written where float64 holds a number of it.
struct Float64 {
  using Stored = double;
  static constexpr int dropped = 0;  ///< bits of float64's mantissa that it does not have
  static constexpr double smallest = 0x1p-1022;
  static constexpr double largest = 0x1.fffffffffffffp1023;
  static HWY_INLINE Vector Load(const double* from) { return hn::LoadU(Doubles(), from); }
  static HWY_INLINE void Store(Vector values, double* to) { hn::StoreU(values, Doubles(), to); }
};

struct Float32 {
  using Stored = float;
  static constexpr int dropped = 29;
  static constexpr double smallest = 0x1p-126;  ///< normal number
  static constexpr double largest = 0x1.fffffep127;
  static constexpr double grid = 0x1p-149;  ///< distance of the numbers below
  static HWY_INLINE Vector Load(const float* from) {
    return hn::PromoteTo(Doubles(), hn::LoadU(Floats(), from));
  }
  static HWY_INLINE void Store(Vector values, float* to) {
    hn::StoreU(hn::DemoteTo(Floats(), values), Floats(), to);
  }
};

struct Float16 {
  using Stored = hwy::float16_t;
  static constexpr int dropped = 42;
  static constexpr double smallest = 0x1p-14;
  static constexpr double largest = 65504.0;
  static constexpr double grid = 0x1p-24;
#if HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE4
  // Highway's conversions for processors that have none take infinities and NaN for numbers, and -0 for 0.
  static HWY_INLINE Vector Load(const hwy::float16_t* from) {
    double values[most_lanes];
    for (std::size_t i = 0; i < hn::Lanes(Doubles()); ++i) {
      values[i] = static_cast<double>(decode_float16(from[i].bits));
    }
    return hn::LoadU(Doubles(), values);
  }
  static HWY_INLINE void Store(Vector values, hwy::float16_t* to) {
    double each[most_lanes];
    hn::StoreU(values, Doubles(), each);
    for (std::size_t i = 0; i < hn::Lanes(Doubles()); ++i) {
      to[i].bits = encode_float16(each[i]);
    }
  }
#else
  static HWY_INLINE Vector Load(const hwy::float16_t* from) {
    const auto halves = hn::LoadU(hn::Rebind<hwy::float16_t, Doubles>(), from);
    return hn::PromoteTo(Doubles(), hn::PromoteTo(Floats(), halves));
  }
  static HWY_INLINE void Store(Vector values, hwy::float16_t* to) {
    const hn::Rebind<hwy::float16_t, Doubles> halves;
    hn::StoreU(hn::DemoteTo(halves, hn::DemoteTo(Floats(), values)), halves, to);
  }
#endif
};

struct Bfloat16 {
  using Stored = std::uint16_t;
  static constexpr int dropped = 45;
  static constexpr double smallest = 0x1p-126;
  static constexpr double largest = 0x1.fep127;
  static constexpr double grid = 0x1p-133;
  static HWY_INLINE Vector Load(const std::uint16_t* from) {
    const hn::Rebind<std::uint32_t, Doubles> words;
    const auto halves = hn::LoadU(hn::Rebind<std::uint16_t, Doubles>(), from);
    return hn::PromoteTo(Doubles(), hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, halves))));
  }
  static HWY_INLINE void Store(Vector values, std::uint16_t* to) {
    const hn::Rebind<std::uint32_t, Doubles> words;
    const hn::Rebind<std::int32_t, Doubles> integers;
    const hn::Rebind<std::uint16_t, Doubles> halves;
    const auto bits = hn::ShiftRight<16>(hn::BitCast(words, hn::DemoteTo(Floats(), values)));
    hn::StoreU(hn::DemoteTo(halves, hn::BitCast(integers, bits)), halves, to);
  }
};

/// The nearest number of the format, were its exponents not bounded above; nor below, unless `to_grid`.
template <typename Format, bool to_grid>
HWY_INLINE Vector Rounded(Vector exact) {
  if constexpr (Format::dropped == 0) {
    return exact;
  } else {
    const Doubles tag;
    const hn::RebindToUnsigned<Doubles> words;
    constexpr int dropped = Format::dropped;
    const auto half_less_tie = hn::Set(words, (std::uint64_t{1} << (dropped - 1)) - 1);
    const auto kept = hn::Set(words, ~((std::uint64_t{1} << dropped) - 1));
    const auto bits = hn::BitCast(words, exact);
    const auto odd = hn::And(hn::ShiftRight<dropped>(bits), hn::Set(words, std::uint64_t{1}));
    const Vector normal = hn::BitCast(tag, hn::And(hn::Add(hn::Add(bits, half_less_tie), odd), kept));
    if (!to_grid) return normal;
    // Float64 numbers next to this one are as far apart as the format's smallest.
    const Vector offset = hn::Set(tag, 0x1.8p52 * Format::grid);
    const Vector size = hn::Abs(exact);
    const Vector small = hn::CopySign(hn::Sub(hn::Add(size, offset), offset), exact);
    return hn::IfThenElse(hn::Lt(size, hn::Set(tag, Format::smallest)), small, normal);
  }
}

/// Rewrites as many elements as a vector has; returns what is stored.
template <typename Format, bool to_grid>
HWY_INLINE Vector ConvertVector(const typename Format::Stored* from, const double* shift,
                                const double* factor, typename Format::Stored* to, const RowValues& values,
                                std::size_t at) {
  const Doubles tag;
  const Vector old = Format::Load(from + at);
  const Vector exact = hn::Mul(hn::Sub(old, hn::LoadU(tag, shift)), hn::LoadU(tag, factor));
  const Vector stored = Rounded<Format, to_grid>(exact);
  Format::Store(stored, to + at);
  hn::StoreU(old, tag, values.old + at);
  hn::StoreU(exact, tag, values.exact + at);
  hn::StoreU(stored, tag, values.stored + at);
  return stored;
}

template <typename Format>
HWY_INLINE RowFlags Convert(const std::byte* row, const RowChange& change, std::size_t count,
                            std::byte* rewritten, const RowValues& values) {
  const Doubles tag;
  const std::size_t lanes = hn::Lanes(tag);
  const auto* const from = reinterpret_cast<const typename Format::Stored*>(row);
  auto* const to = reinterpret_cast<typename Format::Stored*>(rewritten);
  const Vector smallest = hn::Set(tag, Format::smallest);
  const Vector largest = hn::Set(tag, Format::largest);
  const Vector zero = hn::Zero(tag);
  const std::size_t step = change.is_one ? 0 : 1;
  auto not_held = hn::MaskFromVec(zero);
  RowFlags flags;
  for (std::size_t begin = 0; begin < count; begin += tile_step) {
    auto is_below = hn::MaskFromVec(zero);
    for (std::size_t at = begin; at < begin + tile_step; at += lanes) {
      const Vector size = hn::Abs(ConvertVector<Format, false>(from, change.shift + at * step,
                                                               change.factor + at * step, to, values, at));
      is_below = hn::Or(is_below, hn::Lt(size, smallest));
      not_held = hn::Or(not_held, hn::Not(hn::Le(size, largest)));
    }
    // Few steps have numbers below the normal ones, which are rounded differently.
    if (hn::AllFalse(tag, is_below)) continue;
    auto is_small = hn::MaskFromVec(zero);
    for (std::size_t at = begin; at < begin + tile_step; at += lanes) {
      const Vector size = hn::Abs(ConvertVector<Format, true>(from, change.shift + at * step,
                                                              change.factor + at * step, to, values, at));
      const auto was_number = hn::Ne(hn::LoadU(tag, values.old + at), zero);
      is_small = hn::Or(is_small, hn::And(hn::Lt(size, smallest), was_number));
    }
    if (!hn::AllFalse(tag, is_small)) flags.small |= std::uint64_t{1} << (begin / tile_step);
  }
  flags.is_held = hn::AllFalse(tag, not_held);
  return flags;
}

RowFlags ConvertRow(Dtype dtype, const std::byte* row, const RowChange& change, std::size_t count,
                    std::byte* rewritten, const RowValues& values) {
  switch (dtype) {
    case Dtype::F64: return Convert<Float64>(row, change, count, rewritten, values);
    case Dtype::F32: return Convert<Float32>(row, change, count, rewritten, values);
    case Dtype::F16: return Convert<Float16>(row, change, count, rewritten, values);
    case Dtype::BF16: return Convert<Bfloat16>(row, change, count, rewritten, values);
    default: break;
  }
  NORMSCOPE_ASSERT(false);  // callers ask is_rewritable first
  return {};
}

template <typename Format>
HWY_INLINE void Decode(const std::byte* row, std::size_t count, double* values) {
  const Doubles tag;
  const auto* const from = reinterpret_cast<const typename Format::Stored*>(row);
  for (std::size_t at = 0; at < count; at += hn::Lanes(tag)) {
    hn::StoreU(Format::Load(from + at), tag, values + at);
  }
}

void DecodeRow(Dtype dtype, const std::byte* row, std::size_t count, double* values) {
  switch (dtype) {
    case Dtype::F64: Decode<Float64>(row, count, values); return;
    case Dtype::F32: Decode<Float32>(row, count, values); return;
    case Dtype::F16: Decode<Float16>(row, count, values); return;
    case Dtype::BF16: Decode<Bfloat16>(row, count, values); return;
    default: NORMSCOPE_ASSERT(false);  // callers ask is_rewritable first
  }
}

HWY_INLINE double Total(Vector values) {
  const Doubles tag;
  return hn::GetLane(hn::SumOfLanes(tag, values));
}

void LengthsOfRow(const RowValues& row, std::size_t count, Lengths& lengths) {
  const Doubles tag;
  Vector exact = hn::Zero(tag), error = exact, old = exact;
  for (std::size_t at = 0; at < count; at += hn::Lanes(tag)) {
    const Vector w = hn::LoadU(tag, row.old + at);
    const Vector e = hn::LoadU(tag, row.exact + at);
    const Vector difference = hn::Sub(hn::LoadU(tag, row.stored + at), e);
    exact = hn::MulAdd(e, e, exact);
    error = hn::MulAdd(difference, difference, error);
    old = hn::MulAdd(w, w, old);
  }
  lengths.exact += Total(exact);
  lengths.error += Total(error);
  lengths.old += Total(old);
}

void OutputsOfRow(const RowValues& row, std::size_t count, const ProbeRows& inputs, OutputSums& outputs) {
  static_assert(probe_count == 4);
  const Doubles tag;
  const Vector zero = hn::Zero(tag);
  Vector old0 = zero, old1 = zero, old2 = zero, old3 = zero;
  Vector exact0 = zero, exact1 = zero, exact2 = zero, exact3 = zero;
  Vector stored0 = zero, stored1 = zero, stored2 = zero, stored3 = zero;
  for (std::size_t at = 0; at < count; at += hn::Lanes(tag)) {
    const Vector w = hn::LoadU(tag, row.old + at);
    const Vector exact = hn::LoadU(tag, row.exact + at);
    const Vector stored = hn::LoadU(tag, row.stored + at);
    const double* const before = inputs.old + at;
    const double* const after = inputs.rewritten + at;
    old0 = hn::MulAdd(w, hn::LoadU(tag, before), old0);
    old1 = hn::MulAdd(w, hn::LoadU(tag, before + inputs.stride), old1);
    old2 = hn::MulAdd(w, hn::LoadU(tag, before + 2 * inputs.stride), old2);
    old3 = hn::MulAdd(w, hn::LoadU(tag, before + 3 * inputs.stride), old3);
    const Vector n0 = hn::LoadU(tag, after), n1 = hn::LoadU(tag, after + inputs.stride);
    const Vector n2 = hn::LoadU(tag, after + 2 * inputs.stride);
    const Vector n3 = hn::LoadU(tag, after + 3 * inputs.stride);
    exact0 = hn::MulAdd(exact, n0, exact0);
    exact1 = hn::MulAdd(exact, n1, exact1);
    exact2 = hn::MulAdd(exact, n2, exact2);
    exact3 = hn::MulAdd(exact, n3, exact3);
    stored0 = hn::MulAdd(stored, n0, stored0);
    stored1 = hn::MulAdd(stored, n1, stored1);
    stored2 = hn::MulAdd(stored, n2, stored2);
    stored3 = hn::MulAdd(stored, n3, stored3);
  }
  const Probe old = {Total(old0), Total(old1), Total(old2), Total(old3)};
  const Probe exact = {Total(exact0), Total(exact1), Total(exact2), Total(exact3)};
  const Probe stored = {Total(stored0), Total(stored1), Total(stored2), Total(stored3)};
  for (std::size_t k = 0; k < probe_count; ++k) {
    outputs.old[k] += old[k];
    outputs.exact[k] += exact[k];
    outputs.stored[k] += stored[k];
  }
}

void LengthsOfColumns(const TileRows& tile, double* numbers, std::size_t stride) {
  const Doubles tag;
  for (std::size_t at = 0; at < tile.columns; at += hn::Lanes(tag)) {
    Vector exact = hn::LoadU(tag, numbers + at);
    Vector error = hn::LoadU(tag, numbers + stride + at);
    Vector old = hn::LoadU(tag, numbers + 2 * stride + at);
    for (std::size_t row = 0; row < tile.rows; ++row) {
      const Vector w = hn::LoadU(tag, tile.values.old + row * tile.stride + at);
      const Vector e = hn::LoadU(tag, tile.values.exact + row * tile.stride + at);
      const Vector difference = hn::Sub(hn::LoadU(tag, tile.values.stored + row * tile.stride + at), e);
      exact = hn::MulAdd(e, e, exact);
      error = hn::MulAdd(difference, difference, error);
      old = hn::MulAdd(w, w, old);
    }
    hn::StoreU(exact, tag, numbers + at);
    hn::StoreU(error, tag, numbers + stride + at);
    hn::StoreU(old, tag, numbers + 2 * stride + at);
  }
}

/// Adds Σ_i inputs[i] values[i] to four numbers of each column.
HWY_INLINE void AddProducts(const TileRows& tile, const double* values, const Probe* inputs, double* numbers,
                            std::size_t stride) {
  static_assert(probe_count == 4);
  const Doubles tag;
  for (std::size_t at = 0; at < tile.columns; at += hn::Lanes(tag)) {
    Vector sum0 = hn::LoadU(tag, numbers + at);
    Vector sum1 = hn::LoadU(tag, numbers + stride + at);
    Vector sum2 = hn::LoadU(tag, numbers + 2 * stride + at);
    Vector sum3 = hn::LoadU(tag, numbers + 3 * stride + at);
    for (std::size_t row = 0; row < tile.rows; ++row) {
      const Vector x = hn::LoadU(tag, values + row * tile.stride + at);
      sum0 = hn::MulAdd(x, hn::Set(tag, inputs[row][0]), sum0);
      sum1 = hn::MulAdd(x, hn::Set(tag, inputs[row][1]), sum1);
      sum2 = hn::MulAdd(x, hn::Set(tag, inputs[row][2]), sum2);
      sum3 = hn::MulAdd(x, hn::Set(tag, inputs[row][3]), sum3);
    }
    hn::StoreU(sum0, tag, numbers + at);
    hn::StoreU(sum1, tag, numbers + stride + at);
    hn::StoreU(sum2, tag, numbers + 2 * stride + at);
    hn::StoreU(sum3, tag, numbers + 3 * stride + at);
  }
}

void OutputsOfColumns(const TileRows& tile, const Probe* old_inputs, const Probe* new_inputs, double* numbers,
                      std::size_t stride) {
  AddProducts(tile, tile.values.old, old_inputs, numbers, stride);
  AddProducts(tile, tile.values.exact, new_inputs, numbers + probe_count * stride, stride);
  AddProducts(tile, tile.values.stored, new_inputs, numbers + 2 * probe_count * stride, stride);
}

/// Adds a term to a compensated sum, and its size to another.
HWY_INLINE void AddTerm(Vector term, Vector& sum, Vector& compensation, Vector& magnitude) {
  const Vector next = hn::Add(sum, term);
  const Vector added = hn::Sub(next, sum);
  const Vector lost = hn::Add(hn::Sub(sum, hn::Sub(next, added)), hn::Sub(term, added));
  compensation = hn::Add(compensation, lost);
  magnitude = hn::Add(magnitude, hn::Abs(term));
  sum = next;
}

void DotsOfColumns(const TileRows& tile, const double* weights, double* numbers, std::size_t stride) {
  const Doubles tag;
  for (std::size_t at = 0; at < tile.columns; at += hn::Lanes(tag)) {
    Vector sum = hn::LoadU(tag, numbers + at);
    Vector compensation = hn::LoadU(tag, numbers + stride + at);
    Vector magnitude = hn::LoadU(tag, numbers + 2 * stride + at);
    for (std::size_t row = 0; row < tile.rows; ++row) {
      const Vector x = hn::LoadU(tag, tile.values.old + row * tile.stride + at);
      AddTerm(hn::Mul(x, hn::Set(tag, weights[row])), sum, compensation, magnitude);
    }
    hn::StoreU(sum, tag, numbers + at);
    hn::StoreU(compensation, tag, numbers + stride + at);
    hn::StoreU(magnitude, tag, numbers + 2 * stride + at);
  }
}

void DotsOfRow(const double* values, const double* weights, std::size_t count, double* numbers) {
  const Doubles tag;
  Vector sum = hn::Zero(tag), compensation = sum, magnitude = sum;
  for (std::size_t at = 0; at < count; at += hn::Lanes(tag)) {
    AddTerm(hn::Mul(hn::LoadU(tag, values + at), hn::LoadU(tag, weights + at)), sum, compensation, magnitude);
  }
  std::fill_n(numbers, numbers_of_dots * most_lanes, 0.0);
  hn::StoreU(sum, tag, numbers);
  hn::StoreU(compensation, tag, numbers + most_lanes);
  hn::StoreU(magnitude, tag, numbers + 2 * most_lanes);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::rewrite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope::rewrite {

HWY_EXPORT(ConvertRow);
HWY_EXPORT(DecodeRow);
HWY_EXPORT(LengthsOfRow);
HWY_EXPORT(OutputsOfRow);
HWY_EXPORT(LengthsOfColumns);
HWY_EXPORT(OutputsOfColumns);
HWY_EXPORT(DotsOfColumns);
HWY_EXPORT(DotsOfRow);

RowFlags convert_row(Dtype dtype, const std::byte* row, const RowChange& change, std::size_t count,
                     std::byte* rewritten, const RowValues& values) {
  return HWY_DYNAMIC_DISPATCH(ConvertRow)(dtype, row, change, count, rewritten, values);
}

void decode_row(Dtype dtype, const std::byte* row, std::size_t count, double* values) {
  HWY_DYNAMIC_DISPATCH(DecodeRow)(dtype, row, count, values);
}

void add_lengths_of_row(const RowValues& row, std::size_t count, Lengths& lengths) {
  HWY_DYNAMIC_DISPATCH(LengthsOfRow)(row, count, lengths);
}

void add_outputs_of_row(const RowValues& row, std::size_t count, const ProbeRows& inputs,
                        OutputSums& outputs) {
  HWY_DYNAMIC_DISPATCH(OutputsOfRow)(row, count, inputs, outputs);
}

void add_lengths_of_columns(const TileRows& tile, double* numbers, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(LengthsOfColumns)(tile, numbers, stride);
}

void add_outputs_of_columns(const TileRows& tile, const Probe* old_inputs, const Probe* new_inputs,
                            double* numbers, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(OutputsOfColumns)(tile, old_inputs, new_inputs, numbers, stride);
}

void add_dots_of_columns(const TileRows& tile, const double* weights, double* numbers, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(DotsOfColumns)(tile, weights, numbers, stride);
}

void dots_of_row(const double* values, const double* weights, std::size_t count, double* numbers) {
  HWY_DYNAMIC_DISPATCH(DotsOfRow)(values, weights, count, numbers);
}

}  // namespace normscope::rewrite
#endif  // HWY_ONCE
