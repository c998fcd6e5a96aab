#include <normscope/rewrite/compare.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "rewrite/copy.hpp"
#include "rewrite/stored_parts.hpp"
#include "support/files.hpp"

namespace normscope::rewrite {
namespace {

using models::Model;
using models::Norm;
using test::Copy;
using test::error_of;
using test::fixture;
using test::parts_of;
using test::Scratch;

using Redescribes = std::function<void(Model& model)>;

/// Compares a fixture with a changed copy of it, whose description may be changed too.
Comparison compared_with(const std::string& name, const std::function<void(Copy& copy)>& change,
                         const Redescribes& redescribe = {}) {
  const Scratch scratch;
  Copy copy(fixture(name));
  change(copy);
  const files::Checkpoint before(fixture(name));
  const files::Checkpoint after = copy.open(scratch / "new");
  Model described = models::describe(after);
  if (redescribe) redescribe(described);
  return compare(before, models::describe(before), after, described);
}

/// Compares a fixture with itself under another description.
Comparison redescribed(const std::string& name, const Redescribes& of_new, const Redescribes& of_old = {}) {
  const files::Checkpoint file(fixture(name));
  Model before = models::describe(file);
  Model after = before;
  of_new(after);
  if (of_old) of_old(before);
  return compare(file, before, file, after);
}

std::string refused(const std::string& name, const Redescribes& of_new) {
  return error_of(ErrorCode::Unsupported, [&] { static_cast<void>(redescribed(name, of_new)); });
}

testing::AssertionResult names_kind(const Comparison& comparison, const std::string& kind,
                                    const std::string& part = "") {
  std::string all;
  for (const ComparisonFinding& finding : comparison.findings) {
    if (finding.kind == kind && finding.text.find(part) != std::string::npos) {
      return testing::AssertionSuccess();
    }
    all += finding.kind + ": " + finding.text + "\n";
  }
  return testing::AssertionFailure() << "no finding \"" << kind << "\" with \"" << part << "\" in\n" << all;
}

std::vector<double>& values_of(Copy& copy, const std::string& name) { return copy.tensors.at(name).values; }

void set_all(Copy& copy, const std::string& name, double value) {
  std::fill(values_of(copy, name).begin(), values_of(copy, name).end(), value);
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// As where one file has a matrix whole that the other splits.
TEST(RewriteCompare, AMatrixWithoutACounterpartIsLeft) {
  const Comparison comparison = redescribed("llama", [](Model& model) { model.norms[0].readers.pop_back(); });
  EXPECT_EQ(comparison.agreement, Agreement::undecided);
  ASSERT_EQ(comparison.not_compared.size(), 1U);
  EXPECT_EQ(comparison.not_compared[0],
            "model.layers.0.self_attn.v_proj.weight, value: NEW has other matrices in its place");
  EXPECT_EQ(comparison.norms.at(0).readers.size(), 2U);
}

TEST(RewriteCompare, ModelsOfOtherShapesAreRefused) {
  EXPECT_TRUE(holds(refused("llama",
                            [](Model& model) {
                              model.norms[0].width = 8;
                              model.norms[0].gain->count = 8;
                            }),
                    "has 16 features, model.layers.0.input_layernorm has 8"));
  EXPECT_TRUE(holds(refused("llama", [](Model& model) { model.norms[0].readers[0].out = 12; }),
                    "and model.layers.0.self_attn.q_proj.weight have other shapes"));
  EXPECT_TRUE(holds(refused("llama", [](Model& model) { model.norms[0].readers[0].in = 12; }),
                    "and model.layers.0.self_attn.q_proj.weight have other shapes"));
  EXPECT_TRUE(holds(refused("llama", [](Model& model) { model.norms[1].writers.clear(); }),
                    "model.layers.0.post_attention_layernorm has 1 writers, "
                    "model.layers.0.post_attention_layernorm has 0"));
  EXPECT_TRUE(holds(refused("llama", [](Model& model) { model.norms[1].writers[0].in = 12; }),
                    "and model.layers.0.self_attn.o_proj.weight have other shapes"));
}

TEST(RewriteCompare, ModelsOfAnotherDepthOrArchitectureAreRefused) {
  EXPECT_TRUE(holds(refused("llama", [](Model& model) { model.norms.pop_back(); }), "has 5 norms, "));
  EXPECT_TRUE(holds(refused("llama",
                            [](Model& model) {
                              model.norms.pop_back();
                              model.missing = {"model.norm.weight"};
                            }),
                    "has 4: model.norm.weight is missing"));
  EXPECT_TRUE(holds(refused("llama", [](Model& model) { model.architecture = "gguf_gpt2"; }),
                    "expected one known architecture"));
  const Scratch scratch;
  Copy nameless(fixture("llama"));
  nameless.config = "{}";
  while (nameless.tensors.size() > 2) nameless.tensors.erase(nameless.tensors.begin());
  const files::Checkpoint unknown = nameless.open(scratch / "in");
  const Model described = models::describe(unknown);
  EXPECT_EQ(compare(unknown, described, unknown, described).agreement, Agreement::same) << "it is one file";
  const files::Checkpoint other(fixture("gpt2"));
  EXPECT_TRUE(
      holds(error_of(ErrorCode::Unsupported,
                     [&] { static_cast<void>(compare(unknown, described, other, models::describe(other))); }),
            "expected one known architecture"));
}

TEST(RewriteCompare, NormsThatComputeAnotherFunctionDiffer) {
  const auto first = [](const Redescribes& change) {
    const Comparison comparison = redescribed("gpt2", change);
    EXPECT_EQ(comparison.agreement, comparison.norms.at(0).agreement);
    return comparison.norms.at(0).agreement;
  };
  EXPECT_EQ(first([](Model&) {}), Agreement::same);
  EXPECT_EQ(first([](Model& model) { model.norms[0].kind = NormKind::rms; }), Agreement::different);
  EXPECT_EQ(first([](Model& model) { model.norms[0].groups = 2; }), Agreement::different);
  EXPECT_EQ(first([](Model& model) { model.norms[0].alpha = model.norms[0].gain; }), Agreement::different);
  EXPECT_EQ(first([](Model& model) { model.norms[0].shift = model.norms[0].gain; }), Agreement::different);
  EXPECT_TRUE(names_kind(redescribed("gpt2", [](Model& model) { model.norms[0].kind = NormKind::rms; }),
                         "kind", "transformer.h.0.ln_1 is of another kind in NEW"));
}

// The output of a post-norm is the stream too, so a gain that moved into its readers is missing there.
TEST(RewriteCompare, AGainOfAPostNormMayNotMove) {
  const auto moved = [](bool is_known) {
    return [is_known](Model& model) {
      Norm& norm = model.norms[0];
      norm.readers_known = is_known;
    };
  };
  const auto halve = [](Copy& copy) {
    for (double& gain : values_of(copy, "bert.embeddings.LayerNorm.weight")) gain *= 2.0;
    for (double& bias : values_of(copy, "bert.embeddings.LayerNorm.bias")) bias *= 2.0;
    for (const char* reader : {"query", "key", "value"}) {
      const std::string name = std::string("bert.encoder.layer.0.attention.self.") + reader + ".weight";
      for (double& weight : values_of(copy, name)) weight *= 0.5;
    }
  };
  for (const bool is_known : {true, false}) {
    const Comparison comparison = compared_with("bert", halve, moved(is_known));
    EXPECT_EQ(comparison.norms[0].agreement, Agreement::different);
    for (const ReaderComparison& reader : comparison.norms[0].readers) {
      EXPECT_LE(reader.composite, comparison.tolerance);
      EXPECT_LE(reader.bias, comparison.tolerance);
    }
  }
  const Comparison biased =
      compared_with("bert", [](Copy& copy) { values_of(copy, "bert.embeddings.LayerNorm.bias")[0] += 1.0; });
  EXPECT_EQ(biased.norms[0].agreement, Agreement::different);
  const Comparison same = compared_with("bert", [](Copy&) {});
  EXPECT_EQ(same.agreement, Agreement::same);
}

TEST(RewriteCompare, ABiasAloneMakesADifference) {
  const Comparison comparison = compared_with(
      "gpt2", [](Copy& copy) { values_of(copy, "transformer.h.0.attn.c_attn.bias")[0] += 0.5; });
  EXPECT_EQ(comparison.agreement, Agreement::different);
  EXPECT_EQ(comparison.norms[0].readers[0].raw, 0.0);
  EXPECT_GT(comparison.norms[0].readers[0].bias, comparison.tolerance);
  EXPECT_EQ(comparison.norms[1].agreement, Agreement::same);
}

TEST(RewriteCompare, AnAbsentBiasIsOneOfZeros) {
  const auto without_bias = [](double value) {
    return compared_with(
               "gpt2",
               [&](Copy& copy) {
                 copy.tensors.at("transformer.h.1.ln_1.bias").values.assign(18, value);
                 set_all(copy, "transformer.h.0.ln_1.bias", value);
               },
               [](Model& model) { model.norms[0].bias.reset(); })
        .norms.at(0);
  };
  EXPECT_EQ(without_bias(0.0).bias_change, 1.0) << "OLD has one that is not 0";
  const auto change = [](double value) {
    const Scratch scratch;
    Copy copy(fixture("gpt2"));
    set_all(copy, "transformer.h.0.ln_1.bias", value);
    const files::Checkpoint file = copy.open(scratch / "in");
    Model with = models::describe(file);
    Model without = with;
    without.norms[0].bias.reset();
    EXPECT_EQ(compare(file, with, file, without).norms[0].bias_change,
              compare(file, without, file, with).norms[0].bias_change);
    return compare(file, with, file, without).norms[0].bias_change;
  };
  EXPECT_EQ(change(0.0), 0.0);
  EXPECT_EQ(change(0.5), 1.0);
}

TEST(RewriteCompare, GainsOfZeroHaveNoDirection) {
  const auto zero = [](Copy& copy) { set_all(copy, "model.norm.weight", 0.0); };
  const Comparison comparison = compared_with("llama", zero);
  EXPECT_EQ(comparison.norms.back().gain_cosine, 0.0);
  EXPECT_TRUE(names_kind(comparison, "zero_gain", "the gain of model.norm is zero in NEW"));
  const Scratch scratch;
  Copy copy(fixture("llama"));
  zero(copy);
  const files::Checkpoint file = copy.open(scratch / "in");
  const Model described = models::describe(file);
  const Comparison same = compare(file, described, file, described);
  EXPECT_EQ(same.norms.back().gain_cosine, 1.0);
  EXPECT_EQ(same.agreement, Agreement::same);
  Model other_eps = described;
  other_eps.norms.back().eps *= 2.0;
  const Comparison different = compare(file, described, file, other_eps);
  EXPECT_EQ(different.agreement, Agreement::different);
  EXPECT_FALSE(names_kind(different, "zero_gain")) << "it was 0 before";
}

TEST(RewriteCompare, TensorsThatNothingReadsAreComparedByName) {
  const auto extra = [](Copy& copy, const std::string& name, double value) {
    copy.tensors[name] = {Dtype::F32, {2, 2}, {value, 2.0, 3.0, 4.0}};
  };
  const Scratch scratch;
  Copy old_copy(fixture("llama"));
  extra(old_copy, "extra.a", 1.0);
  Copy new_copy = old_copy;
  const files::Checkpoint before = old_copy.open(scratch / "old");
  const auto with = [&] {
    const files::Checkpoint after = new_copy.open(scratch / "new");
    return compare(before, models::describe(before), after, models::describe(after));
  };
  EXPECT_EQ(with().agreement, Agreement::same);
  extra(new_copy, "extra.a", 1.0 + 0x1p-23);
  EXPECT_EQ(with().agreement, Agreement::equivalent);
  extra(new_copy, "extra.a", 7.0);
  EXPECT_EQ(with().agreement, Agreement::undecided) << "no witness: nothing reads it";
  EXPECT_TRUE(names_kind(with(), "tensor", "extra.a differs"));
  new_copy.tensors.at("extra.a") = {Dtype::F32, {3}, {1.0, 2.0, 3.0}};
  EXPECT_TRUE(names_kind(with(), "tensor", "extra.a differs"));
  new_copy.tensors.erase("extra.a");
  extra(new_copy, "extra.b", 1.0);
  EXPECT_TRUE(names_kind(with(), "tensor", "extra.a is missing in NEW"));
  EXPECT_TRUE(names_kind(with(), "tensor", "extra.b is in NEW alone"));
}

// F4 has no decoder, so its bytes are compared.
TEST(RewriteCompare, TensorsThatCannotBeDecodedAreComparedByTheirBytes) {
  const Scratch scratch;
  auto parts = parts_of(files::Checkpoint(fixture("llama")));
  parts.tensors["extra"] = {Dtype::F4, {4}, {std::byte{0x12}, std::byte{0x34}}};
  const files::Checkpoint before = parts.open(scratch / "old");
  const auto with = [&] {
    const files::Checkpoint after = parts.open(scratch / "new");
    return compare(before, models::describe(before), after, models::describe(after)).agreement;
  };
  EXPECT_EQ(with(), Agreement::same);
  parts.tensors.at("extra").bytes[1] = std::byte{0x35};
  EXPECT_EQ(with(), Agreement::undecided);
  parts.tensors.at("extra") = {Dtype::U8, {4}, std::vector<std::byte>(4)};
  EXPECT_EQ(with(), Agreement::undecided);
  parts.tensors.at("extra") = {Dtype::F8_E8M0, {2}, {std::byte{0x12}, std::byte{0x34}}};
  EXPECT_EQ(with(), Agreement::undecided) << "the same bytes of another type";
  parts.tensors.at("extra") = {Dtype::F32, {4}, std::vector<std::byte>(16)};
  const files::Checkpoint decoded = parts.open(scratch / "decoded");
  EXPECT_EQ(compare(decoded, models::describe(decoded), before, models::describe(before)).agreement,
            Agreement::undecided);
}

TEST(RewriteCompare, LargeEpsIsAMissingNormWhereItWasSmall) {
  const auto of_eps = [](double old_eps, double new_eps) {
    return redescribed(
        "llama", [&](Model& model) { model.norms[0].eps = new_eps; },
        [&](Model& model) { model.norms[0].eps = old_eps; });
  };
  EXPECT_TRUE(names_kind(of_eps(1e-5, 2.0), "missing_normalization"));
  EXPECT_FALSE(names_kind(of_eps(1e-5, 2.0), "eps"));
  EXPECT_TRUE(names_kind(of_eps(0.5, 2.0), "eps", "the eps of model.layers.0.input_layernorm is 2 in NEW"));
  EXPECT_FALSE(names_kind(of_eps(0.5, 2.0), "missing_normalization"));
}

TEST(RewriteCompare, FindingsHoldForAllReadersOfTheNorm) {
  const std::string gain = "model.layers.0.input_layernorm.weight";
  const std::string query = "model.layers.0.self_attn.q_proj.weight";
  const auto scale = [&](Copy& copy, const std::string& name) {
    const std::vector<double> gains = Copy(fixture("llama")).tensors.at(gain).values;
    std::vector<double>& weight = values_of(copy, name);
    for (std::size_t at = 0; at < weight.size(); ++at) weight[at] *= gains[at % gains.size()];
  };
  EXPECT_TRUE(names_kind(compared_with("llama", [&](Copy& copy) { set_all(copy, gain, 1.0); }), "lost_gain"));
  EXPECT_FALSE(names_kind(compared_with("llama",
                                        [&](Copy& copy) {
                                          set_all(copy, gain, 1.0);
                                          values_of(copy, query)[0] += 1.0;
                                        }),
                          "lost_gain"));
  const auto all_twice = [&](Copy& copy) {
    for (const char* name : {"q", "k", "v"}) {
      scale(copy, std::string("model.layers.0.self_attn.") + name + "_proj.weight");
    }
  };
  EXPECT_TRUE(names_kind(compared_with("llama", all_twice), "folded_twice"));
  EXPECT_FALSE(names_kind(compared_with("llama", [&](Copy& copy) { scale(copy, query); }), "folded_twice"));
  EXPECT_FALSE(names_kind(compared_with("llama",
                                        [&](Copy& copy) {
                                          all_twice(copy);
                                          values_of(copy, gain)[0] *= 2.0;
                                        }),
                          "folded_twice"));
  const auto with_gain_one = [&](const Redescribes& change) {
    const Scratch scratch;
    Copy copy(fixture("llama"));
    set_all(copy, gain, 1.0);
    const files::Checkpoint file = copy.open(scratch / "in");
    Model before = models::describe(file);
    Model after = before;
    change(after);
    return compare(file, before, file, after);
  };
  EXPECT_FALSE(names_kind(with_gain_one([](Model& model) { model.norms[0].eps = 0.25; }), "folded_twice"))
      << "readers are as they were";
  EXPECT_FALSE(
      names_kind(compared_with("llama", [&](Copy& copy) { set_all(copy, "model.norm.weight", 1.0); }),
                 "lost_gain", "input_layernorm"));
  const auto without_readers = [](Model& model) { model.norms[0].readers.clear(); };
  const Comparison unread = redescribed(
      "llama",
      [&](Model& model) {
        without_readers(model);
        model.norms[0].eps = 0.25;
      },
      without_readers);
  EXPECT_EQ(unread.norms[0].agreement, Agreement::different);
  EXPECT_FALSE(names_kind(unread, "folded_twice"));
  const Scratch scratch;
  Copy copy(fixture("llama"));
  set_all(copy, gain, 1.0);
  const files::Checkpoint before(fixture("llama"));
  const files::Checkpoint after = copy.open(scratch / "new");
  Model old_model = models::describe(before);
  Model new_model = models::describe(after);
  without_readers(old_model);
  without_readers(new_model);
  const Comparison lost = compare(before, old_model, after, new_model);
  EXPECT_EQ(lost.norms[0].agreement, Agreement::different);
  EXPECT_FALSE(names_kind(lost, "lost_gain")) << "nothing says that it was not folded";
}

TEST(RewriteCompare, ALostBiasIsNamedWhereTheGainsAgree) {
  const auto lost = [](Copy& copy) { set_all(copy, "transformer.h.0.ln_1.bias", 0.0); };
  EXPECT_TRUE(names_kind(compared_with("gpt2", lost), "lost_bias", "the bias of transformer.h.0.ln_1"));
  EXPECT_FALSE(names_kind(compared_with("gpt2",
                                        [&](Copy& copy) {
                                          lost(copy);
                                          values_of(copy, "transformer.h.0.attn.c_attn.weight")[0] += 1.0;
                                        }),
                          "lost_bias"));
  const auto unread = [](Model& model) { model.norms[0].readers.clear(); };
  const Scratch scratch;
  Copy copy(fixture("gpt2"));
  lost(copy);
  const files::Checkpoint before(fixture("gpt2"));
  const files::Checkpoint after = copy.open(scratch / "new");
  Model old_model = models::describe(before);
  Model new_model = models::describe(after);
  unread(old_model);
  unread(new_model);
  const Comparison comparison = compare(before, old_model, after, new_model);
  EXPECT_EQ(comparison.norms[0].agreement, Agreement::different);
  EXPECT_FALSE(names_kind(comparison, "lost_bias"));
}

TEST(RewriteCompare, AGainOfOneThatWasOneIsNotFolded) {
  const Scratch scratch;
  Copy copy(fixture("llama"));
  set_all(copy, "model.norm.weight", 1.0);
  const files::Checkpoint before = copy.open(scratch / "old");
  values_of(copy, "lm_head.weight")[0] *= 1.0 + 0x1p-23;
  const files::Checkpoint after = copy.open(scratch / "new");
  const Comparison comparison = compare(before, models::describe(before), after, models::describe(after));
  EXPECT_EQ(comparison.agreement, Agreement::equivalent);
  EXPECT_FALSE(names_kind(comparison, "folded"));
}

// The mean of what is written does not count where only LayerNorms before branches read it.
TEST(RewriteCompare, AMeanCountsUnlessOnlyLayerNormsReadTheStream) {
  const auto center_dense = [](Copy& copy) {
    std::vector<double>& weight = values_of(copy, "gpt_neox.layers.0.attention.dense.weight");
    const std::size_t width = values_of(copy, "gpt_neox.final_layer_norm.weight").size();
    for (std::size_t input = 0; input < weight.size() / width; ++input) {
      const std::size_t columns = weight.size() / width;
      double mean = 0.0;
      for (std::size_t i = 0; i < width; ++i) {
        mean += weight[i * columns + input] / static_cast<double>(width);
      }
      for (std::size_t i = 0; i < width; ++i) weight[i * columns + input] -= mean;
    }
  };
  const auto with = [&](const Redescribes& change) {
    return compared_with("gpt_neox", center_dense, change);
  };
  EXPECT_TRUE(names_kind(with({}), "centered"));
  EXPECT_EQ(with({}).agreement, Agreement::equivalent);
  for (const Redescribes& change :
       {Redescribes([](Model& model) { model.norms.back().writing_norms = {"n"}; }),
        Redescribes([](Model& model) { model.norms.back().placement = models::Placement::post; })}) {
    const Comparison comparison = with(change);
    EXPECT_EQ(comparison.agreement, Agreement::undecided);
    EXPECT_NE(comparison.no_witness.find("no witness was sought"), std::string::npos);
    EXPECT_TRUE(names_kind(comparison, "centered_for_rms"));
  }
  for (const Redescribes& change :
       {Redescribes([](Model& model) {
          model.norms.back().stack = "other";
          model.norms.back().placement = models::Placement::post;
        }),
        Redescribes([](Model& model) { model.norms[1].placement = models::Placement::inside; })}) {
    EXPECT_TRUE(names_kind(with(change), "centered"));
  }
}

TEST(RewriteCompare, AMisplacedReaderIsNamedOnlyIfAllItsRowsAreTheSame) {
  const std::string value = "model.layers.0.self_attn.v_proj.weight";
  const std::string key = "model.layers.0.self_attn.k_proj.weight";
  const auto misplaced = [&](double change) {
    return compared_with("llama", [&](Copy& copy) {
      values_of(copy, value) = values_of(copy, key);
      values_of(copy, value)[16 + 2] += change;  // of a row that is not sampled
    });
  };
  EXPECT_TRUE(names_kind(misplaced(0.0), "wrong_reader", "v_proj.weight in NEW, which reads"));
  EXPECT_FALSE(names_kind(misplaced(1.0), "wrong_reader"));
}

// The readers of the other tower have other widths.
TEST(RewriteCompare, AReaderIsSearchedForInAllStacks) {
  const files::Checkpoint file(fixture("clip"));
  const Model described = models::describe(file);
  const Norm& first = described.norms.front();
  const auto other = std::find_if(described.norms.begin(), described.norms.end(), [&](const Norm& norm) {
    return norm.width != first.width && !norm.readers.empty();
  });
  ASSERT_NE(other, described.norms.end());
  const std::string name = other->readers.front().weight.tensor;
  const Comparison comparison = compared_with("clip", [&](Copy& copy) { values_of(copy, name)[0] += 1.0; });
  EXPECT_EQ(comparison.agreement, Agreement::undecided);
  EXPECT_EQ(comparison.no_witness,
            "no witness was sought: not modelled: the forward pass of " + described.title);
  EXPECT_FALSE(names_kind(comparison, "wrong_reader"));
}

TEST(RewriteCompare, ValuesThatAreNotFiniteDiffer) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const char* name : {"transformer.h.0.attn.c_attn.weight", "transformer.h.0.attn.c_attn.bias",
                           "transformer.h.0.attn.c_proj.weight", "transformer.h.0.attn.c_proj.bias",
                           "transformer.h.0.ln_1.weight", "transformer.h.0.ln_1.bias"}) {
    for (const double value : {nan, infinity}) {
      const auto breaks = [&](Copy& copy) { values_of(copy, name)[0] = value; };
      const Comparison comparison = compared_with("gpt2", breaks);
      EXPECT_EQ(comparison.agreement, Agreement::different) << name << " " << value;
      for (const NormComparison& norm : comparison.norms) {
        EXPECT_TRUE(std::isfinite(norm.gain_change) && std::isfinite(norm.gain_cosine)) << name;
        EXPECT_TRUE(std::isfinite(norm.bias_change)) << name;
        for (const ReaderComparison& reader : norm.readers) {
          EXPECT_TRUE(std::isfinite(reader.composite) && std::isfinite(reader.bias)) << name;
        }
      }
      const Scratch scratch;
      Copy copy(fixture("gpt2"));
      breaks(copy);
      const files::Checkpoint broken = copy.open(scratch / "in");
      const Model described = models::describe(broken);
      EXPECT_EQ(compare(broken, described, broken, described).agreement, Agreement::same) << name;
      const files::Checkpoint whole(fixture("gpt2"));
      EXPECT_EQ(compare(broken, described, whole, described).agreement, Agreement::different) << name;
      // A bias of the norm that is not finite reaches every output.
      if (std::string(name) == "transformer.h.0.ln_1.bias") continue;
      values_of(copy, name)[1] += 1.0;
      const files::Checkpoint changed = copy.open(scratch / "changed");
      EXPECT_EQ(compare(broken, described, changed, described).agreement, Agreement::undecided)
          << name << " " << value << ": beside it";
    }
  }
}

}  // namespace
}  // namespace normscope::rewrite
