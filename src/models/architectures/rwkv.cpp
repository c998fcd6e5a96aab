#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Parts of a block, in the names of the published code and of Hugging Face's.
struct Names {
  std::string attention = "att.";
  std::string mlp = "ffn.";
  const char* first_norm = "ln0";
  const char* embedding = "emb";
};

// The tensors of this attention-free mixer that belong to no norm or linear map.
void time_parameters(Builder& b, const std::string& part) {
  for (const char* name :
       {"time_mix_k", "time_mix_v", "time_mix_r", "time_mix_g", "time_mix_key", "time_mix_value",
        "time_mix_receptance", "time_mix_gate", "time_decay", "time_faaaa", "time_first"}) {
    b.other(part + name);
  }
}

// Maps of a mix of two tokens' norms: not of the norm itself. Returns the outputs of the last one.
std::uint64_t read_mix(Builder& b, const std::string& part, std::initializer_list<const char*> maps) {
  std::uint64_t out = 0;
  for (const char* map : maps) {
    const std::string name = part + map + ".weight";
    const std::vector<std::uint64_t> shape = b.shape(name);
    if (!shape.empty()) out = shape[0];
    b.other(name);
  }
  b.reads_are_indirect();
  return out;
}

void rwkv_attention(Builder& b, const std::string& part) {
  const std::uint64_t values = read_mix(b, part, {"receptance", "key", "gate", "value"});
  const bool gated = b.has(part + "gate.");
  if (b.has(part + "ln_x.")) {
    const std::vector<std::uint64_t> decay = b.shape(part + "time_decay");
    const bool stated = !decay.empty() && decay[0] > 0 && values % decay[0] == 0;
    if (!stated) b.note("the number of heads, and so of the groups of ln_x, is not known");
    b.norm_inside(part + "ln_x", "attention heads", values, stated ? decay[0] : 1);
    // Training code divides the heads by 8 and normalizes them with eps 1e-5.
    b.last_eps(64e-5, {"group_norm_eps"});
    b.note(
        "eps 0.00064 of ln_x is the published inference code's, unless the configuration has "
        "group_norm_eps");
    if (!gated) b.reads("attention out", part + "output");
  }
  b.writes("attention out", part + "output");
}

void rwkv_forward(Builder& b) {
  const Names names = b.has("emb.") ? Names{} : Names{"attention.", "feed_forward.", "pre_ln", "embeddings"};
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  b.note(
      "keys, values, receptances and gates read a mix of this token's norm and the previous token's, feature "
      "by feature, so they are not listed as readers");
  if (b.config().has({"rescale_every"})) {
    b.note(
        "rescale_every: for inference the code divides the stored writers of later layers and the stream by "
        "the same power of two; the norms' outputs stay those of these tensors but for eps");
  }
  b.embedding("token embedding", names.embedding);
  b.each_layer("blocks.{}.", [&] {
    if (b.has(std::string(names.first_norm) + ".")) b.norm(names.first_norm, "embedding", Placement::post);
    time_parameters(b, names.attention);
    time_parameters(b, names.mlp);
    b.norm("ln1", "attention input");
    rwkv_attention(b, names.attention);
    b.norm("ln2", "mlp input");
    const std::uint64_t inner = read_mix(b, names.mlp, {"receptance", "key"});
    b.writes("mlp out", names.mlp + "value", inner);
    b.writes_are_indirect();  // the receptance scales it
  });
  b.norm("ln_out", "final");
  b.last_eps(1e-5, {});  // whatever the configuration says
  b.unembedding({"head"}, false);
}

}  // namespace

extern const Architecture rwkv = {
    .name = "rwkv",
    .title = "RWKV-4 or RWKV-5",
    .model_types = {"rwkv", "rwkv5"},
    .signature = {"blocks.{}.ln1.", "blocks.{}.ln2.", "ln_out."},
    .without = {"blocks.{}.att.time_maa_x", "blocks.{}.att.x_r"},
    .describe = rwkv_forward,
    .harmless = {"attention_hidden_size", "head_size", "head_size_divisor", "rescale_every"},
};

}  // namespace normscope::models::architectures
