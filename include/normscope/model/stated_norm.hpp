#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/norm_spec.hpp>

namespace normscope::model {

/// A linear map that reads a norm's output, given by the names of its tensors.
struct StatedReader {
  std::string weight;
  std::string bias{};   ///< empty for none
  bool in_out = false;  ///< whether the weight is stored [in, out]
};

/// A normalization layer that the file states explicitly, as opposed to one recognised by tensor names.
struct StatedNorm {
  std::string name;
  NormKind kind = NormKind::layer;
  std::uint64_t width = 0;
  double eps = 0.0;
  std::string gain{};  ///< tensor of `width` elements, or empty
  std::string bias{};  ///< likewise
  std::int64_t axis =
      -1;  ///< normalized axis, counted from the end; -1 also for several last axes taken as one
  std::vector<StatedReader> readers{};
};

/// The norms that the graph of an ONNX file states, in its order: operators (LayerNormalization,
/// RMSNormalization and those of com.microsoft), and norms expressed as arithmetic. Norms of unknown width
/// are left out. Other files state none.
///
/// Errors    Unsupported if the list takes more memory than the graph takes in its file and 32 MiB
[[nodiscard]] std::vector<StatedNorm> stated_norms(const checkpoint::Checkpoint& checkpoint);

}  // namespace normscope::model
