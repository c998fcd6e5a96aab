#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>
#include <normscope/rewrite/plan.hpp>

namespace normscope::rewrite {

/// What undoing an edit needs beside the plan, as the edit was made.
struct UndoPart {
  std::uint64_t edit = 0;           ///< index in the plan
  std::vector<double> means{};      ///< that were subtracted, of every input feature
  std::vector<std::uint64_t> at{};  ///< elements of the slice that a division by the gain does not restore
  std::vector<std::byte> values{};  ///< their bytes in the input
  double roundings = 0.0;           ///< as in the certificate
};

/// Whether a matrix or table is changed, not a vector.
[[nodiscard]] inline bool is_of_matrix(Change change) {
  return change == Change::scale_inputs || change == Change::center_outputs ||
         change == Change::rotate_inputs || change == Change::rotate_outputs;
}

/// One changed slice and how its values come back. Vectors come back by their bytes.
struct UndoEdit {
  Change change = Change::zero;
  model::Slice slice{};  ///< `tensor` in the output
  model::Layout layout = model::Layout::out_in;
  std::uint64_t in = 0;
  std::uint64_t stored_out = 0;
  std::optional<std::size_t> norm{};      ///< key of `Recipe::factors`
  std::optional<std::size_t> rotation{};  ///< index in `Recipe::rotations`
  UndoPart part{};
  std::vector<std::byte> original{};  ///< of a vector

  [[nodiscard]] bool is_matrix() const { return is_of_matrix(change); }
};

/// What brings the input of a rewrite back from its output.
struct Recipe {
  std::string id;                           ///< that the output's marker has too
  std::optional<std::string> added_head{};  ///< tensor that the input does not have
  std::map<std::string, std::string, std::less<>> metadata{};
  std::map<std::size_t, std::vector<double>> factors{};  ///< of the columns, for every norm
  std::vector<std::shared_ptr<const Rotation>> rotations{};
  std::vector<UndoEdit> edits{};
  std::map<std::string, std::string> files{};  ///< texts of small files that were replaced, by name
};

/// Elements that are kept because no division restores them, at most.
inline constexpr std::size_t most_kept = std::size_t{1} << 21U;

/// The file beside the weights that holds the recipe, beside a folder's or a file's weights.
[[nodiscard]] std::filesystem::path recipe_beside(const std::filesystem::path& weights, bool is_folder);

/// Names a plan for a checkpoint: 16 hexadecimal digits.
[[nodiscard]] std::string plan_id(const checkpoint::Checkpoint& checkpoint, const Plan& plan);

/// The recipe of a plan that was carried out; `parts` has those of its matrices.
[[nodiscard]] Recipe make_recipe(const checkpoint::Checkpoint& checkpoint, const Plan& plan,
                                 std::vector<UndoPart> parts);

/// In the layout of safetensors: the plan as JSON in "recipe", arrays beside it.
///
/// Errors    Io
void write_recipe(const std::filesystem::path& path, const Recipe& recipe);

/// Errors    Io; Format for a file that `write_recipe` did not write
[[nodiscard]] Recipe read_recipe(const std::filesystem::path& path);

}  // namespace normscope::rewrite
