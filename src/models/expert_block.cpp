#include "expert_block.hpp"

#include "builder.hpp"
#include "llama_block.hpp"

namespace normscope::models {

void gated_experts(Builder& b, const ExpertNames& names) {
  b.reads("router", names.router);
  b.each_expert(names.experts, [&] { gated_mlp(b, names.gate, names.in, names.out); });
}

void llama_experts(Builder& b) {
  if (!b.has("mlp.gate.")) return llama_mlp(b);
  b.within("mlp.", [&] {
    gated_experts(b);
    b.other("gate.e_score_correction_bias");  // added to the router's scores when experts are chosen
    for (const std::string_view shared : {"shared_expert.", "shared_experts."}) {
      if (!b.has(shared)) continue;
      b.within(shared, [&] { gated_mlp(b, "gate_proj", "up_proj", "down_proj"); });
    }
    b.reads("shared expert gate", "shared_expert_gate", 0, Need::optional);
  });
}

}  // namespace normscope::models
