#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>

#include "rewrite/copy.hpp"

namespace normscope::rewrite {
namespace {

using test::Copy;
using test::fixture;
using test::Rewritten;
using test::Scratch;

double dot(const std::vector<double>& a, std::size_t begin, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t j = 0; j < b.size(); ++j) sum += a[begin + j] * b[j];
  return sum;
}

std::vector<double> forward(const NormSpec& spec, std::vector<double> x) {
  norm::forward(spec, {x.data(), 1, x.size()}, {x.data(), 1, x.size()});
  return x;
}

/// The error of an output that the certificates of a reader and of its norm's bias allow.
double allowed(const Result& result, const models::Linear& reader, const models::Norm& norm,
               double absolute_row) {
  double bound = 0.0;
  for (const Certificate& certificate : result.certificates) {
    if (certificate.tensor == reader.weight.selector()) bound += certificate.bound;
    if (reader.bias && certificate.tensor == reader.bias->selector()) bound += certificate.bound;
    if (norm.bias && certificate.tensor == norm.bias->selector()) bound += certificate.bound * absolute_row;
    if (norm.gain && certificate.tensor == norm.gain->selector()) {
      bound += certificate.bound * absolute_row * std::sqrt(static_cast<double>(norm.width));
    }
  }
  return bound;
}

/// Rows that enter a norm: random, spiked, nearly constant, huge.
std::vector<std::vector<double>> rows(std::size_t width) {
  Random random(5);
  std::vector<std::vector<double>> result(5, std::vector<double>(width));
  for (std::size_t j = 0; j < width; ++j) {
    result[0][j] = random.normal();
    result[1][j] = j == 1 % width ? 1e4 : 1e-3 * random.normal();
    result[2][j] = 7.0 + 1e-3 * random.normal();
    result[3][j] = 1e15 * random.normal();
    result[4][j] = j == width - 1 ? -1.0 : 0.0;
  }
  return result;
}

/// Compares every reader's output of every norm, computed from the descriptions of both files.
std::size_t expect_same_composites(const files::Checkpoint& source, const Rewritten& rewritten) {
  std::size_t compared = 0;
  for (std::size_t index = 0; index < rewritten.model.norms.size(); ++index) {
    const models::Norm& before = rewritten.model.norms[index];
    const models::Norm& after = rewritten.model_after.norms[index];
    EXPECT_EQ(before.name, after.name);
    EXPECT_EQ(before.readers.size(), after.readers.size()) << before.name;
    const NormSpec old_norm = read_norm(source, before);
    const NormSpec new_norm = read_norm(rewritten.output, after);
    const bool folded = rewritten.plan.norms[index].fold == Fold::gain ||
                        rewritten.plan.norms[index].fold == Fold::gain_and_bias;
    if (folded) {
      EXPECT_TRUE(std::all_of(new_norm.gain.begin(), new_norm.gain.end(), [](double g) { return g == 1.0; }));
    }
    for (std::size_t r = 0; r < before.readers.size(); ++r) {
      const models::Linear& old_map = before.readers[r];
      const models::Linear& new_map = after.readers[r];
      const std::vector<double> old_weight = read_weight(source, old_map, 0, old_map.out);
      const std::vector<double> new_weight = read_weight(rewritten.output, new_map, 0, new_map.out);
      const std::vector<double> old_bias = read_bias(source, old_map);
      const std::vector<double> new_bias = read_bias(rewritten.output, new_map);
      for (const std::vector<double>& x : rows(before.width)) {
        const std::vector<double> old_y = forward(old_norm, x);
        const std::vector<double> new_y = forward(new_norm, x);
        for (std::size_t i = 0; i < old_map.out; ++i) {
          double scale = 0.0;
          double absolute_row = 0.0;
          for (std::size_t j = 0; j < old_map.in; ++j) {
            scale += std::abs(old_weight[i * old_map.in + j] * old_y[j]);
            absolute_row += std::abs(new_weight[i * old_map.in + j]);
          }
          const double old_out =
              dot(old_weight, i * old_map.in, old_y) + (old_bias.empty() ? 0.0 : old_bias[i]);
          const double new_out =
              dot(new_weight, i * old_map.in, new_y) + (new_bias.empty() ? 0.0 : new_bias[i]);
          const double limit =
              allowed(rewritten.result, new_map, after, absolute_row) + 1e-13 * (scale + 1.0);
          EXPECT_LE(std::abs(new_out - old_out), limit) << before.name << " " << old_map.role << " " << i;
          ++compared;
        }
      }
    }
  }
  return compared;
}

// Every layout of fused queries, keys and values; groups; experts; gains stored minus 1; norms within a
// branch.
TEST(Rewrite, BoundsHoldForEveryInputTried) {
  for (const char* name :
       {"gpt2", "gpt_neox", "falcon_40b", "falcon_7b", "codegen", "gemma2", "nemotron", "mixtral", "gpt_oss",
        "deepseek_v2", "phimoe", "stablelm", "t5", "clip", "vit", "phi3"}) {
    const Scratch scratch;
    const files::Checkpoint source(fixture(name));
    const Rewritten rewritten(source, {.fold_gains = true}, scratch / "out");
    EXPECT_GT(expect_same_composites(source, rewritten), 100U) << name;
    for (const Certificate& certificate : rewritten.result.certificates) {
      EXPECT_LE(certificate.relative_bound, 1.001 * certificate.rounding)
          << name << " " << certificate.tensor;
      EXPECT_LE(certificate.observed_as_stored, certificate.relative_bound)
          << name << " " << certificate.tensor;
      EXPECT_LE(certificate.observed_in_double, 1e-14) << name << " " << certificate.tensor;
    }
  }
}

TEST(Rewrite, HoldsInEveryDtype) {
  for (const Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16}) {
    const Scratch scratch;
    const files::Checkpoint source = Copy(fixture("gpt2")).stored_as(dtype).open(scratch / "in");
    const Rewritten rewritten(source, {.fold_gains = true, .center = true, .untie = true}, scratch / "out");
    const std::string name = "transformer.h.0.attn.c_attn.weight";
    const files::Tensor& before = *source.find(name);
    const files::Tensor& after = *rewritten.output.find(name);
    EXPECT_EQ(after.dtype, dtype);
    const std::vector<double> gain = read(*source.find("transformer.h.0.ln_1.weight"));
    const std::vector<double> old_weight = read(before);
    const std::vector<double> new_weight = read(after);
    for (std::size_t at = 0; at < old_weight.size(); ++at) {
      const double product = old_weight[at] * gain[at / 54];
      std::vector<std::byte> bytes(bits(dtype) / 8);
      double once = 0.0;
      encode(dtype, {&product, 1}, bytes);
      decode(dtype, bytes, {&once, 1});
      ASSERT_EQ(new_weight[at], once) << to_string(dtype) << " " << at;
    }
    for (const Certificate& certificate : rewritten.result.certificates) {
      const double term = certificate.change == Change::center_outputs ? 16.0 : 2.0;
      EXPECT_LE(certificate.relative_bound, term * certificate.rounding + 1e-14) << certificate.tensor;
      EXPECT_GE(certificate.bound, 0.0);
    }
  }
}

// Whole rows that are stored out × in: ties, zeros, subnormal numbers, gains of 0 and
// powers of two.
TEST(Rewrite, RowsAreRoundedAsTheDtypeSays) {
  for (const Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16}) {
    for (const bool is_regular : {true, false}) {
      const Scratch scratch;
      Copy copy(fixture("llama"));
      copy.stored_as(dtype);
      const std::string name = "model.layers.0.self_attn.q_proj.weight";
      std::vector<double>& gain = copy.tensors.at("model.layers.0.input_layernorm.weight").values;
      std::vector<double>& weight = copy.tensors.at(name).values;
      gain[0] = 1.5;
      gain[1] = -1.25;
      gain[2] = 0.5;
      for (std::size_t row = 0; row < weight.size() / gain.size(); ++row) {
        const auto step = static_cast<double>(row);
        weight[row * gain.size()] = 1.0 + step * 0x1p-7;
        weight[row * gain.size() + 1] = -1.0 - step * 0x1p-6;
        weight[row * gain.size() + 2] = row % 2 == 0 ? 0.0 : -0.0;
      }
      if (!is_regular) {
        gain[3] = 0.0;
        weight[4] = dtype == Dtype::F16 ? 0x1p-24 : 0x1p-133;
        weight[5 + gain.size()] = dtype == Dtype::F16 ? 0x1.8p-14 : 0x1.8p-126;
        gain[5] = 0.75;
      }
      const files::Checkpoint source = copy.open(scratch / "in");
      const Rewritten rewritten(source, {.fold_gains = true}, scratch / "out");
      const std::vector<double> old_weight = read(*source.find(name));
      const std::vector<double> gains = read(*source.find("model.layers.0.input_layernorm.weight"));
      std::vector<double> exact(old_weight.size());
      for (std::size_t at = 0; at < exact.size(); ++at) {
        exact[at] = old_weight[at] * gains[at % gains.size()];
      }
      std::vector<std::byte> wanted(exact.size() * bits(dtype) / 8);
      encode(dtype, exact, wanted);
      EXPECT_TRUE(files::equal(rewritten.output.find(name)->bytes, std::span<const std::byte>(wanted)))
          << to_string(dtype) << " " << is_regular;
    }
  }
}

TEST(Rewrite, CentredWritersMakeLayerNormAnRmsNorm) {
  const Scratch scratch;
  const files::Checkpoint source(fixture("gpt_neox"));
  const Rewritten rewritten(source, {.center = true}, scratch / "out");
  ASSERT_EQ(rewritten.plan.streams.size(), 1U);
  ASSERT_TRUE(rewritten.plan.streams[0].centered);
  // A stream: a row of the embedding, plus the outputs of every later writer for random inputs.
  Random random(3);
  std::size_t checked = 0;
  std::vector<double> old_stream(rewritten.model.width);
  std::vector<double> new_stream(rewritten.model.width);
  for (std::size_t index = 0; index < rewritten.model.norms.size(); ++index) {
    const models::Norm& before = rewritten.model.norms[index];
    const models::Norm& after = rewritten.model_after.norms[index];
    for (std::size_t w = 0; w < before.writers.size(); ++w) {
      std::vector<double> h(before.writers[w].in);
      for (double& value : h) value = random.normal();
      const std::vector<double> old_weight = read_weight(source, before.writers[w], 0, before.width);
      const std::vector<double> new_weight = read_weight(rewritten.output, after.writers[w], 0, before.width);
      const std::vector<double> old_bias = read_bias(source, before.writers[w]);
      const std::vector<double> new_bias = read_bias(rewritten.output, after.writers[w]);
      double mean = 0.0;
      for (std::size_t i = 0; i < before.width; ++i) {
        old_stream[i] += dot(old_weight, i * h.size(), h) + (old_bias.empty() ? 0.0 : old_bias[i]);
        const double written = dot(new_weight, i * h.size(), h) + (new_bias.empty() ? 0.0 : new_bias[i]);
        new_stream[i] += written;
        mean += written / static_cast<double>(before.width);
      }
      EXPECT_LT(std::abs(mean), 1e-6) << after.writers[w].weight.tensor;
    }
    NormSpec spec = read_norm(source, before);
    const std::vector<double> old_y = forward(spec, old_stream);
    spec.kind = NormKind::rms;
    const std::vector<double> new_y = forward(spec, new_stream);
    for (std::size_t i = 0; i < before.width; ++i) {
      EXPECT_NEAR(new_y[i], old_y[i], 3e-6) << before.name;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 5 * rewritten.model.width);
  for (const Certificate& certificate : rewritten.result.certificates) {
    EXPECT_LE(certificate.observed_in_double, 1e-13) << certificate.tensor;
    EXPECT_LE(certificate.observed_as_stored, 1e-6) << certificate.tensor;
  }
}

TEST(Rewrite, WithoutCentringTheNormsDiffer) {
  // The check above detects a stream that keeps its mean.
  const files::Checkpoint source(fixture("gpt_neox"));
  const models::Model model = models::describe(source);
  NormSpec spec = read_norm(source, model.norms[0]);
  const std::vector<double> x = read(*source.find(model.norms[0].writers[0].weight.tensor), 0, spec.width);
  const std::vector<double> layer = forward(spec, x);
  spec.kind = NormKind::rms;
  const std::vector<double> rms = forward(spec, x);
  double gap = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) gap = std::max(gap, std::abs(rms[i] - layer[i]));
  EXPECT_GT(gap, 1e-2);
}

TEST(Rewrite, ASecondFoldChangesNothing) {
  for (const char* name : {"gpt2", "stablelm"}) {
    const Scratch scratch;
    const Options options{.fold_gains = true, .center = true, .untie = std::string(name) == "gpt2"};
    const Rewritten first(files::Checkpoint(fixture(name)), options, scratch / "first");
    EXPECT_EQ(first.output.metadata()
                  .at(marker_key)
                  .find("{\"gains\":\"folded\",\"streams\":\"centered\",\"undo\":\""),
              0U);
    const Rewritten second(first.output, {.fold_gains = true, .center = true}, scratch / "second");
    EXPECT_TRUE(second.plan.edits.empty());
    EXPECT_TRUE(second.result.certificates.empty());
    EXPECT_EQ(test::text_of(scratch / "second/model.safetensors"),
              test::text_of(scratch / "first/model.safetensors"));
  }
}

// Products with powers of two do not round: readers compute the same but for the rounding of float64, and of
// the gains where they are stored minus 1, as Nemotron's.
TEST(Rewrite, MigratedScalesEvenTheRangesExactly) {
  for (const char* name : {"gpt2", "llama", "nemotron", "phimoe", "deepseek_v2"}) {
    const Scratch scratch;
    const files::Checkpoint source(fixture(name));
    const Rewritten rewritten(source, {.migrate = true}, scratch / "out");
    EXPECT_GT(expect_same_composites(source, rewritten), 100U) << name;
    std::size_t migrated = 0;
    for (std::size_t index = 0; index < rewritten.model.norms.size(); ++index) {
      if (rewritten.plan.norms[index].fold != Fold::scales) continue;
      ++migrated;
      const NormSpec spec = read_norm(rewritten.output, rewritten.model_after.norms[index]);
      double largest = 0.0;
      double smallest = 1e300;
      for (std::size_t j = 0; j < spec.width; ++j) {
        const double length = spec.kind == NormKind::layer ? std::sqrt(static_cast<double>(spec.width) - 1.0)
                                                           : std::sqrt(static_cast<double>(spec.width));
        const double range = std::abs(spec.gain_at(j)) * length + std::abs(spec.bias_at(j));
        largest = std::max(largest, range);
        smallest = std::min(smallest, range);
      }
      EXPECT_LE(largest, 2.001 * smallest) << rewritten.model.norms[index].name;
    }
    EXPECT_GT(migrated, 1U) << name;
    for (const Certificate& certificate : rewritten.result.certificates) {
      if (certificate.change != Change::scale_inputs) continue;
      EXPECT_LE(certificate.relative_bound, name == std::string("nemotron") ? 0x1p-24 : 2e-15)
          << certificate.tensor;
    }
    const Rewritten second(rewritten.output, {.migrate = true}, scratch / "second");
    EXPECT_TRUE(second.plan.edits.empty());
  }
}

TEST(Rewrite, MigrationLeavesNormsThatItWouldNotEven) {
  // The nearest power of two, 1/2, would make the small gains the largest.
  const Scratch scratch;
  Copy copy(fixture("llama"));
  std::vector<double>& gain = copy.tensors.at("model.layers.0.input_layernorm.weight").values;
  for (std::size_t j = 0; j < gain.size(); ++j) gain[j] = j % 16 < 15 ? 1.0 : 0.69;
  const files::Checkpoint source = copy.open(scratch / "in");
  const Rewritten rewritten(source, {.migrate = true}, scratch / "out");
  EXPECT_EQ(rewritten.plan.norms[0].fold, Fold::neutral);
  EXPECT_EQ(rewritten.plan.norms[0].reason, "no powers of two even the ranges of its features more");
}

/// Gains that the file stores without 1 round when they are divided, and so may those of small dtypes.
TEST(Rewrite, BoundsOfMigratedScalesCountTheRoundingOfGains) {
  std::size_t rounded = 0;
  for (const Dtype dtype : {Dtype::F32, Dtype::F16, Dtype::BF16}) {
    for (const char* name : {"nemotron", "llama"}) {
      const Scratch scratch;
      Copy copy(fixture(name));
      copy.stored_as(dtype);
      Random random(5);
      for (auto& [tensor, stored] : copy.tensors) {
        if (tensor.find("layernorm.weight") == std::string::npos) continue;
        for (double& value : stored.values) value = 0.7 * random.normal() * std::exp2(-random.normal());
        if (dtype == Dtype::F16) stored.values[0] = 0x1p-13 * 1.0009765625;
      }
      const files::Checkpoint source = copy.open(scratch / "in");
      const Rewritten rewritten(source, {.migrate = true}, scratch / "out");
      for (const Certificate& certificate : rewritten.result.certificates) {
        if (certificate.change != Change::scale_inputs) continue;
        const auto norm = std::find_if(rewritten.model.norms.begin(), rewritten.model.norms.end(),
                                       [&](const models::Norm& one) { return one.name == certificate.norm; });
        const NormSpec before = read_norm(source, *norm);
        const NormSpec after = read_norm(
            rewritten.output,
            rewritten.model_after.norms[static_cast<std::size_t>(norm - rewritten.model.norms.begin())]);
        const std::vector<double> old_weight = read(*source.find(certificate.tensor));
        const std::vector<double> new_weight = read(*rewritten.output.find(certificate.tensor));
        for (std::size_t row = 0; row < old_weight.size() / before.width; ++row) {
          double square = 0.0;
          for (std::size_t j = 0; j < before.width; ++j) {
            const std::size_t at = row * before.width + j;
            const double off = new_weight[at] * after.gain_at(j) - old_weight[at] * before.gain_at(j);
            square += off * off;
          }
          const double length = before.radius() * std::sqrt(square);
          EXPECT_LE(length, certificate.bound * (1.0 + 1e-9))
              << name << " " << to_string(dtype) << " " << certificate.tensor;
          rounded += length > 1e-12 ? 1U : 0U;
        }
      }
    }
  }
  EXPECT_GT(rounded, 100U);
}

TEST(Rewrite, ATiedHeadIsLeftUnlessItIsSeparated) {
  const Scratch scratch;
  const files::Checkpoint source(fixture("gpt2"));
  const Rewritten tied(source, {.fold_gains = true}, scratch / "tied");
  EXPECT_EQ(tied.plan.norms.back().fold, Fold::nothing);
  EXPECT_NE(tied.plan.norms.back().reason.find("untying"), std::string::npos);
  const std::string table = "transformer.wte.weight";
  EXPECT_EQ(read(*tied.output.find(table)), read(*source.find(table)));

  const Rewritten untied(source, {.fold_gains = true, .untie = true}, scratch / "untied");
  EXPECT_EQ(untied.plan.norms.back().fold, Fold::gain);
  EXPECT_EQ(read(*untied.output.find(table)), read(*source.find(table)));
  EXPECT_EQ(untied.output.tensors().size(), source.tensors().size() + 1);
  ASSERT_TRUE(untied.plan.untied.has_value());
  EXPECT_EQ(untied.plan.untied->bytes, source.find(table)->bytes.size());
  EXPECT_NE(test::text_of(scratch / "untied/config.json").find("\"tie_word_embeddings\": false"),
            std::string::npos);
  EXPECT_EQ(untied.model_after.vocabulary->tied, false);
  EXPECT_GT(expect_same_composites(source, untied), 100U);
}

TEST(Rewrite, ShardsStayAndOtherTensorsKeepTheirBytes) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("gpt2")).open(scratch / "in", 3);
  std::ofstream(scratch / "in/tokenizer.json") << "{}";
  for (const char* name : {"optimizer.bin", "model.keras"}) std::ofstream(scratch / "in" / name) << "weights";
  const std::string before = test::text_of(scratch / "in/model-1.safetensors");
  const Rewritten rewritten(source, {.fold_gains = true, .untie = true}, scratch / "out");
  EXPECT_EQ(test::text_of(scratch / "in/model-1.safetensors"), before);
  EXPECT_EQ(rewritten.output.files().size(), 3U);
  EXPECT_EQ(test::text_of(scratch / "out/tokenizer.json"), "{}");
  EXPECT_EQ(rewritten.result.not_copied, (std::vector<std::string>{"model.keras", "optimizer.bin"}));
  for (const files::Tensor& tensor : source.tensors()) {
    const files::Tensor* const after = rewritten.output.find(tensor.name);
    ASSERT_NE(after, nullptr);
    EXPECT_EQ(rewritten.output.file_of(*after).filename(), source.file_of(tensor).filename());
    const bool changed = std::any_of(rewritten.plan.edits.begin(), rewritten.plan.edits.end(),
                                     [&](const Edit& edit) { return edit.tensor == tensor.name; });
    EXPECT_EQ(files::equal(tensor.bytes, after->bytes), !changed) << tensor.name;
  }
  EXPECT_GT(expect_same_composites(source, rewritten), 100U);
}

}  // namespace
}  // namespace normscope::rewrite
