#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>

namespace normscope::models {

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
  std::string gain{};        ///< tensor of `width` elements, or empty
  std::string bias{};        ///< likewise
  double gain_offset = 0.0;  ///< 1 where the graph adds 1 to the gain
  std::int64_t axis =
      -1;  ///< normalized axis, counted from the end; -1 also for several last axes taken as one
  std::vector<StatedReader> readers{};
  /// Linear maps that read the norm in a way that is not understood, with the reason: "W (Gemm with alpha
  /// 4)".
  std::vector<std::string> other_readers{};
  /// Whether a parameter is also an input of the graph, whose caller may give another.
  bool is_default = false;
};

struct StatedNorms {
  std::vector<StatedNorm> norms;
  /// Operators that normalize in a way that is not understood, with the reason.
  std::vector<std::string> not_understood{};
};

/// The norms that the graph of an ONNX file states, in its order: operators (LayerNormalization,
/// RMSNormalization and those of com.microsoft), and norms expressed as arithmetic. A norm is stated only if
/// every operator of it, with all attributes and the shapes of its constants, is understood. Those of unknown
/// width are left out. Other files state none.
///
/// Errors    Unsupported if the list takes more memory than the graph takes in its file and 32 MiB
[[nodiscard]] StatedNorms stated_norms(const files::Checkpoint& checkpoint);

}  // namespace normscope::models
