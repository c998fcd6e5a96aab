#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BERT whose parts are numbered by layer, each kind apart.
void xlm_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.buffer("position_ids");
  b.ignores({"causal", "is_encoder"});
  b.embedding("token embedding", "embeddings");
  b.embedding("position embedding", "position_embeddings");
  b.embedding("language embedding", "lang_embeddings", Need::optional);
  b.norm("layer_norm_emb", "embedding");
  b.each_layer("attentions.{}.", [&] {
    const std::string number = std::to_string(b.layer());
    const std::uint64_t attended = b.attention("q_lin", "k_lin", "v_lin");
    b.writes("attention out", "out_lin", attended);
    b.where("layer_norm1." + number, [&] { b.norm("", "attention output"); });
    b.where("ffns." + number + ".", [&] {
      const std::uint64_t inner = b.reads("mlp in", "lin1");
      b.writes("mlp out", "lin2", inner);
    });
    b.where("layer_norm2." + number, [&] { b.norm("", "mlp output"); });
  });
  b.unembedding({"pred_layer.proj"}, true);
}

}  // namespace

extern const Architecture xlm = {
    .name = "xlm",
    .title = "XLM",
    .model_types = {"xlm"},
    .signature = {"attentions.{}.q_lin.", "layer_norm1.{}.", "layer_norm2.{}.", "layer_norm_emb."},
    .without = {},
    .describe = xlm_forward,
    .harmless =
        {"asm",       "emb_dim",    "end_n_top", "start_n_top",  "gelu_activation",       "embed_init_std",
         "lang_id",   "mask_index", "n_langs",   "use_lang_emb", "sinusoidal_embeddings", "bos_index",
         "eos_index", "pad_index",  "unk_index", "same_enc_dec", "share_inout_emb",       "max_vocab",
         "min_count", "id2lang",    "lang2id",   "word_predict", "encoder_only"},
};

}  // namespace normscope::models::architectures
