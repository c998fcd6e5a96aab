#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Transformer-XL's attention, as in XLNet. Where a block begins, queries read a mean of neighbours in place
// of the norm, and so does the stream.
void funnel_layer(Builder& b, bool pools, bool reads_sum) {
  b.within("attention.", [&] {
    for (const char* name : {"r_kernel", "r_r_bias", "r_s_bias", "r_w_bias", "seg_embed"}) b.other(name);
    if (pools) {
      b.reads("key", "k_head");
      b.reads("value", "v_head");
      b.reads_are_indirect();
    }
    if (reads_sum) b.has_other_readers();
    if (pools || reads_sum) {
      b.reads_the_stream();
      b.writes_are_indirect();
    }
    const std::uint64_t attended = b.attention("q_head", "k_head", "v_head");
    b.writes("attention out", "post_proj", attended);
    b.norm("layer_norm", "attention output");
  });
  b.within("ffn.", [&] {
    const std::uint64_t inner = b.reads("mlp in", "linear_1");
    b.writes("mlp out", "linear_2", inner);
    b.norm("layer_norm", "mlp output");
  });
}

// Blocks of fewer and fewer positions; a decoder reads the sum of the first block's output and the last
// one's, each of whose positions is repeated.
void funnel_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-9, .eps_key = "layer_norm_eps"});
  b.note("positions are pooled between blocks, which is not analysed");
  b.scores_not_modelled("relative positions and segments");
  b.heads().head_dim = b.config().count({"d_head"}).value_or(0);
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.norm("embeddings.layer_norm", "embedding");
  const auto repeats = b.config().counts({"block_repeats"});
  bool repeated = false;
  b.each_stage("encoder.blocks.{}.", [&](std::size_t block) {
    const std::uint64_t times = repeats && block < repeats->size() ? (*repeats)[block] : 1;
    repeated = repeated || times > 1;
    b.applications(static_cast<int>(std::min<std::uint64_t>(times, 1000)));
    bool is_first = true;
    b.each_part("{}.", [&] {
      funnel_layer(b, is_first && block != 0, false);
      is_first = false;
    });
    b.applications(1);
  });
  if (repeated) b.connections_are_assumed();
  b.stack("decoder");
  bool is_first = true;
  b.each_part("decoder.layers.{}.", [&] {
    funnel_layer(b, false, is_first);
    is_first = false;
  });
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture funnel = {
    .name = "funnel",
    .title = "Funnel Transformer",
    .model_types = {"funnel"},
    .signature = {"encoder.blocks.{}.{}.attention.r_kernel", "encoder.blocks.{}.{}.ffn.layer_norm.",
                  "encoder.blocks.{}.{}.attention.layer_norm."},
    .without = {},
    .describe = funnel_forward,
    .harmless = {"attention_type", "block_sizes", "d_head", "d_inner", "initializer_std",
                 "num_decoder_layers", "pool_q_only", "pooling_type", "separate_cls", "truncate_seq",
                 "activation_dropout"},
};

}  // namespace normscope::models::architectures
