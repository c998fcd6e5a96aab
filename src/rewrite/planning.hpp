#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/plan.hpp>

namespace normscope::rewrite {

/// The position of a stored matrix or vector.
using Place = std::pair<std::string, std::uint64_t>;
[[nodiscard]] inline Place place_of(const models::Slice& slice) { return {slice.tensor, slice.offset}; }

/// The uses of each stored tensor of a model: as reader of norms, as writer of streams, as gain or bias of
/// norms.
class Uses {
 public:
  explicit Uses(const models::Model& model);

  /// Norms that a map with this weight reads, as indices.
  [[nodiscard]] const std::set<std::size_t>& readers_of(const models::Slice& weight) const;
  /// Whether the norm's readers with this weight cover all of its stored outputs.
  [[nodiscard]] bool covered(std::size_t norm, const models::Linear& reader) const;
  /// Number of norms whose gain or bias is stored in the slice.
  ///
  /// Requires  some norm has it as a parameter
  [[nodiscard]] std::size_t parameters_at(const models::Slice& slice) const;
  /// Number of different weights of readers whose bias is stored in the slice.
  ///
  /// Requires  some reader has this bias
  [[nodiscard]] std::size_t biases_at(const models::Slice& slice) const;
  /// Number of stacks to whose stream the tensor is written.
  ///
  /// Requires  it is a writer
  [[nodiscard]] std::size_t stacks_written(const models::Slice& slice) const;
  /// Whether the output of a norm is added to a stream.
  [[nodiscard]] bool enters_stream(const std::string& norm) const { return streaming_.contains(norm); }

 private:
  const models::Model& model_;
  std::map<Place, std::set<std::size_t>> readers_;
  std::map<Place, std::size_t> parameters_;
  std::map<Place, std::set<Place>> biases_;
  std::map<Place, std::set<std::string>> writers_;
  std::set<std::string> streaming_;
};

/// The stacks of the norms that `wanted` accepts, each once, in their order.
template <typename Wanted>
std::vector<std::string> stacks_of(const models::Model& model, const Wanted& wanted) {
  std::vector<std::string> stacks;
  for (const models::Norm& norm : model.norms) {
    if (wanted(norm) && std::find(stacks.begin(), stacks.end(), norm.stack) == stacks.end()) {
      stacks.push_back(norm.stack);
    }
  }
  return stacks;
}

/// Whether weights of this dtype are rewritten.
[[nodiscard]] bool is_rewritable(Dtype dtype);

/// Why the head cannot get a tensor of its own, and what would help; empty if it can.
[[nodiscard]] std::string why_not_untied(const files::Checkpoint& checkpoint, const models::Model& model);
/// Advice on a table that is the token embedding and the head: untying with what it costs, or why that is
/// refused.
[[nodiscard]] std::string advice_on_tie(const files::Checkpoint& checkpoint, const models::Model& model,
                                        std::string_view table);

/// Whether a norm reads a residual stream; of a post-norm the output is the stream too.
[[nodiscard]] inline bool reads_stream(const models::Norm& norm) {
  return norm.placement == models::Placement::pre || norm.placement == models::Placement::post;
}

/// The norms that read a stream, as indices, and the maps that write to it, each once.
struct Stream {
  std::vector<std::size_t> norms{};
  std::vector<models::Linear> writers{};
};

/// What a refusal says of a change of the stream.
struct StreamWords {
  std::string_view gain_in_stream;  ///< "which its gain takes off the centre"
  std::string_view touches;         ///< "writes to"
};

/// Why a change of the stream cannot pass a norm, whatever it normalizes; empty if it can.
[[nodiscard]] std::string why_not_passed(const models::Norm& norm, const StreamWords& words);

/// Why a norm does not rotate with its input, whatever its gain; empty if it does.
[[nodiscard]] std::string why_not_turned(const models::Norm& norm);

/// The information from which folds, centred streams and rotations are planned.
class Planner {
 public:
  Planner(const files::Checkpoint& checkpoint, const models::Model& model, const Uses& uses, Plan& plan)
      : checkpoint_(checkpoint), model_(model), uses_(uses), plan_(plan) {}

 protected:
  [[nodiscard]] Stream stream_of(const std::string& stack) const;
  /// Why the weight of a reader of a norm, which messages call `name`, cannot be changed; empty if it can.
  [[nodiscard]] std::string why_not_reader(std::size_t norm, const models::Linear& reader,
                                           std::string_view name) const;
  /// Why what a map writes to a stream cannot be changed; empty if it can.
  [[nodiscard]] std::string why_not_writer(const models::Linear& writer) const;
  /// Why a tensor is not rewritten, by its dtype; empty if it can be.
  [[nodiscard]] std::string why_not_stored(const models::Slice& slice) const;

  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  const Uses& uses_;
  Plan& plan_;
};

/// Plans all folds that are exact; fills `plan.norms`, `plan.edits` and `plan.specs`.
void plan_folds(const files::Checkpoint& checkpoint, const models::Model& model, const Uses& uses,
                Plan& plan);
/// Centres the streams that can be centred; fills `plan.streams` and `plan.edits`.
void plan_streams(const files::Checkpoint& checkpoint, const models::Model& model, const Uses& uses,
                  Plan& plan);

/// Rotates the streams that can be rotated; fills `plan.rotations` and changes `plan.edits` and `plan.specs`.
void plan_rotations(const files::Checkpoint& checkpoint, const models::Model& model, const Uses& uses,
                    Plan& plan);

/// `map` as the whole stored matrix.
[[nodiscard]] models::Linear whole(models::Linear map);

/// Adds the whole stored matrix of `map`, unless it is there already.
void add_once(std::vector<models::Linear>& maps, const models::Linear& map);

/// Whether a map is a head that is the token embedding too.
[[nodiscard]] bool is_head_table(const models::Model& model, const models::Linear& map);

}  // namespace normscope::rewrite
