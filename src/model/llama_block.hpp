#pragma once

#include <string_view>

namespace normscope::model {

class Builder;

/// The attention half of a Llama block, in Hugging Face's names, with norms of queries and keys where the
/// file has them.
void llama_attention(Builder& b);

/// An MLP whose inner activation is multiplied by a gate.
void gated_mlp(Builder& b, std::string_view gate, std::string_view in, std::string_view out);

/// What relatives of Llama do otherwise.
struct LlamaStyle {
  bool parallel = false;  ///< one norm a layer, which attention and MLP read side by side
  bool tied = false;      ///< the unembedding is the embedding where the configuration does not say
};

/// The whole of a Llama: token embedding, blocks of attention and gated MLP, final norm, unembedding.
void llama_stack(Builder& b, const LlamaStyle& style = {});

}  // namespace normscope::model
