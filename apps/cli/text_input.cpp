#include "text_input.hpp"

#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
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

/// The beginning of a file of text, which ends with a whole character.
std::string read_beginning(const std::string& name, bool& whole) {
  const RangedFile file(name);
  whole = file.size() <= longest_beginning;
  std::string text(whole ? file.size() : longest_beginning + 1, '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  if (!whole) {
    std::size_t end = longest_beginning;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
  }
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw Error(ErrorCode::Format, name + ": is not UTF-8, expected text in UTF-8");
  }
  return text;
}

}  // namespace

std::vector<Argument> text_inputs(TextInput& input) {
  return {cli::input("MODEL", input.model.path, "Checkpoint to run, a decoder").required(),
          cli::input("TEXT", input.text, "Text, for models with a tokenizer beside them")};
}

std::vector<Argument> text_options(TextInput& input) {
  return joined({option("--tokens", input.tokens),
                 option("--names", input.names).says("; those of byte-level BPE encode text"),
                 option("--activation", input.activation)
                     .says("of the MLP, if the file does not state it")
                     .one_of({"gelu", "gelu_new"})},
                model_options(input.model));
}

Context context_of(const TextInput& input, Inputs& inputs) {
  const bool has_text = input.text || !input.file.empty();
  if (has_text != input.tokens.empty()) {
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
  if (!has_text) {
    if (names) context.names = models::token_texts(models::read_token_names(*names, vocabulary));
    return context;
  }
  if (!names) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: has no tokenizer beside it; give one with --names FILE, or --tokens",
                            input.model.path));
  }
  context.tokenizer.emplace(*names, vocabulary);
  std::string text = input.text.value_or("");
  if (!input.file.empty()) {
    inputs.add_file(input.file);
    text = read_beginning(input.file, context.whole);
  }
  try {
    if (text.empty()) throw Error(ErrorCode::Argument, "the text is empty, expected at least one character");
    context.tokens = context.tokenizer->encode(text);
  } catch (const Error& error) {
    if (input.file.empty()) throw;
    throw Error(error.code(), input.file + ": " + error.what());
  }
  context.names = models::token_texts(context.tokenizer->names());
  return context;
}

}  // namespace normscope::cli
