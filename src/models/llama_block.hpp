#pragma once

#include <string_view>

namespace normscope::models {

class Builder;

/// Norms of the queries and keys of the attention described last.
void norms_of_queries_and_keys(Builder& b, std::string_view query, std::string_view key);

/// The projections of a Llama attention, in Hugging Face's names, with norms of queries and keys if the file
/// has them; `out` is the output projection.
void llama_projections(Builder& b, std::string_view out = "self_attn.o_proj");

/// Misses norms of queries and keys that the configuration states ("use_qk_norm") and the file lacks.
void expect_norms_of_heads(Builder& b);

/// The norm of the attention's input, and the projections.
void llama_attention(Builder& b);

/// An MLP whose inner activation is multiplied by a gate.
void gated_mlp(Builder& b, std::string_view gate, std::string_view in, std::string_view out);

/// A gated MLP in Hugging Face's names; gate and input may be one matrix.
void llama_mlp(Builder& b);

/// Attention and MLP that read the stream itself; their outputs are normalized before they are added.
void llama_branches_with_norms(Builder& b);

/// Differences of architectures derived from Llama.
struct LlamaStyle {
  bool tied = false;  ///< the unembedding is the embedding unless the configuration says otherwise
  void (*layer)(Builder& b) = nullptr;   ///< a layer of another kind
  std::string_view final_norm = "norm";  ///< its name
};

/// A complete Llama: token embedding, blocks of attention and gated MLP, final norm, unembedding.
void llama_stack(Builder& b, const LlamaStyle& style = {});

}  // namespace normscope::models
