#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "rewrite/copy.hpp"
#include "support/files.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using test::Copy;
using test::error_of;
using test::fixture;
using test::Rewritten;
using test::Scratch;

/// Whether a restored tensor is bitwise equal, or its largest error relative to the bound of the recipe.
void expect_restored(const files::Tensor& old, const files::Tensor& rewritten, const files::Tensor& now,
                     const Edit& edit, const Plan& plan, double roundings) {
  const std::vector<double> before = read(old, edit.from.offset, edit.from.count);
  const std::vector<double> between = read(rewritten, edit.from.offset, edit.from.count);
  const std::vector<double> after = read(now, edit.from.offset, edit.from.count);
  const double rounding = now.dtype == Dtype::F64   ? 0x1p-53
                          : now.dtype == Dtype::F32 ? 0x1p-24
                          : now.dtype == Dtype::F16 ? 0x1p-11
                                                    : 0x1p-8;
  const double smallest = now.dtype == Dtype::F16 ? 0x1p-24 : 0x1p-133;
  // A rotation keeps the length of what an output reads or an input writes.
  const bool is_rotated = edit.change == Change::rotate_inputs || edit.change == Change::rotate_outputs;
  const bool by_row = (edit.map.layout == models::Layout::out_in) == (edit.change == Change::rotate_inputs);
  const std::size_t columns = edit.map.layout == models::Layout::out_in ? edit.map.in : edit.map.stored_out;
  std::vector<double> squares(is_rotated ? before.size() : 0);
  for (std::size_t at = 0; at < squares.size(); ++at) {
    squares[by_row ? at / columns : at % columns] += before[at] * before[at];
  }
  for (std::size_t at = 0; at < before.size(); ++at) {
    double size = std::abs(before[at]);
    if (is_rotated) size = std::sqrt(squares[by_row ? at / columns : at % columns]);
    if (edit.change == Change::center_outputs) size = std::max(size, std::abs(between[at]));
    EXPECT_LE(std::abs(after[at] - before[at]), roundings * (rounding * size + smallest))
        << now.name << " " << at << " of " << plan.edits.size();
  }
}

void expect_undone(const files::Checkpoint& source, const Rewritten& rewritten, const fs::path& to) {
  const Restoration restoration = undo(rewritten.output, to);
  const files::Checkpoint back(to);
  ASSERT_EQ(back.tensors().size(), source.tensors().size());
  EXPECT_EQ(back.metadata(), source.metadata());
  EXPECT_EQ(back.config_text(), source.config_text());
  std::size_t exact = 0;
  for (const files::Tensor& tensor : source.tensors()) {
    const files::Tensor* const now = back.find(tensor.name);
    ASSERT_NE(now, nullptr) << tensor.name;
    ASSERT_EQ(now->dtype, tensor.dtype);
    double roundings = 0.0;
    for (const Edit& edit : rewritten.plan.edits) {
      if (edit.tensor != tensor.name) continue;
      models::Slice slice = edit.from;
      slice.tensor = edit.tensor;
      const auto found = std::find_if(
          restoration.tensors.begin(), restoration.tensors.end(),
          [&](const Restored& r) { return r.tensor == slice.selector() && r.change == edit.change; });
      ASSERT_NE(found, restoration.tensors.end()) << tensor.name;
      for (const Certificate& certificate : rewritten.result.certificates) {
        if (certificate.tensor == slice.selector() && certificate.change == edit.change) {
          EXPECT_EQ(certificate.undo_roundings, found->roundings);
        }
      }
      roundings = std::max(roundings, found->roundings);
      expect_restored(tensor, *rewritten.output.find(tensor.name), *now, edit, rewritten.plan,
                      found->roundings);
    }
    if (roundings == 0.0) {
      EXPECT_TRUE(files::equal(tensor.bytes, now->bytes)) << tensor.name;
      ++exact;
    }
  }
  EXPECT_GT(exact, 1U);
}

TEST(RewriteUndo, RestoresEveryTensorWithinItsBound) {
  struct Case {
    const char* name;
    Options options;
  };
  const RotationRequest rotation{4, nullptr};
  const Options all{.fold_gains = true, .center = true, .untie = true, .rotation = rotation};
  const Options rotated{.fold_gains = true, .rotation = rotation};
  for (const Case& item :
       {Case{"gpt2", all}, Case{"llama", rotated}, Case{"mixtral", rotated}, Case{"stablelm", rotated},
        Case{"gpt2", {.fold_gains = true, .center = true, .untie = true}}, Case{"gpt2", {.fold_gains = true}},
        Case{"gpt_neox", {.center = true}}, Case{"nemotron", {.fold_gains = true}},
        Case{"falcon_40b", {.fold_gains = true}}, Case{"gpt_oss", {.fold_gains = true}},
        Case{"gemma2", {.fold_gains = true}}, Case{"stablelm", {.fold_gains = true, .center = true}},
        Case{"mixtral", {.migrate = true}}, Case{"nemotron", {.migrate = true}}}) {
    for (const Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16}) {
      const Scratch scratch;
      const files::Checkpoint source = Copy(fixture(item.name)).stored_as(dtype).open(scratch / "in");
      const Rewritten rewritten(source, item.options, scratch / "out");
      EXPECT_EQ(rewritten.result.recipe, "rewrite.undo");
      expect_undone(source, rewritten, scratch / "back");
      EXPECT_FALSE(fs::exists(scratch / "back/rewrite.undo"));
    }
  }
}

// Powers of two are undone bit for bit.
TEST(RewriteUndo, MigratedScalesComeBackBitForBit) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("llama")).stored_as(Dtype::BF16).open(scratch / "in", 3);
  const Rewritten rewritten(source, {.migrate = true}, scratch / "out");
  ASSERT_GT(rewritten.result.certificates.size(), 10U);
  for (const Restored& tensor : undo(rewritten.output, scratch / "back").tensors) {
    EXPECT_EQ(tensor.roundings, 0.0) << tensor.tensor;
  }
  for (std::size_t shard = 0; shard < 3; ++shard) {
    const std::string name = Copy::file_name(shard, 3);
    EXPECT_EQ(test::text_of(scratch / "back" / name), test::text_of(scratch / "in" / name));
  }
}

// Values that a gain of 0 or an underflow loses are in the recipe.
TEST(RewriteUndo, ValuesThatAGainLosesAreKept) {
  const Scratch scratch;
  for (const char* name : {"llama", "gpt2"}) {
    Copy copy(fixture(name));
    copy.stored_as(Dtype::F16);
    const bool is_llama = std::string(name) == "llama";
    std::vector<double>& gain =
        copy.tensors.at(is_llama ? "model.layers.0.input_layernorm.weight" : "transformer.h.0.ln_1.weight")
            .values;
    gain[3] = 0.0;
    gain[5] = 0x1p-22;
    gain[6] = -0x1.8p-13;
    copy.tensors
        .at(is_llama ? "model.layers.0.self_attn.q_proj.weight" : "transformer.h.0.attn.c_attn.weight")
        .values[3] = -0.0;
    const std::string in = std::string("in_") + name;
    const files::Checkpoint source = copy.open(scratch / in);
    const Rewritten rewritten(source, {.fold_gains = true}, scratch / ("out_" + in));
    expect_undone(source, rewritten, scratch / ("back_" + in));
  }
}

// Streams are rotated along the rows of the file and across them.
TEST(RewriteUndo, ValuesThatAGainOfZeroLosesAreKeptBesideARotation) {
  for (const char* name : {"llama", "gpt2"}) {
    const Scratch scratch;
    Copy copy(fixture(name));
    const bool is_llama = std::string(name) == "llama";
    copy.tensors.at(is_llama ? "model.layers.0.input_layernorm.weight" : "transformer.h.0.ln_1.weight")
        .values[3] = 0.0;
    const files::Checkpoint source = copy.open(scratch / "in");
    const Rewritten rewritten(
        source, {.fold_gains = true, .untie = !is_llama, .rotation = RotationRequest{6, nullptr}},
        scratch / "out");
    expect_undone(source, rewritten, scratch / "back");
    const files::Checkpoint back(scratch / "back");
    const char* const reader =
        is_llama ? "model.layers.0.self_attn.q_proj.weight" : "transformer.h.0.attn.c_attn.weight";
    const std::vector<double> before = read(*source.find(reader));
    const std::vector<double> after = read(*back.find(reader));
    for (std::size_t i = 0; i < 24; ++i) {
      const std::size_t at = is_llama ? i * 16 + 3 : 3 * 54 + i;
      EXPECT_EQ(after[at], before[at]) << name << " " << i;
    }
  }
}

// Matrices that are written in several blocks.
TEST(RewriteUndo, ValuesThatAGainLosesAreKeptInEveryBlock) {
  const Scratch scratch;
  Copy copy(fixture("llama"));
  constexpr std::size_t hidden = 10000;
  const std::string old = "\"intermediate_size\": 20";
  copy.config.replace(copy.config.find(old), old.size(), "\"intermediate_size\": " + std::to_string(hidden));
  Random random(3);
  for (const char* layer : {"0", "1"}) {
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      auto& tensor = copy.tensors.at(std::string("model.layers.") + layer + ".mlp." + name + ".weight");
      const bool writes = std::string(name) == "down_proj";
      tensor.shape = {writes ? 16 : hidden, writes ? hidden : 16};
      tensor.values.resize(16 * hidden);
      for (double& value : tensor.values) value = 0.02 * random.normal();
    }
  }
  for (double& gain : copy.tensors.at("model.layers.0.post_attention_layernorm.weight").values) gain = 2.0;
  copy.tensors.at("model.layers.0.post_attention_layernorm.weight").values[5] = 0.0;
  const files::Checkpoint source = copy.open(scratch / "in");
  const Rewritten rewritten(source, {.fold_gains = true}, scratch / "out");
  for (const Certificate& certificate : rewritten.result.certificates) {
    if (certificate.norm == "model.layers.0.post_attention_layernorm") {
      EXPECT_EQ(certificate.undo_roundings, 0.0) << "powers of two and kept values";
    }
  }
  static_cast<void>(undo(rewritten.output, scratch / "back"));
  const files::Checkpoint back(scratch / "back");
  const char* const reader = "model.layers.0.mlp.up_proj.weight";
  EXPECT_TRUE(files::equal(back.find(reader)->bytes, source.find(reader)->bytes));
}

// A recipe that holds more than a few million values is as large as the weights.
TEST(RewriteUndo, WithoutARecipeNothingIsUndone) {
  const Scratch scratch;
  Copy copy(fixture("llama"));
  copy.stored_as(Dtype::BF16);
  constexpr std::size_t hidden = 66000;
  const std::string old = "\"intermediate_size\": 20";
  copy.config.replace(copy.config.find(old), old.size(), "\"intermediate_size\": " + std::to_string(hidden));
  const std::string layers = "\"num_hidden_layers\": 2";
  copy.config.replace(copy.config.find(layers), layers.size(), "\"num_hidden_layers\": 1");
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    auto& tensor = copy.tensors.at(std::string("model.layers.0.mlp.") + name + ".weight");
    const bool writes = std::string(name) == "down_proj";
    tensor.shape = {writes ? 16 : hidden, writes ? hidden : 16};
    tensor.values.assign(16 * hidden, 0.5);
  }
  std::erase_if(copy.tensors, [](const auto& item) { return item.first.starts_with("model.layers.1."); });
  for (double& gain : copy.tensors.at("model.layers.0.post_attention_layernorm.weight").values) gain = 0.0;
  const files::Checkpoint source = copy.open(scratch / "in");
  std::ofstream(scratch / "in/rewrite.undo") << "of an earlier rewrite";
  const Rewritten rewritten(source, {.fold_gains = true}, scratch / "out");
  EXPECT_TRUE(rewritten.result.recipe.empty());
  EXPECT_NE(rewritten.result.not_undone.find("does not restore 2112000 values or more"), std::string::npos);
  EXPECT_FALSE(fs::exists(scratch / "out/rewrite.undo"));
  EXPECT_NE(error_of(ErrorCode::Io, [&] { static_cast<void>(undo(rewritten.output, scratch / "back")); })
                .find("without the recipe that a rewrite writes beside its weights nothing can be undone"),
            std::string::npos);
}

TEST(RewriteUndo, RewritesOneAfterTheOtherAreUndoneOneAfterTheOther) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("gpt2")).open(scratch / "in", 2);
  const Rewritten folded(source, {.fold_gains = true}, scratch / "folded");
  const Rewritten centered(folded.output, {.center = true, .untie = true}, scratch / "centered");
  expect_undone(folded.output, centered, scratch / "back");
  expect_undone(source, Rewritten(source, {.fold_gains = true}, scratch / "again"), scratch / "first");
  const files::Checkpoint back(scratch / "back");
  static_cast<void>(undo(back, scratch / "back_again"));
  EXPECT_EQ(files::Checkpoint(scratch / "back_again").metadata(), source.metadata());
  // A rewrite that changes nothing keeps the recipe of the one before.
  const Rewritten nothing(folded.output, {.fold_gains = true}, scratch / "nothing");
  EXPECT_TRUE(nothing.result.recipe.empty());
  static_cast<void>(undo(nothing.output, scratch / "back_from_nothing"));
}

TEST(RewriteUndo, RefusesRecipesThatAreMissingDamagedOrOfAnotherFile) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("gpt2")).open(scratch / "in");
  const Rewritten rewritten(source, {.fold_gains = true}, scratch / "out");
  Copy other(fixture("gpt2"));
  other.tensors.at("transformer.h.0.ln_1.weight").values[0] += 1.0;
  const Rewritten another(other.open(scratch / "in2"), {.fold_gains = true}, scratch / "out2");
  const auto refusal = [&](ErrorCode code) {
    return error_of(code, [&] { static_cast<void>(undo(rewritten.output, scratch / "back")); });
  };
  const std::string whole = test::text_of(scratch / "out/rewrite.undo");
  fs::copy_file(scratch / "out2/rewrite.undo", scratch / "out/rewrite.undo",
                fs::copy_options::overwrite_existing);
  EXPECT_NE(refusal(ErrorCode::Argument).find("recipe of another file"), std::string::npos);
  fs::remove(scratch / "out/rewrite.undo");
  EXPECT_NE(refusal(ErrorCode::Io).find("is not there"), std::string::npos);
  // Damage is an error of one line, or of bytes that mean nothing, such as spaces after the header.
  test::put(scratch / "out/rewrite.undo", whole);
  static_cast<void>(undo(rewritten.output, scratch / "whole"));
  const std::string restored = test::text_of(scratch / "whole/model.safetensors");
  Random random(11);
  for (int trial = 0; trial < 300; ++trial) {
    std::string damaged = whole;
    const std::size_t at = trial % 2 == 0 ? random.bits() % damaged.size() : random.bits() % 4000;
    damaged[at % damaged.size()] = static_cast<char>(random.bits() & 0xffU);
    if (trial % 7 == 0) damaged.resize(random.bits() % damaged.size());
    test::put(scratch / "out/rewrite.undo", damaged);
    try {
      static_cast<void>(undo(rewritten.output, scratch / "back"));
      EXPECT_EQ(test::text_of(scratch / "back/model.safetensors"), restored) << trial;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      EXPECT_FALSE(fs::exists(scratch / "back"));
    }
    fs::remove_all(scratch / "back");
  }
}

TEST(RewriteUndo, NoticesAnyChangedBitOfTheWeightsAndOfTheRecipe) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("gpt2")).open(scratch / "in", 2);
  const Rewritten rewritten(source, {.fold_gains = true}, scratch / "out");
  const auto message = [&](const fs::path& name, std::size_t at) {
    const std::string whole = test::text_of(scratch / "out" / name);
    std::string changed = whole;
    changed[at < changed.size() ? at : changed.size() - 1] ^= '\1';
    test::put(scratch / "out" / name, changed);
    const files::Checkpoint output(scratch / "out");
    const std::string text =
        error_of(ErrorCode::Format, [&] { static_cast<void>(undo(output, scratch / "back")); });
    test::put(scratch / "out" / name, whole);
    EXPECT_FALSE(fs::exists(scratch / "back"));
    return text;
  };
  for (std::size_t shard = 0; shard < 2; ++shard) {
    const std::string name = Copy::file_name(shard, 2);
    const std::size_t size = fs::file_size(scratch / "out" / name);
    for (const std::size_t at : {size - 1, size / 2, 3 * size / 4}) {
      EXPECT_NE(message(name, at).find(name + ": has been changed since the rewrite wrote it"),
                std::string::npos);
    }
  }
  EXPECT_NE(message("rewrite.undo", ~std::size_t{0}).find("rewrite.undo: has been changed"),
            std::string::npos);
  static_cast<void>(undo(rewritten.output, scratch / "back"));
}

}  // namespace
}  // namespace normscope::rewrite
