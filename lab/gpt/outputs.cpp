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

namespace normscope::lab {
namespace {

using Json = nlohmann::ordered_json;

Json config(const Recipe& recipe) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"attn_pdrop", 0.0},
          {"bos_token_id", nullptr},
          {"embd_pdrop", 0.0},
          {"eos_token_id", nullptr},
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
          {"vocab_size", recipe.tokens}};
}

}  // namespace

void write_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_model(const std::filesystem::path& folder, const Job& job, std::span<const float> values) {
  std::vector<files::NewTensor> tensors;
  for (const Parameter& tensor : parameters(job.recipe)) {
    tensors.push_back(
        {tensor.name, Dtype::F32, tensor.shape, std::as_bytes(values.subspan(tensor.offset, tensor.count))});
  }
  // Hugging Face's loader refuses a file that does not name its framework.
  files::write_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  write_text(folder / "config.json", config(job.recipe).dump(2) + "\n");
  write_text(folder / "tokenizer.json", tokenizer_json(job.text.pairs, job.text.reserved));
}

namespace {

std::string what(const Job& job) {
  const Recipe& recipe = job.recipe;
  return fmt::format(R"(# kjv_gpt

A small Pre-LN GPT-2 of our own that continues verses of the King James Bible. It is here so that every
command of Normscope has a complete model to work on that was made as larger ones are: its tokenizer was
made on other text than the model was trained on, so some tokens were never trained; the head is not tied
to the embedding and began at zero; weight decay left the gains free to move.

- {} parameters in F32: width {}, {} layers, {} heads, context {}, {} tokens
  (byte-level BPE, `tokenizer.json`).
- Names and layouts are those of Hugging Face's `GPT2LMHeadModel` (matrices of the blocks in × out).
- Licence: Apache-2.0, like the rest of this repository.

)",
                     total_count(parameters(recipe)), recipe.width, recipe.layers, recipe.heads,
                     recipe.context, recipe.tokens);
}

/// Tokens in backquotes, as the tokenizer spells them.
std::string spelled(const Text& text, std::span<const std::size_t> tokens) {
  std::string list;
  for (const std::size_t token : tokens) {
    list += list.empty() ? "`" : ", `";
    list += text.name(token) + "`";
  }
  return list;
}

std::string data(const Job& job) {
  const Text& text = job.text;
  std::vector<bool> met(job.recipe.tokens, false);
  for (const std::int64_t token : text.training) met[static_cast<std::size_t>(token)] = true;
  std::size_t bytes = 0;
  std::vector<std::size_t> others;
  for (std::size_t token = 0; token < met.size(); ++token) {
    if (met[token]) continue;
    if (token < 256) ++bytes;
    if (token >= 256) others.push_back(token);
  }
  return fmt::format(R"(## Data

The King James Bible of the Debian package `bible-kjv-text`, one verse a line, without the names of the
verses: {} tokens of {} bytes to train on. Of every twenty blocks of 64 verses one is held out, {} tokens
of {} bytes. Books that tell the same story fall on both sides. The translation is of 1611 and in the
public domain (in the United Kingdom, the Crown holds printing rights); the package's file is "provided
for unrestricted use", says `/usr/share/doc/bible-kjv-text/copyright`. The text is not part of this
repository; the sample below imitates it.

The tokenizer is byte-level BPE, as GPT-2's, made of that text and of eleven licences in
`/usr/share/common-licenses`, which count {} times each (fingerprint of all {:016x}). Of its {} tokens,
{} never occur in the training: {} bytes, and

{}.

)",
                     text.training.size(), text.training_bytes, text.held_out.size(), text.held_out_bytes,
                     job.recipe.besides_weight, text.fingerprint, job.recipe.tokens, bytes + others.size(),
                     bytes, spelled(text, others));
}

std::string losses(const Job& job, Network& network, const TrainingState& state) {
  const Text& text = job.text;
  const std::span<const std::int64_t> seen(text.training.data(), text.held_out.size());
  const auto loss = [&](std::span<const std::int64_t> stream) {
    return model_loss(network, job.recipe, state.values, stream, stream.size());
  };
  std::string table = fmt::format(R"(## How good it is

Nats per token, on the held-out text and on as many tokens of the text that it was trained on. The counts are
of the training text, each order interpolated with the lower ones (Witten and Bell).

| model | held out | training |
|---|---|---|
| kjv_gpt | {:.4f} | {:.4f} |
)",
                                  loss(text.held_out), loss(seen));
  const char* const names[] = {"unigram counts", "bigram counts", "trigram counts"};
  for (std::size_t order = 0; order < std::size(names); ++order) {
    const auto of = [&](std::span<const std::int64_t> stream) {
      return count_loss(text.training, stream, job.recipe.tokens, order);
    };
    table += fmt::format("| {} | {:.4f} | {:.4f} |\n", names[order], of(text.held_out), of(seen));
  }
  table += fmt::format(
      "\nDuring training, on {} rows of either text:\n\n| step | training | held out |\n|---|---|---|\n",
      job.recipe.measure_rows);
  for (const CurvePoint& point : state.curve) {
    table += fmt::format("| {} | {:.4f} | {:.4f} |\n", point.step, point.training_loss, point.held_out_loss);
  }
  return table + "\n";
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

std::string sample(const Job& job, Network& network, const TrainingState& state) {
  constexpr double temperature = 0.8;
  constexpr std::size_t given = 12;
  Random random(job.recipe.seed + 2);
  const std::span<const std::int64_t> prompt(job.text.held_out.data(), std::min(given, job.recipe.context));
  std::string text =
      sample_text(network, job.recipe, state.values, job.text.pairs, prompt, temperature, random);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 3)) {
    text.replace(at, 1, "\n> ");
  }
  return fmt::format(
      "## Sample\n\nAt temperature {}, after the first {} tokens of the held-out text:\n\n> {}\n\n",
      temperature, prompt.size(), text);
}

std::string making(const Job& job) {
  const Recipe& recipe = job.recipe;
  return fmt::format(R"(## How it was made

AdamW, {} steps of {} rows ({:.1f} passes over the text), {} steps of warm-up to {}, half a cosine down to {} in
the last {}, weight decay {} on matrices only, gradient norm at most {}, no dropout, seed {}; all of it is in
`lab/gpt/recipe.json`. To make it again, with `libtorch-dev` and `bible-kjv` installed:

```
cmake --preset lab && cmake --build --preset lab
bible -f Gen1:1-Rev22:21 | sed 's/^[^ ]* //' > kjv.txt
cd /usr/share/common-licenses && licences=$(realpath Apache-2.0 Artistic BSD CC0-1.0 GFDL-1.3 GPL-1 GPL-2 \
  GPL-3 LGPL-2.1 LGPL-3 MPL-2.0) && cd -
build-lab/lab/gpt/normscope_lab_gpt --text kjv.txt --tokenizer-text $licences \
  --recipe lab/gpt/recipe.json --out models/kjv_gpt --threads {}
```

On one machine and with one build this gives the same bytes every time. Another processor, compiler, torch, BLAS or
number of threads rounds sums differently, and the weights drift apart while the losses stay close. This card is
written by the same program.

)",
                     recipe.steps, recipe.batch_rows,
                     static_cast<double>(recipe.steps * recipe.batch_rows * recipe.context) /
                         static_cast<double>(job.text.training.size()),
                     recipe.warmup_steps, recipe.peak_learning_rate, recipe.final_learning_rate,
                     recipe.cooldown_steps, recipe.weight_decay, recipe.gradient_clip, recipe.seed,
                     job.threads);
}

constexpr const char* limits = R"(## Limits

It imitates the sound of one book and knows nothing. It was trained to be looked into, not to be used: the
learning rate is high for a model of this size, and a few gains and features came to stand out. The number of
steps was raised from 3000 to 9000 after 1150 of them, before anything depended on it, when there proved to be time.
)";

}  // namespace

std::string model_card(const Job& job, Network& network, const TrainingState& state) {
  return what(job) + data(job) + losses(job, network, state) + norms(job.recipe, state.values) +
         sample(job, network, state) + making(job) + limits;
}

}  // namespace normscope::lab
