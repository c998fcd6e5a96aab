#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The norm of the MLP's input is a LayerNorm with an eps of its own.
constexpr double kMlpEps = 1e-6;

void timesfm_layer(Builder& b, const NormStyle& attention, const NormStyle& mlp) {
  b.norms(attention);
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  b.other("self_attn.scaling");
  b.writes("attention out", "self_attn.o_proj", attended);
  b.norms(mlp);
  b.norm("mlp.layer_norm", "mlp input");
  b.last_eps(kMlpEps, {});
  const std::uint64_t inner = b.reads("mlp in", "mlp.gate_proj");
  b.writes("mlp out", "mlp.down_proj", inner);
  b.writes_are_indirect();  // 0 at padding
}

// Patches of a series; there is no norm behind the last layer.
void timesfm_forward(Builder& b) {
  const NormStyle attention{
      .kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = "rms_norm_eps"};
  NormStyle mlp = attention;
  mlp.kind = NormKind::layer;
  b.norms(attention);
  b.scores_not_modelled("scaling: a learned factor for each feature of the queries");
  b.other("input_ff_layer.input_layer.weight");
  b.input_map("patch embedding", "input_ff_layer.output_layer");
  b.input_map("patch residual", "input_ff_layer.residual_layer");
  b.embedding("frequency embedding", "freq_emb");
  b.each_layer("layers.{}.", [&] { timesfm_layer(b, attention, mlp); });
  b.where("horizon_ff_layer.", [&] { b.partial_input(""); });
}

}  // namespace

extern const Architecture timesfm = {
    .name = "timesfm",
    .title = "TimesFM",
    .model_types = {"timesfm"},
    .signature = {"layers.{}.self_attn.scaling", "layers.{}.mlp.layer_norm.", "freq_emb."},
    .without = {},
    .describe = timesfm_forward,
    .harmless = {"patch_length", "horizon_length", "freq_size", "tolerance", "quantiles", "pad_val",
                 "use_positional_embedding", "min_timescale", "max_timescale"},
};

}  // namespace normscope::models::architectures
