#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/models/model.hpp>

/// Parts of a layer that several architectures share.
namespace normscope::models {

class Builder;

/// Appends those of `more` whose part of a stored matrix `list` does not have in the same role.
void append_new(std::vector<Linear>& list, std::vector<Linear> more);

/// Appends the names that `list` does not have.
void append_names(std::vector<std::string>& list, std::vector<std::string> more);

/// A learned scale per feature between a branch and the stream (layer scale); nothing where the file has
/// none.
void branch_scale(Builder& b, std::string_view name);

/// The names of a mixture of experts, relative to its own prefix.
struct ExpertNames {
  std::string_view router = "gate";
  std::string_view experts = "experts";  ///< numbered after this name
  std::string_view gate = "gate_proj";
  std::string_view in = "up_proj";
  std::string_view out = "down_proj";
};

/// A layer's router and its experts, which are gated MLPs: every expert reads the last norm, and its output,
/// times the router's weight, is added to the stream.
void gated_experts(Builder& b, const ExpertNames& names = {});

/// The experts that a token uses, by a softmax of the router: `normalized` by the class, or as the
/// configuration says. Empty if it does not state their number.
[[nodiscard]] std::optional<Routing> softmax_routing(const Builder& b, std::optional<bool> normalized = {});
/// By sigmoids of the router and a correction (DeepSeek-V3 and its relatives). Empty also where experts are
/// chosen in groups.
[[nodiscard]] std::optional<Routing> sigmoid_routing(const Builder& b, std::optional<bool> normalized = {});
/// The correction of the router described last, where the file has one.
void router_correction(Builder& b, std::string_view name);

/// A gated MLP, or a mixture of experts if the layer has one, numbered or stacked, under "mlp.". Experts that
/// every token passes are gated MLPs of their own.
void llama_experts(Builder& b);

/// The forward pass of one vision-transformer block, in timm's names.
void timm_block(Builder& b);

/// A layer of ViT, in the names of transformers.
void vit_layer(Builder& b);

/// Which norms a state-space mixer has on the time step and on the input and output vectors of its state.
enum class StateNorms { none, without_parameters, with_gains };

/// The names of a state-space mixer, relative to its own prefix.
struct MixerNames {
  const char* in = "in_proj";
  const char* convolution = "conv1d";
  const char* state = "x_proj";  ///< to the time step and the input and output vectors of the state
  const char* step = "dt_proj";
  const char* decay = "A_log";
  const char* skip = "D";
  const char* norm = "norm";  ///< of Mamba 2
  const char* out = "out_proj";
  std::uint64_t norm_groups = 1;     ///< groups of outputs that it normalizes apart
  std::optional<double> norm_eps{};  ///< its eps, whatever the configuration says
  bool norm_before_gate = false;     ///< its output is multiplied by the gate, not its input
  bool own_eps = true;               ///< norms without parameters have one of their own
};

/// A Mamba or Mamba 2 mixer under the current prefix, which reads the last norm and writes to the stream.
void state_space_mixer(Builder& b, StateNorms norms = StateNorms::none, const MixerNames& names = {});

/// A gated delta net under the current prefix, which reads the last norm and writes to the stream. Its norm
/// stores its gain whole, and its output is multiplied by a gate.
void delta_net(Builder& b);

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

/// The encoder and decoder layers that BART, its relatives and Whisper have in common.
struct BartStyle {
  bool before = false;  ///< whether norms precede their branches; else they follow the addition
  std::string_view mlp_in = "fc1", mlp_out = "fc2";
};

/// "layers.{}." of an encoder, under the current prefix.
void bart_encoder_layers(Builder& b, const BartStyle& style);
/// "layers.{}." of a decoder, whose cross-attention reads the remembered norm.
void bart_decoder_layers(Builder& b, const BartStyle& style);

/// Norms of the queries and keys of the attention described last.
void norms_of_queries_and_keys(Builder& b, std::string_view query, std::string_view key);

/// The projections of a Llama attention, in Hugging Face's names, with norms of queries and keys if the file
/// has them; `out` is the output projection.
void llama_projections(Builder& b, std::string_view out = "self_attn.o_proj");

/// Misses norms of queries and keys that the configuration states ("use_qk_norm") and the file lacks.
void expect_norms_of_heads(Builder& b);

/// The norm of the attention's input, and the projections.
void llama_attention(Builder& b);

/// DeepSeek's attention under the current prefix: queries and keys are made from narrow latent vectors with
/// norms of their own, whose eps is 1e-6 whatever the configuration says. The rotated part of a key, the same
/// for all heads, is made from the layer's input. `keys_scaled`: the field that says by what the latent
/// vector of keys is multiplied behind its norm; empty for nothing.
void latent_attention(Builder& b, const std::string& keys_scaled = {});

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
  bool biased_head = false;              ///< the class has a bias of the unembedding
};

/// A complete Llama: token embedding, blocks of attention and gated MLP, final norm, unembedding.
void llama_stack(Builder& b, const LlamaStyle& style = {});

/// The maps of an attention in llama.cpp's names, which may be one matrix [queries | keys | values], with
/// norms of queries and keys if the file has them. They read the last norm.
void gguf_attention(Builder& b);

/// An MLP without a gate in llama.cpp's names.
void gguf_plain_mlp(Builder& b);

/// A layer in llama.cpp's names with a norm before attention and one before such an MLP.
void gguf_plain_layer(Builder& b);

/// A layer in llama.cpp's names whose attention and MLP, with a gate or without, read one norm, unless the
/// file has a second one.
void gguf_parallel_layer(Builder& b);

/// A gated MLP in llama.cpp's names, whose gate and input may be one matrix, or stacked experts with one that
/// every token passes.
void gguf_gated_mlp(Builder& b);

/// A decoder in llama.cpp's names: token embedding, blocks, final norm, unembedding. llama.cpp stores gains
/// as they are used. `layer`: null for a norm before attention and one before a gated MLP, and norms of both
/// outputs if the file has them.
void gguf_stack(Builder& b, void (*layer)(Builder& b) = nullptr);

/// A decoder, or an encoder, whose activation is GELU by the error function; no entry of the file says so.
void gguf_exact_gelu(Builder& b, bool encodes = false);

/// "rope.dimension_count", 0 without it.
std::size_t gguf_rotary_dims(const Builder& b);

/// Which of two families with the same tensor names it is.
enum class ClipFamily { clip, siglip };

/// The vision tower of CLIP and SigLIP, whose tensors are under "vision_model.".
void clip_vision_tower(Builder& b, ClipFamily family);
/// The text tower, under "text_model.".
void clip_text_tower(Builder& b, ClipFamily family);
/// SigLIP by its model_type, without one by its tensors.
ClipFamily clip_family(const Builder& b);

/// How a parameter of RWKV is stored: its numbers in one row, a matrix [out, in] or [in, out], or a stack of
/// either.
enum class RwkvForm { row, matrix, transposed, stack, transposed_stack };

/// A parameter of RWKV that no norm's reader or writer is.
struct RwkvPart {
  std::string_view role;
  std::string_view name;  ///< relative to the current prefix
  RwkvForm form = RwkvForm::row;
  bool not_first = false;  ///< the first layer does not use it
};

/// What is not listed as a reader, and how inference rescales the stream.
void rwkv_notes(Builder& b);
/// The attention of RWKV-6 or RWKV-7, which reads the last norm: `parts`, the norm of its heads' outputs, and
/// the map that writes them.
void rwkv_time_mix(Builder& b, std::span<const RwkvPart> parts, std::string_view norm, std::string_view out);
/// The MLP, which reads the last norm.
void rwkv_channel_mix(Builder& b, std::span<const RwkvPart> parts, std::string_view out);
/// Vectors of one stacked tensor, of which each has a role of its own.
void rwkv_stacked_mixes(Builder& b, std::string_view name, std::span<const char* const> roles);

/// Swin's stages: an embedding behind a norm, layers of `block`, and `merge` at the end of each stage. Norms
/// between them have `eps` whatever the configuration says.
void swin_stages(Builder& b, double eps, const std::function<void()>& block,
                 const std::function<void()>& merge);

/// An encoder's layer in Llama's names, of Llama's vision towers and Moonshine: the MLP has no gate, and
/// branches may be multiplied by a learned number.
void llama_encoder_layer(Builder& b);

/// The vision tower of AIMv2 and its text tower, under the current prefix.
void aimv2_vision_tower(Builder& b);
void aimv2_text_tower(Builder& b);

/// A GroupNorm over all positions: a note, and no norm.
void norm_over_positions(Builder& b, std::string_view name);
/// Convolutions of the samples under `under`, with an activation behind each; `each`: and a norm of channels.
void speech_features(Builder& b, std::string_view under, bool each);
/// From these features to the stream of `width`: a norm, if the file has one, and a map.
void speech_projection(Builder& b, std::string_view under, std::uint64_t width);
/// Positions that convolutions of the stream make, which are added to it.
void speech_positions(Builder& b, std::string_view under);
/// A layer of wav2vec 2.0's encoder.
void speech_layer(Builder& b, bool before);

/// BERT's layers, under "encoder.layer.": attention and an MLP, each behind whose sum stands a norm.
void bert_layers(Builder& b);

}  // namespace normscope::models
