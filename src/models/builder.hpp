#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "config.hpp"
#include "inventory.hpp"

namespace normscope::models {

/// Properties common to the norms of an architecture.
struct NormStyle {
  NormKind kind = NormKind::layer;
  Placement placement = Placement::pre;
  double gain_offset = 0.0;
  bool gain_was_shifted = false;
  double eps = 1e-5;  ///< the published default, used if neither the configuration nor the metadata state it
  /// The one field that the class of a model_type reads; empty: it reads none. Null: the first of any name,
  /// as for a file that states no model_type.
  const char* eps_key = nullptr;
  bool one_gain = false;  ///< a gain may be one number for all features (ScaleNorm)
  bool gainless = false;  ///< the norms have no parameters, so no tensor shows that they exist
};

/// Number and width of the heads of a projection; 0 if not known yet.
struct HeadCounts {
  std::uint64_t heads = 0;
  std::uint64_t key_value_heads = 0;
  std::uint64_t head_dim = 0;
};

/// Scaling of attention scores if it is not 1/sqrt(head width).
struct ScoreStyle {
  std::optional<double> scale{};
  bool divided_by_layer = false;  ///< also divided by the layer's number, counted from 1
  double soft_cap = 0.0;
  std::optional<double> clip{};  ///< queries, keys and values are clamped
  /// Scores have biases by position, with slopes from 2^-(this/heads) on; 0: they have none.
  double most_alibi = 0.0;
  bool rounded_alibi = false;  ///< biases are added before the scale, rounded to bfloat16
};

/// How one matrix holds queries, keys and values.
struct FusedStyle {
  /// Equal runs of outputs, each with the queries, keys and values of as many heads; 0: one for each
  /// key-value head.
  std::uint64_t blocks = 1;
  bool values_first = false;  ///< a block's values come before its keys
  bool any_width =
      false;  ///< all heads together need not be as wide as the stream if their number is unknown
};

/// Which layers attend to a window of "sliding_window" positions.
struct WindowStyle {
  /// Only if "use_sliding_window" is set, and from layer "max_window_layers" on.
  bool must_be_enabled = false;
  /// All but the last of each group of this many layers; 0: every layer. "sliding_window_pattern" takes
  /// precedence.
  std::uint64_t period = 0;
  bool first_is_full = false;  ///< all but the first of each group
  /// The field with the kind of each layer that the class reads, which takes precedence; empty: it reads
  /// none.
  const char* kinds_key = "layer_types";
  bool last_is_full = false;  ///< whatever the configuration says of the last layer
};

/// What a decoder computes beyond its norms, heads and linear maps; see `Decoder`.
struct DecoderStyle {
  /// In Hugging Face's name, if the configuration has a model_type and states none.
  std::string_view activation{};
  bool fixed_activation = false;         ///< whether it needs no configuration
  bool reads_activation = true;          ///< whether the class takes it from the configuration
  const char* activation_key = nullptr;  ///< the one field that the class reads; null: any that is stated
  std::optional<Activation> head_activation{};
  std::optional<ClampedGate> clamped_gate{};
  double embedding_scale = 1.0;
  bool embedding_times_root = false;  ///< the token embedding is multiplied by the root of the width
  double branch_scale = 1.0;
  std::uint64_t first_position = 0;
  std::optional<Routing> routing{};
  bool encodes = false;
  std::optional<std::uint64_t> padding{};
};

enum class Need { required, optional };

/// What biases are of: queries, keys, values and the output of attention; each of them alone; MLPs; mixers;
/// norms; the unembedding. Norms of queries and keys, which are wholly there or not, count among them.
enum class Biased {
  attention,
  queries,
  keys,
  values,
  attention_output,
  mlps,
  mixers,
  norms,
  unembedding,
  norms_of_heads
};

enum class ParameterForm { matrix, row, column };

/// `count` outputs of a map from `first` on, all of them if `count` is 0. The map, of any inputs, is linear
/// or a convolution.
struct Outputs {
  std::string_view role;
  std::string_view map;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t each = 0;  ///< a norm of them has this width: it is of so many at a time; 0: of all together
};

/// Builds a `Model` from a forward pass described in terms of tensor names. It keeps track of the residual
/// stream: which norm is being read, and which tensors have written to the stream since. Names are relative
/// to the current prefix (`within`, `each_layer`) and omit their last part: ".weight", ".gamma", ".bias" and
/// the like are found automatically. Sizes given as 0 are not checked.
///
/// Errors    Shape for a tensor whose shape does not fit its use in the forward pass
class Builder {
 public:
  Builder(const files::Checkpoint& checkpoint, const Config& config, const Inventory& inventory,
          std::string prefix, Model& model);

  [[nodiscard]] const Config& config() const { return config_; }
  /// The innermost "model_type", empty without one.
  [[nodiscard]] std::string model_type() const;
  /// Whether the file's packed matrices are [out, in], in whatever layout it has the others: GPTQ and AWQ.
  [[nodiscard]] bool packs_outputs_first() const;
  /// Whether some tensor's name has this prefix.
  [[nodiscard]] bool has(std::string_view name) const;
  /// The shape of a tensor, by its full name; empty if it is missing.
  [[nodiscard]] std::vector<std::uint64_t> shape(std::string_view name) const;
  void note(std::string text);
  /// Whether the file stores an unembedding that is not the token embedding.
  [[nodiscard]] bool has_own_unembedding() const { return model_.vocabulary && !model_.vocabulary->tied; }
  /// States what else the file may be, with norms of another kind or offset: nothing is then modelled, unless
  /// the architecture is stated.
  void norms_in_doubt(std::string what) { doubt_ = std::move(what); }
  /// Call before `finish`, unless the architecture is stated.
  void flag_norms_in_doubt();
  /// A positive number of the configuration; the published default (0 for none) if the key is missing, and
  /// empty if it is null.
  std::optional<double> stated_number(const char* key, double published);
  /// The code of this model_type does not use these fields, as harmless ones of its architecture.
  void ignores(Config::Keys fields) const {
    for (const char* const field : fields) static_cast<void>(config_.has({field}));
  }
  /// The class of this model_type has such biases, or norms of queries and keys, only where one of `fields`
  /// is true, and passes over stored ones of others; without any field it has none at all.
  void biases_by(Biased of, Config::Keys fields) {
    biases_by_.push_back({of, {fields.begin(), fields.end()}});
  }
  /// Whether the layer that is being described is beyond those of the configuration: such layers of a file
  /// predict further tokens and are not part of the forward pass.
  [[nodiscard]] bool predicts_further() const;

  /// Neither does it use this field of older code, which did what is described where its value is `json`.
  void ignores_value(const char* field, std::string_view json) const {
    if (config_.fields()[field] == json) ignores({field});
  }

  // Settings of the whole model.
  /// From here on, sizes, eps and fields are those of this tower's section of the configuration. Call `norms`
  /// next.
  void tower(Tower tower);
  /// Likewise of the object `key` at the top of the configuration, where it is there.
  void section(const char* key);
  void norms(const NormStyle& style);
  [[nodiscard]] HeadCounts& heads() { return counts_; }
  /// The head width is the size of this gain, if the configuration does not state it.
  void head_dim_from(std::string_view norm);
  /// Several query heads may share one key-value head.
  void grouped_queries();
  /// Queries and keys are rotated by their position.
  void rotary(const RotaryStyle& style) { rotary_ = style; }
  void windows(const WindowStyle& style) { windows_ = style; }
  /// "full_attention", "sliding_attention" or another value of "layer_types"; empty if nothing states it.
  [[nodiscard]] std::string layer_kind(int layer) const;
  /// Whether the heads described last are rotated.
  [[nodiscard]] bool rotates() const { return !model_.heads.empty() && model_.heads.back().rotary; }
  /// A stored copy of the rotary frequencies of the layer described last.
  void rotary_buffer(std::string_view name);
  /// A stored divisor for each rotary frequency of every head described so far.
  void rotary_divisors(std::string_view name);
  void scores(const ScoreStyle& style) { scores_ = style; }
  /// What the scores of heads described from here on depend on beyond queries and keys; empty: nothing.
  void scores_not_modelled(std::string what) { scores_beyond_ = std::move(what); }
  /// Logits are `scale` times the output of the unembedding, then capped if `soft_cap` is not 0.
  void logits(double scale, double soft_cap = 0.0);
  /// The blocks described are all of the forward pass: causal self-attention and an MLP, or experts, each.
  void decoder(const DecoderStyle& style);
  /// The token embedding is stored times its scale, and the position embedding from the row of the first
  /// position on. Call `decoder` first.
  void tables_as_used();
  void layout(Layout layout) { layout_ = layout; }
  /// The width of the stream; 0: taken from the first tensor that reads or writes it.
  void stream(std::uint64_t width) { width_ = width; }
  [[nodiscard]] std::uint64_t width() const { return width_; }
  /// The number of the layer that is being described, 0 outside of layers.
  [[nodiscard]] int layer() const { return scope_.layer.value_or(0); }
  /// Matrices may have several axes behind the first, which count as one.
  void fold_axes() { folds_axes_ = true; }
  /// Matrices are stored [out, in] even if their declared shape says otherwise.
  void trust_rows_not_shapes() { relabel_ = true; }

  // Settings from here on.
  void stack(std::string name) { stack_ = std::move(name); }
  void applications(int count) { applications_ = count; }

  // Prefixes for name lookup.
  void within(std::string_view prefix, const std::function<void()>& body);
  /// Describes a part under `prefix`, looked up here or in enclosing prefixes; does nothing if no tensor has
  /// it.
  void where(std::string_view prefix, const std::function<void()>& body);
  /// Repeats for every layer in the file, with "{}" replaced by its number.
  /// `count_keys`: configuration fields that hold their number, if not the usual ones.
  void each_layer(std::string_view pattern, const std::function<void()>& body, Config::Keys count_keys = {});
  /// Repeats for every part in the file that is no layer of the stream.
  void each_part(std::string_view pattern, const std::function<void()>& body);
  /// Repeats for every stage in the file, each a stack of its own, with "{}" replaced by its number.
  void each_stage(std::string_view pattern, const std::function<void(std::size_t stage)>& body);
  /// As `each_layer`, for a stage whose number of layers "depths" states.
  void each_layer_of_stage(std::string_view pattern, std::size_t stage, const std::function<void()>& body);
  /// Repeats for every entry of stacked tensors, of which `name` is one.
  void each_stacked(std::string_view name, const std::function<void()>& body);
  /// Repeats for every expert of a layer: those numbered after `name`, or the entries of stacked tensors if
  /// `name` ends with the name of one.
  void each_expert(std::string_view name, const std::function<void()>& body);

  // Tensors that write to the stream.
  /// A table whose last axis is the stream.
  void embedding(std::string_view role, std::string_view name, Need need = Need::required);
  /// A map of the input whose first axis is the stream: a convolution or a linear map.
  void input_map(std::string_view role, std::string_view name, Need need = Need::required);
  /// All tensors under `name` together write to the stream, in part or nonlinearly.
  void partial_input(std::string_view name);
  void writes(std::string_view role, std::string_view name, std::uint64_t in = 0, Need need = Need::required);
  /// A stack [head][in, out], whose outputs are added.
  void writes_stack(std::string_view role, std::string_view name);
  /// Starts a new stream: earlier reads and writes are not part of it.
  void new_stream();
  /// What is written from here to the next `norm_of_branch` passes that norm.
  void branch() {
    branch_from_ = writers_.size();
    branch_norms_from_ = writing_norms_.size();
  }
  /// What is not described reads the stream, and with it the norms whose output is part of it.
  void stream_has_other_readers();
  /// Another operation lies between the last writer and the stream.
  void writes_are_indirect() { writers_known_ = false; }

  // Tensors that read the stream.
  void norm(std::string_view name, std::string_view role);
  void norm(std::string_view name, std::string_view role, Placement placement);
  /// A norm of the same stream state as the last norm, before any further write.
  void norm_beside(std::string_view name, std::string_view role);
  /// A norm of the output of a branch, before it is added to the stream.
  void norm_of_branch(std::string_view name, std::string_view role);
  /// The output of the last norm is itself added to the stream.
  void norm_is_added();
  /// A norm of queries or keys, per head; `part` is the role of the map that it follows. A gain as wide as
  /// the map is a norm of all heads together, a gain for every head as many norms.
  void norm_of_heads(std::string_view name, std::string_view role, std::string_view part);
  /// A norm of something other than a linear map's output. Later readers read this norm.
  void norm_inside(std::string_view name, std::string_view role, std::uint64_t width,
                   std::uint64_t groups = 1);
  /// The norm of one head's queries or keys.
  void norm_of_head(std::string_view name, std::string_view role, std::string_view part, std::uint64_t head);
  /// A norm of the first `count` outputs of the map with role `part` that reads the last norm. The readers
  /// that `body` describes read it; later ones read the earlier norm again.
  void norm_of_map(std::string_view name, std::string_view role, std::string_view part, std::uint64_t count,
                   const std::function<void()>& body);
  /// A norm of what a map within a branch makes from something other than a norm. Later readers read it.
  void norm_of_outputs(std::string_view name, std::string_view role, const Outputs& of);
  /// The norms that `body` describes store their gain without an offset.
  void gains_as_stored(const std::function<void()>& body);
  /// The norms that `body` describes have no parameters.
  void without_parameters(const std::function<void()>& body);
  /// The last norm has an eps of its own, assumed unless the configuration, or `from`, has one of `keys`.
  void last_eps(double eps, Config::Keys keys) { last_eps(eps, keys, config_); }
  void last_eps(double eps, Config::Keys keys, const Config& from);
  /// A linear map of the last norm. Returns the number of its outputs, 0 if it is missing.
  std::uint64_t reads(std::string_view role, std::string_view name, std::uint64_t out = 0,
                      Need need = Need::required);
  /// Likewise, with a bias that is stored under a name of its own.
  void reads_with_bias(std::string_view role, std::string_view name, std::string_view bias);
  /// Likewise, for `count` outputs of the stored map from `first` on.
  void reads_part(std::string_view role, std::string_view name, std::uint64_t first, std::uint64_t count);
  /// A matrix whose outputs are parts of equal size, one for each role. Returns the size of a part.
  /// `in_turn`: outputs of the parts alternate.
  std::uint64_t reads_parts(std::initializer_list<std::string_view> roles, std::string_view name,
                            bool in_turn = false);
  /// A tensor with a learned score for each head described last, which takes a share of their softmax.
  void sinks(std::string_view name);
  /// From here to the next norm, maps read the stream itself.
  void reads_the_stream() { reading_.reset(); }
  /// Maps that `body` describes read the norm times a number, which is not modelled: `what`; empty: none.
  void reads_scaled(std::string what, const std::function<void()>& body);
  /// More than linear maps reads the last norm.
  void has_other_readers() {
    if (reading_) model_.norms[*reading_].readers_known = false;
  }
  /// Another operation lies between the last norm and its readers, or the readers are not in the file.
  void reads_are_indirect();
  /// Marks the readers and writers of all norms so far as assumptions.
  void connections_are_assumed();
  /// A map from the last norm to a new stream of `width` features.
  void leads_over(std::string_view role, std::string_view name, std::uint64_t width = 0);

  // Attention: each returns the number of features that the output projection reads, 0 if unknown. Heads
  // whose `value` is empty have values of another norm.
  std::uint64_t attention(std::string_view query, std::string_view key, std::string_view value) {
    return attention_of_maps({query, key, value}, false);
  }
  /// Likewise; outputs of the first map are [head][query | gate].
  std::uint64_t gated_attention(std::string_view query, std::string_view key, std::string_view value) {
    return attention_of_maps({query, key, value}, true);
  }
  /// The heads described last weigh other values than those of their own number.
  void without_values();
  /// The heads described last attend to keys and values of an earlier layer, of another norm.
  void keys_of(int layer);
  /// The last norm is what keys and values of `cross_attention` read.
  void remember_for_cross_attention() { memory_ = reading_; }
  /// Queries read the last norm, keys and values the remembered one. No bound covers such a head.
  std::uint64_t cross_attention(std::string_view query, std::string_view key, std::string_view value);
  /// Likewise, of a matrix whose outputs are [queries | keys | values].
  std::uint64_t fused_cross_attention(std::string_view name);
  /// Outputs are [block][queries | keys | values].
  std::uint64_t fused_attention(std::string_view name, const FusedStyle& style = {});
  /// Outputs are [head][query | key | value].
  std::uint64_t attention_fused_per_head(std::string_view name) {
    return fused_attention(name, {.blocks = 0});
  }
  /// Each map is a stack [head][in, out], and so is its bias.
  std::uint64_t attention_of_stacks(std::string_view query, std::string_view key, std::string_view value);
  /// Only the queries; keys come from elsewhere than a linear map of the same norm.
  std::uint64_t queries(std::string_view name);

  /// The map to the vocabulary: the first of `names` that exists; otherwise the token embedding, if the
  /// configuration, or `tied` by default, says that it is shared. `bias`: a bias stored separately.
  void unembedding(std::initializer_list<std::string_view> names, bool tied, bool reads_norm = true,
                   std::string_view bias = {});
  /// The file stores its unembedding, whatever the configuration says of a shared table.
  void stores_head() { stores_head_ = true; }
  /// A parameter that belongs to no norm, linear map or input.
  void other(std::string_view name);
  /// Likewise, with a role by which files of other names are compared: a matrix in the current layout, or
  /// all of its numbers as one row or column.
  void parameter(std::string_view role, std::string_view name, ParameterForm form);
  /// A stored mask of the heads described last, whose scores are not modelled if it hides other positions
  /// than they do.
  void mask_of_heads(std::string_view name);
  /// A stored score of the positions that these heads do not see: their scores are not modelled unless it is
  /// so low that no weight is left.
  void score_of_hidden(std::string_view name);
  /// A stored causal mask. Returns whether it is there and its last row hides nothing: a mask with a window
  /// does.
  bool causal_mask(std::string_view name);
  /// A stored tensor that is not a parameter. Returns whether it is there and holds zeros alone.
  bool buffer_of_zeros(std::string_view name);
  /// A stored tensor that is not a parameter.
  void buffer(std::string_view name);

  /// Adds information that is complete only at the end: totals, unused tensors, notes on unknown properties,
  /// and configuration fields that are not modelled, that is, were not read and are not known to be
  /// `harmless`.
  void finish(std::span<const std::string_view> harmless = {});
  [[nodiscard]] bool used(const files::Tensor& tensor) const { return used_.contains(&tensor); }
  /// Whether sections of several towers were described.
  [[nodiscard]] bool has_towers() const { return !earlier_towers_.empty(); }
  /// Before `finish`: tensors that another description uses, or that stand between towers.
  void leaves(const Builder& other) { used_.insert(other.used_.begin(), other.used_.end()); }
  void leaves(const files::Tensor& tensor) { used_.insert(&tensor); }

 private:
  bool stores_head_ = false;
  struct Scope {
    std::string prefix;
    std::optional<int> layer{};
    std::uint64_t stacked = 0;  // number of entries of stacked tensors; 0 outside of them
    std::uint64_t entry = 0;    // the one that is described
    bool is_expert = false;
  };
  // A stored parameter, or one entry of a stacked one.
  struct Parameter {
    const files::Tensor* tensor = nullptr;
    std::span<const std::uint64_t> shape;
    Slice slice;
  };

  void read_sizes();
  std::optional<Config::Eps> stated_eps(const char* key);
  [[nodiscard]] std::string full(std::string_view name) const { return scope_.prefix + std::string(name); }
  void add_layers(std::int64_t count);
  void each_of(std::string_view pattern, const std::function<void()>& body, std::uint64_t configured);
  void in_scope(Scope scope, const std::function<void()>& body);
  std::optional<Parameter> find(std::string_view name, std::initializer_list<std::string_view> endings);
  std::optional<Parameter> find_scalar(const std::string& name);
  std::optional<Slice> find_bias(const std::string& name, std::initializer_list<std::string_view> endings,
                                 std::uint64_t width);
  std::optional<Linear> find_linear(std::string_view role, std::string_view name, std::uint64_t in,
                                    std::uint64_t out);
  [[nodiscard]] bool is_packed(const Parameter& weight) const;
  [[nodiscard]] Layout layout_of(const Parameter& weight) const;
  [[nodiscard]] Linear packed_linear(std::string_view role, const Parameter& weight, std::uint64_t in,
                                     std::uint64_t out) const;
  std::optional<Linear> find_map_of_inputs(std::string_view role, std::string_view name, std::uint64_t out);
  [[nodiscard]] std::string wanted(std::string_view name) const;
  void miss(const std::string& tensor);
  void miss_reader(std::string_view name);
  [[noreturn]] void reject(const Parameter& parameter, const std::string& expected) const;

  // Queries, keys and values of one layer, and the first output of each head's part.
  struct Attended {
    std::array<std::optional<Linear>, 3> parts{};
    std::function<std::uint64_t(std::size_t part, std::uint64_t head)> first_out{};
    std::array<std::vector<Linear>, 3> stacks{};  // a map for each head, in place of parts of one
  };

  std::size_t new_norm(std::string name, std::string_view role, Placement placement, std::uint64_t width,
                       std::uint64_t groups);
  void lack_norm_of_heads(const std::string& name);
  [[nodiscard]] const Linear* attended_part(std::string_view part) const;
  [[nodiscard]] Linear part_of_head(std::string_view part, std::uint64_t head) const;
  std::optional<std::size_t> add_norm(std::string_view name, std::string_view role, Placement placement,
                                      std::uint64_t width, std::uint64_t groups);
  void give_writers(Norm& norm);
  void add_reader(const Linear& reader);
  void add_writer(std::optional<Linear> writer, std::string_view name, Need need);
  [[nodiscard]] std::uint64_t read_width() const;

  std::uint64_t attention_of_maps(const std::array<std::string_view, 3>& names, bool gated);
  std::optional<Linear> queries_beside_gates(const Linear& both);
  void resolve_heads(const Linear& query, const Linear* key);
  void resolve_groups(const Linear& fused);
  void add_heads(Attended attended);
  void add_cross_heads(Attended attended);
  void set_rotary(Head& head);
  void set_window(Head& head) const;
  void set_scale(Head& head) const;
  void set_alibi(Head& head) const;
  /// The heads of the current layer that were described last.
  [[nodiscard]] std::span<Head> last_heads();

  [[nodiscard]] bool repeats_token_embedding(const Linear& map) const;
  void flag_leftovers();
  void flag_attention_leftovers();
  void flag_biased_norms();
  /// Whether the tensor of this full name is there and holds zeros alone.
  [[nodiscard]] bool holds_zeros(const std::string& name) const;
  [[nodiscard]] const Slice* first_bias(const std::function<bool(const Linear&)>& of);
  [[nodiscard]] const Slice* first_bias(Biased of);
  [[nodiscard]] bool leaves_out_bias(const Config::Field& field);
  void flag_biases();
  void flag_fields(std::span<const std::string_view> harmless);
  [[nodiscard]] std::string beside(std::string_view prefix) const;
  [[nodiscard]] std::string beside_parameter(const std::string& tensor) const;
  void flag_tensors_beside();
  void gather_not_modelled();
  [[nodiscard]] std::string layer_of(std::string_view tensor) const;

  const files::Checkpoint& checkpoint_;
  Config config_;
  std::vector<Config> earlier_towers_;
  const Inventory& inventory_;
  Model& model_;

  NormStyle style_;
  double eps_ = 1e-5;
  Source eps_source_ = Source::assumed;
  HeadCounts counts_;
  bool grouped_ = false;
  std::optional<RotaryStyle> rotary_{};
  std::optional<WindowStyle> windows_{};
  ScoreStyle scores_;
  std::string scores_beyond_;
  std::map<std::array<std::uint64_t, 3>, Indices> turns_;  ///< of `reads_parts`, by number, parts and outputs
  bool has_further_layers_ = false;                        ///< that are described and not counted
  struct BiasFields {
    Biased of;
    std::vector<const char*> fields;
  };
  std::vector<BiasFields> biases_by_;
  std::string doubt_;   ///< what `norms_in_doubt` states
  std::string scaled_;  // what stands between a norm and the maps that are described
  double logit_scale_ = 1.0;
  double logit_cap_ = 0.0;
  Layout layout_ = Layout::out_in;
  bool relabel_ = false;
  bool folds_axes_ = false;
  std::uint64_t width_ = 0;
  std::string stack_;
  int applications_ = 1;

  Scope scope_;
  std::optional<std::size_t> reading_;  // index of the norm being read
  std::optional<std::size_t> memory_;   // index of the norm that cross-attention reads
  // The norm and the map that started this stream, until something else writes to it.
  std::optional<std::pair<std::size_t, Linear>> led_;
  std::vector<Linear> writers_;  // writers to the stream since its last norm
  std::vector<std::string> writing_norms_;
  bool writers_known_ = true;
  std::size_t branch_from_ = 0;        // index in writers_
  std::size_t branch_norms_from_ = 0;  // index in writing_norms_
  Attended attended_;                  // by the attention described last
  std::optional<Linear> token_embedding_;
  bool embedding_times_root_ = false;

  struct BiasUse {
    bool present = false;
    std::vector<std::string> absent;
  };
  std::map<std::string, BiasUse, std::less<>> biases_;  // by role, to distinguish a missing bias from none
  std::map<std::string, std::size_t, std::less<>> norm_indices_;
  std::map<std::string, std::size_t> head_indices_;  // first head by query projection
  std::set<std::string, std::less<>> layer_prefixes_;
  std::set<const files::Tensor*> used_;
  std::uint64_t buffered_ = 0;
  std::uint64_t unlisted_ = 0;
  bool attends_ = false;
};

}  // namespace normscope::models
