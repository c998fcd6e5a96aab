#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/compare.hpp>
#include <normscope/rewrite/plan.hpp>

#include "planning.hpp"

/// The steps of a comparison: norms and maps are paired, then symmetries, configurations and findings
/// compared.
namespace normscope::rewrite {

/// What brings the outputs of a map of NEW to those of OLD: block k of them, of `size` outputs, is multiplied
/// by a matrix.
struct Blocks {
  std::size_t size = 1;
  std::vector<double> matrices{};  ///< (outputs × size), row-major, block after block; empty for identities
  std::vector<double> shift{};  ///< added to the bias; of a writer, whose inputs the blocks are, to its own
  double shift_terms = 0.0;     ///< of a writer: the sum of squares of its shift's terms, which are rounded
};

/// A linear map of a file with the norm that it reads.
struct MapOfFile {
  const files::Checkpoint& file;
  const models::Linear& map;
  const NormSpec& norm;
  const Rotation* turn = nullptr;  ///< by which the features of the stream are turned; null for none
  const Blocks* blocks = nullptr;  ///< null for none
};

/// The gain of each feature, 1 for a norm without one.
[[nodiscard]] std::vector<double> gains_of(const NormSpec& norm, std::size_t features);

/// What each input of a map writes, as the rows of another one.
///
/// Requires  the map is a whole stored matrix
[[nodiscard]] models::Linear transposed(const models::Linear& map);

/// Rows of W as they are stored, in `blocks`.
[[nodiscard]] std::vector<double> weights_of(const MapOfFile& map, std::uint64_t first, std::uint64_t count);
/// The bias of a reader in `blocks`; empty if there is none. `terms` gets the sums of its terms' lengths if
/// it is multiplied by matrices.
[[nodiscard]] std::vector<double> bias_of(const MapOfFile& map, std::vector<double>* terms = nullptr);

/// Rows of the composite W G, in `blocks` and in the features of the stream before it was turned.
[[nodiscard]] std::vector<double> rows_of(const MapOfFile& map, std::uint64_t first, std::uint64_t count);

/// The rotations by which residual streams of NEW are turned, by stack: NEW's stream is Q times that of OLD.
using Turns = std::map<std::string, std::shared_ptr<const Rotation>, std::less<>>;

/// The rotation that turns what a norm reads; null if there is none.
[[nodiscard]] const Rotation* turn_of(const Turns& turns, const models::Norm& norm);

/// The maps from which a rotation is found.
enum class TurnedBy { all, tables };

/// The rotation of each stack that brings its maps nearest to each other; empty for stacks of which tables or
/// norms tell that none does. Whether the maps agree then is not looked at.
///
/// Requires  as many norms in both, in one order
///
/// Cost      a singular value decomposition of width × width for each stack
[[nodiscard]] Turns find_turns(const files::Checkpoint& old_file, const models::Model& old_model,
                               const files::Checkpoint& new_file, const models::Model& new_model,
                               double tolerance, TurnedBy by);

/// `errors`, unless null, gets the larger of the errors of each output; empty if both maps are equal.
///
/// Requires  both maps have the same numbers of inputs and outputs
[[nodiscard]] ReaderComparison compare_readers(const MapOfFile& before, const MapOfFile& after,
                                               std::vector<double>* errors = nullptr);
/// Likewise for unembeddings, up to a map that is added to all outputs alike, which shifts all logits of a
/// position by the same amount.
[[nodiscard]] ReaderComparison compare_unembeddings(const MapOfFile& before, const MapOfFile& after);
/// `errors` likewise, of each input: of what it writes, `centered` or not.
[[nodiscard]] WriterComparison compare_writers(const MapOfFile& before, const MapOfFile& after,
                                               bool centered = false, std::vector<double>* errors = nullptr);
/// What the block format of one of both maps explains; empty if neither is quantized, or if they are not
/// stored by rows alike.
///
/// Requires  both maps have the same numbers of inputs and outputs
[[nodiscard]] std::optional<Quantization> explain_quantization(const MapOfFile& before,
                                                               const MapOfFile& after);
/// Compares writers of which the stream is turned, or the inputs are in blocks: OLD's input j is NEW's input
/// `inputs[j]`, or j if that is empty.
[[nodiscard]] WriterComparison compare_changed_writers(const MapOfFile& before, const MapOfFile& after,
                                                       const std::vector<std::uint64_t>& inputs,
                                                       bool centered = false,
                                                       std::vector<double>* errors = nullptr);
/// |b - a| / |a|; |b| where a is 0, and 1 where the sizes differ.
[[nodiscard]] double relative_change(const std::vector<double>& a, const std::vector<double>& b);

/// A map of NEW that does what one of OLD does.
struct Relabelled {
  models::Linear map;                   ///< of a reader, with its outputs in the order of OLD's
  std::vector<std::uint64_t> inputs{};  ///< of a writer: the order of its inputs; empty for their own
  Blocks blocks{};
};

/// How NEW numbers and scales the heads, neurons and experts of OLD, where that differs.
struct Relabelling {
  std::map<const models::Linear*, Relabelled> readers{};                  ///< by OLD's reader
  std::map<std::pair<std::string, std::uint64_t>, Relabelled> writers{};  ///< by the place of OLD's
  /// For each feature of a norm over several heads, that of NEW; by OLD's norm.
  std::map<std::string, std::vector<std::size_t>> features{};
  std::map<std::size_t, std::size_t> heads{};  ///< heads of NEW by those of OLD, as indices in `model.heads`
  std::vector<ComparisonFinding> findings{};

  [[nodiscard]] bool empty() const { return readers.empty() && writers.empty(); }
  /// What stands for a reader, or a writer, of OLD; null where nothing else does.
  [[nodiscard]] const Relabelled* of_reader(const models::Linear& map) const {
    const auto found = readers.find(&map);
    return found == readers.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const Relabelled* of_writer(const models::Linear& map) const {
    const auto found = writers.find(place_of(map.weight));
    return found == writers.end() ? nullptr : &found->second;
  }
};

/// Symmetries of attention and MLPs that bring the maps of NEW nearest to those of OLD, looked for in models
/// whose forward pass is known: heads, groups of heads that share keys and values, neurons and experts in
/// another order; a map of a head's values that its output undoes, and one of keys that queries undo and that
/// commutes with the rotary embedding; scales of neurons, where the activation is homogeneous or behind it;
/// biases of values in that of the output. Whether the maps agree then is not looked at.
///
/// Cost      reads both models once or twice; head_dim² · width operations a head
[[nodiscard]] Relabelling find_relabelling(const files::Checkpoint& old_file, const models::Model& old_model,
                                           const files::Checkpoint& new_file, const models::Model& new_model,
                                           const Turns& turns, double tolerance);

/// A file, its description, and the uses of its tensors.
struct Side {
  Side(const files::Checkpoint& checkpoint, const models::Model& described)
      : file(checkpoint), model(described), uses(described) {}
  const files::Checkpoint& file;
  const models::Model& model;
  Uses uses;
  std::set<std::string, std::less<>> compared{};  ///< names of tensors

  // Errors and maps of OLD, by the place of a map:
  std::map<Place, std::vector<double>> output_errors{};  ///< of readers, by the stored output
  std::map<Place, std::vector<double>> input_errors{};   ///< of writers
  std::set<Place> explained{};                           ///< maps whose format explains their errors

  /// Whether the wiring is that of a graph, so that names and places say nothing. Exporters name some tensors
  /// otherwise, such as a table that is the head too: then the architecture is not described completely.
  [[nodiscard]] bool is_of_graph() const {
    return file.graph() != nullptr && !(model.is_known() && model.missing.empty());
  }
};

/// What of NEW is compared with OLD in place of itself.
struct View {
  Turns turns{};
  Relabelling relabelling{};

  [[nodiscard]] bool is_itself() const { return turns.empty() && relabelling.empty(); }
};

/// Compares two norms and what reads them, and adds to `whole` what belongs to no norm: findings,
/// quantizations and what was not compared.
[[nodiscard]] NormComparison compare_norms(Side& before, Side& after, const models::Norm& old_norm,
                                           const models::Norm& new_norm, const View& view, Comparison& whole);

/// What matches what, head by head, MLP by MLP, in models whose forward pass is known; empty for others.
///
/// Requires  norms and writers are compared: `before` has their errors
[[nodiscard]] std::vector<BranchComparison> compare_branches(const Side& before, const Side& after,
                                                             const Relabelling& relabelling,
                                                             double tolerance);

/// Compares what writes to the streams of two models with as many norms.
void compare_all_writers(Side& before, Side& after, const View& view, Comparison& result);
/// Compares maps that read the stream itself, in their order.
void compare_stream_readers(Side& before, Side& after, const View& view, Comparison& result);
/// Compares the sinks of heads, head by head.
void compare_sinks(Side& before, Side& after, const View& view, Comparison& result);
/// Compares parameters that both descriptions list by their roles, whatever their names and layouts.
void compare_roles(Side& before, Side& after, const View& view, Comparison& result);

/// Errors    Unsupported, always
[[noreturn]] void refuse_comparison(const std::string& why);

// An ONNX graph keeps few of the names that tensors had in training, and transposes matrices. These
// functions match norms and tensors by their values.

/// Norms of two models, as indices; in the order of the forward pass.
struct NormPairs {
  std::vector<std::pair<std::size_t, std::size_t>> pairs{};
  std::vector<std::size_t> old_left{}, new_left{};
};

/// All norms paired by position.
///
/// Requires  as many in both
[[nodiscard]] NormPairs norms_in_order(const models::Model& old_model);

/// Norms paired by equal gains; those in between are paired if both sides have equally many of equal widths.
[[nodiscard]] NormPairs norms_by_gain(const files::Checkpoint& old_file, const models::Model& old_model,
                                      const files::Checkpoint& new_file, const models::Model& new_model,
                                      double tolerance);

/// The model with the outputs of queries and keys in the order of pairs that are half a head apart, as
/// Hugging Face stores them, where they are next to each other, as llama.cpp does.
[[nodiscard]] models::Model with_split_pairs(models::Model model);

/// The model with a norm for attention and one for the MLP where both read one: TransformerLens stores two.
[[nodiscard]] models::Model with_norms_beside(models::Model model);

/// Whether one of both models stores its tables as they are used: TransformerLens' names have the token
/// embedding times its scale, and the position embedding from the row of the first position on.
[[nodiscard]] bool has_other_tables(const models::Model& a, const models::Model& b);

/// The model with queries, keys and values head by head, before the other readers of a norm: TransformerLens
/// stores a matrix for each head. `repeats`: each head has keys and values of its own, copies of those that
/// its group shares.
[[nodiscard]] models::Model with_head_parts(models::Model model, bool repeats);

/// The model with what only a configuration states (kinds and eps of norms, scores, positions, logits, the
/// activation) as `other` has it.
///
/// Requires  both are of one family
[[nodiscard]] models::Model with_configuration_of(models::Model model, const models::Model& other);

/// The name of the first stored table of sines or cosines (TransformerLens) that the frequencies of the heads
/// do not give; empty if they give all.
[[nodiscard]] std::string other_rotary_table(const files::Checkpoint& file, const models::Model& model);

/// What stands in the way of a model's maps and norms, beyond what may act anywhere; empty if nothing does.
[[nodiscard]] std::string obstacle_of(const models::Model& model);

/// The model with maps that are read as they are stored: what acts anywhere acts on both models alike, or
/// their configurations differ.
[[nodiscard]] models::Model with_stored_maps(models::Model model);

/// Whether `file` has all tensors of `other`, by name.
[[nodiscard]] bool contains_tensors(const files::Checkpoint& file, const files::Checkpoint& other);

struct ReaderPairs {
  std::vector<std::pair<models::Linear, models::Linear>> pairs{};
  std::vector<models::Linear> left{};      ///< of the old norm's
  std::vector<models::Linear> new_left{};  ///< of the new norm's, if names and places decide
};

/// The stored matrices that read two norms, paired such that the composites with the gains differ least.
[[nodiscard]] ReaderPairs readers_by_values(const files::Checkpoint& old_file, const models::Norm& old_norm,
                                            const NormSpec& old_spec, const files::Checkpoint& new_file,
                                            const models::Norm& new_norm, const NormSpec& new_spec);

/// Whether both maps, without their norms, have the same weights to `tolerance`; on a few rows first.
[[nodiscard]] bool has_same_values(const MapOfFile& before, const MapOfFile& after, double tolerance);

/// A tensor that has the values of another one, or their transpose.
struct SameValues {
  const files::Tensor* tensor = nullptr;  ///< null if there is none
  double change = 0.0;                    ///< largest, of a row's length
};

/// The candidate that has the values of `wanted` to `tolerance`.
[[nodiscard]] SameValues find_values(const files::Checkpoint& of_wanted, const files::Tensor& wanted,
                                     const files::Checkpoint& file,
                                     std::span<const files::Tensor* const> candidates, double tolerance);

/// Whether a tensor may hold parameters: floating-point numbers, more than one.
[[nodiscard]] bool has_parameters(const files::Tensor& tensor);

/// Compares what two models compute between their tensors, by their descriptions and configurations; fills
/// `configuration`, `computations` and `not_compared`.
///
/// Requires  the norms are compared already
void compare_configurations(const files::Checkpoint& old_file, const models::Model& old_model,
                            const files::Checkpoint& new_file, const models::Model& new_model,
                            Comparison& result);

/// Decides a comparison that is `different` or `undecided` so far by running both models: fills `witness` or
/// `no_witness`. Without a witness only a structural reason makes it `different`.
void decide_by_running(const files::Checkpoint& old_file, const models::Model& old_model,
                       const files::Checkpoint& new_file, const models::Model& new_model, Comparison& result,
                       const Progress& progress);

/// Differences and rewrites as sentences. `norms` are those of `comparison`.
void add_findings(const files::Checkpoint& old_file, const models::Model& old_model,
                  const files::Checkpoint& new_file, const models::Model& new_model, const NormPairs& norms,
                  Comparison& comparison);

}  // namespace normscope::rewrite
