#include <algorithm>
#include <cmath>
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
std::vector<Activations> rows_for(const model::Model& model) {
  Random random(2);
  std::vector<Activations> result;
  for (std::size_t norm = 0; norm < model.norms.size(); ++norm) {
    Activations item{norm, 7, std::vector<double>(7 * model.norms[norm].width)};
    for (double& value : item.rows) value = 0.5 + random.normal();
    result.push_back(std::move(item));
  }
  return result;
}

std::vector<NormOnRows> compared(const checkpoint::Checkpoint& source, const Rewritten& rewritten,
                                 const Plan& plan) {
  return compare_on_rows(source, rewritten.output, rewritten.model, plan, rows_for(rewritten.model));
}

TEST(RewriteActivations, OutputsStayWithinTheBounds) {
  for (const char* name : {"gpt2", "gpt_neox", "llama", "gemma2", "mixtral", "falcon_40b", "phi"}) {
    const Scratch scratch;
    const checkpoint::Checkpoint source = Copy(fixture(name)).stored_as(Dtype::BF16).open(scratch / "in");
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
  const checkpoint::Checkpoint source(fixture("gpt_neox"));
  const Rewritten rewritten(source, {.center = true}, scratch / "out");
  for (const NormOnRows& norm : compared(source, rewritten, rewritten.plan)) {
    for (const ReaderOnRows& reader : norm.readers) EXPECT_LE(reader.relative, 1e-6) << reader.reader;
  }
  Copy copy(fixture("gpt_neox"));
  for (double& value : copy.tensors.at("gpt_neox.layers.0.input_layernorm.weight").values) value = 1.0;
  const checkpoint::Checkpoint lost = copy.open(scratch / "lost");
  const model::Model model = model::describe(source);
  const std::vector<NormOnRows> seen =
      compare_on_rows(source, lost, model, make_plan(source, model, {.fold_gains = true}), rows_for(model));
  EXPECT_GT(seen.front().readers.front().relative, 1e-2);
  EXPECT_EQ(seen.back().readers.front().relative, 0.0);
}

}  // namespace
}  // namespace normscope::rewrite
