#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Between Gemma 3's image tower and its text model; the norm has the eps of the former.
void image_projection(Builder& b) {
  b.where("multi_modal_projector.", [&] {
    if (!b.has("mm_soft_emb_norm.")) return;  // PaliGemma
    b.note("scores are bounded for text: the tokens of an image also see later tokens of the same image");
    const std::optional<double> eps = b.config().of(Tower::vision).number({"layer_norm_eps"});
    b.norm_inside("mm_soft_emb_norm", "projection input", 0);
    b.last_eps(eps.value_or(1e-6), {});
    b.layout(Layout::in_out);
    b.reads("projection", "mm_input_projection_weight");
    b.layout(Layout::out_in);
    b.new_stream();
  });
}

/// Gemma 2 or Gemma 3, by the tensors of a file in Hugging Face's names.
struct Generation {
  bool second = false, third = false;
};

Generation generation_of(const Builder& b) {
  const std::string type = b.model_type();
  const bool first = type == "gemma";
  const bool third = !first && type != "gemma2" && b.has("layers.0.self_attn.q_norm.");
  return {!first && !third && b.has("layers.0.pre_feedforward_layernorm."), third};
}

LensBlocks gemma_settings(Builder& b) {
  const auto [second, third] = generation_of(b);
  b.norms({.kind = NormKind::rms,
           .placement = Placement::pre,
           .gain_offset = 1.0,
           .eps = 1e-6,
           .eps_key = "rms_norm_eps"});
  // What Gemma 1 calls "gelu" is the approximation. It does not read the field of later ones.
  const bool first = b.model_type() == "gemma";
  const bool legacy = first && b.config().text({"hidden_act"}) == "gelu";
  const bool typed = !b.model_type().empty();
  b.decoder({.activation = "gelu_pytorch_tanh",
             .reads_activation = !legacy,
             .activation_key = first   ? "hidden_act"
                               : typed ? "hidden_activation"
                                       : nullptr,
             .embedding_times_root = true});
  const std::vector<std::string> types = b.config().model_types();
  if (!types.empty() && types.front().ends_with("paligemma")) {
    b.scores_not_modelled("paligemma, whose prompts also see later tokens");
  }
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  if (!third) b.biases_by(Biased::norms_of_heads, {});
  b.grouped_queries();
  b.rotary({.theta = third ? 1e6 : 1e4, .has_local_theta = third});
  if (second || third) b.windows({.period = third ? std::uint64_t{6} : std::uint64_t{2}});
  // Gemma 1 reads none of these fields, and Gemma 3 keeps the soft cap of scores without applying it.
  const auto read = [&](const char* key, bool by_class, double published) {
    if (by_class) return b.stated_number(key, published);
    b.ignores({key});
    return std::optional<double>();
  };
  const std::optional<double> scalar = read("query_pre_attn_scalar", second || third, 256.0);
  b.scores({.scale = scalar ? std::optional(1.0 / std::sqrt(*scalar)) : std::nullopt,
            .soft_cap = read("attn_logit_softcapping", second, 50.0).value_or(0.0)});
  b.logits(1.0, read("final_logit_softcapping", second || third, second ? 30.0 : 0.0).value_or(0.0));
  return LensBlocks::sequential;
}

void gemma_forward(Builder& b) {
  gemma_settings(b);
  b.head_dim_from("layers.0.self_attn.q_norm");
  const auto [second, third] = generation_of(b);
  // Gemma 2 and 3 normalize both the input and the output of a branch, VaultGemma the input alone. There
  // post_attention_layernorm is the latter; in Gemma 1, as in Llama, it is the norm that the MLP reads.
  const bool vault = b.model_type() == "vaultgemma";
  const bool other_names = second || third || b.has("layers.0.pre_feedforward_layernorm.");
  const bool sandwich = other_names && !vault;
  image_projection(b);
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    llama_attention(b);
    if (sandwich) b.norm_of_branch("post_attention_layernorm", "attention output");
    b.norm(other_names ? "pre_feedforward_layernorm" : "post_attention_layernorm", "mlp input");
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    if (sandwich) b.norm_of_branch("post_feedforward_layernorm", "mlp output");
  });
  b.norm("norm", "final");
  b.unembedding({"lm_head"}, true);
  b.biases_by(Biased::unembedding, {});
}

}  // namespace

extern const Architecture gemma = {
    .name = "gemma",
    .title = "Gemma",
    .model_types = {"gemma", "gemma2", "gemma3", "gemma3_text", "vaultgemma"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.pre_feedforward_layernorm.",
                  "layers.{}.post_feedforward_layernorm."},
    .without = {"layers.{}.altup.", "layers.{}.layer_scalar"},
    .describe = gemma_forward,
    .harmless = {"num_image_tokens", "sliding_window_size"},
    .keeps_logits_within = {"paligemma"},
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_gemma",
    .in_transformer_lens = gemma_settings,
};

}  // namespace normscope::models::architectures
