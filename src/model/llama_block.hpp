#pragma once

#include <string_view>

namespace normscope::model {

class Builder;

/// The attention half of a Llama block, in Hugging Face's names, with norms of queries and keys if the file
/// has them.
void llama_attention(Builder& b);

/// An MLP whose inner activation is multiplied by a gate.
void gated_mlp(Builder& b, std::string_view gate, std::string_view in, std::string_view out);

/// Differences of architectures derived from Llama.
struct LlamaStyle {
  bool parallel = false;  ///< attention and MLP both read the single norm of the layer
  bool tied = false;      ///< the unembedding is the embedding unless the configuration says otherwise
};

/// A complete Llama: token embedding, blocks of attention and gated MLP, final norm, unembedding.
void llama_stack(Builder& b, const LlamaStyle& style = {});

}  // namespace normscope::model
