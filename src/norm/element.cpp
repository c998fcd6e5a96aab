#include <normscope/norm/element.hpp>

#include <normscope/core/float16.hpp>

namespace normscope::norm {

float to_float(Bfloat16 value) { return decode_bfloat16(value.bits); }
float to_float(Float16 value) { return decode_float16(value.bits); }

Bfloat16 to_bfloat16(float value) { return {encode_bfloat16(value)}; }
Float16 to_float16(float value) { return {encode_float16(value)}; }

}  // namespace normscope::norm
