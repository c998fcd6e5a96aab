#include <normscope/analysis/share_range.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>

#include "support/fixtures.hpp"

namespace normscope::analysis {
namespace {

// GELU and gated SiLU, biases, positions, shared keys, branches in parallel, with a factor and with a norm.
TEST(ShareRange, NoContextLeavesIt) {
  for (const char* name : {"gpt2", "opt", "llama", "granite", "gptj", "gpt_neox", "mistral", "gemma2"}) {
    const files::Checkpoint checkpoint(test::fixture(name));
    const models::Model model = models::describe(checkpoint);
    const forward::Decoder decoder(checkpoint, model, 1);
    Random random(3);
    std::vector<double> direction;
    for (std::size_t i = 0; i < model.width; ++i) direction.push_back(random.normal());
    std::vector<Interval> ranges, seen;
    for (std::size_t k = 0; k < decoder.components().size(); ++k) {
      const auto found = share_range(checkpoint, model, decoder.components()[k], direction);
      const forward::Component& component = decoder.components()[k];
      const bool is_part = component.after != nullptr && component.kind == forward::Component::Kind::head;
      ASSERT_EQ(found.has_value(), !is_part) << name << ' ' << component.name();
      ranges.push_back(found ? found->interval : Interval{.lower = -infinity, .upper = infinity});
      seen.push_back({.lower = infinity, .upper = -infinity});
    }
    for (int context = 0; context < 40; ++context) {
      std::vector<std::size_t> tokens;
      for (std::size_t t = 0; t < 5; ++t) tokens.push_back(random.below(decoder.vocabulary()));
      (void)decoder.run_apart(
          tokens, {.collect = [&](std::size_t k, MatrixView<const double> rows) {
            for (std::size_t t = 0; t < rows.rows(); ++t) {
              const double read = plain_dot(direction, rows.row(t));
              EXPECT_LE(ranges[k].lower, read) << name << ' ' << decoder.components()[k].name();
              EXPECT_GE(ranges[k].upper, read) << name << ' ' << decoder.components()[k].name();
              seen[k] = {.lower = std::min(seen[k].lower, read), .upper = std::max(seen[k].upper, read)};
            }
          }});
    }
    // They are no wider than they have to be by far.
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      const double width = ranges[k].upper - ranges[k].lower;
      if (width == infinity) continue;
      const bool is_mlp = decoder.components()[k].kind == forward::Component::Kind::mlp;
      EXPECT_LE(width, (is_mlp ? 20.0 : 12.0) * (seen[k].upper - seen[k].lower) + 1e-9)
          << name << ' ' << decoder.components()[k].name();
    }
  }
}

TEST(ShareRange, IsNotKnownForExperts) {
  for (const char* name : {"mixtral"}) {
    const files::Checkpoint checkpoint(test::fixture(name));
    const models::Model model = models::describe(checkpoint);
    const forward::Decoder decoder(checkpoint, model, 1);
    const std::vector<double> direction(model.width, 1.0);
    for (std::size_t k = 0; k < decoder.components().size(); ++k) {
      if (decoder.components()[k].kind != forward::Component::Kind::mlp) continue;
      EXPECT_FALSE(share_range(checkpoint, model, decoder.components()[k], direction).has_value()) << name;
    }
  }
}

}  // namespace
}  // namespace normscope::analysis
