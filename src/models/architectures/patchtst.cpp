#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void patchtst_attention(Builder& b) {
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  b.writes("attention out", "self_attn.out_proj", attended);
}

// With "channel_attention", the same maps attend a second time, to the other series at the same time.
void patchtst_layer(Builder& b, bool before) {
  const auto branch = [&](const char* name, const char* input, const char* output, const auto& body) {
    if (before) b.norm(name, input);
    body();
    if (!before) b.norm(name, output, Placement::post);
  };
  branch("norm_sublayer1", "attention input", "attention output", [&] { patchtst_attention(b); });
  if (b.has("norm_sublayer2.")) {
    branch("norm_sublayer2", "attention input", "attention output", [&] { patchtst_attention(b); });
  }
  branch("norm_sublayer3", "mlp input", "mlp output", [&] {
    const std::uint64_t inner = b.reads("mlp in", "ff.0");
    b.writes("mlp out", "ff.3", inner);
  });
}

// Patches of several series, with LayerNorms: those of its default, "batchnorm", are none of rows.
void patchtst_forward(Builder& b) {
  const bool before = b.config().flag({"pre_norm"}).value_or(true);
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "norm_eps"});
  if (b.config().flag({"channel_attention"}).value_or(false)) {
    b.scores_not_modelled("channel_attention: true");
  }
  b.within("encoder.", [&] {
    if (b.has("embedder.input_embedding.0.")) {
      b.each_part("embedder.input_embedding.{}.", [&] { b.input_map("patch embedding", ""); });
    } else {
      b.input_map("patch embedding", "embedder.input_embedding");
    }
    b.embedding("position embedding", "positional_encoder.position_enc");
    b.embedding("class token", "positional_encoder.cls_token", Need::optional);
    b.each_layer("layers.{}.", [&] { patchtst_layer(b, before); });
  });
  // The head reads the stream, or one position of the last norm, or several together.
  const bool reads_token = !before && b.config().flag({"use_cls_token"}).value_or(false);
  if (!before && !reads_token) b.reads_are_indirect();
  b.where("head.", [&] {
    if (reads_token && b.has("projection.")) {
      b.reads("prediction", "projection");
    } else {
      b.partial_input("");
    }
  });
  b.note("each series is divided by its deviation, or its mean, before (scaling)");
}

}  // namespace

extern const Architecture patchtst = {
    .name = "patchtst",
    .title = "PatchTST with LayerNorms",
    .model_types = {"patchtst"},
    .signature = {"encoder.layers.{}.norm_sublayer1.weight", "encoder.layers.{}.norm_sublayer3.weight",
                  "encoder.embedder.input_embedding."},
    .without = {},
    .describe = patchtst_forward,
    .harmless = {"num_input_channels",
                 "distribution_output",
                 "loss",
                 "patch_length",
                 "patch_stride",
                 "share_embedding",
                 "channel_consistent_masking",
                 "do_mask_input",
                 "mask_type",
                 "random_mask_ratio",
                 "num_forecast_mask_patches",
                 "mask_value",
                 "unmasked_channel_indices",
                 "norm_type",
                 "positional_encoding_type",
                 "use_cls_token",
                 "share_projection",
                 "scaling",
                 "pooling_type",
                 "prediction_length",
                 "num_targets",
                 "output_range",
                 "num_parallel_samples"},
};

}  // namespace normscope::models::architectures
