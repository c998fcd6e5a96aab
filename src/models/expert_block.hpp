#pragma once

#include <cstdint>
#include <string_view>

namespace normscope::models {

class Builder;

/// The names of a mixture of experts, relative to its own prefix.
struct ExpertNames {
  std::string_view router = "gate";
  std::string_view experts = "experts";  ///< numbered after this name
  std::string_view gate = "gate_proj";
  std::string_view in = "up_proj";
  std::string_view out = "down_proj";
};

/// A layer's router and its experts, which are gated MLPs: every expert reads the last norm, and its output,
/// times the router's weight, is added to the stream.
void gated_experts(Builder& b, const ExpertNames& names = {});

/// A gated MLP, or a mixture of experts if the layer has one, under "mlp.". Experts that every token passes
/// are gated MLPs of their own.
void llama_experts(Builder& b);

}  // namespace normscope::models
