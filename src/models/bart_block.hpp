#pragma once

namespace normscope::models {

class Builder;

/// The encoder and decoder layers that BART, its relatives and Whisper have in common.
struct BartStyle {
  bool before = false;  ///< whether norms precede their branches; else they follow the addition
};

/// "layers.{}." of an encoder, under the current prefix.
void bart_encoder_layers(Builder& b, const BartStyle& style);
/// "layers.{}." of a decoder, whose cross-attention reads the remembered norm.
void bart_decoder_layers(Builder& b, const BartStyle& style);

}  // namespace normscope::models
