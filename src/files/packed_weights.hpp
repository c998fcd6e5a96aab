#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>

namespace normscope::files {

// Matrices that a folder stores as packed codes with scales beside them, as its config.json states:
//   MLX   "quantization": {"group_size", "bits", "mode"}, and for modules of their own "NAME": {...}
//         NAME.weight (uint32, [..., columns · bits / 32]): codes, lowest bits first, across words
//         NAME.scales and NAME.biases ([..., columns / group_size]): value = scale · code + bias
//         modes mxfp4, mxfp8 and nvfp4: value = scale · float of 4 or 8 bits, scales of 8 bits, no biases
//   "quantization_config" with "quant_method"
//   fp8   NAME.weight (float of 8 bits), NAME.weight_scale_inv, one for "weight_block_size" rows and columns
//   compressed-tensors   one group of "config_groups": NAME.weight (float or integer of 8 bits) or
//         NAME.weight_packed (int32, codes less 2^(bits − 1)) and NAME.weight_shape; NAME.weight_scale of a
//         tensor, a row, a group or a block; NAME.weight_zero_point
//   gptq, awq   NAME.qweight, NAME.qzeros, NAME.scales, NAME.g_idx: value = scale · (code − zero point), of
//   the
//         transposed matrix; zero points of gptq are stored less 1

/// Tensors, and the number of the file of each.
struct PlacedTensors {
  std::vector<Tensor>& tensors;  ///< sorted by name
  std::vector<std::uint32_t>& file_of;
};

/// Puts in place of the parts of each such matrix one tensor "NAME.weight" that decodes them as it is read;
/// `views` keeps the decoders. What is packed in other ways remains as it is stored. Returns the name of the
/// scheme that `config`, the text of config.json, states, if it is one of these and nothing else remains.
///
/// Errors    Format, Shape, Unsupported where parts do not fit to each other or to what is stated; messages
///           begin with `where`
[[nodiscard]] std::string_view decode_packed(std::string_view config, const std::string& where,
                                             PlacedTensors placed,
                                             std::vector<std::unique_ptr<QuantizedSource>>& views);

}  // namespace normscope::files
