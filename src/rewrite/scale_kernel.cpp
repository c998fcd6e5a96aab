// This target has no float64 vectors.
#define HWY_DISABLED_TARGETS HWY_WASM

#include "scale_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "scale_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace normscope::rewrite {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Vector = hn::Vec<Doubles>;

/// How a format is read as float64, and written where float64 holds a number of it.
struct Float32 {
  using Stored = float;
  static constexpr int dropped = 29;  ///< bits of float64's mantissa that it does not have
  static constexpr double largest = 0x1.fffffep127;
  static HWY_INLINE Vector Load(const float* from) {
    return hn::PromoteTo(Doubles(), hn::LoadU(hn::Rebind<float, Doubles>(), from));
  }
  static HWY_INLINE void Store(Vector values, float* to) {
    const hn::Rebind<float, Doubles> floats;
    hn::StoreU(hn::DemoteTo(floats, values), floats, to);
  }
};

struct Bfloat16 {
  using Stored = std::uint16_t;
  static constexpr int dropped = 45;
  static constexpr double largest = 0x1.fep127;
  static HWY_INLINE Vector Load(const std::uint16_t* from) {
    const hn::Rebind<float, Doubles> floats;
    const hn::Rebind<std::uint32_t, Doubles> words;
    const auto halves = hn::LoadU(hn::Rebind<std::uint16_t, Doubles>(), from);
    return hn::PromoteTo(Doubles(), hn::BitCast(floats, hn::ShiftLeft<16>(hn::PromoteTo(words, halves))));
  }
  static HWY_INLINE void Store(Vector values, std::uint16_t* to) {
    const hn::Rebind<float, Doubles> floats;
    const hn::Rebind<std::uint32_t, Doubles> words;
    const hn::Rebind<std::int32_t, Doubles> integers;
    const hn::Rebind<std::uint16_t, Doubles> halves;
    const auto bits = hn::ShiftRight<16>(hn::BitCast(words, hn::DemoteTo(floats, values)));
    hn::StoreU(hn::DemoteTo(halves, hn::BitCast(integers, bits)), halves, to);
  }
};

template <typename Format>
HWY_INLINE RowSums ScaleRow(const typename Format::Stored* row, const RowInputs& inputs,
                            typename Format::Stored* stored) {
  const Doubles tag;
  const hn::RebindToUnsigned<Doubles> words;
  const std::size_t lanes = hn::Lanes(tag);
  constexpr int dropped = Format::dropped;
  const auto half_less_tie = hn::Set(words, (std::uint64_t{1} << (dropped - 1)) - 1);
  const auto one = hn::Set(words, std::uint64_t{1});
  const auto kept = hn::Set(words, ~((std::uint64_t{1} << dropped) - 1));
  const auto smallest = hn::Set(tag, 0x1p-126);  // the smallest normal number of both formats
  const auto largest = hn::Set(tag, Format::largest);
  const auto zero = hn::Zero(tag);
  Vector exact_squares = zero, error_squares = zero;
  Vector old0 = zero, old1 = zero, old2 = zero, old3 = zero;
  Vector exact0 = zero, exact1 = zero, exact2 = zero, exact3 = zero;
  Vector stored0 = zero, stored1 = zero, stored2 = zero, stored3 = zero;
  auto irregular = hn::MaskFromVec(zero);
  const std::size_t width = inputs.width;
  const auto step = [&](std::size_t at, Vector w, Vector gain) __attribute__((always_inline)) {
    const Vector exact = hn::Mul(w, gain);
    const auto bits = hn::BitCast(words, exact);
    const auto odd = hn::And(hn::ShiftRight<dropped>(bits), one);
    const Vector rounded = hn::BitCast(tag, hn::And(hn::Add(hn::Add(bits, half_less_tie), odd), kept));
    const Vector size = hn::Abs(rounded);
    irregular = hn::Or(irregular, hn::And(hn::Lt(size, smallest), hn::Ne(w, zero)));
    irregular = hn::Or(irregular, hn::Not(hn::Le(size, largest)));
    const Vector error = hn::Sub(rounded, exact);
    exact_squares = hn::MulAdd(exact, exact, exact_squares);
    error_squares = hn::MulAdd(error, error, error_squares);
    const double* const before = inputs.old_probes + at;
    const double* const after = inputs.new_probes + at;
    old0 = hn::MulAdd(w, hn::LoadU(tag, before), old0);
    old1 = hn::MulAdd(w, hn::LoadU(tag, before + width), old1);
    old2 = hn::MulAdd(w, hn::LoadU(tag, before + 2 * width), old2);
    old3 = hn::MulAdd(w, hn::LoadU(tag, before + 3 * width), old3);
    const Vector n0 = hn::LoadU(tag, after), n1 = hn::LoadU(tag, after + width);
    const Vector n2 = hn::LoadU(tag, after + 2 * width), n3 = hn::LoadU(tag, after + 3 * width);
    exact0 = hn::MulAdd(exact, n0, exact0);
    exact1 = hn::MulAdd(exact, n1, exact1);
    exact2 = hn::MulAdd(exact, n2, exact2);
    exact3 = hn::MulAdd(exact, n3, exact3);
    stored0 = hn::MulAdd(rounded, n0, stored0);
    stored1 = hn::MulAdd(rounded, n1, stored1);
    stored2 = hn::MulAdd(rounded, n2, stored2);
    stored3 = hn::MulAdd(rounded, n3, stored3);
    return rounded;
  };
  for (std::size_t at = 0; at < width; at += lanes) {
    Format::Store(step(at, Format::Load(row + at), hn::LoadU(tag, inputs.gain + at)), stored + at);
  }
  const auto sum = [&](Vector v) { return hn::GetLane(hn::SumOfLanes(tag, v)); };
  RowSums sums;
  sums.exact = sum(exact_squares);
  sums.error = sum(error_squares);
  sums.old_output = {sum(old0), sum(old1), sum(old2), sum(old3)};
  sums.exact_output = {sum(exact0), sum(exact1), sum(exact2), sum(exact3)};
  sums.stored_output = {sum(stored0), sum(stored1), sum(stored2), sum(stored3)};
  sums.is_regular = hn::AllFalse(tag, irregular);
  return sums;
}

RowSums ScaleFloat32(const float* row, const RowInputs& inputs, float* stored) {
  return ScaleRow<Float32>(row, inputs, stored);
}

RowSums ScaleBfloat16(const std::uint16_t* row, const RowInputs& inputs, std::uint16_t* stored) {
  return ScaleRow<Bfloat16>(row, inputs, stored);
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::rewrite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope::rewrite {

HWY_EXPORT(ScaleFloat32);
HWY_EXPORT(ScaleBfloat16);

RowSums scale_row(const std::uint16_t* row, const RowInputs& inputs, std::uint16_t* stored) {
  return HWY_DYNAMIC_DISPATCH(ScaleBfloat16)(row, inputs, stored);
}

RowSums scale_row(const float* row, const RowInputs& inputs, float* stored) {
  return HWY_DYNAMIC_DISPATCH(ScaleFloat32)(row, inputs, stored);
}

}  // namespace normscope::rewrite
#endif  // HWY_ONCE
