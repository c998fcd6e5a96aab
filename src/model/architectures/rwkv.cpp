#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::model::architectures {

namespace {

// The tensors of this attention-free mixer that belong to no norm or linear map.
void time_parameters(Builder& b, const char* part) {
  for (const char* name :
       {"time_mix_k", "time_mix_v", "time_mix_r", "time_mix_g", "time_decay", "time_faaaa", "time_first"}) {
    b.other(std::string(part) + name);
  }
}

void forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.note(
      "keys, values, receptances and gates read a mix of this token's norm and the previous token's, feature "
      "by feature, so a bias does not reach them unchanged at the first token");
  b.embedding("token embedding", "emb");
  b.each_layer("blocks.{}.", [&] {
    if (b.has("ln0.")) b.norm("ln0", "embedding", Placement::post);
    time_parameters(b, "att.");
    time_parameters(b, "ffn.");

    b.norm("ln1", "attention input");
    b.reads("receptance", "att.receptance");
    b.reads("key", "att.key");
    const std::uint64_t values = b.reads("value", "att.value");
    const bool gated = b.has("att.gate.");
    if (gated) b.reads("gate", "att.gate");
    b.reads_are_indirect();
    if (b.has("att.ln_x.")) {
      const std::vector<std::uint64_t> decay = b.shape("att.time_decay");
      const bool told = !decay.empty() && decay[0] > 0 && values % decay[0] == 0;
      if (!told) b.note("the number of heads, and so of the groups of ln_x, is not known");
      b.norm_inside("att.ln_x", "attention heads", values, told ? decay[0] : 1);
      // Training code divides the heads by 8 and normalizes them with eps 1e-5.
      b.last_eps(64e-5, {"group_norm_eps"});
      b.note(
          "eps 0.00064 of ln_x is the published inference code's, unless the configuration has "
          "group_norm_eps");
      if (!gated) b.reads("attention out", "att.output");
    }
    b.writes("attention out", "att.output");

    b.norm("ln2", "mlp input");
    b.reads("mlp gate", "ffn.receptance");
    const std::uint64_t inner = b.reads("mlp in", "ffn.key");
    b.reads_are_indirect();
    b.writes("mlp out", "ffn.value", inner);
    b.writes_are_indirect();  // the receptance scales it
  });
  b.norm("ln_out", "final");
  b.unembedding({"head"}, false);
}

}  // namespace

extern const Architecture rwkv = {
    .name = "rwkv",
    .title = "RWKV-4 or RWKV-5",
    .model_types = {"rwkv", "rwkv5"},
    .signature = {"blocks.{}.att.receptance.", "blocks.{}.ln1.", "blocks.{}.ffn.key."},
    .without = {"blocks.{}.att.time_maa_x"},
    .describe = forward,
    .harmless = {"attention_hidden_size", "head_size", "head_size_divisor"},
};

}  // namespace normscope::model::architectures
