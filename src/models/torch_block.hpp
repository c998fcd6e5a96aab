#pragma once

namespace normscope::models {

class Builder;

/// Whether norms come before their branches ("norm_first") in torch.nn's stacks, which no tensor shows;
/// decided once for the model. Without a configuration `assumed` is used, and scores are marked as not
/// modelled.
bool torch_norm_first(Builder& b, bool assumed);

/// torch.nn.TransformerEncoder under the current prefix. Its input and its readers belong to the surrounding
/// code.
void torch_encoder_stack(Builder& b, bool before);
/// torch.nn.TransformerDecoder, whose cross-attention reads the remembered norm, if there is one.
void torch_decoder_stack(Builder& b, bool before);
/// After the stacks: their connections are only assumed if no configuration states "norm_first".
void torch_finish(Builder& b);

}  // namespace normscope::models
