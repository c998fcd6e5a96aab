#pragma once

#include <string_view>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "config.hpp"

namespace normscope::models {

class Builder;

/// Whether the MLP of a block reads what attention has written to the stream, or what attention reads.
enum class LensBlocks { sequential, parallel };

/// One model family: how to recognise it, and its forward pass in terms of tensor names. Each file in
/// architectures/ defines one and has its name; tests/models/architectures/toy.cpp is the smallest. A forward
/// pass is written in the words of `Builder` (builder.hpp); blocks.hpp has parts that families share.
struct Architecture {
  std::string_view name;
  std::string_view title;
  /// Values of "model_type" in config.json that select it.
  std::vector<std::string_view> model_types;
  /// Prefixes of tensor names that a checkpoint of this family has, with "{}" for a number and leading
  /// components left out. The first one determines where in the file the model is.
  std::vector<std::string_view> signature;
  /// Prefixes that it does not have.
  std::vector<std::string_view> without;
  void (*describe)(Builder& b);
  /// Which part of a multimodal model it is.
  Tower tower = Tower::text;
  /// Configuration fields without effect in this family, in addition to those of fields.cpp.
  std::vector<std::string_view> harmless{};
  /// Values of "model_type" of models around one of this family whose own head scales and caps logits as it
  /// does.
  std::vector<std::string_view> keeps_logits_within{};
  /// Has the same tensor names as another family; only a model_type identifies it.
  bool by_model_type_only = false;
  /// Whether centred models of this family were run with RMSNorm in place of LayerNorm
  /// (scripts/model_oracle/rewrite.py). Others are not centred: a file does not show embeddings that are
  /// computed, so the list of writers alone does not prove that the stream is centred.
  bool centres_exactly = false;
  /// Whether rotated models of this family were run there. Others are not rotated, because values that are
  /// computed without a tensor, such as a position table of sines, would not be rotated.
  bool rotates_exactly = false;
  /// The architecture that describes models of this family in llama.cpp's names; empty for none.
  std::string_view in_llama_cpp{};
  /// Whether what another tower gives is read by layers of this one, and does not stand in for tokens.
  bool attends_to_towers = false;
  /// Sets up the description of a model of this family in TransformerLens' names, before its tensors are
  /// described; null if they do not describe it.
  LensBlocks (*in_transformer_lens)(Builder& b) = nullptr;
};

/// Whether TransformerLens' names describe models of this family with this "model_type", empty for none.
[[nodiscard]] bool is_in_transformer_lens(const Architecture& architecture, std::string_view model_type);

/// Every architecture of src/models/architectures; generated from the folder.
std::vector<const Architecture*> all_architectures();

/// Like `describe`, with a given list of architectures.
[[nodiscard]] Model describe_as_one_of(const std::vector<const Architecture*>& architectures,
                                       const files::Checkpoint& checkpoint, const Stated& stated = {});

}  // namespace normscope::models
