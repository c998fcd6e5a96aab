#include <algorithm>
#include <cmath>

#include <normscope/core/dtype.hpp>
#include <normscope/models/model.hpp>

namespace normscope::models {
namespace {

/// Bits of the significand of a type in which gains are stored; 0 for others.
int significand_bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::BF16: return 8;
    case Dtype::F16: return 11;
    case Dtype::F32: return 24;
    case Dtype::F64: return 53;
    default: return 0;
  }
}

/// Whether x is a multiple of 2^exponent.
bool is_multiple(double x, int exponent) {
  const double quotient = std::ldexp(x, -exponent);
  return quotient == std::nearbyint(quotient);
}

}  // namespace

// With fl the rounding to a binary type of p bits, and w in that type:
//   x = fl(1 + w), |x| < 1/2: w is in (-3/2, -1/2), where 1 + w is exact, and a multiple of 2^-p.
//   x = fl(1 + fl(1 + w)), |x| < 1: u = fl(1 + w) is in (-2, 0), so w < -1, and w, u and x are multiples of
//   2^(1-p).
GainShifts gain_shifts(std::span<const double> stored, Dtype dtype) {
  GainShifts result;
  result.bits = significand_bits(dtype);
  if (result.bits == 0) return result;
  bool uses_all_bits = false;
  double bits_by_chance = 0.0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const double x = stored[i];
    const double size = std::abs(x);
    if (!std::isfinite(x) || size == 0.0) continue;
    const int exponent = std::ilogb(x);
    const bool can_be_one_sum = size >= 0.5 || is_multiple(x, -result.bits);
    const bool can_be_two = size >= 1.0 || is_multiple(x, 1 - result.bits);
    const std::optional<int> most = !can_be_one_sum ? std::optional(0)
                                    : !can_be_two   ? std::optional(1)
                                                    : std::nullopt;
    if (most && (!result.most || *most < *result.most)) {
      result.most = most;
      result.index = i;
      result.value = x;
    }
    // Values of the type are this many bits finer here than sums are.
    if (size < 0.5) bits_by_chance += -1 - exponent;
    if (size >= 0.5) uses_all_bits = uses_all_bits || !is_multiple(x, exponent - result.bits + 2);
  }
  if (result.most != 0 && uses_all_bits) result.evidence_bits = bits_by_chance;
  return result;
}

GainShifts gain_shifts(const files::Checkpoint& checkpoint, const Norm& norm) {
  Norm as_stored = norm;
  as_stored.gain_offset = 0.0;
  const files::Tensor* const tensor = norm.gain ? checkpoint.find(norm.gain->tensor) : nullptr;
  if (tensor == nullptr) return {};
  return gain_shifts(read_norm(checkpoint, as_stored).gain, tensor->dtype);
}

}  // namespace normscope::models
