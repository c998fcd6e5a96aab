#include "recipe.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <list>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/files/json_value.hpp>
#include <normscope/files/safetensors.hpp>

#include "matrix.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using files::NewTensor;
using files::Tensor;
using RecipeJson = nlohmann::ordered_json;

constexpr const char* recipe_schema = "normscope.undo-recipe/2";
/// The schema of version 0.1.0, which had no checksums.
constexpr const char* unchecked_schema = "normscope.undo-recipe/1";
constexpr const char* digest_name = "sha256";
constexpr std::array changes = {Change::scale_inputs,    Change::center_outputs,  Change::center,
                                Change::add_folded_bias, Change::neutral_gain,    Change::zero,
                                Change::divide_by_gain,  Change::divide_by_scale, Change::rotate_inputs,
                                Change::rotate_outputs,  Change::rotate};

std::string part_name(std::size_t edit, const char* what) { return fmt::format("edit.{}.{}", edit, what); }
std::string rotation_name(std::size_t rotation) { return fmt::format("rotation.{}", rotation); }
std::string factors_name(std::size_t norm) { return fmt::format("norm.{}.factors", norm); }

RecipeJson edit_json(const UndoEdit& edit) {
  return {{"change", to_string(edit.change)},
          {"tensor", edit.slice.tensor},
          {"index", edit.slice.index ? RecipeJson(*edit.slice.index) : RecipeJson(nullptr)},
          {"offset", edit.slice.offset},
          {"count", edit.slice.count},
          {"out_in", edit.layout == models::Layout::out_in},
          {"in", edit.in},
          {"stored_out", edit.stored_out},
          {"norm", edit.norm ? RecipeJson(*edit.norm) : RecipeJson(nullptr)},
          {"rotation", edit.rotation ? RecipeJson(*edit.rotation) : RecipeJson(nullptr)},
          {"roundings", edit.part.roundings}};
}

/// Reads a recipe without trusting any of its bytes.
class RecipeReader {
 public:
  explicit RecipeReader(const fs::path& path)
      : where_(path.string()),
        file_(path),
        contents_(files::parse_safetensors(file_.bytes(), "rewrite: " + where_)) {}

  Recipe read() {
    const std::string text = string_of(array("recipe", Dtype::U8));
    const nlohmann::json json = files::read_json(text).value_or(nlohmann::json());
    if (json.is_object() && json.value("schema", nlohmann::json()) == unchecked_schema) {
      fail(
          "has no checksums, as the recipes of normscope 0.1.0; that version undoes it, without noticing "
          "changed bytes");
    }
    expect_unchanged();
    if (!json.is_object() || json.value("schema", nlohmann::json()) != recipe_schema) {
      fail(fmt::format("is no recipe of a rewrite, expected the schema {}", recipe_schema));
    }
    try {
      return read(json);
    } catch (const nlohmann::json::exception&) {
      fail("its recipe lacks a field, or has one of another type");
    }
  }

 private:
  void expect_unchanged() const {
    std::map<std::string, std::span<const std::byte>> arrays;
    for (const Tensor& tensor : contents_.tensors) {
      if (tensor.name != digest_name) arrays.emplace(tensor.name, tensor.bytes.memory());
    }
    const Digest digest = digest_of_arrays(arrays);
    const std::span<const std::byte> stated = array(digest_name, Dtype::U8).bytes.memory();
    if (!std::equal(stated.begin(), stated.end(), digest.begin(), digest.end())) {
      fail("has been changed since the rewrite wrote it: its bytes have another SHA-256 than it states");
    }
  }

  Recipe read(const nlohmann::json& json) {
    Recipe recipe;
    recipe.id = json.at("id").get<std::string>();
    recipe.weights = json.at("weights").get<std::vector<std::uint64_t>>();
    if (!json.at("added_head").is_null()) recipe.added_head = json.at("added_head").get<std::string>();
    for (const auto& [key, value] : json.at("metadata").items()) {
      recipe.metadata[key] = value.get<std::string>();
    }
    for (const auto& name : json.at("files")) {
      const auto file = name.get<std::string>();
      if (file.empty() || file.find('/') != std::string::npos || file == "." || file == "..") {
        fail("a name of its files is none");
      }
      recipe.files[file] = string_of(array("file." + file, Dtype::U8));
    }
    for (const auto& width : json.at("rotations")) {
      const Tensor& stored = array(rotation_name(recipe.rotations.size()), Dtype::F64);
      recipe.rotations.push_back(std::make_shared<const Rotation>(
          Rotation::from_numbers(numbers(stored), width.get<std::size_t>())));
    }
    for (const auto& item : json.at("edits")) recipe.edits.push_back(read_edit(item, recipe));
    return recipe;
  }

  UndoEdit read_edit(const nlohmann::json& item, Recipe& recipe) {
    const std::size_t index = recipe.edits.size();
    UndoEdit edit;
    const auto change = item.at("change").get<std::string>();
    const auto* const found =
        std::find_if(changes.begin(), changes.end(), [&](Change c) { return change == to_string(c); });
    if (found == changes.end()) fail("an edit of it is not known");
    edit.change = *found;
    edit.slice.tensor = item.at("tensor").get<std::string>();
    if (!item.at("index").is_null()) edit.slice.index = item.at("index").get<std::uint64_t>();
    edit.slice.offset = item.at("offset").get<std::uint64_t>();
    edit.slice.count = item.at("count").get<std::uint64_t>();
    edit.layout = item.at("out_in").get<bool>() ? models::Layout::out_in : models::Layout::in_out;
    edit.in = item.at("in").get<std::uint64_t>();
    edit.stored_out = item.at("stored_out").get<std::uint64_t>();
    edit.part.roundings = item.at("roundings").get<double>();
    if (!edit.is_matrix()) {
      const Tensor& original = array(part_name(index, "original"), std::nullopt);
      const auto bytes = original.bytes.memory();
      edit.original.assign(bytes.begin(), bytes.end());
      return edit;
    }
    if (edit.in == 0 || edit.stored_out != edit.slice.count / edit.in || edit.slice.count % edit.in != 0) {
      fail("an edit of it has another size than its matrix");
    }
    const bool reads = edit.change == Change::scale_inputs || edit.change == Change::rotate_inputs;
    if (edit.change == Change::rotate_inputs || edit.change == Change::rotate_outputs) {
      if (item.at("rotation").is_null()) fail("an edit of it has no rotation");
      edit.rotation = item.at("rotation").get<std::size_t>();
      if (*edit.rotation >= recipe.rotations.size()) fail("an edit of it has a rotation that is not there");
      expect_size(recipe.rotations[*edit.rotation]->width(), reads ? edit.in : edit.stored_out);
    }
    if (!reads) {
      if (edit.change == Change::rotate_outputs && find(part_name(index, "means")) == nullptr) return edit;
      edit.part.means = numbers(array(part_name(index, "means"), Dtype::F64));
      expect_size(edit.part.means.size(), edit.in);
      return edit;
    }
    if (item.at("norm").is_null()) fail("an edit of it has no norm");
    edit.norm = item.at("norm").get<std::size_t>();
    if (!recipe.factors.contains(*edit.norm)) {
      recipe.factors[*edit.norm] = numbers(array(factors_name(*edit.norm), Dtype::F64));
    }
    expect_size(recipe.factors[*edit.norm].size(), edit.in);
    if (find(part_name(index, "at")) != nullptr) {
      const auto bytes = array(part_name(index, "at"), Dtype::U64).bytes.memory();
      edit.part.at.resize(bytes.size() / sizeof(std::uint64_t));
      std::memcpy(edit.part.at.data(), bytes.data(), bytes.size());
      const auto values = array(part_name(index, "values"), Dtype::U8).bytes.memory();
      edit.part.values.assign(values.begin(), values.end());
    }
    for (std::size_t i = 0; i < edit.part.at.size(); ++i) {
      const bool ascends = i == 0 || edit.part.at[i - 1] < edit.part.at[i];
      if (!ascends || edit.part.at[i] >= edit.slice.count) fail("an edit of it has an element out of order");
    }
    return edit;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::Format, fmt::format("rewrite: {}: {}", where_, what));
  }

  void expect_size(std::uint64_t size, std::uint64_t wanted) const {
    if (size != wanted) fail(fmt::format("an array has {} elements, expected {}", size, wanted));
  }

  [[nodiscard]] const Tensor* find(const std::string& name) const {
    const auto found = std::lower_bound(contents_.tensors.begin(), contents_.tensors.end(), name,
                                        [](const Tensor& t, const std::string& n) { return t.name < n; });
    return found == contents_.tensors.end() || found->name != name ? nullptr : &*found;
  }

  [[nodiscard]] const Tensor& array(const std::string& name, std::optional<Dtype> dtype) const {
    const Tensor* const found = find(name);
    if (found == nullptr) fail(fmt::format("its array {} is missing", name));
    if (dtype && found->dtype != *dtype) fail(fmt::format("its array {} has another type", name));
    return *found;
  }

  static std::vector<double> numbers(const Tensor& tensor) { return files::read(tensor); }
  static std::string string_of(const Tensor& tensor) {
    const auto bytes = tensor.bytes.memory();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string where_;
  MappedFile file_;
  files::SafetensorsContents contents_;
};

}  // namespace

fs::path recipe_beside(const fs::path& weights, bool is_folder) {
  return is_folder ? weights / "rewrite.undo" : fs::path(weights.string() + ".rewrite.undo");
}

std::string plan_id(const files::Checkpoint& checkpoint, const Plan& plan) {
  Sha256 hash;
  const auto add = [&](const std::string& text) {
    const std::string line = fmt::format("{} {}\n", text.size(), text);
    hash.update(std::as_bytes(std::span(line)));
  };
  add(checkpoint.config_text().value_or(""));
  for (const auto& [key, value] : checkpoint.metadata()) add(key), add(value);
  for (const Edit& edit : plan.edits) {
    add(fmt::format("{} {} {} {}", to_string(edit.change), edit.tensor, edit.from.offset, edit.from.count));
  }
  for (const NormSpec& spec : plan.specs) {
    hash.update(std::as_bytes(std::span(spec.gain)));
    hash.update(std::as_bytes(std::span(spec.bias)));
  }
  if (plan.untied) add(plan.untied->head);
  for (const RotationPlan& rotation : plan.rotations) {
    if (!rotation.rotation) continue;
    const std::vector<double> numbers = rotation.rotation->numbers();
    hash.update(std::as_bytes(std::span(numbers)));
  }
  return to_hex(hash.finish()).substr(0, 16);
}

Recipe make_recipe(const files::Checkpoint& checkpoint, const Plan& plan, std::vector<UndoPart> parts) {
  Recipe recipe;
  recipe.id = plan_id(checkpoint, plan);
  if (plan.untied && plan.untied->bytes > 0) recipe.added_head = plan.untied->head;
  recipe.metadata = checkpoint.metadata();
  for (const Edit& edit : plan.edits) {
    UndoEdit undo;
    undo.change = edit.change;
    undo.slice = edit.from;
    undo.slice.tensor = edit.tensor;
    if (undo.is_matrix()) {
      undo.layout = edit.map.layout;
      undo.in = edit.map.in;
      undo.stored_out = edit.map.stored_out;
    } else {
      const files::Tensor& tensor = *checkpoint.find(edit.from.tensor);
      const std::size_t size = bits(tensor.dtype) / 8;
      std::vector<std::byte> buffer;
      const auto bytes = tensor.bytes.part(edit.from.offset * size, edit.from.count * size).fetch(buffer);
      undo.original.assign(bytes.begin(), bytes.end());
    }
    if (edit.rotation && undo.is_matrix()) {
      const auto found = std::find(recipe.rotations.begin(), recipe.rotations.end(), edit.rotation);
      undo.rotation = static_cast<std::size_t>(found - recipe.rotations.begin());
      if (found == recipe.rotations.end()) recipe.rotations.push_back(edit.rotation);
    }
    if (edit.change == Change::scale_inputs || edit.change == Change::rotate_inputs) {
      undo.norm = edit.norm;
      std::vector<double>& factors = recipe.factors[*edit.norm];
      factors.resize(edit.map.in);
      for (std::size_t j = 0; j < factors.size(); ++j) factors[j] = plan.specs[*edit.norm].gain_at(j);
    }
    recipe.edits.push_back(std::move(undo));
  }
  for (UndoPart& part : parts) {
    UndoEdit& edit = recipe.edits[part.edit];
    edit.part = std::move(part);
  }
  return recipe;
}

Digest digest_of_arrays(const std::map<std::string, std::span<const std::byte>>& arrays) {
  Sha256 hash;
  for (const auto& [name, bytes] : arrays) {
    const std::string line = fmt::format("{} {} {}\n", name.size(), name, bytes.size());
    hash.update(std::as_bytes(std::span(line)));
    hash.update(bytes);
  }
  return hash.finish();
}

void write_recipe(const fs::path& path, const Recipe& recipe) {
  RecipeJson json = {{"schema", recipe_schema},
                     {"id", recipe.id},
                     {"weights", recipe.weights},
                     {"added_head", recipe.added_head ? RecipeJson(*recipe.added_head) : RecipeJson(nullptr)},
                     {"metadata", RecipeJson::object()},
                     {"files", RecipeJson::array()},
                     {"rotations", RecipeJson::array()},
                     {"edits", RecipeJson::array()}};
  std::vector<NewTensor> tensors;
  const auto add = [&](const std::string& name, Dtype dtype, std::span<const std::byte> bytes) {
    tensors.push_back({name, dtype, {bytes.size() * 8 / bits(dtype)}, bytes});
  };
  for (const auto& [key, value] : recipe.metadata) json["metadata"][key] = value;
  for (const auto& [name, text] : recipe.files) {
    json["files"].push_back(name);
    add("file." + name, Dtype::U8, std::as_bytes(std::span(text)));
  }
  for (const auto& [norm, factors] : recipe.factors) {
    add(factors_name(norm), Dtype::F64, std::as_bytes(std::span(factors)));
  }
  std::list<std::vector<double>> rotations;
  for (const auto& rotation : recipe.rotations) {
    rotations.push_back(rotation->numbers());
    add(rotation_name(json["rotations"].size()), Dtype::F64, std::as_bytes(std::span(rotations.back())));
    json["rotations"].push_back(rotation->width());
  }
  for (std::size_t i = 0; i < recipe.edits.size(); ++i) {
    const UndoEdit& edit = recipe.edits[i];
    json["edits"].push_back(edit_json(edit));
    if (!edit.is_matrix()) add(part_name(i, "original"), Dtype::U8, edit.original);
    if (!edit.part.means.empty()) {
      add(part_name(i, "means"), Dtype::F64, std::as_bytes(std::span(edit.part.means)));
    }
    if (edit.part.at.empty()) continue;
    add(part_name(i, "at"), Dtype::U64, std::as_bytes(std::span(edit.part.at)));
    add(part_name(i, "values"), Dtype::U8, edit.part.values);
  }
  const std::string text = json.dump();
  add("recipe", Dtype::U8, std::as_bytes(std::span(text)));
  std::map<std::string, std::span<const std::byte>> arrays;
  for (const NewTensor& tensor : tensors) arrays.emplace(tensor.name, tensor.bytes);
  const Digest digest = digest_of_arrays(arrays);
  add(digest_name, Dtype::U8, digest);
  files::write_safetensors(path, tensors);
}

Recipe read_recipe(const fs::path& path) { return RecipeReader(path).read(); }

}  // namespace normscope::rewrite
