#include "torch_block.hpp"

#include <cstdint>
#include <vector>

#include "builder.hpp"

namespace normscope::models {

namespace {

bool states_norm_first(const Builder& b) { return b.config().has({"norm_first"}); }

// A branch between its norm and the addition, with the norm before or behind.
template <class Branch>
void sublayer(Builder& b, bool before, const char* norm, const char* role_before, const char* role_behind,
              const Branch& branch) {
  if (before) b.norm(norm, role_before);
  branch();
  if (!before) b.norm(norm, role_behind);
}

void self_attention(Builder& b, bool before) {
  sublayer(b, before, "norm1", "attention input", "attention output", [&] {
    const std::uint64_t attended = b.fused_attention("self_attn.in_proj_weight");
    b.writes("attention out", "self_attn.out_proj", attended);
  });
}

void mlp(Builder& b, bool before, const char* norm) {
  sublayer(b, before, norm, "mlp input", "mlp output", [&] {
    const std::uint64_t inner = b.reads("mlp in", "linear1");
    b.writes("mlp out", "linear2", inner);
  });
}

void begin(Builder& b) {
  const std::vector<std::uint64_t> gain = b.shape("layers.0.norm1.weight");
  b.new_stream();
  b.stream(gain.size() == 1 ? gain[0] : 0);
  b.writes_are_indirect();
}

void end(Builder& b) {
  if (b.has("norm.")) b.norm("norm", "final", Placement::pre);
  b.reads_are_indirect();
}

}  // namespace

bool torch_norm_first(Builder& b, bool assumed) {
  const bool before = b.config().flag({"norm_first"}).value_or(assumed);
  b.norms({.kind = NormKind::layer, .placement = before ? Placement::pre : Placement::post, .eps = 1e-5});
  if (!states_norm_first(b)) {
    b.note(before ? "norm_first is assumed, because the stack ends with a norm: no tensor shows it"
                  : "norm_first=False, torch's default, is assumed: no tensor shows it");
    b.scores_not_modelled("norm_first, which no configuration states");
  }
  b.note("only the stack of torch.nn is described: what is around it is the model's own code");
  return before;
}

void torch_encoder_stack(Builder& b, bool before) {
  begin(b);
  const auto layer = [&] {
    self_attention(b, before);
    mlp(b, before, "norm2");
  };
  b.each_layer("layers.{}.", layer, {"num_encoder_layers"});
  end(b);
}

void torch_decoder_stack(Builder& b, bool before) {
  begin(b);
  const auto layer = [&] {
    self_attention(b, before);
    sublayer(b, before, "norm2", "cross-attention input", "cross-attention output", [&] {
      const std::uint64_t attended = b.fused_cross_attention("multihead_attn.in_proj_weight");
      b.writes("cross-attention out", "multihead_attn.out_proj", attended);
    });
    mlp(b, before, "norm3");
  };
  b.each_layer("layers.{}.", layer, {"num_decoder_layers"});
  end(b);
}

void torch_finish(Builder& b) {
  if (!states_norm_first(b)) b.connections_are_assumed();
}

}  // namespace normscope::models
