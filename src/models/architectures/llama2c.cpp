#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void llama2c_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "silu", .fixed_activation = true});
  b.rotary({.interleaved = true});
  b.grouped_queries();
  // Exporters declare wk and wv as [layers, dim, kv_dim] over bytes in llama2.c's own order, [layers, kv_dim,
  // dim]; only the latter reproduces the model's English.
  b.trust_rows_not_shapes();
  if (b.heads().heads == 0) {
    b.heads().heads = b.config().metadata_count("heads").value_or(0);
    b.heads().key_value_heads = b.config().metadata_count("kv").value_or(0);
  }
  b.embedding("token embedding", "tok_emb");
  b.each_stacked("rms_att", [&] {
    b.norm("rms_att", "attention input");
    const std::uint64_t attended = b.attention("wq", "wk", "wv");
    b.writes("attention out", "wo", attended);
    b.norm("rms_ffn", "mlp input");
    gated_mlp(b, "w1", "w3", "w2");
  });
  b.norm("rms_final", "final");
  b.unembedding({"wcls"}, true);
}

}  // namespace

extern const Architecture llama2c = {
    .name = "llama2c",
    .title = "Llama, as llama2.c stores it",
    .model_types = {},
    .signature = {"rms_att", "rms_ffn", "rms_final", "tok_emb"},
    .without = {},
    .describe = llama2c_forward,
};

}  // namespace normscope::models::architectures
