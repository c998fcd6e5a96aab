#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Names of flash-linear-attention, in which the published models are converted. The first layer has no
// residual of values.
constexpr RwkvPart rwkv7_time_mix[] = {
    {"mix of receptances", "x_r"},
    {"mix of decays", "x_w"},
    {"mix of keys", "x_k"},
    {"mix of values", "x_v"},
    {"mix of learning rates", "x_a"},
    {"mix of gates", "x_g"},
    {"decay in", "w_lora.lora.0", RwkvForm::matrix},
    {"decay out", "w_lora.lora.2", RwkvForm::matrix},
    {"decay", "w_lora.lora.2.bias"},
    {"learning rate in", "a_lora.lora.0", RwkvForm::matrix},
    {"learning rate out", "a_lora.lora.2", RwkvForm::matrix},
    {"learning rate", "a_lora.lora.2.bias"},
    {"value residual in", "v_lora.lora.0", RwkvForm::matrix, true},
    {"value residual out", "v_lora.lora.2", RwkvForm::matrix, true},
    {"value residual", "v_lora.lora.2.bias", RwkvForm::row, true},
    {"gate in", "g_lora.lora.0", RwkvForm::matrix},
    {"gate out", "g_lora.lora.2", RwkvForm::matrix},
    {"key scale", "k_k"},
    {"key learning rate", "k_a"},
    {"bonus", "r_k"},
    {"receptance", "r_proj", RwkvForm::matrix},
    {"key", "k_proj", RwkvForm::matrix},
    {"value", "v_proj", RwkvForm::matrix},
};

constexpr RwkvPart rwkv7_channel_mix[] = {{"mlp mix of keys", "x_k"}, {"mlp in", "key", RwkvForm::matrix}};

void rwkv7_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "norm_eps"});
  b.config().expect("hidden_act", "sqrelu");
  rwkv_notes(b);
  b.embedding("token embedding", "embeddings");
  b.each_layer("layers.{}.", [&] {
    if (b.has("pre_norm.")) b.norm("pre_norm", "embedding", Placement::post);
    b.norm("attn_norm", "attention input");
    b.within("attn.", [&] { rwkv_time_mix(b, rwkv7_time_mix, "g_norm", "o_proj"); });
    b.norm("ffn_norm", "mlp input");
    b.within("ffn.", [&] { rwkv_channel_mix(b, rwkv7_channel_mix, "value"); });
  });
  b.norm("norm", "final");
  b.unembedding({"lm_head"}, false);
}

}  // namespace

extern const Architecture rwkv7 = {
    .name = "rwkv7",
    .title = "RWKV-7",
    .model_types = {"rwkv7"},
    .signature = {"layers.{}.attn.x_r", "layers.{}.attn.r_k", "layers.{}.attn.g_norm.",
                  "layers.{}.ffn_norm."},
    .without = {},
    .describe = rwkv7_forward,
    .harmless = {"*_low_rank_dim", "attn_mode", "fuse_*", "hidden_ratio", "norm_bias", "norm_first",
                 "use_l2warp", "value_dim"},
    .in_llama_cpp = "gguf_rwkv",
};

}  // namespace normscope::models::architectures
