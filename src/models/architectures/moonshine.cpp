#include <cstdint>
#include <optional>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void moonshine_encoder(Builder& b) {
  for (const char* name : {"conv1.", "conv2.", "conv3."}) b.partial_input(name);
  norm_over_positions(b, "groupnorm");
  b.each_layer("layers.{}.", [&] { llama_encoder_layer(b); }, {"encoder_num_hidden_layers"});
  b.norm("layer_norm", "final");
}

void moonshine_decoder(Builder& b) {
  b.embedding("token embedding", "embed_tokens");
  const auto layer = [&] {
    llama_attention(b);
    b.norm("post_attention_layernorm", "cross-attention input");
    const std::uint64_t attended =
        b.cross_attention("encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj");
    b.writes("cross-attention out", "encoder_attn.o_proj", attended);
    b.norm("final_layernorm", "mlp input");
    const std::uint64_t inner = b.reads_parts({"mlp in", "mlp gate"}, "mlp.fc1");
    b.writes("mlp out", "mlp.fc2", inner);
  };
  b.each_layer("layers.{}.", layer, {"decoder_num_hidden_layers"});
  b.norm("norm", "final");
}

void moonshine_forward(Builder& b) {
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::attention_output, {});
  b.biases_by(Biased::norms, {});
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  const auto heads = [&](const char* key) { b.heads() = {.heads = b.config().count({key}).value_or(0)}; };
  b.rotary({.interleaved = true, .portion = 0.9});
  // Versions of transformers differ in which of the two both stacks have.
  const bool differ =
      b.config().count({"encoder_num_attention_heads"}) != b.config().count({"decoder_num_attention_heads"});
  b.stack("encoder");
  b.scores_not_modelled("rotary positions without a causal mask");
  heads("encoder_num_attention_heads");
  b.within("encoder.", [&] { moonshine_encoder(b); });
  b.remember_for_cross_attention();
  b.new_stream();
  b.stack("decoder");
  b.scores_not_modelled(differ ? "another number of heads than the encoder's" : "");
  heads("decoder_num_attention_heads");
  b.within("decoder.", [&] { moonshine_decoder(b); });
  b.unembedding({"proj_out"}, true);
}

}  // namespace

extern const Architecture moonshine = {
    .name = "moonshine",
    .title = "Moonshine",
    .model_types = {"moonshine"},
    .signature = {"encoder.layers.{}.input_layernorm.", "decoder.layers.{}.encoder_attn.q_proj.",
                  "encoder.groupnorm."},
    .without = {},
    .describe = moonshine_forward,
    .harmless = {"encoder_*", "decoder_*", "pad_head_dim_to_multiple_of"},
};

}  // namespace normscope::models::architectures
