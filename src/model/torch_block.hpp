#pragma once

namespace normscope::model {

class Builder;

/// What no tensor of torch.nn's stacks shows, settled once for the model: whether norms come before their
/// branches ("norm_first"). Without a configuration it is assumed, and nothing is promised that depends on
/// it.
bool torch_norm_first(Builder& b, bool assumed);

/// torch.nn.TransformerEncoder under the current prefix. What it reads, and what reads it, is the code
/// around.
void torch_encoder_stack(Builder& b, bool before);
/// torch.nn.TransformerDecoder, whose cross-attention reads the remembered norm, if there is one.
void torch_decoder_stack(Builder& b, bool before);
/// After the stacks: their connections are only assumed if no configuration states "norm_first".
void torch_finish(Builder& b);

}  // namespace normscope::model
