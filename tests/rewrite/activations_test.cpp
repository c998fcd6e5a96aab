#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

#include "rewrite/copy.hpp"

namespace normscope::rewrite {
namespace {

using test::Copy;
using test::fixture;
using test::Rewritten;
using test::Scratch;

/// Rows with a mean, as a stream that is not centred has, for every norm.
std::vector<Activations> rows_for(const models::Model& model) {
  Random random(2);
  std::vector<Activations> result;
  for (std::size_t norm = 0; norm < model.norms.size(); ++norm) {
    Activations item{norm, 7, std::vector<double>(7 * model.norms[norm].width)};
    for (double& value : item.rows) value = 0.5 + random.normal();
    result.push_back(std::move(item));
  }
  return result;
}

std::vector<NormOnRows> compared(const files::Checkpoint& source, const Rewritten& rewritten,
                                 const Plan& plan) {
  return compare_on_rows(source, rewritten.output, rewritten.model, plan, rows_for(rewritten.model));
}

TEST(RewriteActivations, OutputsStayWithinTheBounds) {
  for (const char* name : {"gpt2", "gpt_neox", "llama", "gemma2", "mixtral", "falcon_40b", "phi"}) {
    const Scratch scratch;
    const files::Checkpoint source = Copy(fixture(name)).stored_as(Dtype::BF16).open(scratch / "in");
    const bool is_gpt2 = std::string(name) == "gpt2";
    const bool centers = is_gpt2 || std::string(name) == "gpt_neox";
    const Rewritten rewritten(source, {.fold_gains = true, .center = centers, .untie = is_gpt2},
                              scratch / "out");
    std::size_t changed = 0;
    for (const NormOnRows& norm : compared(source, rewritten, rewritten.plan)) {
      EXPECT_EQ(norm.tried, 7U);
      EXPECT_GT(norm.mean_share, 0.05);
      for (const ReaderOnRows& reader : norm.readers) {
        const auto certificate = std::find_if(
            rewritten.result.certificates.begin(), rewritten.result.certificates.end(),
            [&](const Certificate& c) { return c.tensor == reader.reader && c.norm == norm.norm; });
        // A bias that was folded or divided adds its own rounding.
        const double bound =
            (certificate == rewritten.result.certificates.end() ? 0.0 : certificate->relative_bound) +
            4.0 * 0x1p-8;
        EXPECT_LE(reader.largest, bound) << name << " " << reader.reader;
        EXPECT_LE(reader.relative, 0.05) << name << " " << reader.reader;
        if (reader.largest > 0.0) ++changed;
      }
    }
    EXPECT_GT(changed, 1U) << name;
  }
}

TEST(RewriteActivations, SeeAGainThatWasLostAndAStreamThatWasNotCentred) {
  const Scratch scratch;
  const files::Checkpoint source(fixture("gpt_neox"));
  const Rewritten rewritten(source, {.center = true}, scratch / "out");
  for (const NormOnRows& norm : compared(source, rewritten, rewritten.plan)) {
    for (const ReaderOnRows& reader : norm.readers) EXPECT_LE(reader.relative, 1e-6) << reader.reader;
  }
  Copy copy(fixture("gpt_neox"));
  for (double& value : copy.tensors.at("gpt_neox.layers.0.input_layernorm.weight").values) value = 1.0;
  const files::Checkpoint lost = copy.open(scratch / "lost");
  const models::Model model = models::describe(source);
  const std::vector<NormOnRows> seen =
      compare_on_rows(source, lost, model, make_plan(source, model, {.fold_gains = true}), rows_for(model));
  EXPECT_GT(seen.front().readers.front().relative, 1e-2);
  EXPECT_EQ(seen.back().readers.front().relative, 0.0);
}

TEST(RewriteActivations, RowsAndOutputsOfZeroHaveNoShareAndNoRelativeError) {
  const Scratch scratch;
  Copy copy(fixture("llama"));
  std::vector<double>& query = copy.tensors.at("model.layers.0.self_attn.q_proj.weight").values;
  std::fill(query.begin(), query.end(), 0.0);
  const files::Checkpoint source = copy.open(scratch / "in");
  const Rewritten rewritten(source, {.fold_gains = true}, scratch / "out");
  std::vector<double> rows(48, 0.0);
  for (std::size_t j = 16; j < 32; ++j) rows[j] = 1.0;
  rows[32] = 1.0;
  const NormOnRows seen =
      compare_on_rows(source, rewritten.output, rewritten.model, rewritten.plan, {{0, 3, rows}}).at(0);
  EXPECT_NEAR(seen.mean_share, 1.0, 1e-12) << "of the constant row";
  EXPECT_EQ(seen.readers.at(0).relative, 0.0);
  EXPECT_EQ(seen.readers.at(0).largest, 0.0);
  EXPECT_GT(seen.readers.at(1).relative, 0.0);
}

// Norms within a branch read no stream that is centred or rotated.
TEST(RewriteActivations, NormsOfOtherStreamsSeeTheirRowsUnchanged) {
  const files::Checkpoint source(fixture("gpt_neox"));
  const models::Model model = models::describe(source);
  Plan plan = make_plan(source, model, {.center = true, .rotation = RotationRequest{2, nullptr}});
  const std::size_t first = plan.streams.at(0).norms.front();
  const auto relative = [&] {
    double largest = 0.0;
    for (const NormOnRows& norm : compare_on_rows(source, source, model, plan, rows_for(model))) {
      if (norm.norm != model.norms[first].name) continue;
      for (const ReaderOnRows& reader : norm.readers) largest = std::max(largest, reader.relative);
    }
    return largest;
  };
  plan.rotations.at(0).rotation = nullptr;
  EXPECT_LE(relative(), 1e-6) << "RMSNorm of rows without their mean is LayerNorm";
  plan.rotations[0].rotation =
      std::make_shared<const Rotation>(Rotation::random(model.norms[first].width, 2, true));
  EXPECT_GT(relative(), 0.1) << "rotated, but not read so";
  plan.rotations[0].norms.erase(plan.rotations[0].norms.begin());
  EXPECT_LE(relative(), 1e-6);
  plan.streams[0].norms.erase(plan.streams[0].norms.begin());
  EXPECT_EQ(relative(), 0.0);
  plan.streams[0].centered = false;
  EXPECT_EQ(relative(), 0.0);
}

}  // namespace
}  // namespace normscope::rewrite
