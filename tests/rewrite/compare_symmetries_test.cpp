#include <normscope/rewrite/compare.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/forward/plan.hpp>

#include "rewrite/copy.hpp"

namespace normscope::rewrite {
namespace {

using forward::Mlp;
using models::Linear;
using models::Model;
using test::Copy;
using test::fixture;
using test::Scratch;

/// A checkpoint whose maps are changed as the symmetries of its architecture allow.
class Disguised {
 public:
  explicit Disguised(const std::string& name)
      : copy(fixture(name)),
        model(models::describe(files::Checkpoint(fixture(name)))),
        plan(forward::plan_of(model, true)) {}

  /// Calls `use` with each branch.
  template <typename Use>
  void each_branch(const Use& use) {
    for (const forward::Step& step : plan.steps) {
      for (const forward::Branch& branch : step.before) use(branch);
    }
  }

  /// Puts output i of a map where output `order[i]` was, with its bias.
  void reorder_outputs(const Linear& map, const std::vector<std::size_t>& order) {
    const Copy before = copy;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::uint64_t j = 0; j < map.in; ++j) at(copy, map, i, j) = at(before, map, order[i], j);
      if (map.bias) bias(copy, map, i) = bias(before, map, order[i]);
    }
  }
  void reorder_inputs(const Linear& map, const std::vector<std::size_t>& order) {
    const Copy before = copy;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::uint64_t k = 0; k < map.out; ++k) at(copy, map, k, i) = at(before, map, k, order[i]);
    }
  }
  void scale_output(const Linear& map, std::size_t output, double factor) {
    for (std::uint64_t j = 0; j < map.in; ++j) at(copy, map, output, j) *= factor;
    if (map.bias) bias(copy, map, output) *= factor;
  }
  void scale_input(const Linear& map, std::size_t input, double factor) {
    for (std::uint64_t k = 0; k < map.out; ++k) at(copy, map, k, input) *= factor;
  }
  /// Turns two outputs by an angle, and so two inputs of what reads them.
  void turn_outputs(const Linear& map, std::size_t p, std::size_t q, double angle) {
    for (std::uint64_t j = 0; j < map.in; ++j) turn(at(copy, map, p, j), at(copy, map, q, j), angle);
    if (map.bias) turn(bias(copy, map, p), bias(copy, map, q), angle);
  }
  void turn_inputs(const Linear& map, std::size_t p, std::size_t q, double angle) {
    for (std::uint64_t k = 0; k < map.out; ++k) turn(at(copy, map, k, p), at(copy, map, k, q), angle);
  }

  void permute_neurons(const Mlp& mlp) {
    const std::vector<std::size_t> order = shuffled(static_cast<std::size_t>(mlp.in->out));
    if (mlp.gate != nullptr) reorder_outputs(*mlp.gate, order);
    reorder_outputs(*mlp.in, order);
    reorder_inputs(*mlp.out, order);
  }

  [[nodiscard]] Comparison compared(const Scratch& scratch, const std::string& name) const {
    const files::Checkpoint before(fixture(name));
    const files::Checkpoint after = copy.open(scratch / "after");
    return compare(before, models::describe(before), after, models::describe(after));
  }

  std::vector<std::size_t> shuffled(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return order;
  }

  static double& at(Copy& copy, const Linear& map, std::uint64_t output, std::uint64_t input) {
    return copy.tensors.at(map.weight.tensor).values[place(map, output, input)];
  }
  static double at(const Copy& copy, const Linear& map, std::uint64_t output, std::uint64_t input) {
    return copy.tensors.at(map.weight.tensor).values[place(map, output, input)];
  }
  static std::size_t place(const Linear& map, std::uint64_t output, std::uint64_t input) {
    const std::uint64_t stored = map.stored_output(output);
    return map.weight.offset +
           (map.layout == models::Layout::out_in ? stored * map.in + input : input * map.stored_out + stored);
  }
  static double& bias(Copy& copy, const Linear& map, std::uint64_t output) {
    return copy.tensors.at(map.bias->tensor).values[map.bias->offset + map.stored_output(output)];
  }
  static double bias(const Copy& copy, const Linear& map, std::uint64_t output) {
    return copy.tensors.at(map.bias->tensor).values[map.bias->offset + map.stored_output(output)];
  }

  Copy copy;
  Model model;
  forward::Plan plan;
  Random random{4};

 private:
  static void turn(double& a, double& b, double angle) {
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    const double first = c * a - s * b;
    b = s * a + c * b;
    a = first;
  }
};

std::set<std::string> kinds(const Comparison& comparison) {
  std::set<std::string> result;
  for (const ComparisonFinding& finding : comparison.findings) result.insert(finding.kind);
  return result;
}

TEST(CompareSymmetries, NeuronsAreFoundInAnyOrderAndScale) {
  for (const char* const name :
       {"llama", "gpt2", "gptj", "gpt_neox", "gemma2", "opt", "phi3", "starcoder2", "bert", "mixtral",
        "qwen2_moe", "nemotron", "olmo", "olmoe", "bloom", "mpt", "olmo2", "exaone4", "gpt_oss"}) {
    const Scratch scratch;
    Disguised model(name);
    bool is_scaled = false;
    model.each_branch([&](const forward::Branch& branch) {
      if (!branch.heads.empty()) return;
      std::vector<Mlp> mlps = branch.experts.mlps;
      if (branch.mlp.in != nullptr) mlps.push_back(branch.mlp);
      for (const Mlp& mlp : mlps) {
        model.permute_neurons(mlp);
        const models::Activation activation = *model.model.decoder->activation;
        const bool squares = mlp.gate == nullptr && activation == models::Activation::squared_relu;
        if (mlp.gate == nullptr && !squares && activation != models::Activation::relu) continue;
        if (model.model.decoder->clamped_gate) continue;
        is_scaled = true;
        // Powers of two leave no rounding.
        model.scale_output(*mlp.in, 1, mlp.gate == nullptr ? 4.0 : -4.0);
        model.scale_input(*mlp.out, 1, squares ? 0.0625 : mlp.gate == nullptr ? 0.25 : -0.25);
      }
    });
    const Comparison comparison = model.compared(scratch, name);
    EXPECT_EQ(comparison.agreement, Agreement::equivalent) << name;
    EXPECT_TRUE(kinds(comparison).contains("permuted_neurons")) << name;
    EXPECT_EQ(kinds(comparison).contains("scaled_neurons"), is_scaled) << name;
  }
}

TEST(CompareSymmetries, ANegativeScaleIsNoneOfReluOrOfAGate) {
  for (const char* const name : {"opt", "llama", "gpt2", "bloom", "olmo2"}) {
    const Scratch scratch;
    Disguised model(name);
    model.each_branch([&](const forward::Branch& branch) {
      if (!branch.heads.empty()) return;
      model.scale_output(branch.mlp.gate == nullptr ? *branch.mlp.in : *branch.mlp.gate, 1, -1.0);
      model.scale_input(*branch.mlp.out, 1, -1.0);
    });
    const Agreement agreement = model.compared(scratch, name).agreement;
    EXPECT_TRUE(agreement == Agreement::different || agreement == Agreement::undecided) << name;
  }
}

TEST(CompareSymmetries, NeuronsThatAreClampedHaveNoScale) {
  for (const bool of_input : {true, false}) {
    const Scratch scratch;
    Disguised model("gpt_oss");
    model.each_branch([&](const forward::Branch& branch) {
      for (const Mlp& mlp : branch.experts.mlps) {
        model.scale_output(of_input ? *mlp.in : *mlp.gate, 1, 2.0);
        model.scale_input(*mlp.out, 1, 0.5);
      }
    });
    const Comparison comparison = model.compared(scratch, "gpt_oss");
    EXPECT_EQ(comparison.agreement, Agreement::different);
    EXPECT_TRUE(comparison.witness);
  }
}

TEST(CompareSymmetries, ExpertsAreFoundInAnyOrder) {
  for (const char* const name :
       {"mixtral", "qwen2_moe", "olmoe", "gpt_oss", "flex_olmo", "glm4_moe", "ernie4_5_moe"}) {
    const Scratch scratch;
    Disguised model(name);
    for (const bool with_router : {false, true}) {
      const Copy before = model.copy;
      model.each_branch([&](const forward::Branch& branch) {
        if (branch.experts.router == nullptr) return;
        const std::size_t count = branch.experts.mlps.size();
        std::vector<std::size_t> order(count);
        for (std::size_t e = 0; e < count; ++e) order[e] = (e + 1) % count;
        if (with_router) {
          model.reorder_outputs(*branch.experts.router, order);
          if (branch.experts.correction) model.reorder_outputs(*branch.experts.correction, order);
          return;
        }
        for (std::size_t e = 0; e < count; ++e) {
          for (const auto member : {&Mlp::gate, &Mlp::in, &Mlp::out}) {
            const Linear& to = *(branch.experts.mlps[e].*member);
            const Linear& from = *(branch.experts.mlps[order[e]].*member);
            for (std::uint64_t i = 0; i < to.out; ++i) {
              for (std::uint64_t j = 0; j < to.in; ++j) {
                Disguised::at(model.copy, to, i, j) = Disguised::at(before, from, i, j);
              }
              if (to.bias) Disguised::bias(model.copy, to, i) = Disguised::bias(before, from, i);
            }
          }
        }
      });
      const Comparison comparison = model.compared(scratch, name);
      EXPECT_EQ(comparison.agreement == Agreement::equivalent, with_router) << name;
      EXPECT_EQ(kinds(comparison).contains("permuted_experts"), with_router) << name;
    }
  }
}

TEST(CompareSymmetries, ACorrectionBelongsToItsExpert) {
  const Scratch scratch;
  Disguised model("glm4_moe");
  model.each_branch([&](const forward::Branch& branch) {
    if (branch.experts.correction == nullptr) return;
    model.reorder_outputs(*branch.experts.correction, {1, 2, 3, 0});
  });
  EXPECT_EQ(model.compared(scratch, "glm4_moe").agreement, Agreement::different);
}

/// Calls `change` with each head, its branch and its number in the branch.
template <typename Change>
void each_head(Disguised& model, const Change& change) {
  model.each_branch([&](const forward::Branch& branch) {
    for (std::size_t h = 0; h < branch.heads.size(); ++h)
      change(branch, model.model.heads[branch.heads[h]], h);
  });
}

TEST(CompareSymmetries, ValuesMayBeAnyMapThatTheOutputUndoes) {
  for (const char* const name : {"gpt2", "llama", "gpt_neox", "bert", "phi3", "gemma2", "qwen2", "falcon_40b",
                                 "bloom", "olmo2", "gpt_oss"}) {
    const Scratch scratch;
    Disguised model(name);
    std::set<int> done;
    each_head(model, [&](const forward::Branch& branch, const models::Head& head, std::size_t h) {
      const std::size_t first = h * head.head_dim;
      if (done.insert(head.layer * 1000 + head.key_value_head).second)
        model.turn_outputs(*head.value, 0, 2, 0.7 + 0.1 * head.key_value_head);
      model.turn_inputs(*branch.mlp.out, first, first + 2, 0.7 + 0.1 * head.key_value_head);
    });
    const Comparison comparison = model.compared(scratch, name);
    EXPECT_EQ(comparison.agreement, Agreement::equivalent) << name;
    EXPECT_TRUE(kinds(comparison).contains("mapped_values")) << name;
  }
}

// A clamp sees each feature.
TEST(CompareSymmetries, ValuesThatAreClampedMayNot) {
  for (const char* const name : {"olmo", "olmoe", "mpt"}) {
    const Scratch scratch;
    Disguised model(name);
    std::set<int> done;
    each_head(model, [&](const forward::Branch& branch, const models::Head& head, std::size_t h) {
      const std::size_t first = h * head.head_dim;
      if (done.insert(head.layer * 1000 + head.key_value_head).second)
        model.scale_output(*head.value, 0, 8.0);
      model.scale_input(*branch.mlp.out, first, 0.125);
    });
    const Comparison comparison = model.compared(scratch, name);
    EXPECT_EQ(comparison.agreement, Agreement::different) << name;
    EXPECT_TRUE(comparison.witness) << name;
  }
}

TEST(CompareSymmetries, KeysMayBeAMapThatCommutesWithTheirRotation) {
  for (const char* const name : {"gpt2", "llama", "gptj", "gpt_neox", "phi3", "qwen2", "bloom", "gpt_oss"}) {
    for (const bool commutes : {true, false}) {
      const Scratch scratch;
      Disguised model(name);
      std::set<int> done;
      bool has_rotation = false;
      each_head(model, [&](const forward::Branch&, const models::Head& head, std::size_t) {
        has_rotation = head.rotary.has_value();
        std::size_t p = 0;
        std::size_t q = 1;
        if (has_rotation && !head.rotary->interleaved) q = head.rotary->dims / 2;
        // Two pairs, whose frequencies differ.
        if (!commutes) q = has_rotation && head.rotary->interleaved ? 2 : 1;
        if (done.insert(head.layer * 1000 + head.key_value_head).second)
          model.turn_outputs(*head.key, p, q, 0.7);
        model.turn_outputs(*head.query, p, q, 0.7);
      });
      const Comparison comparison = model.compared(scratch, name);
      const bool is_symmetry = commutes || !has_rotation;
      EXPECT_EQ(comparison.agreement == Agreement::equivalent, is_symmetry) << name << " " << commutes;
      EXPECT_EQ(kinds(comparison).contains("mapped_keys"), is_symmetry) << name << " " << commutes;
    }
  }
}

TEST(CompareSymmetries, ConstantsOfValuesMayBeInTheOutputsBias) {
  for (const char* const name : {"gpt2", "gpt_neox", "bert", "opt", "bloom", "gpt_oss"}) {
    // Beside a sink, weights add up to less than 1.
    const bool adds_up = std::string(name) != "gpt_oss";
    for (const double factor : {1.0, 0.5}) {
      const Scratch scratch;
      Disguised model(name);
      each_head(model, [&](const forward::Branch& branch, const models::Head& head, std::size_t h) {
        for (std::size_t i = 0; i < head.head_dim; ++i) {
          double& of_value = Disguised::bias(model.copy, *head.value, i);
          for (std::uint64_t k = 0; k < branch.mlp.out->out; ++k) {
            Disguised::bias(model.copy, *branch.mlp.out, k) +=
                factor * of_value * Disguised::at(model.copy, *branch.mlp.out, k, h * head.head_dim + i);
          }
          of_value = 0.0;
        }
      });
      const Comparison comparison = model.compared(scratch, name);
      EXPECT_EQ(comparison.agreement == Agreement::equivalent, factor == 1.0 && adds_up) << name;
      EXPECT_EQ(kinds(comparison).contains("moved_value_bias"), adds_up) << name;
    }
  }
}

/// Puts the heads of each attention in reverse, which keeps groups together; `with_rest`: with their parts of
/// norms over all heads, and their sinks.
void reverse_heads(Disguised& model, bool with_rest = true) {
  const Copy before = model.copy;
  model.each_branch([&](const forward::Branch& branch) {
    const std::size_t count = branch.heads.size();
    for (std::size_t h = 0; h < count; ++h) {
      const models::Head& to = model.model.heads[branch.heads[h]];
      const models::Head& from = model.model.heads[branch.heads[count - 1 - h]];
      for (const auto member : {&models::Head::query, &models::Head::key, &models::Head::value}) {
        const models::Norm* const norm = own_norm(model.model, *(to.*member));
        for (std::uint64_t i = 0; i < to.head_dim; ++i) {
          for (std::uint64_t j = 0; j < (to.*member)->in; ++j) {
            Disguised::at(model.copy, *(to.*member), i, j) = Disguised::at(before, *(from.*member), i, j);
          }
          if (norm != nullptr && norm->width != to.head_dim && with_rest) {
            const std::string& gain = norm->gain->tensor;
            model.copy.tensors.at(gain).values[(to.*member)->first_out + i] =
                before.tensors.at(gain).values[(from.*member)->first_out + i];
          }
          if (!(to.*member)->bias) continue;
          Disguised::bias(model.copy, *(to.*member), i) = Disguised::bias(before, *(from.*member), i);
        }
      }
      if (to.sink && with_rest) {
        model.copy.tensors.at(to.sink->tensor).values[to.sink->offset] =
            before.tensors.at(from.sink->tensor).values[from.sink->offset];
      }
      const Linear& out = *branch.mlp.out;
      for (std::uint64_t i = 0; i < to.head_dim; ++i) {
        for (std::uint64_t k = 0; k < out.out; ++k) {
          Disguised::at(model.copy, out, k, h * to.head_dim + i) =
              Disguised::at(before, out, k, (count - 1 - h) * to.head_dim + i);
        }
      }
    }
  });
}

// A slope belongs to a place; a sink and a part of a norm's gain belong to a head.
TEST(CompareSymmetries, HeadsWithoutWhatBelongsToThemAreOthers) {
  for (const char* const name : {"bloom", "mpt", "falcon_alibi", "olmo2", "olmoe", "gpt_oss"}) {
    const Scratch scratch;
    Disguised model(name);
    reverse_heads(model, false);
    const Comparison comparison = model.compared(scratch, name);
    EXPECT_EQ(comparison.agreement, Agreement::different) << name;
    EXPECT_TRUE(comparison.witness) << name;
  }
}

// Heads of a group stay together, and a fault behind a permutation is found.
TEST(CompareSymmetries, HeadsAreFoundInAnyOrderAndAFaultBehindIt) {
  for (const char* const name : {"gpt2", "llama", "gpt_neox", "gemma2", "qwen2", "bert", "phi3", "olmo",
                                 "olmoe", "olmo2", "olmo3", "exaone4", "gpt_oss"}) {
    for (const bool with_fault : {false, true}) {
      const Scratch scratch;
      Disguised model(name);
      reverse_heads(model);
      model.each_branch([&](const forward::Branch& branch) {
        if (!branch.heads.empty() && with_fault) model.scale_input(*branch.mlp.out, 0, 1.5);
      });
      const Comparison comparison = model.compared(scratch, name);
      EXPECT_TRUE(kinds(comparison).contains("permuted_heads")) << name;
      EXPECT_EQ(comparison.agreement == Agreement::equivalent, !with_fault) << name;
      EXPECT_EQ(kinds(comparison).contains("writer"), with_fault) << name;
      EXPECT_FALSE(kinds(comparison).contains("reader")) << name;
    }
  }
}

// What a merge or a conversion to 16 bits rounds is no difference behind a permutation and odd scales.
TEST(CompareSymmetries, RoundingBehindAPermutationIsNoDifference) {
  for (const char* const name : {"llama", "gpt2", "opt", "mixtral"}) {
    const Scratch scratch;
    Disguised model(name);
    model.each_branch([&](const forward::Branch& branch) {
      if (branch.mlp.in == nullptr) return;
      model.permute_neurons(branch.mlp);
      if (branch.mlp.gate == nullptr && model.model.decoder->activation != models::Activation::relu) return;
      for (std::size_t i = 0; i < branch.mlp.in->out; ++i) {
        const double factor = 0.3 + 0.17 * static_cast<double>(i);
        model.scale_output(*branch.mlp.in, i, factor);
        model.scale_input(*branch.mlp.out, i, 1.0 / factor);
      }
    });
    model.copy.stored_as(Dtype::BF16);
    EXPECT_EQ(model.compared(scratch, name).agreement, Agreement::equivalent) << name;
  }
}

TEST(CompareSymmetries, LineageSurvivesAPermutationInATurnedStream) {
  for (const char* const name : {"llama", "gpt2", "mixtral", "gemma", "stablelm"}) {
    const Scratch scratch;
    Disguised model(name);
    model.each_branch([&](const forward::Branch& branch) {
      if (branch.mlp.in != nullptr) model.permute_neurons(branch.mlp);
    });
    const files::Checkpoint permuted = model.copy.open(scratch / "permuted");
    const bool is_tied = model.model.vocabulary->tied;
    const test::Rewritten turned(
        permuted, {.fold_gains = true, .untie = is_tied, .rotation = RotationRequest{9, nullptr}},
        scratch / "turned");
    const files::Checkpoint before(fixture(name));
    const Comparison comparison =
        compare(before, models::describe(before), turned.output, turned.model_after);
    EXPECT_EQ(comparison.agreement, Agreement::equivalent) << name;
    EXPECT_TRUE(kinds(comparison).contains("rotated")) << name;
    EXPECT_EQ(kinds(comparison).contains("permuted_neurons"), std::string(name) != "mixtral") << name;
  }
}

}  // namespace
}  // namespace normscope::rewrite
