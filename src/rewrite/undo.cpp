#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/json_value.hpp>
#include <normscope/files/source.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "matrix_rewrite.hpp"
#include "output_files.hpp"
#include "planning.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using files::Checkpoint;
using files::Tensor;
using files::TensorHeader;

/// Applies the edits of a recipe backwards.
class Undoing {
 public:
  Undoing(const Checkpoint& checkpoint, Recipe recipe, fs::path source, unsigned threads)
      : checkpoint_(checkpoint), recipe_(std::move(recipe)), source_(std::move(source)), threads_(threads) {
    expect_marker();
    for (const UndoEdit& edit : recipe_.edits) {
      if (recipe_.added_head != edit.slice.tensor) edits_[edit.slice.tensor].push_back(&edit);
    }
    for (auto& [name, edits] : edits_) expect_fitting(name, edits);
  }

  /// Reads the weights once.
  ///
  /// Errors    Format if they are not those that the rewrite wrote
  void expect_unchanged() const {
    const std::vector<fs::path>& files = checkpoint_.files();
    if (recipe_.weights.size() != files.size()) {
      fail(ErrorCode::Format,
           fmt::format("is of {} files of weights, found {}", recipe_.weights.size(), files.size()));
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (fingerprint_of(files[i]) == recipe_.weights[i]) continue;
      throw Error(ErrorCode::Format, fmt::format("rewrite: {}: has been changed since the rewrite wrote it: "
                                                 "it has another checksum than {} states",
                                                 files[i].string(), source_.string()));
    }
  }

  [[nodiscard]] const Recipe& recipe() const { return recipe_; }

  [[nodiscard]] std::vector<TensorHeader> headers(const fs::path& file) const {
    std::vector<TensorHeader> headers;
    for (const Tensor& tensor : checkpoint_.tensors()) {
      if (checkpoint_.file_of(tensor) != file || recipe_.added_head == tensor.name) continue;
      headers.push_back({std::string(tensor.name), tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}});
    }
    return headers;
  }

  void write(const TensorHeader& header, const Sink& sink) const {
    const Tensor& tensor = *checkpoint_.find(header.name);
    std::uint64_t done = 0;
    if (const auto found = edits_.find(header.name); found != edits_.end()) {
      for (const UndoEdit* edit : found->second) {
        copy_elements(tensor, done, edit->slice.offset - done, sink);
        write_edit(tensor, *edit, sink);
        done = edit->slice.offset + edit->slice.count;
      }
    }
    copy_elements(tensor, done, tensor.elements() - done, sink);
  }

  [[nodiscard]] std::vector<Restored> restored() const {
    std::vector<Restored> result;
    for (const UndoEdit& edit : recipe_.edits) {
      if (recipe_.added_head == edit.slice.tensor) continue;
      const Dtype dtype = checkpoint_.find(edit.slice.tensor)->dtype;
      result.push_back(
          {edit.slice.selector(), edit.change, dtype, unit_roundoff(dtype), edit.part.roundings});
    }
    return result;
  }

 private:
  [[noreturn]] void fail(ErrorCode code, const std::string& what) const {
    throw Error(code, fmt::format("rewrite: {}: {}", source_.string(), what));
  }

  void expect_marker() const {
    const auto found = checkpoint_.metadata().find(marker_key);
    const nlohmann::json marker = files::read_json(found == checkpoint_.metadata().end() ? "" : found->second)
                                      .value_or(nlohmann::json());
    if (!marker.is_object() || marker.value("undo", nlohmann::json()) != recipe_.id) {
      fail(ErrorCode::Argument,
           fmt::format("is the recipe of another file than {}, whose metadata name {}",
                       checkpoint_.path().string(),
                       marker.is_object() ? marker.value("undo", nlohmann::json()).dump() : "none"));
    }
  }

  void expect_fitting(const std::string& name, std::vector<const UndoEdit*>& edits) const {
    std::sort(edits.begin(), edits.end(),
              [](const UndoEdit* a, const UndoEdit* b) { return a->slice.offset < b->slice.offset; });
    const Tensor* const tensor = checkpoint_.find(name);
    if (tensor == nullptr || !is_rewritable(tensor->dtype)) {
      fail(ErrorCode::Format, fmt::format("tensor {} is missing or has another type", files::quote(name)));
    }
    const std::size_t size = bits(tensor->dtype) / 8;
    std::uint64_t end = 0;
    for (const UndoEdit* edit : edits) {
      const models::Slice& slice = edit->slice;
      const bool kept = edit->is_matrix() ? edit->part.values.size() == edit->part.at.size() * size
                                          : edit->original.size() % size == 0 &&
                                                edit->original.size() / size == slice.count;
      if (slice.offset < end || slice.offset > tensor->elements() ||
          slice.count > tensor->elements() - slice.offset || !kept) {
        fail(ErrorCode::Format, fmt::format("does not fit tensor {}", files::quote(name)));
      }
      end = slice.offset + slice.count;
    }
  }

  void write_edit(const Tensor& tensor, const UndoEdit& edit, const Sink& sink) const {
    if (!edit.is_matrix()) {
      std::copy(edit.original.begin(), edit.original.end(), sink(edit.original.size()).begin());
      return;
    }
    models::Linear map;
    map.weight = edit.slice;
    map.layout = edit.layout;
    map.in = edit.in;
    map.stored_out = map.out = edit.stored_out;
    static const std::vector<double> none;
    const std::vector<double>& factors = edit.norm ? recipe_.factors.at(*edit.norm) : none;
    if (edit.rotation) {
      restore_rotated({tensor, map}, edit, factors, *recipe_.rotations[*edit.rotation], threads_, sink);
    } else {
      restore({tensor, map}, edit, factors, threads_, sink);
    }
  }

  const Checkpoint& checkpoint_;
  Recipe recipe_;
  fs::path source_;
  unsigned threads_;
  std::map<std::string, std::vector<const UndoEdit*>, std::less<>> edits_{};
};

/// The recipe of an earlier rewrite is of weights that this undoing restored within roundings: it gets their
/// checksums. One that has none stays as it is.
void expect_restored_weights(const fs::path& path, const std::vector<std::uint64_t>& fingerprints) {
  std::optional<Recipe> earlier;
  try {
    earlier = read_recipe(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Io) throw;
    return;
  }
  earlier->weights = fingerprints;
  write_recipe(path, *earlier);
}

}  // namespace

Restoration undo(const Checkpoint& rewritten, const fs::path& output, unsigned threads,
                 const Progress& progress) {
  UnchangedFiles noted = files_of(rewritten);
  const Places places(rewritten, output);
  const fs::path source = recipe_beside(places.from, places.is_folder);
  std::error_code ignored;
  if (!fs::exists(source, ignored)) {
    throw Error(ErrorCode::Io, fmt::format("rewrite: {}: is not there; without the recipe that a rewrite "
                                           "writes beside its weights nothing can be undone",
                                           source.string()));
  }
  noted.note(source);
  const Undoing undoing(rewritten, read_recipe(source), source, threads);
  undoing.expect_unchanged();
  const Recipe& recipe = undoing.recipe();
  WorkFolder work(output, places.is_folder, run_of(rewritten, "undo " + recipe.id));
  ShardWriter shards;
  shards.headers = [&](const fs::path& file) { return undoing.headers(file); };
  shards.write = [&](const TensorHeader& tensor, const Sink& sink, Written& /*written*/) {
    undoing.write(tensor, sink);
  };
  shards.metadata = recipe.metadata;
  for (const Tensor& tensor : rewritten.tensors()) {
    if (recipe.added_head != tensor.name) shards.total += tensor.bytes.size();
  }
  const Written written = shards.write_all(rewritten, places, work, progress);
  Restoration result;
  result.tensors = undoing.restored();
  result.files = shards.names;
  result.taken_over = shards.taken_over;
  if (places.is_folder) {
    std::vector<std::string> names = {"rewrite.json", "rewrite.undo"};
    for (const fs::path& name : shards.names) names.push_back(name.string());
    for (const auto& [name, text] : recipe.files) {
      write_text(work.files() / name, text);
      result.files.emplace_back(name);
      names.push_back(name);
    }
    if (recipe.files.contains("rewrite.undo")) {
      expect_restored_weights(work.files() / "rewrite.undo", written.fingerprints);
    }
    result.not_copied = copy_small_files(places.from, work.files(), names);
  }
  noted.expect();
  work.commit(places.output.filename().string());
  return result;
}

}  // namespace normscope::rewrite
