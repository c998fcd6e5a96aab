#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/forward/plan.hpp>

#include "compare_steps.hpp"

/// Symmetries of the branches of two models: what `find_relabelling` is made of.
namespace normscope::rewrite {

/// For each thing of OLD, that of NEW.
using Order = std::vector<std::size_t>;

[[nodiscard]] Order identity_order(std::size_t count);
[[nodiscard]] bool is_identity(const Order& order);

/// Differences of this many tolerances are no difference, when things of two models are matched.
inline constexpr double matching_slack = 16.0;

/// One of both models.
struct Planned {
  const files::Checkpoint& file;
  const models::Model& model;
  forward::Plan plan;
  const Turns* turns = nullptr;  ///< null for OLD

  [[nodiscard]] const Rotation* turn(const models::Norm& norm) const {
    return turns == nullptr ? nullptr : turn_of(*turns, norm);
  }
};

/// Rows of a map with what it reads; `centered` without the means over its inputs.
struct Rows {
  const Planned& side;
  const models::Linear& map;
  NormSpec norm{};
  const Rotation* turn = nullptr;
  bool centered = false;

  [[nodiscard]] RowMajorMatrix read(std::uint64_t first, std::uint64_t count) const;
};

/// `norm`: null for a map that reads the stream itself.
[[nodiscard]] Rows reader_rows(const Planned& side, const models::Linear& map, const models::Norm* norm);

/// What a map writes for each of its inputs.
struct WrittenRows {
  models::Linear map;
  Rows rows;
  WrittenRows(const Planned& side, const models::Linear& out, const models::Norm& reader)
      : map(transposed(out)), rows{side, map, {}, side.turn(reader), true} {}
};

[[nodiscard]] inline bool is_whole(const models::Linear& map) {
  return map.out == map.stored_out && map.out_indices.empty();
}

/// Which changes of the maps of an attention leave what it computes: everything that is proposed asks here.
struct Freedom {
  bool permutes_heads = true;   ///< with the groups of keys and values, and the columns of the output
  bool maps_values = true;      ///< by an invertible matrix for each group, which the output undoes
  bool maps_keys = true;        ///< likewise, which the queries undo
  bool moves_constants = true;  ///< of values into the output's bias: weights of attention add up to 1
};
[[nodiscard]] Freedom freedom_of_heads(const models::Model& model, const forward::Branch& attention);

/// A branch of both models, with the norms that it reads and the norms that read what it writes.
struct BranchPair {
  const Planned& old_side;
  const Planned& new_side;
  const forward::Branch& old_branch;
  const forward::Branch& new_branch;
  const models::Norm* old_norm;  ///< null for the stream itself
  const models::Norm* new_norm;
  const models::Norm& old_reader;
  const models::Norm& new_reader;
  double tolerance = 0.0;
};

/// A relabelling that is being found.
class FoundSymmetries {
 public:
  /// `order` is that of the outputs of `after`.
  void add_reader(const models::Linear& before, const models::Linear& after, const Order& order,
                  Blocks blocks);
  /// `order` is that of the inputs of `after`.
  void add_writer(const models::Linear& before, const models::Linear& after, const Order& order,
                  Blocks blocks);
  /// `order` is that of the features of a norm over several heads.
  void add_norm(const models::Norm& before, Order order) {
    result_.features.insert_or_assign(before.name, std::move(order));
  }
  void add_head(std::size_t before, std::size_t after) { result_.heads.insert_or_assign(before, after); }
  [[nodiscard]] Relabelled reader_so_far(const models::Linear& before, const models::Linear& after) const;
  /// The entries of maps, which are themselves if none was added.
  [[nodiscard]] Relabelled& reader(const models::Linear& before, const models::Linear& after);
  [[nodiscard]] Relabelled& writer(const models::Linear& before, const models::Linear& after);

  /// Says what was found; of branches alike the first is named.
  void note(const char* kind, std::string sentence);
  [[nodiscard]] Relabelling take();

 private:
  struct Note {
    std::size_t count = 0;
    std::string sentence{};
  };
  Relabelling result_{};
  std::map<std::string, Note> notes_{};
};

/// Heads and groups of heads in another order; maps of values and keys; biases of values.
void match_heads(const BranchPair& branch, FoundSymmetries& found);
/// Neurons in another order and scale, and experts in another order.
void match_neurons(const BranchPair& branch, FoundSymmetries& found);

}  // namespace normscope::rewrite
