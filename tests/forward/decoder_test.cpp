// Compares the forward pass with the logits that transformers computed for tiny models
// (scripts/model_oracle/README.md).

#include <normscope/forward/decoder.hpp>
#include <normscope/forward/paths.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/forward/paths.hpp>

#include "support/files.hpp"
#include "support/fixtures.hpp"

namespace normscope::forward {
namespace {

nlohmann::json truth_of(const std::string& name) {
  std::ifstream file(test::fixture(name) / "truth.json");
  return nlohmann::json::parse(file);
}

std::vector<std::size_t> tokens_of(const nlohmann::json& truth) {
  return truth.at("inputs").at("input_ids").at(0).get<std::vector<std::size_t>>();
}

/// Logits of all tokens of the context.
std::vector<double> logits_of(const files::Checkpoint& checkpoint, const models::Model& model,
                              const std::vector<std::size_t>& tokens) {
  const Decoder decoder(checkpoint, model, 1, {.encoders = true});
  const std::vector<double> hidden = decoder.run(tokens);
  std::vector<double> logits(tokens.size() * decoder.vocabulary());
  decoder.logits({hidden.data(), tokens.size(), hidden.size() / tokens.size()},
                 {logits.data(), tokens.size(), decoder.vocabulary()});
  return logits;
}

void expect_truth(const nlohmann::json& truth, const std::vector<double>& logits) {
  const std::size_t vocabulary = logits.size() / tokens_of(truth).size();
  const nlohmann::json& outputs = truth.at("outputs").at("logits");
  ASSERT_GT(outputs.at("positions").size(), 0U);
  for (std::size_t k = 0; k < outputs.at("positions").size(); ++k) {
    const auto position = outputs.at("positions").at(k).get<std::size_t>();
    const auto expected = outputs.at("values").at(k).get<std::vector<double>>();
    ASSERT_EQ(expected.size(), vocabulary);
    for (std::size_t i = 0; i < vocabulary; ++i) {
      EXPECT_NEAR(logits[position * vocabulary + i], expected[i], 2e-5);
    }
  }
}

std::string refusal_of(const files::Checkpoint& checkpoint, const models::Model& model) {
  return test::error_of(ErrorCode::Unsupported, [&] { const Decoder decoder(checkpoint, model); });
}

class DecoderFixture : public testing::TestWithParam<std::string> {};

TEST_P(DecoderFixture, HasTheLogitsOfTransformers) {
  const nlohmann::json truth = truth_of(GetParam());
  const files::Checkpoint checkpoint(test::fixture(GetParam()));
  expect_truth(truth, logits_of(checkpoint, models::describe(checkpoint), tokens_of(truth)));
}

TEST_P(DecoderFixture, AddsItsComponentsToTheStream) {
  const files::Checkpoint checkpoint(test::fixture(GetParam()));
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> tokens = tokens_of(truth_of(GetParam()));
  const Decoder decoder(checkpoint, model, 1);
  std::vector<double> sum, stream;
  std::set<std::string> names;
  const std::vector<double> hidden = decoder.run(tokens);
  const std::vector<double> apart = decoder.run_apart(
      tokens, {.collect =
                   [&](std::size_t index, MatrixView<const double> rows) {
                     EXPECT_EQ(index, names.size());
                     EXPECT_TRUE(names.insert(decoder.components().at(index).name()).second);
                     sum.resize(rows.rows() * rows.width());
                     for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rows.data()[i];
                   },
               .observe =
                   [&](std::size_t, MatrixView<const double> rows) {
                     stream.assign(rows.data(), rows.data() + rows.rows() * rows.width());
                   }});
  EXPECT_EQ(names.size(), decoder.components().size());
  ASSERT_EQ(sum.size(), stream.size());
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], stream[i], 1e-11);
  for (std::size_t i = 0; i < hidden.size(); ++i) EXPECT_NEAR(apart[i], hidden[i], 1e-10);
}

/// The rows that enter each norm.
std::vector<std::vector<double>> rows_entering(const Decoder& decoder,
                                               const std::vector<std::size_t>& tokens) {
  std::vector<std::vector<double>> entered;
  (void)decoder.run_apart(tokens, {.observe = [&](std::size_t, MatrixView<const double> rows) {
                            entered.emplace_back(rows.data(), rows.data() + rows.rows() * rows.width());
                          }});
  return entered;
}

TEST_P(DecoderFixture, BeginsWhereAComponentChanges) {
  const files::Checkpoint checkpoint(test::fixture(GetParam()));
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> tokens = tokens_of(truth_of(GetParam()));
  const Decoder decoder(checkpoint, model, 1);
  const std::vector<std::vector<double>> entered = rows_entering(decoder, tokens);
  for (std::size_t k = 0; k < decoder.components().size(); ++k) {
    const auto halve = [&](std::size_t index, MatrixView<double> rows) {
      EXPECT_TRUE(index < decoder.components().size());
      for (double& value : rows.row(0)) value *= index == k ? 0.5 : 1.0;
    };
    const std::vector<double> whole = decoder.run_apart(tokens, {.change = halve});
    EXPECT_EQ(decoder.run_apart(tokens, {.change = halve, .entered = &entered, .first = k}), whole)
        << decoder.components()[k].name();
  }
  EXPECT_EQ(decoder.share_behind(0), 1.0);
  // Branches that read the stream itself are all of one step.
  const double least = model.stream_readers.empty() ? 0.5 : 1.0;
  EXPECT_LE(decoder.share_behind(decoder.components().size() - 1), least);
}

TEST_P(DecoderFixture, ReplacesWhatItDoesNotCompute) {
  const files::Checkpoint checkpoint(test::fixture(GetParam()));
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> tokens = tokens_of(truth_of(GetParam()));
  const Decoder decoder(checkpoint, model, 1);
  const std::vector<std::vector<double>> entered = rows_entering(decoder, tokens);
  const std::size_t count = decoder.components().size();
  const auto set = [](std::size_t, MatrixView<double> rows) {
    for (std::size_t t = 0; t < rows.rows(); ++t) std::fill(rows.row(t).begin(), rows.row(t).end(), 0.125);
  };
  for (std::size_t k = 0; k < count; ++k) {
    Apart run{.change = set, .entered = &entered, .first = k, .changed = std::vector<bool>(count)};
    run.changed[k] = true;
    std::vector<double> expected = decoder.run_apart(tokens, run);
    run.replaces = true;
    EXPECT_EQ(decoder.run_apart(tokens, run), expected) << decoder.components()[k].name();
    const std::vector<double> unchanged = decoder.run_apart(tokens, Apart{});
    expected.insert(expected.begin(), unchanged.begin(), unchanged.end());
    const Apart runs[] = {{.entered = &entered}, run};
    EXPECT_EQ(decoder.run_apart(tokens, runs), expected) << decoder.components()[k].name();
  }
}

// 0 · NaN is NaN: weights of 0 alone would not do.
TEST_P(DecoderFixture, PassesNothingToEarlierTokens) {
  const files::Checkpoint checkpoint(test::fixture(GetParam()));
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> tokens = tokens_of(truth_of(GetParam()));
  const Decoder decoder(checkpoint, model, 1);
  const std::vector<double> whole = decoder.run_apart(tokens, Apart{});
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const std::size_t at = tokens.size() / 2;
    const std::vector<double> found =
        decoder.run_apart(tokens, {.change = [&](std::size_t k, MatrixView<double> rows) {
                            if (k == 0) rows.row(at)[1] = bad;
                          }});
    const std::size_t before = at * model.width;
    EXPECT_TRUE(
        std::equal(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(before), whole.begin()));
    EXPECT_TRUE(std::isnan(found[before]));
  }
}

TEST_P(DecoderFixture, RunsSeveralPassesTogether) {
  const files::Checkpoint checkpoint(test::fixture(GetParam()));
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> tokens = tokens_of(truth_of(GetParam()));
  const Decoder decoder(checkpoint, model, 2);
  const std::vector<std::vector<double>> entered = rows_entering(decoder, tokens);
  const std::size_t count = decoder.components().size();
  std::vector<std::vector<double>> alone, last_entered(count);
  std::vector<Apart> runs;
  for (std::size_t k = count; k-- > 0;) {
    const auto halve = [](MatrixView<double> rows) {
      for (std::size_t t = 0; t < rows.rows(); ++t) {
        for (double& value : rows.row(t)) value *= 0.5;
      }
    };
    alone.push_back(decoder.run_apart(tokens, {.change = [&, k](std::size_t index, MatrixView<double> rows) {
                                        if (index == k) halve(rows);
                                      }}));
    std::vector<bool> changed(count);
    changed[k] = true;
    runs.push_back({.change = [halve](std::size_t, MatrixView<double> rows) { halve(rows); },
                    .observe =
                        [&, k](std::size_t, MatrixView<const double> rows) {
                          const auto last = rows.row(rows.rows() - 1);
                          last_entered[k].assign(last.begin(), last.end());
                        },
                    .entered = &entered,
                    .first = k,
                    .changed = changed});
  }
  const std::vector<double> together = decoder.run_apart(tokens, runs);
  std::vector<double> expected, expected_last;
  for (const std::vector<double>& rows : alone) {
    expected.insert(expected.end(), rows.begin(), rows.end());
    expected_last.insert(expected_last.end(), rows.end() - static_cast<std::ptrdiff_t>(model.width),
                         rows.end());
  }
  EXPECT_EQ(together, expected);
  const std::vector<std::vector<double>> entered_last = last_entered;
  for (Apart& run : runs) run.last_only = true;
  const std::vector<double> last = decoder.run_apart(tokens, runs);
  ASSERT_EQ(last.size() % count, 0U);
  std::vector<double> last_of_each;
  for (std::size_t k = 1; k <= count; ++k) {
    const auto end = last.begin() + static_cast<std::ptrdiff_t>(k * (last.size() / count));
    last_of_each.insert(last_of_each.end(), end - static_cast<std::ptrdiff_t>(model.width), end);
  }
  EXPECT_EQ(last_of_each, expected_last);
  EXPECT_EQ(last_entered, entered_last);
}

TEST_P(DecoderFixture, IsLinearWhereItIsFrozen) {
  const files::Checkpoint checkpoint(test::fixture(GetParam()));
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> tokens = tokens_of(truth_of(GetParam()));
  const Decoder decoder(checkpoint, model, 1);
  const std::vector<std::vector<double>> entered = rows_entering(decoder, tokens);
  try {
    pull_back(
        checkpoint, model, entered, 0, std::vector<double>(model.width), [](auto, auto) {}, 1);
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), ErrorCode::Unsupported);
    return;  // its heads are not linear
  }
  const auto last = [&](std::size_t component, double added) {
    std::vector<double> found;
    (void)decoder.run_apart(tokens, {.change =
                                         [&](std::size_t index, MatrixView<double> rows) {
                                           if (index == component) rows.row(0)[0] += added;
                                         },
                                     .observe =
                                         [&](std::size_t, MatrixView<const double> rows) {
                                           found.assign(rows.data(),
                                                        rows.data() + rows.rows() * rows.width());
                                         },
                                     .entered = &entered,
                                     .frozen = true});
    return found;
  };
  const std::vector<double> whole = last(0, 0.0);
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], entered.back()[i], 1e-9);
  double moved_beyond = 0.0;
  for (std::size_t k = 0; k < decoder.components().size(); ++k) {
    const std::vector<double> once = last(k, 1.0), often = last(k, -7.0);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_NEAR(-7.0 * (once[i] - whole[i]), often[i] - whole[i], 1e-9) << decoder.components()[k].name();
      if (i >= model.width) moved_beyond = std::max(moved_beyond, std::abs(once[i] - whole[i]));
    }
  }
  EXPECT_GT(moved_beyond, 1e-6);  // heads carry it to later positions
}

INSTANTIATE_TEST_SUITE_P(
    Decoder, DecoderFixture,
    testing::Values("arcee", "bloom", "codegen", "cohere", "cohere2", "cohere_qk_norm", "cwm", "ernie4_5",
                    "ernie4_5_moe", "exaone4", "exaone_moe", "falcon_11b", "falcon_40b", "falcon_7b",
                    "falcon_alibi", "flex_olmo", "gemma", "gemma2", "gemma3", "glm", "glm4", "glm4_moe",
                    "gpt2", "gpt2_scaled", "gpt_bigcode", "gpt_bigcode_multi_head", "gpt_neo", "gpt_neox",
                    "gpt_neox_sequential", "gpt_oss", "gptj", "granite", "granite_swa", "granitemoe",
                    "granitemoe_swa", "granitemoeshared", "helium", "jais2", "llama", "llama_biased",
                    "minimax_m2", "ministral", "mistral", "mixtral", "mpt", "nemotron", "olmo", "olmo2",
                    "olmo3", "olmoe", "opt", "persimmon", "phi", "phi3", "phi_qk_norm", "qwen2", "qwen2_moe",
                    "qwen3", "qwen3_moe", "seed_oss", "smollm3", "solar_open", "stablelm",
                    "stablelm_parallel", "starcoder2", "vaultgemma"),
    [](const auto& instance) { return instance.param; });

TEST(Decoder, RunsEncodersThatAreAskedFor) {
  for (const char* name : {"bert", "roberta", "camembert", "xlm_roberta", "data2vec_text", "distilbert"}) {
    const nlohmann::json truth = truth_of(name);
    const files::Checkpoint checkpoint(test::fixture(name));
    expect_truth(truth, logits_of(checkpoint, models::describe(checkpoint), tokens_of(truth)));
  }
}

TEST(Decoder, NeedsTheActivationOfAFileThatStatesNone) {
  const files::Checkpoint checkpoint(test::fixture("nanogpt"));
  models::Model model = models::describe(checkpoint, {.heads = 3});
  EXPECT_EQ(refusal_of(checkpoint, model),
            "not modelled: the activation, which the file does not state; state it as gelu or gelu_new");
  model.decoder->activation = models::Activation::gelu;
  const nlohmann::json truth = truth_of("nanogpt");
  expect_truth(truth, logits_of(checkpoint, model, tokens_of(truth)));
}

TEST(Decoder, RefusesWhatIsNotModelled) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"mpt_scaled", "attn_config.alibi_bias_max: 4"},
      {"bloom_post_residual", "the forward pass of BLOOM"},
      {"bert", "the forward pass of BERT, RoBERTa or MiniLM"},
      {"phi3_longrope", "a rotary embedding whose frequencies depend on the length of the context"},
      {"phimoe", "the forward pass of Mixtral, Phi-3.5-MoE or MiniMax M2"}};
  for (const auto& [name, what] : cases) {
    const files::Checkpoint checkpoint(test::fixture(name));
    EXPECT_EQ(refusal_of(checkpoint, models::describe(checkpoint)), std::string("not modelled: ") + what)
        << name;
  }
  const files::Checkpoint post(test::fixture("opt_post"));
  EXPECT_EQ(refusal_of(post, models::describe(post)),
            "its language head does not read a norm directly, expected a final norm before it");
}

TEST(Decoder, RefusesPathsThroughWhatIsNotLinear) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"olmo", "values that are clamped"},
      {"mpt", "values that are clamped"},
      {"olmo2", "branches that read the stream itself"}};
  for (const auto& [name, what] : cases) {
    const files::Checkpoint checkpoint(test::fixture(name));
    const models::Model model = models::describe(checkpoint);
    const Decoder decoder(checkpoint, model, 1);
    const std::vector<std::size_t> tokens = {7, 19};
    std::vector<std::vector<double>> entered;
    (void)decoder.run(tokens, [&](std::size_t, MatrixView<const double> rows) {
      entered.emplace_back(rows.data(), rows.data() + rows.rows() * rows.width());
    });
    const std::vector<double> direction(entered.back().size() / tokens.size(), 1.0);
    const auto pull = [&] {
      pull_back(checkpoint, model, entered, 1, direction, [](std::size_t, MatrixView<const double>) {});
    };
    EXPECT_EQ(test::error_of(ErrorCode::Unsupported, pull),
              std::string("not modelled: paths through ") + what);
  }
}

TEST(Decoder, RefusesChangedFilesThatItDoesNotModel) {
  const files::Checkpoint checkpoint(test::fixture("llama"));
  const models::Model model = models::describe(checkpoint);
  const auto refusal = [&](const std::function<void(models::Model&)>& change) {
    models::Model other = model;
    change(other);
    return refusal_of(checkpoint, other);
  };
  EXPECT_EQ(refusal([](models::Model& m) { m.heads[1].not_modelled = "attention_sink: true"; }),
            "not modelled: attention_sink: true");
  EXPECT_EQ(refusal([](models::Model& m) { m.vocabulary->not_modelled = "new_field: 3"; }),
            "not modelled: new_field: 3");
  EXPECT_EQ(refusal([](models::Model& m) { m.decoder->not_modelled = "hidden_act: quick_gelu"; }),
            "not modelled: hidden_act: quick_gelu");
  EXPECT_EQ(refusal([](models::Model& m) { m.missing = {"model.norm.weight"}; }),
            "not modelled: model.norm.weight, which is missing");
  EXPECT_EQ(refusal([](models::Model& m) { m.norms[1].connections_known = false; }),
            "not modelled: tensors beside those of Llama, Mistral or Qwen near "
            "model.layers.0.post_attention_layernorm");
  EXPECT_EQ(refusal([](models::Model& m) { m.norms[1].readers[0].role = "adapter"; }),
            "not modelled: \"model.layers.0.mlp.gate_proj.weight\", adapter");
}

TEST(Decoder, RefusesContextsThatItCannotRun) {
  const files::Checkpoint checkpoint(test::fixture("gpt2"));
  const models::Model model = models::describe(checkpoint);
  const Decoder decoder(checkpoint, model);
  EXPECT_EQ(decoder.positions(), 12U);
  EXPECT_EQ(decoder.vocabulary(), 29U);
  const auto error = [&](const std::vector<std::size_t>& tokens) {
    return test::error_of(ErrorCode::Argument, [&] { (void)decoder.run(tokens); });
  };
  EXPECT_EQ(error({}), "trace: the context has no tokens, expected at least one");
  EXPECT_EQ(error({3, 29}), "trace: token 29 is not in the vocabulary, expected 0 to 28");
  EXPECT_EQ(error(std::vector<std::size_t>(13, 1)), "trace: the context has 13 tokens, expected at most 12");
  const Progress stop([](std::string_view, std::size_t, std::size_t) { return false; });
  test::error_of(ErrorCode::Cancelled, [&] { (void)decoder.run(std::vector<std::size_t>{1}, {}, stop); });
}

// A position sees the tokens before it alone.
TEST(Decoder, IsCausalAndDoesNotDependOnThreads) {
  const files::Checkpoint checkpoint(test::fixture("gemma3"));
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> tokens = {7, 19, 3, 26, 11};
  const std::vector<double> all = Decoder(checkpoint, model, 1).run(tokens);
  EXPECT_EQ(all, Decoder(checkpoint, model, 3).run(tokens));
  const std::vector<double> some = Decoder(checkpoint, model, 1).run(std::span(tokens).first(3));
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_NEAR(some[i], all[i], 1e-12);
}

TEST(Decoder, PredictsTheTokensWithTheLargestLogits) {
  const files::Checkpoint checkpoint(test::fixture("llama"));
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> tokens = {7, 19, 3};
  const Decoder decoder(checkpoint, model, 1);
  const std::vector<double> hidden = decoder.run(tokens);
  const std::vector<double> logits = logits_of(checkpoint, model, tokens);
  const std::vector<Prediction> predictions = decoder.predict(tokens, hidden, 29);
  const std::size_t vocabulary = decoder.vocabulary();
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    ASSERT_EQ(predictions[t].likeliest.size(), vocabulary);
    double sum = 0.0;
    for (std::size_t k = 0; k < vocabulary; ++k) {
      const Continuation& next = predictions[t].likeliest[k];
      EXPECT_EQ(next.logit, logits[t * vocabulary + next.token]);
      if (k > 0) {
        EXPECT_LE(next.logit, predictions[t].likeliest[k - 1].logit);
        EXPECT_NEAR(next.probability / predictions[t].likeliest[0].probability,
                    std::exp(next.logit - predictions[t].likeliest[0].logit), 1e-12);
      }
      sum += next.probability;
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
    EXPECT_EQ(predictions[t].next.has_value(), t + 1 < tokens.size());
    if (!predictions[t].next) continue;
    EXPECT_EQ(predictions[t].next->token, tokens[t + 1]);
    EXPECT_EQ(predictions[t].likeliest[predictions[t].rank].token, tokens[t + 1]);
  }
}

}  // namespace
}  // namespace normscope::forward
