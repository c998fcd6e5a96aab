#include <span>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The converter stacks the vectors of the mix of two tokens, and transposes what is [in, out].
constexpr const char* mixes_of_6[] = {"mix of decays", "mix of keys", "mix of values", "mix of receptances",
                                      "mix of gates"};
constexpr const char* mixes_of_7[] = {"mix of receptances", "mix of decays",         "mix of keys",
                                      "mix of values",      "mix of learning rates", "mix of gates"};

constexpr RwkvPart time_mix_of_6[] = {
    {"mix", "time_mix_lerp_x"},
    {"mix in", "time_mix_w1", RwkvForm::matrix},
    {"mix out", "time_mix_w2", RwkvForm::stack},
    {"decay", "time_mix_decay"},
    {"decay in", "time_mix_decay_w1", RwkvForm::matrix},
    {"decay out", "time_mix_decay_w2", RwkvForm::matrix},
    {"bonus", "time_mix_first"},
    {"receptance", "time_mix_receptance", RwkvForm::matrix},
    {"key", "time_mix_key", RwkvForm::matrix},
    {"value", "time_mix_value", RwkvForm::matrix},
    {"gate", "time_mix_gate", RwkvForm::matrix},
};

constexpr RwkvPart time_mix_of_7[] = {
    {"decay in", "time_mix_w1", RwkvForm::matrix},
    {"decay out", "time_mix_w2", RwkvForm::matrix},
    {"decay", "time_mix_w0"},
    {"learning rate in", "time_mix_a1", RwkvForm::matrix},
    {"learning rate out", "time_mix_a2", RwkvForm::matrix},
    {"learning rate", "time_mix_a0"},
    {"value residual in", "time_mix_v1", RwkvForm::matrix, true},
    {"value residual out", "time_mix_v2", RwkvForm::matrix, true},
    {"value residual", "time_mix_v0", RwkvForm::row, true},
    {"gate in", "time_mix_g1", RwkvForm::matrix},
    {"gate out", "time_mix_g2", RwkvForm::matrix},
    {"key scale", "time_mix_k_k"},
    {"key learning rate", "time_mix_k_a"},
    {"bonus", "time_mix_r_k"},
    {"receptance", "time_mix_receptance", RwkvForm::matrix},
    {"key", "time_mix_key", RwkvForm::matrix},
    {"value", "time_mix_value", RwkvForm::matrix},
};

constexpr RwkvPart channel_mix_of_6[] = {
    {"mlp mix of keys", "channel_mix_lerp_k"},
    {"mlp mix of receptances", "channel_mix_lerp_r"},
    {"mlp receptance", "channel_mix_receptance", RwkvForm::matrix},
    {"mlp in", "channel_mix_key", RwkvForm::matrix},
};

constexpr RwkvPart channel_mix_of_7[] = {{"mlp mix of keys", "channel_mix_lerp_k"},
                                         {"mlp in", "channel_mix_key", RwkvForm::matrix}};

void gguf_rwkv_forward(Builder& b) {
  const bool sixth = b.model_type() == "rwkv6";
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  rwkv_notes(b);
  b.embedding("token embedding", "token_embd");
  b.norm("token_embd_norm", "embedding", Placement::post);
  b.each_layer("blk.{}.", [&] {
    b.norm("attn_norm", "attention input");
    rwkv_stacked_mixes(b, "time_mix_lerp_fused.weight",
                       sixth ? std::span<const char* const>(mixes_of_6) : mixes_of_7);
    rwkv_time_mix(b, sixth ? std::span<const RwkvPart>(time_mix_of_6) : time_mix_of_7, "time_mix_ln",
                  "time_mix_output");
    b.norm("attn_norm_2", "mlp input");
    rwkv_channel_mix(b, sixth ? std::span<const RwkvPart>(channel_mix_of_6) : channel_mix_of_7,
                     "channel_mix_value");
  });
  b.norm("output_norm", "final");
  b.unembedding({"output"}, false);
}

}  // namespace

extern const Architecture gguf_rwkv = {
    .name = "gguf_rwkv",
    .title = "RWKV-6 or RWKV-7 in llama.cpp's names",
    .model_types = {"rwkv6", "rwkv7"},
    .signature = {"blk.{}.time_mix_receptance.", "blk.{}.channel_mix_key.", "blk.{}.attn_norm_2."},
    .without = {},
    .describe = gguf_rwkv_forward,
    .harmless = {"*_lora_rank", "time_*_extra_dim"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
