#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/snapshot.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/plan.hpp>

namespace normscope::rewrite {

/// Data recorded during an edit that undoing it needs in addition to the plan.
struct UndoPart {
  std::uint64_t edit = 0;           ///< index in the plan
  std::vector<double> means{};      ///< the subtracted mean of every input feature
  std::vector<std::uint64_t> at{};  ///< elements of the slice that a division by the gain does not restore
  std::vector<std::byte> values{};  ///< their bytes in the input
  double roundings = 0.0;           ///< as in the certificate
};

/// Whether a matrix or table is changed, not a vector.
[[nodiscard]] inline bool is_of_matrix(Change change) {
  return change == Change::scale_inputs || change == Change::center_outputs ||
         change == Change::rotate_inputs || change == Change::rotate_outputs;
}

/// One changed slice and how its values are restored. Vectors are stored byte by byte.
struct UndoEdit {
  Change change = Change::zero;
  models::Slice slice{};  ///< `tensor` in the output
  models::Layout layout = models::Layout::out_in;
  std::uint64_t in = 0;
  std::uint64_t stored_out = 0;
  std::optional<std::size_t> norm{};      ///< key of `Recipe::factors`, of what reads a norm alone
  std::optional<std::size_t> rotation{};  ///< index in `Recipe::rotations`
  UndoPart part{};
  std::vector<std::byte> original{};  ///< of a vector

  [[nodiscard]] bool is_matrix() const { return is_of_matrix(change); }
};

/// Everything needed to restore the input of a rewrite from its output.
struct Recipe {
  std::string id;                           ///< also in the output's marker
  std::vector<std::uint64_t> weights{};     ///< `Fingerprint` of each file of the output's weights
  std::optional<std::string> added_head{};  ///< tensor that the input does not have
  std::map<std::string, std::string, std::less<>> metadata{};
  std::map<std::size_t, std::vector<double>> factors{};  ///< of the columns, for every norm
  std::vector<std::shared_ptr<const Rotation>> rotations{};
  std::vector<UndoEdit> edits{};
  std::map<std::string, std::string> files{};  ///< texts of small files that were replaced, by name
};

/// Largest number of elements that are kept because no division restores them.
inline constexpr std::size_t most_kept = std::size_t{1} << 21U;

/// The file beside the weights that holds the recipe, beside a folder's or a file's weights.
[[nodiscard]] std::filesystem::path recipe_beside(const std::filesystem::path& weights, bool is_folder);

/// An identifier of a plan for a checkpoint: 16 hexadecimal digits.
[[nodiscard]] std::string plan_id(const files::Checkpoint& checkpoint, const Plan& plan);

/// The recipe of an executed plan; `parts` has the parts of its matrices.
[[nodiscard]] Recipe make_recipe(const files::Checkpoint& checkpoint, const Plan& plan,
                                 std::vector<UndoPart> parts);

/// SHA-256 of the arrays of a recipe and their names, which it has as its array "sha256".
[[nodiscard]] Digest digest_of_arrays(const std::map<std::string, std::span<const std::byte>>& arrays);

/// Writes a recipe as a safetensors file, with the plan as JSON in the array "recipe".
///
/// Errors    Io
void write_recipe(const std::filesystem::path& path, const Recipe& recipe);

/// Errors    Io; Format for a file that `write_recipe` did not write, or that has been changed since
[[nodiscard]] Recipe read_recipe(const std::filesystem::path& path);

}  // namespace normscope::rewrite
