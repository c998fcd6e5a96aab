#include "outputs.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/safetensors.hpp>

#include "parameters.hpp"
#include "words.hpp"

namespace normscope::lab {
namespace {

using Json = nlohmann::ordered_json;

Json config(const Recipe& recipe) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"attn_pdrop", 0.0},
          {"bos_token_id", separator},
          {"embd_pdrop", 0.0},
          {"eos_token_id", separator},
          {"initializer_range", recipe.initial_deviation},
          {"layer_norm_epsilon", recipe.layer_norm_epsilon},
          {"n_ctx", recipe.context},
          {"n_embd", recipe.width},
          {"n_head", recipe.heads},
          {"n_inner", 4 * recipe.width},
          {"n_layer", recipe.layers},
          {"n_positions", recipe.context},
          {"resid_pdrop", 0.0},
          {"scale_attn_weights", true},
          {"tie_word_embeddings", false},
          {"torch_dtype", "float32"},
          {"vocab_size", alphabet.size()}};
}

Json vocabulary() {
  Json tokens = Json::object();
  for (const char character : alphabet) tokens[std::string(1, character)] = *token(character);
  return tokens;
}

}  // namespace

void write_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_model(const std::filesystem::path& folder, const Recipe& recipe, std::span<const float> values) {
  std::vector<files::NewTensor> tensors;
  for (const Parameter& tensor : parameters(recipe)) {
    tensors.push_back(
        {tensor.name, Dtype::F32, tensor.shape, std::as_bytes(values.subspan(tensor.offset, tensor.count))});
  }
  // Hugging Face's loader refuses a file that does not name its framework.
  files::write_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  write_text(folder / "config.json", config(recipe).dump(2) + "\n");
  write_text(folder / "vocab.json", vocabulary().dump(2) + "\n");
}

}  // namespace normscope::lab
