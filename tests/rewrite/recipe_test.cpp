#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>

#include "../../src/rewrite/recipe.hpp"
#include "rewrite/copy.hpp"
#include "rewrite/stored_parts.hpp"
#include "support/files.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using test::Copy;
using test::error_of;
using test::fixture;
using test::parts_of;
using test::Rewritten;
using test::Scratch;
using test::StoredParts;

/// The recipe of a rewritten folder, to change and to write again.
class RecipeFile {
 public:
  explicit RecipeFile(const fs::path& folder) : path_(folder / "rewrite.undo") {
    const Scratch scratch;
    fs::copy_file(path_, scratch / "recipe.safetensors");
    arrays = parts_of(files::Checkpoint(scratch / "recipe.safetensors"));
    const auto& text = arrays.tensors.at("recipe").bytes;
    json = nlohmann::json::parse(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  }

  void save() {
    set_text("recipe", json.dump());
    arrays.tensors.erase("sha256");
    std::map<std::string, std::span<const std::byte>> bytes;
    for (const auto& [name, part] : arrays.tensors) bytes.emplace(name, part.bytes);
    const Digest digest = digest_of_arrays(bytes);
    arrays.tensors["sha256"] = {Dtype::U8, {digest.size()}, {digest.begin(), digest.end()}};
    arrays.write(path_);
  }
  void set_text(const std::string& name, const std::string& text) {
    StoredParts::Part& part = arrays.tensors[name];
    part = {Dtype::U8, {text.size()}, {}};
    part.bytes.assign(test::as_bytes(text).begin(), test::as_bytes(text).end());
  }
  template <typename Number>
  void set_numbers(const std::string& name, Dtype dtype, const std::vector<Number>& numbers) {
    StoredParts::Part& part = arrays.tensors[name];
    part = {dtype, {numbers.size()}, std::vector<std::byte>(numbers.size() * sizeof(Number))};
    std::memcpy(part.bytes.data(), numbers.data(), part.bytes.size());
  }
  /// The index of the first edit of that kind.
  [[nodiscard]] std::size_t first(const std::string& change) const {
    for (std::size_t i = 0; i < json.at("edits").size(); ++i) {
      if (json["edits"][i]["change"] == change) return i;
    }
    ADD_FAILURE() << change;
    return 0;
  }
  nlohmann::json& edit(const std::string& change) { return json["edits"][first(change)]; }
  [[nodiscard]] std::string array_of(const std::string& change, const std::string& what) const {
    return "edit." + std::to_string(first(change)) + "." + what;
  }

  StoredParts arrays;
  nlohmann::json json;

 private:
  fs::path path_;
};

/// A rewritten model, and what undoing it says after a change of its recipe.
struct RewrittenModel {
  explicit RewrittenModel(const Options& options)
      : rewritten(files::Checkpoint(fixture("gpt2")), options, scratch / "out"),
        whole(test::text_of(scratch / "out/rewrite.undo")) {}

  std::string refusal(const std::function<void(RecipeFile&)>& change, ErrorCode code = ErrorCode::Format) {
    test::put(scratch / "out/rewrite.undo", whole);
    RecipeFile file(scratch / "out");
    change(file);
    file.save();
    const std::string text =
        error_of(code, [&] { static_cast<void>(undo(rewritten.output, scratch / "back")); });
    EXPECT_FALSE(fs::exists(scratch / "back"));
    return text;
  }

  Scratch scratch;
  Rewritten rewritten;
  std::string whole;
};

const Options without_rotation{.fold_gains = true, .center = true, .untie = true};
const Options with_rotation{
    .fold_gains = true, .center = true, .untie = true, .rotation = RotationRequest{3, nullptr}};

testing::AssertionResult ends_with(const std::string& text, const std::string& end) {
  if (text.ends_with(end)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not end with \"" << end << "\"";
}

TEST(RewriteRecipe, IsRefusedWithoutItsSchemaOrAField) {
  RewrittenModel model(without_rotation);
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.json = 3; }),
                        "is no recipe of a rewrite, expected the schema normscope.undo-recipe/2"));
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.json["schema"] = "another"; }),
                        "is no recipe of a rewrite, expected the schema normscope.undo-recipe/2"));
  EXPECT_TRUE(ends_with(
      model.refusal([](RecipeFile& file) { file.json["schema"] = "normscope.undo-recipe/1"; }),
      "has no checksums, as the recipes of normscope 0.1.0; that version undoes it, without noticing "
      "changed bytes"));
  const char* const lacks = "its recipe lacks a field, or has one of another type";
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.json.erase("id"); }), lacks));
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.edit("zero")["count"] = "3"; }), lacks));
}

TEST(RewriteRecipe, FilesHavePlainNames) {
  RewrittenModel model(without_rotation);
  for (const char* name : {"", ".", "..", "../config.json", "/etc/passwd"}) {
    EXPECT_TRUE(ends_with(model.refusal([&](RecipeFile& file) {
      file.json["files"] = {name};
      file.set_text(std::string("file.") + name, "text");
    }),
                          "a name of its files is none"))
        << name;
  }
}

TEST(RewriteRecipe, EditsHaveTheSizesOfTheirMatrices) {
  RewrittenModel model(without_rotation);
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.edit("zero")["change"] = "twist"; }),
                        "an edit of it is not known"));
  const char* const other_size = "an edit of it has another size than its matrix";
  for (const char* change : {"scale_inputs", "center_outputs"}) {
    EXPECT_TRUE(ends_with(model.refusal([&](RecipeFile& file) { file.edit(change)["in"] = 0; }), other_size));
    EXPECT_TRUE(
        ends_with(model.refusal([&](RecipeFile& file) { file.edit(change)["stored_out"] = 7; }), other_size));
    EXPECT_TRUE(ends_with(model.refusal([&](RecipeFile& file) {
      auto& count = file.edit(change)["count"];
      count = count.get<std::uint64_t>() + 1;
    }),
                          other_size));
  }
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.edit("scale_inputs")["norm"] = nullptr; }),
                        "an edit of it has no norm"));
}

TEST(RewriteRecipe, ArraysHaveTheirTypesAndSizes) {
  RewrittenModel model(with_rotation);
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.arrays.tensors.erase("rotation.0"); }),
                        "its array rotation.0 is missing"));
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.arrays.tensors.erase("norm.0.factors"); }),
                        "its array norm.0.factors is missing"));
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.set_text("norm.0.factors", "text"); }),
                        "its array norm.0.factors has another type"));
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) {
    file.set_numbers("norm.0.factors", Dtype::F64, std::vector<double>(3));
  }),
                        "an array has 3 elements, expected 18"));
  RewrittenModel centered(without_rotation);
  EXPECT_TRUE(ends_with(centered.refusal([](RecipeFile& file) {
    file.set_numbers(file.array_of("center_outputs", "means"), Dtype::F64, std::vector<double>(3));
  }),
                        "an array has 3 elements, expected 29"));
}

TEST(RewriteRecipe, RotatedMatricesHaveTheirRotation) {
  RewrittenModel model(with_rotation);
  for (const char* change : {"rotate_inputs", "rotate_outputs"}) {
    EXPECT_TRUE(ends_with(model.refusal([&](RecipeFile& file) { file.edit(change)["rotation"] = nullptr; }),
                          "an edit of it has no rotation"));
    EXPECT_TRUE(ends_with(model.refusal([&](RecipeFile& file) { file.edit(change)["rotation"] = 1; }),
                          "an edit of it has a rotation that is not there"));
  }
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) {
    file.json["rotations"] = {3};
    file.set_numbers("rotation.0", Dtype::F64, std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1});
  }),
                        "an array has 3 elements, expected 18"));
}

// What reads no norm has no factors, whatever the recipe says.
TEST(RewriteRecipe, ANormOfAWriterIsIgnored) {
  for (const Options& options : {without_rotation, with_rotation}) {
    RewrittenModel model(options);
    const char* const change = options.rotation ? "rotate_outputs" : "center_outputs";
    static_cast<void>(undo(model.rewritten.output, model.scratch / "whole"));
    for (const int norm : {0, 99}) {
      test::put(model.scratch / "out/rewrite.undo", model.whole);
      RecipeFile file(model.scratch / "out");
      file.edit(change)["norm"] = norm;
      file.save();
      const fs::path back = model.scratch / ("back." + std::to_string(norm));
      static_cast<void>(undo(model.rewritten.output, back));
      EXPECT_EQ(test::text_of(back / "model.safetensors"),
                test::text_of(model.scratch / "whole/model.safetensors"));
    }
  }
}

TEST(RewriteRecipe, KeptElementsAscendInTheirMatrix) {
  RewrittenModel model(without_rotation);
  const auto refusal = [&](const std::vector<std::uint64_t>& at) {
    return model.refusal([&](RecipeFile& file) {
      file.set_numbers(file.array_of("scale_inputs", "at"), Dtype::U64, at);
      file.set_text(file.array_of("scale_inputs", "values"), std::string(4 * at.size(), 'v'));
    });
  };
  const char* const out_of_order = "an edit of it has an element out of order";
  EXPECT_TRUE(ends_with(refusal({5, 5}), out_of_order));
  EXPECT_TRUE(ends_with(refusal({5, 4}), out_of_order));
  EXPECT_TRUE(ends_with(refusal({18 * 54}), out_of_order));
  EXPECT_TRUE(ends_with(model.refusal([&](RecipeFile& file) {
    file.set_numbers<std::uint64_t>(file.array_of("scale_inputs", "at"), Dtype::U64, {5, 6});
    file.set_text(file.array_of("scale_inputs", "values"), "7 bytes");
  }),
                        "does not fit tensor \"transformer.h.0.attn.c_attn.weight\""));
}

TEST(RewriteRecipe, EditsFitTheTensorsOfTheFile) {
  RewrittenModel model(without_rotation);
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.edit("zero")["tensor"] = "nope"; }),
                        "tensor \"nope\" is missing or has another type"));
  const char* const misfits = "does not fit tensor \"transformer.h.0.ln_1.bias\"";
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.edit("zero")["offset"] = 1; }), misfits));
  EXPECT_TRUE(
      ends_with(model.refusal([](RecipeFile& file) { file.edit("zero")["offset"] = 1000; }), misfits));
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) { file.edit("zero")["count"] = 17; }), misfits));
  EXPECT_TRUE(ends_with(
      model.refusal([](RecipeFile& file) { file.set_text(file.array_of("zero", "original"), "3 b"); }),
      misfits));
  EXPECT_TRUE(ends_with(model.refusal([](RecipeFile& file) {
    file.edit("neutral_gain")["tensor"] = "transformer.h.0.ln_1.bias";
  }),
                        misfits))
      << "two edits of one place";
}

TEST(RewriteRecipe, ATensorOfAnotherTypeIsNotRestored) {
  const Scratch scratch;
  const Rewritten rewritten(files::Checkpoint(fixture("llama")), {.fold_gains = true}, scratch / "out");
  StoredParts parts = parts_of(rewritten.output);
  parts.tensors.at("model.norm.weight") = {Dtype::I32, {16}, std::vector<std::byte>(64)};
  parts.write(scratch / "out/model.safetensors");
  const files::Checkpoint other(scratch / "out");
  EXPECT_TRUE(
      ends_with(error_of(ErrorCode::Format, [&] { static_cast<void>(undo(other, scratch / "back")); }),
                "tensor \"model.norm.weight\" is missing or has another type"));
}

TEST(RewriteRecipe, IsOfTheFileThatNamesIt) {
  const Scratch scratch;
  const Rewritten rewritten(files::Checkpoint(fixture("llama")), {.fold_gains = true}, scratch / "out");
  StoredParts parts = parts_of(rewritten.output);
  const auto refusal = [&] {
    parts.write(scratch / "out/model.safetensors");
    const files::Checkpoint other(scratch / "out");
    return error_of(ErrorCode::Argument, [&] { static_cast<void>(undo(other, scratch / "back")); });
  };
  for (const char* marker : {"[]", "no JSON"}) {
    parts.metadata[marker_key] = marker;
    EXPECT_TRUE(ends_with(refusal(), "whose metadata name none")) << marker;
  }
  parts.metadata.erase(marker_key);
  EXPECT_TRUE(ends_with(refusal(), "whose metadata name none"));
  parts.metadata[marker_key] = "{\"undo\": \"0123\"}";
  EXPECT_TRUE(ends_with(refusal(), "whose metadata name \"0123\""));
}

}  // namespace
}  // namespace normscope::rewrite
