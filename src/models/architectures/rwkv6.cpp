#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Vectors of the mix of two tokens are stored one by one.
constexpr RwkvPart rwkv6_time_mix[] = {
    {"mix", "time_maa_x"},
    {"mix of decays", "time_maa_w"},
    {"mix of keys", "time_maa_k"},
    {"mix of values", "time_maa_v"},
    {"mix of receptances", "time_maa_r"},
    {"mix of gates", "time_maa_g"},
    {"mix in", "time_maa_w1", RwkvForm::transposed},
    {"mix out", "time_maa_w2", RwkvForm::transposed_stack},
    {"decay", "time_decay"},
    {"decay in", "time_decay_w1", RwkvForm::transposed},
    {"decay out", "time_decay_w2", RwkvForm::transposed},
    {"bonus", "time_faaaa"},
    {"receptance", "receptance", RwkvForm::matrix},
    {"key", "key", RwkvForm::matrix},
    {"value", "value", RwkvForm::matrix},
    {"gate", "gate", RwkvForm::matrix},
};

constexpr RwkvPart rwkv6_channel_mix[] = {
    {"mlp mix of keys", "time_maa_k"},
    {"mlp mix of receptances", "time_maa_r"},
    {"mlp receptance", "receptance", RwkvForm::matrix},
    {"mlp in", "key", RwkvForm::matrix},
};

void rwkv6_forward(Builder& b) {
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  rwkv_notes(b);
  b.embedding("token embedding", "embeddings");
  b.each_layer("blocks.{}.", [&] {
    if (b.has("pre_ln.")) b.norm("pre_ln", "embedding", Placement::post);
    b.norm("ln1", "attention input");
    b.within("attention.", [&] { rwkv_time_mix(b, rwkv6_time_mix, "ln_x", "output"); });
    b.norm("ln2", "mlp input");
    b.within("feed_forward.", [&] { rwkv_channel_mix(b, rwkv6_channel_mix, "value"); });
  });
  b.norm("ln_out", "final");
  b.unembedding({"head"}, false);
}

}  // namespace

extern const Architecture rwkv6 = {
    .name = "rwkv6",
    .title = "RWKV-6",
    .model_types = {"rwkv6"},
    .signature = {"blocks.{}.attention.time_maa_x", "blocks.{}.attention.ln_x.", "blocks.{}.ln1.", "ln_out."},
    .without = {},
    .describe = rwkv6_forward,
    .harmless = {"attention_hidden_size", "auto_map", "head_size_divisor", "model_version"},
    .in_llama_cpp = "gguf_rwkv",
};

}  // namespace normscope::models::architectures
