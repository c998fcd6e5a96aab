#include <normscope/rewrite/compare.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rewrite/copy.hpp"

namespace normscope::rewrite {
namespace {

using models::Linear;
using models::Model;
using test::Copy;
using test::fixture;
using test::Rewritten;
using test::Scratch;

Comparison compared(const files::Checkpoint& before, const files::Checkpoint& after) {
  return compare(before, models::describe(before), after, models::describe(after));
}

bool is_turned(const Comparison& comparison) {
  return std::any_of(comparison.findings.begin(), comparison.findings.end(),
                     [](const ComparisonFinding& finding) { return finding.kind == "rotated"; });
}

/// Multiplies vectors of the stream by Q: rows of a matrix, or its columns.
void turn(std::vector<double>& values, std::size_t width, bool by_rows, const Rotation& rotation) {
  const std::size_t count = values.size() / width;
  std::vector<double> rows(values.size());
  const auto at = [&](std::size_t k, std::size_t j) { return by_rows ? k * width + j : j * count + k; };
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t j = 0; j < width; ++j) rows[k * width + j] = values[at(k, j)];
  }
  rotation.apply(rows);
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t j = 0; j < width; ++j) values[at(k, j)] = rows[k * width + j];
  }
}

/// Turns all that reads and writes the stream, whose norms get no gain and no bias. Maps are whole tensors.
void turn_all(Copy& copy, const Model& model, const Rotation& rotation) {
  std::set<std::string> done;
  const auto turn_once = [&](const Linear& map, bool reads) {
    if (!done.insert(map.weight.tensor).second) return;
    const bool by_rows = (map.layout == models::Layout::out_in) == reads;
    turn(copy.tensors.at(map.weight.tensor).values, rotation.width(), by_rows, rotation);
    if (!reads && map.bias) turn(copy.tensors.at(map.bias->tensor).values, rotation.width(), true, rotation);
  };
  for (const models::Norm& norm : model.norms) {
    for (const Linear& map : norm.readers) turn_once(map, true);
    for (const Linear& map : norm.writers) turn_once(map, false);
  }
}

void remove_gains(Copy& copy, const Model& model) {
  for (const models::Norm& norm : model.norms) {
    auto& gain = copy.tensors.at(norm.gain->tensor).values;
    std::fill(gain.begin(), gain.end(), 1.0 - norm.gain_offset);
    if (!norm.bias) continue;
    auto& bias = copy.tensors.at(norm.bias->tensor).values;
    std::fill(bias.begin(), bias.end(), 0.0);
  }
}

TEST(CompareRotation, WhatRewriteTurnsIsEquivalent) {
  for (const char* const name :
       {"llama", "gpt2", "mixtral", "falcon_40b", "stablelm", "phi", "gemma", "vit"}) {
    for (const Dtype dtype : {Dtype::F32, Dtype::BF16}) {
      const Scratch scratch;
      const files::Checkpoint source = Copy(fixture(name)).stored_as(dtype).open(scratch / "in");
      const Model model = models::describe(source);
      const bool is_tied = model.vocabulary && model.vocabulary->tied;
      const Rewritten rewritten(
          source, {.fold_gains = true, .untie = is_tied, .rotation = RotationRequest{9, nullptr}},
          scratch / "out");
      const Comparison comparison = compared(source, rewritten.output);
      EXPECT_EQ(comparison.agreement, Agreement::equivalent) << name << " " << to_string(dtype);
      EXPECT_TRUE(is_turned(comparison)) << name;
    }
  }
}

TEST(CompareRotation, AGainLostOrAReaderThatIsNotTurnedIsADifference) {
  const Scratch scratch;
  const files::Checkpoint source(fixture("llama"));
  const Model model = models::describe(source);
  const Rewritten rewritten(source, {.fold_gains = true, .rotation = RotationRequest{9, nullptr}},
                            scratch / "turned");
  Copy missed(scratch / "turned");
  const std::string reader = model.norms.at(1).readers.at(0).weight.tensor;
  const Rewritten folded(source, {.fold_gains = true}, scratch / "folded");
  missed.tensors.at(reader) = Copy(scratch / "folded").tensors.at(reader);
  const Comparison comparison = compared(source, missed.open(scratch / "missed"));
  EXPECT_EQ(comparison.agreement, Agreement::different);

  Copy without_gain(fixture("llama"));
  auto& gain = without_gain.tensors.at(model.norms.at(1).gain->tensor).values;
  std::fill(gain.begin(), gain.end(), 1.0);
  const files::Checkpoint lost = without_gain.open(scratch / "without");
  const Rewritten turned(lost, {.fold_gains = true, .rotation = RotationRequest{9, nullptr}},
                         scratch / "lost");
  EXPECT_EQ(compared(source, turned.output).agreement, Agreement::different);
  EXPECT_EQ(compared(lost, turned.output).agreement, Agreement::equivalent);
}

TEST(CompareRotation, ASignedPermutationIsExact) {
  const Scratch scratch;
  Copy copy(fixture("llama"));
  const Model model = models::describe(files::Checkpoint(fixture("llama")));
  remove_gains(copy, model);
  const files::Checkpoint before = copy.open(scratch / "before");
  std::vector<double> q(model.width * model.width);
  for (std::size_t i = 0; i < model.width; ++i) {
    q[i * model.width + (i + 3) % model.width] = i % 2 == 0 ? 1.0 : -1.0;
  }
  turn_all(copy, model, Rotation::nearest(q, model.width));
  const Comparison comparison = compared(before, copy.open(scratch / "after"));
  EXPECT_EQ(comparison.agreement, Agreement::equivalent);
  EXPECT_TRUE(is_turned(comparison));
  for (const NormComparison& norm : comparison.norms) {
    for (const ReaderComparison& reader : norm.readers) EXPECT_EQ(reader.composite, 0.0) << reader.new_weight;
  }
  for (const WriterComparison& writer : comparison.writers) EXPECT_EQ(writer.raw, 0.0) << writer.new_weight;
}

// LayerNorm subtracts the mean, which a matrix that does not keep (1, ..., 1) moves elsewhere.
TEST(CompareRotation, LayerNormsNeedTheMeanInItsPlace) {
  const Scratch scratch;
  Copy untied(fixture("gpt_neox"));
  const Model model = models::describe(files::Checkpoint(fixture("gpt_neox")));
  remove_gains(untied, model);
  const files::Checkpoint before = untied.open(scratch / "before");
  for (const bool keeps : {true, false}) {
    Copy copy = untied;
    turn_all(copy, model, Rotation::random(model.width, 5, keeps));
    const Comparison comparison = compared(before, copy.open(scratch / (keeps ? "kept" : "moved")));
    EXPECT_EQ(comparison.agreement, keeps ? Agreement::equivalent : Agreement::different);
    EXPECT_EQ(is_turned(comparison), keeps);
  }
}

}  // namespace
}  // namespace normscope::rewrite
