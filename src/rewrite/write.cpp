#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/json_value.hpp>
#include <normscope/files/source.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "output_files.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using files::Checkpoint;
using files::TensorHeader;

/// The tensors of one file of the output.
std::vector<TensorHeader> headers_of(const Checkpoint& checkpoint, const Plan& plan, const fs::path& file) {
  std::vector<TensorHeader> headers;
  for (const files::Tensor& tensor : checkpoint.tensors()) {
    if (checkpoint.file_of(tensor) != file) continue;
    const std::vector<std::uint64_t> shape(tensor.shape.begin(), tensor.shape.end());
    headers.push_back({std::string(tensor.name), tensor.dtype, shape});
    const bool gets_head = plan.untied && plan.untied->bytes > 0 && plan.untied->table == tensor.name;
    if (gets_head) headers.push_back({plan.untied->head, tensor.dtype, shape});
  }
  return headers;
}

/// The metadata of the output, which record the rewrite and the recipe's name.
std::map<std::string, std::string, std::less<>> metadata_of(const Checkpoint& checkpoint, const Plan& plan,
                                                            const std::string& id) {
  auto metadata = checkpoint.metadata();
  const std::string text = marker(plan);
  auto value = text.empty() ? nlohmann::ordered_json::object() : nlohmann::ordered_json::parse(text);
  if (!id.empty()) {
    value["undo"] = id;
  } else if (const auto found = metadata.find(marker_key); found != metadata.end()) {
    return metadata;  // nothing changes, so the existing entry still holds
  }
  if (!value.empty()) metadata[marker_key] = value.dump();
  return metadata;
}

/// Files of the input that have other contents in the output.
struct Replaced {
  const fs::path& from;
  Recipe& recipe;

  void add(const fs::path& file) const {
    std::error_code ignored;
    if (fs::is_regular_file(from / file, ignored)) recipe.files[file.string()] = read_text(from / file);
  }
};

/// config.json and the index of shards, if a separate head changes them.
void write_untied(const Checkpoint& checkpoint, const Plan& plan, const Replaced& replaced,
                  const fs::path& index_name, const fs::path& to, Result& result) {
  NORMSCOPE_ASSERT(checkpoint.config_text());
  const std::optional<std::string> config =
      files::with_json_flag(*checkpoint.config_text(), "tie_word_embeddings", false);
  NORMSCOPE_ASSERT(config);  // a flag that is none is refused when the model is described
  replaced.add("config.json");
  write_text(to / "config.json", *config);
  result.files.emplace_back("config.json");
  result.configuration.emplace_back("\"tie_word_embeddings\" is false");
  if (plan.untied->bytes == 0 || !fs::exists(replaced.from / index_name)) return;
  auto index = nlohmann::ordered_json::parse(read_text(replaced.from / index_name));
  index["weight_map"][plan.untied->head] = index["weight_map"][plan.untied->table];
  if (index.contains("metadata") && index["metadata"].contains("total_size") &&
      index["metadata"]["total_size"].is_number_unsigned()) {
    index["metadata"]["total_size"] =
        index["metadata"]["total_size"].get<std::uint64_t>() + plan.untied->bytes;
  }
  replaced.add(index_name);
  write_text(to / index_name, index.dump(2) + "\n");
  result.files.emplace_back(index_name);
}

/// Why the recipe would be as large as the weights; empty if it is not.
std::string why_no_recipe(const Written& written) {
  std::size_t kept = 0;
  for (const UndoPart& part : written.parts) kept += part.at.size();
  return kept <= most_kept ? std::string()
                           : fmt::format(
                                 "a division by the gain does not restore {} values or more, such as "
                                 "those that a gain of 0 made 0",
                                 kept);
}

void check_parts(const Written& written, const Plan& plan) {
  for (const UndoPart& part : written.parts) {
    if (part.edit >= plan.edits.size()) {
      throw Error(ErrorCode::Format, "rewrite: what an earlier process left is of another plan; remove it");
    }
  }
}

}  // namespace

Result write(const Checkpoint& checkpoint, const models::Model& model, const Plan& plan,
             const fs::path& output, unsigned threads, const Progress& progress, const Describe& describe,
             const std::vector<Activations>& activations) {
  expect_something(checkpoint, plan);
  const UnchangedFiles noted = files_of(checkpoint);
  const Places places(checkpoint, output);
  const bool changes = !plan.edits.empty() || plan.untied;
  const std::string id = changes ? plan_id(checkpoint, plan) : std::string();
  WorkFolder work(output, places.is_folder, run_of(checkpoint, "rewrite " + id));
  TensorWriter writer(checkpoint, model, plan, threads);
  ShardWriter shards;
  shards.headers = [&](const fs::path& file) { return headers_of(checkpoint, plan, file); };
  shards.write = [&](const TensorHeader& tensor, const Sink& sink, Written& written) {
    writer.write(tensor, sink, written);
  };
  shards.metadata = metadata_of(checkpoint, plan, id);
  for (const files::Tensor& tensor : checkpoint.tensors()) shards.total += tensor.bytes.size();
  if (plan.untied) shards.total += plan.untied->bytes;

  Written written = shards.write_all(checkpoint, places, work, progress);
  check_parts(written, plan);
  Result result;
  result.certificates = std::move(written.certificates);
  result.taken_over = shards.taken_over;
  result.files = shards.names;
  result.not_undone = why_no_recipe(written);
  if (!result.not_undone.empty()) {
    for (UndoPart& part : written.parts) part.at.clear();
  }
  Recipe recipe = make_recipe(checkpoint, plan, std::move(written.parts));
  recipe.weights = std::move(written.fingerprints);
  const std::string last = places.output.filename().string();
  const fs::path document = places.is_folder ? fs::path("rewrite.json") : fs::path(last + ".rewrite.json");
  const fs::path recipe_name = recipe_beside(places.is_folder ? "" : last, places.is_folder);
  if (places.is_folder) {
    const Replaced replaced{places.from, recipe};
    replaced.add("rewrite.json");
    replaced.add("rewrite.undo");
    if (plan.untied) write_untied(checkpoint, plan, replaced, places.index, work.files(), result);
  } else if (plan.untied) {
    result.configuration.emplace_back(
        "config.json, which is not copied for a single file, must set "
        "\"tie_word_embeddings\" to false");
  }
  if (changes && result.not_undone.empty()) {
    write_recipe(work.files() / recipe_name, recipe);
    result.recipe = recipe_name;
    result.files.push_back(recipe_name);
  }
  if (describe) result.files.push_back(document);
  if (places.is_folder) {
    std::vector<std::string> names;
    for (const fs::path& file : result.files) names.push_back(file.string());
    if (changes && result.recipe.empty()) names.push_back(recipe_name.string());
    result.not_copied = copy_small_files(places.from, work.files(), names);
  }
  if (!activations.empty()) {
    const fs::path index = work.files() / places.index;
    const fs::path opened = places.is_folder ? work.files() : work.files() / last;
    const Checkpoint after(places.is_folder && fs::exists(index) ? index : opened, files::read_file);
    result.on_rows = compare_on_rows(checkpoint, after, model, plan, activations, threads);
  }
  if (describe) write_text(work.files() / document, describe(result));
  noted.expect();
  work.commit(last);
  return result;
}

}  // namespace normscope::rewrite
