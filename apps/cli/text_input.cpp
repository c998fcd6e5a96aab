#include "text_input.hpp"

#include <filesystem>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/models/token_names.hpp>

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

void state_activation(const std::string& name, models::Model& model) {
  if (name.empty() || !model.decoder) return;
  if (model.decoder->activation) {
    throw Error(ErrorCode::Argument, "--activation: " + model.title + " states its activation itself");
  }
  model.decoder->activation = name == "gelu" ? models::Activation::gelu : models::Activation::gelu_tanh;
}

}  // namespace

std::vector<Argument> text_inputs(TextInput& input) {
  return {cli::input("MODEL", input.model.path, "Checkpoint to run, a decoder").required(),
          cli::input("TEXT", input.text, "Text, for models with a tokenizer beside them")};
}

std::vector<Argument> text_options(TextInput& input) {
  return joined({option("--tokens", input.tokens),
                 option("--names", input.names).says("; those of byte-level BPE encode TEXT"),
                 option("--activation", input.activation)
                     .says("of the MLP, if the file does not state it")
                     .one_of({"gelu", "gelu_new"})},
                model_options(input.model));
}

Context context_of(const TextInput& input, Inputs& inputs) {
  if (input.text.has_value() != input.tokens.empty()) {
    throw CLI::ValidationError("TEXT", "expected either TEXT or --tokens");
  }
  const files::Checkpoint& checkpoint = inputs.checkpoint(input.model.path);
  const std::optional<fs::path> names =
      input.names.empty() ? models::find_token_names(checkpoint.files().front().parent_path())
                          : std::optional<fs::path>(input.names);
  if (names) inputs.add_file(*names);
  Context context{.checkpoint = checkpoint,
                  .model = inputs.model_of(checkpoint, input.model.stated),
                  .tokens = input.tokens};
  state_activation(input.activation, context.model);
  const std::size_t vocabulary = forward::Decoder(checkpoint, context.model).vocabulary();
  if (!input.text) {
    if (names) context.names = models::read_token_names(*names, vocabulary);
    return context;
  }
  if (input.text->empty())
    throw Error(ErrorCode::Argument, "the text is empty, expected at least one character");
  if (!names) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: has no tokenizer beside it; give one with --names FILE, or --tokens",
                            input.model.path));
  }
  context.tokenizer.emplace(*names, vocabulary);
  context.tokens = context.tokenizer->encode(*input.text);
  context.names = context.tokenizer->names();
  return context;
}

}  // namespace normscope::cli
