#include "outputs.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/safetensors.hpp>

#include "recipe.hpp"
#include "training.hpp"
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

namespace {

std::string what(const Job& job) {
  const Recipe& recipe = job.recipe;
  return fmt::format(R"(# wordlist_gpt

A small Pre-LN GPT-2 of our own that spells English words, one character a token. It is here so that
every command of Normscope has a complete model to work on: all weights, biases and norms are there,
the head is not tied to the embedding, and weight decay left the gains free to move.

- {} parameters in F32: width {}, {} layers, {} heads, context {}, {} tokens
  (newline, apostrophe, a to z; `vocab.json`). Newline stands before and after every word.
- Names and layouts are those of Hugging Face's `GPT2LMHeadModel` (matrices of the blocks in × out).
- Licence: Apache-2.0, like the rest of this repository.

)",
                     total_count(parameters(recipe)), recipe.width, recipe.layers, recipe.heads,
                     recipe.context, alphabet.size());
}

std::string data(const Job& job, const std::string& words_name) {
  return fmt::format(R"(## Data

{} words of `{}` from the Debian package `wamerican`, in lower case, sorted, without
duplicates; {} lines with other characters were left out (fingerprint {:016x}). A hash of the letters
before the apostrophe puts one word in ten aside: {} to train on, {} to validate with, and a word
and its possessive always on the same side. Other inflections may fall on different sides.

The list is part of SCOWL, copyright 2000-2011 by Kevin Atkinson, which may be used, copied, modified
and distributed for any purpose; `/usr/share/doc/wamerican/copyright` has the full notice. The list
itself is not part of this repository; the samples below quote a few of its words.

)",
                     job.words.training.size() + job.words.validation.size(), words_name, job.words.dropped,
                     job.words.fingerprint, job.words.training.size(), job.words.validation.size());
}

std::string losses(const Job& job, Network& network, const TrainingState& state) {
  const std::vector<std::string> seen = thinned(job.words.training, job.words.validation.size());
  std::string text = fmt::format(R"(## How good it is

Nats per character on whole words, the newline at their end included. The counts are of the training
words, with one added to every count.

| model | validation | training |
|---|---|---|
| wordlist_gpt | {:.4f} | {:.4f} |
)",
                                 model_loss(network, state.values, job.words.validation),
                                 model_loss(network, state.values, seen));
  const char* const names[] = {"unigram counts", "bigram counts", "trigram counts", "4-gram counts"};
  for (std::size_t order = 0; order < std::size(names); ++order) {
    text += fmt::format("| {} | {:.4f} | {:.4f} |\n", names[order],
                        count_loss(job.words.training, job.words.validation, order),
                        count_loss(job.words.training, seen, order));
  }
  text += fmt::format(
      "\nDuring training, on {} words of either list:\n\n| step | training | validation |\n|---|---|---|\n",
      std::min(job.recipe.measure_words, job.words.validation.size()));
  for (const CurvePoint& point : state.curve) {
    text += fmt::format("| {} | {:.4f} | {:.4f} |\n", point.step, point.training_loss, point.validation_loss);
  }
  return text + "\n";
}

std::string norms(const Recipe& recipe, std::span<const float> values) {
  std::string text = R"(## What its norms learned

| norm | least gain | greatest gain | mean | deviation | greatest \|bias\| |
|---|---|---|---|---|---|
)";
  const std::vector<Parameter> tensors = parameters(recipe);
  const auto of = [&](const Parameter& tensor) { return values.subspan(tensor.offset, tensor.count); };
  for (std::size_t i = 0; i + 1 < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    if (name.find("ln_") == std::string::npos || !name.ends_with(".weight")) continue;
    const std::span<const float> gain = of(tensors[i]);
    double sum = 0.0;
    double squares = 0.0;
    double bias = 0.0;
    for (const double value : gain) sum += value;
    const double mean = sum / static_cast<double>(gain.size());
    for (const double value : gain) squares += (value - mean) * (value - mean);
    for (const double value : of(tensors[i + 1])) bias = std::max(bias, std::abs(value));
    text +=
        fmt::format("| {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n", name.substr(0, name.rfind('.')),
                    *std::min_element(gain.begin(), gain.end()), *std::max_element(gain.begin(), gain.end()),
                    mean, std::sqrt(squares / static_cast<double>(gain.size())), bias);
  }
  return text + "\n";
}

std::string samples(const Job& job, Network& network, const TrainingState& state) {
  constexpr std::size_t count = 40;
  constexpr double temperature = 0.8;
  const Recipe& recipe = job.recipe;
  Random random(recipe.seed + 2);
  const auto listed = [&](const std::string& word) {
    return std::binary_search(job.words.training.begin(), job.words.training.end(), word) ||
           std::binary_search(job.words.validation.begin(), job.words.validation.end(), word);
  };
  std::size_t known = 0;
  std::string drawn;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string word = sample_word(network, recipe, state.values, "", temperature, random);
    known += listed(word) ? 1 : 0;
    drawn += (i == 0 ? "" : i % 10 == 0 ? ",\n" : ", ") + (listed(word) ? word : "*" + word + "*");
  }
  std::string likeliest;
  for (const char* prefix : {"un", "inter", "over", "photo", "qu", "z"}) {
    likeliest += (likeliest.empty() ? "" : ", ") + std::string(prefix) + " → " +
                 sample_word(network, recipe, state.values, prefix, 0.0, random);
  }
  return fmt::format(R"(## Samples

Drawn at temperature {}; {} of {} are in the list, the *others* are the model's own:
{}.

Likeliest letter after letter: {}.

)",
                     temperature, known, count, drawn, likeliest);
}

std::string making(const Job& job) {
  const Recipe& recipe = job.recipe;
  return fmt::format(R"(## How it was made

AdamW, {} steps of {} rows, {} steps of warm-up to {}, half a cosine down to {}, weight decay {}
on matrices only, gradient norm at most {}, no dropout, seed {}; all of it is in
`lab/wordlist_gpt/recipe.json`. To make it again, with `libtorch-dev` and `wamerican` installed:

```
cmake --preset lab && cmake --build --preset lab
build-lab/lab/normscope_lab_wordlist_gpt --words /usr/share/dict/american-english \
  --recipe lab/wordlist_gpt/recipe.json --out models/wordlist_gpt --threads {}
```

On one machine this gives the same bytes every time. Another processor, torch, BLAS or number of threads
rounds sums differently, and the weights drift apart while the losses stay close.
This card is written by the same program.

)",
                     recipe.steps, recipe.batch_rows, recipe.warmup_steps, recipe.peak_learning_rate,
                     recipe.final_learning_rate, recipe.weight_decay, recipe.gradient_clip, recipe.seed,
                     job.threads);
}

constexpr const char* limits = R"(## Limits

It knows spelling, not language: no word frequencies, no sentences, no capitals, no accents. It was
trained to be looked into, not to be used; names of people and places and rude words of the list are in it.
)";

}  // namespace

std::string model_card(const Job& job, const std::string& words_name, Network& network,
                       const TrainingState& state) {
  return what(job) + data(job, words_name) + losses(job, network, state) + norms(job.recipe, state.values) +
         samples(job, network, state) + making(job) + limits;
}

}  // namespace normscope::lab
