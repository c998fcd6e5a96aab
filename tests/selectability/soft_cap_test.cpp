#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/selectability/vocabulary.hpp>

#include "models/tiny_models.hpp"

namespace normscope::selectability {
namespace {

/// A head given by its weights, with the logits as a model computes them.
struct Case {
  NormSpec norm{};
  std::vector<double> weights{}, bias{};
  double cap = 0.0;
  std::size_t tokens = 0;

  /// The probabilities at u, and the slopes of the cap there.
  [[nodiscard]] std::vector<double> probabilities(const std::vector<double>& u,
                                                  std::vector<double>& slopes) const {
    const std::size_t width = norm.width;
    std::vector<double> capped(tokens);
    slopes.resize(tokens);
    for (std::size_t j = 0; j < tokens; ++j) {
      double logit = bias[j];
      for (std::size_t i = 0; i < width; ++i) {
        logit += weights[j * width + i] * (norm.radius() * norm.gain_at(i) * u[i] + norm.bias_at(i));
      }
      capped[j] = cap * std::tanh(logit / cap);
      slopes[j] = 1.0 - std::tanh(logit / cap) * std::tanh(logit / cap);
    }
    const double most = *std::max_element(capped.begin(), capped.end());
    double total = 0.0;
    for (double& value : capped) total += value = std::exp(value - most);
    for (double& value : capped) value /= total;
    return capped;
  }
};

/// The nearest point of the norm's image: of the ball, or of the sphere if eps is 0.
void into_ball(const NormSpec& norm, std::vector<double>& u) {
  if (norm.centers()) {
    const double mean = std::accumulate(u.begin(), u.end(), 0.0) / static_cast<double>(u.size());
    for (double& entry : u) entry -= mean;
  }
  const double length = std::sqrt(std::inner_product(u.begin(), u.end(), u.begin(), 0.0));
  if (length > 1.0 || norm.eps == 0.0) {
    for (double& entry : u) entry /= length;
  }
}

/// The largest probability that gradient ascent from many points finds, on the model's own formula.
double searched(const Case& head, std::size_t token, Random& random) {
  const std::size_t width = head.norm.width;
  double best = 0.0;
  for (int start = 0; start < 40; ++start) {
    std::vector<double> u(width);
    for (double& entry : u) entry = random.normal();
    into_ball(head.norm, u);
    std::vector<double> slopes;
    std::vector<double> shares = head.probabilities(u, slopes);
    for (double step = 0.3; step > 1e-9;) {
      std::vector<double> rise(width);
      for (std::size_t j = 0; j < head.tokens; ++j) {
        const double weight = ((j == token ? 1.0 : 0.0) - shares[j]) * slopes[j];
        for (std::size_t i = 0; i < width; ++i) {
          rise[i] += weight * head.weights[j * width + i] * head.norm.gain_at(i);
        }
      }
      const double length = std::sqrt(std::inner_product(rise.begin(), rise.end(), rise.begin(), 1e-300));
      std::vector<double> next = u;
      for (std::size_t i = 0; i < width; ++i) next[i] += step * rise[i] / length;
      into_ball(head.norm, next);
      std::vector<double> next_slopes;
      const std::vector<double> found = head.probabilities(next, next_slopes);
      if (found[token] > shares[token]) {
        u = next;
        shares = found;
        slopes = next_slopes;
        step *= 1.3;
      } else {
        step *= 0.4;
      }
    }
    best = std::max(best, shares[token]);
  }
  return best;
}

Case random_case(Random& random) {
  Case head;
  head.tokens = 3 + random.below(8);
  const std::size_t width = 2 + random.below(4);
  head.norm = {.kind = random.below(2) == 0 ? NormKind::layer : NormKind::rms,
               .width = width,
               .eps = random.below(3) == 0 && width > 2 ? 0.0 : 1e-5};
  const auto fill = [&](std::size_t count, double scale) {
    std::vector<double> values(count);
    for (double& value : values) value = scale * random.normal();
    return values;
  };
  head.norm.gain = fill(width, 1.0);
  head.norm.bias = fill(width, 0.5);
  const double scale = std::pow(10.0, 2.0 * random.uniform() - 1.0);
  head.weights = fill(head.tokens * width, scale);
  head.bias = fill(head.tokens, scale);
  // Logits with a common term, which changes probabilities only with a cap.
  const double common = 3.0 * scale * random.normal();
  for (double& value : head.bias) value += common;
  head.cap = scale * std::pow(10.0, 2.0 * random.uniform() - 1.0);
  return head;
}

VocabularyHead folded(const Case& head) {
  VocabularyHead result{.norm_name = "norm", .norm = head.norm, .has_bias = true, .soft_cap = head.cap};
  const std::size_t width = head.norm.width;
  result.logits =
      fold(head.norm, MatrixView<const double>(head.weights.data(), head.tokens, width), head.bias);
  result.common.assign(width, 0.0);
  for (std::size_t j = 0; j < head.tokens; ++j) {
    const double share = 1.0 / static_cast<double>(head.tokens);
    result.common_offset += share * head.bias[j];
    for (std::size_t i = 0; i < width; ++i) {
      result.common[i] += share * head.weights[j * width + i] * head.norm.radius() * head.norm.gain_at(i);
      result.common_offset += share * head.weights[j * width + i] * head.norm.bias_at(i);
    }
  }
  if (head.norm.centers()) {
    const double mean =
        std::accumulate(result.common.begin(), result.common.end(), 0.0) / static_cast<double>(width);
    for (double& entry : result.common) entry -= mean;
  }
  return result;
}

Survey surveyed(const VocabularyHead& head, Probabilities wanted) {
  Survey survey;
  decide(head.logits, survey.tokens, {.threads = 1});
  finish_survey(head.logits, survey, {.probabilities = wanted}, {.threads = 1});
  cap_probabilities(head, survey, 1);
  return survey;
}

TEST(SoftCap, BoundsHoldAgainstAscent) {
  Random random(11);
  std::size_t close = 0;
  std::size_t asked = 0;
  for (int round = 0; round < 12; ++round) {
    const Case head = random_case(random);
    const VocabularyHead vocabulary = folded(head);
    const Survey full = surveyed(vocabulary, Probabilities::full);
    const Survey quick = surveyed(vocabulary, Probabilities::quick);
    for (std::size_t token = 0; token < head.tokens; ++token) {
      const double found = searched(head, token, random);
      for (const Survey* survey : {&full, &quick}) {
        const Probability& bounds = survey->probabilities[token];
        EXPECT_LE(found, bounds.upper * (1.0 + 1e-12)) << round << " " << token;
        EXPECT_LE(bounds.lower, bounds.upper);
        // Certainly in the ball, as a checker sees it.
        EXPECT_LE(euclidean_norm(bounds.point), 1.0 - 1e-15) << round << " " << token;
      }
      // The stated probability is attained: the search comes close to it.
      EXPECT_LE(full.probabilities[token].lower, found * (1.0 + 1e-3) + 1e-12) << round << " " << token;
      ++asked;
      if (full.probabilities[token].lower > 0.95 * found) ++close;
    }
  }
  EXPECT_GT(close, asked * 9 / 10) << "of " << asked;
}

TEST(SoftCap, ChangesProbabilitiesIfLogitsHaveACommonPart) {
  // Both tokens far beyond the cap, or both far within it: only the first pair becomes equal.
  Case head{.norm = {.kind = NormKind::rms, .width = 2, .eps = 1e-5, .gain = {1.0, 1.0}},
            .weights = {1.0, 0.0, -1.0, 0.0},
            .bias = {50.0, 50.0},
            .cap = 5.0,
            .tokens = 2};
  const Survey beyond = surveyed(folded(head), Probabilities::full);
  EXPECT_NEAR(beyond.probabilities[0].lower, 0.5, 1e-6);
  head.bias = {0.0, 0.0};
  const Survey within = surveyed(folded(head), Probabilities::full);
  EXPECT_GT(within.probabilities[0].lower, 0.9);
  EXPECT_EQ(beyond.tokens[0].answer, within.tokens[0].answer) << "a cap changes no order";
}

test::Synthetic gemma2(const std::string& fields) {
  test::Synthetic file = test::tiny_llama();
  for (const char* name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
    file.add(std::string("model.layers.0.") + name + ".weight", {8});
  return file.config(R"({"model_type": "gemma2", "hidden_size": 8, "num_attention_heads": 1, "head_dim": 16,
                         "attn_logit_softcapping": null)" +
                     fields + "}");
}

TEST(VocabularyHeads, CarryTheConfigurationsScaleAndCap) {
  const files::Checkpoint capped = gemma2(R"(, "final_logit_softcapping": 30)").open();
  const models::Model model = models::describe(capped);
  const VocabularyHead head = vocabulary_head(capped, model);
  EXPECT_EQ(head.soft_cap, 30.0);
  // The logits plus their common term are those of W (r g u).
  const std::vector<double> weights = models::read_weight(capped, *model.vocabulary->unembedding, 0, 11);
  const std::vector<double> u = {0.1, -0.2, 0.3, 0.4, -0.5, 0.3, 0.2, 0.1};
  for (std::size_t token = 0; token < 11; ++token) {
    double expected = 0.0;
    double got = head.logits.offsets[token] + head.common_offset;
    for (std::size_t i = 0; i < 8; ++i) {
      expected += weights[token * 8 + i] * head.norm.radius() * head.norm.gain_at(i) * u[i];
      got += (head.logits.rows[token * 8 + i] + head.common[i]) * u[i];
    }
    EXPECT_NEAR(got, expected, 1e-9 * (1.0 + std::abs(expected)));
  }
}

TEST(VocabularyHeads, ScaleEveryLogit) {
  const auto rows = [](const std::string& fields) {
    const files::Checkpoint file =
        test::tiny_llama()
            .config(R"({"hidden_size": 8, "num_attention_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-6,
                        "tie_word_embeddings": true, )" +
                    fields + "}")
            .open();
    return vocabulary_head(file, models::describe(file)).logits;
  };
  const Logits plain = rows(R"("model_type": "llama")");
  const Logits scaled = rows(R"("model_type": "granite", "logits_scaling": 8)");
  for (std::size_t i = 0; i < plain.rows.size(); ++i) EXPECT_EQ(scaled.rows[i], plain.rows[i] / 8.0);
  EXPECT_EQ(scaled.scale, plain.scale / 8.0);
}

TEST(VocabularyHeads, RefuseWhatIsNotModelled) {
  const files::Checkpoint file =
      test::tiny_llama()
          .config(R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 1, "head_dim": 16,
                      "tie_word_embeddings": true, "lm_head_multiplier": 0.5})")
          .open();
  const models::Model model = models::describe(file);
  EXPECT_NE(test::error_of([&] {
              static_cast<void>(vocabulary_head(file, model));
            }).find("not modelled: lm_head_multiplier: 0.5"),
            std::string::npos);
  EXPECT_EQ(reach_of_vocabulary(file, model, {}).refused, "not modelled: lm_head_multiplier: 0.5");
}

}  // namespace
}  // namespace normscope::selectability
