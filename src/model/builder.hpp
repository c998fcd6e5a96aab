#pragma once

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

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

#include "config.hpp"
#include "inventory.hpp"
#include "rope.hpp"

namespace normscope::model {

/// What the norms of an architecture have in common.
struct NormStyle {
  NormKind kind = NormKind::layer;
  Placement placement = Placement::pre;
  double gain_offset = 0.0;
  double eps = 1e-5;  ///< the published default, used where neither configuration nor metadata say
};

/// How projections are cut into heads; 0 where it is not known yet.
struct HeadCounts {
  std::uint64_t heads = 0;
  std::uint64_t key_value_heads = 0;
  std::uint64_t head_dim = 0;
};

/// What happens to scores of queries and keys, where it is not division by the root of the head width.
struct ScoreStyle {
  std::optional<double> scale{};
  bool divided_by_layer = false;  ///< and by the layer's number, counted from 1
  double soft_cap = 0.0;
};

/// Which layers see a window of "sliding_window" positions.
struct WindowStyle {
  /// Only where "use_sliding_window" is set, and from layer "max_window_layers" on.
  bool must_be_enabled = false;
  /// Of so many layers in a row all but the last; 0: every layer. "layer_types" and
  /// "sliding_window_pattern" overrule it.
  std::uint64_t period = 0;
};

enum class Need { required, optional };

/// Turns a forward pass told in tensor names into a `Model`. It keeps the stream's story: which norm
/// is being read, and what has written since.
/// Names are relative to where the story is (`within`, `each_layer`) and leave out their last part:
/// ".weight", ".gamma", ".bias" and the like are found, not told. Sizes given as 0 are not checked.
/// Errors    Shape for a tensor whose shape its place in the forward pass does not allow
class Builder {
 public:
  Builder(const checkpoint::Checkpoint& checkpoint, const Config& config, const Inventory& inventory,
          std::string prefix, Model& model);

  [[nodiscard]] const Config& config() const { return config_; }
  /// The innermost "model_type", empty without one.
  [[nodiscard]] std::string model_type() const;
  /// Whether a tensor's name starts like this.
  [[nodiscard]] bool has(std::string_view name) const;
  /// The sizes of a tensor, called by its whole name; empty when it is not there.
  [[nodiscard]] std::vector<std::uint64_t> shape(std::string_view name) const;
  void note(std::string text);

  // What holds for the whole model.
  void norms(const NormStyle& style);
  [[nodiscard]] HeadCounts& heads() { return counts_; }
  /// The head width is the size of this gain, where the configuration does not tell it.
  void head_dim_from(std::string_view norm);
  /// Several heads may share one key-value head.
  void grouped_queries() { grouped_ = true; }
  /// Queries and keys turn with their position.
  void rotary(const RotaryStyle& style) { rotary_ = style; }
  void windows(const WindowStyle& style) { windows_ = style; }
  /// A stored copy of the rotary frequencies of the layer that was told last.
  void rotary_buffer(std::string_view name);
  void scores(const ScoreStyle& style) { scores_ = style; }
  /// Logits are `scale` times what the unembedding gives, and then capped where `soft_cap` is not 0.
  void logits(double scale, double soft_cap = 0.0);
  void layout(Layout layout) { layout_ = layout; }
  /// The width of the stream; 0: told by the first tensor that reads or writes it.
  void stream(std::uint64_t width) { width_ = width; }
  [[nodiscard]] std::uint64_t width() const { return width_; }
  /// Matrices are stored [out, in] whatever order their declared shape has.
  void trust_rows_not_shapes() { relabel_ = true; }

  // What holds from here on.
  void stack(std::string name) { stack_ = std::move(name); }
  void applications(int count) { applications_ = count; }

  // Where names are looked up.
  void within(std::string_view prefix, const std::function<void()>& body);
  /// Where something starts with `prefix`, here or further out; told nothing where nothing does.
  void where(std::string_view prefix, const std::function<void()>& body);
  /// Once for every layer the file has, with "{}" its number.
  void each_layer(std::string_view pattern, const std::function<void()>& body);
  /// Once for every entry of stacked tensors, of which `name` is one.
  void each_stacked(std::string_view name, const std::function<void()>& body);

  // What writes the stream.
  /// A table whose last axis is the stream.
  void embedding(std::string_view role, std::string_view name, Need need = Need::required);
  /// A map of the input whose first axis is the stream: a convolution or a linear map.
  void input_map(std::string_view role, std::string_view name, Need need = Need::required);
  /// Everything under `name`: it writes the stream in part, or not linearly.
  void partial_input(std::string_view name);
  void writes(std::string_view role, std::string_view name, std::uint64_t in = 0, Need need = Need::required);
  /// Something lies between the last writer and the stream.
  void writes_are_indirect() { writers_known_ = false; }

  // What reads it.
  void norm(std::string_view name, std::string_view role);
  void norm(std::string_view name, std::string_view role, Placement placement);
  /// A norm of the stream the last norm read, before anything else wrote.
  void norm_beside(std::string_view name, std::string_view role);
  /// A norm of what a branch wrote, before it is added to the stream.
  void norm_of_branch(std::string_view name, std::string_view role);
  /// A norm of queries or keys, head by head; `part` is the role of the map it follows.
  void norm_of_heads(std::string_view name, std::string_view role, std::string_view part);
  /// A norm of something that is not a linear map's output. What follows reads it.
  void norm_inside(std::string_view name, std::string_view role, std::uint64_t width,
                   std::uint64_t groups = 1);
  /// The last norm has an eps of its own, assumed unless the configuration has one of `keys`.
  void last_eps(double eps, Config::Keys keys);
  /// A linear map of the last norm. Returns the features it writes, 0 when it is missing.
  std::uint64_t reads(std::string_view role, std::string_view name, std::uint64_t out = 0,
                      Need need = Need::required);
  /// Something lies between the last norm and its readers, or readers are not in the file.
  void reads_are_indirect();
  /// A map from the last norm to a new stream, of `width` features.
  void leads_over(std::string_view role, std::string_view name, std::uint64_t width = 0);

  // Attention: each returns the features that the output projection reads, 0 when not known.
  std::uint64_t attention(std::string_view query, std::string_view key, std::string_view value);
  /// Outputs are [query | key | value].
  std::uint64_t fused_attention(std::string_view name);
  /// Outputs are [head][query | key | value].
  std::uint64_t attention_fused_per_head(std::string_view name);

  /// The map to the vocabulary: the first of `names` that is there, else the token embedding where
  /// the configuration, or `tied` where it is silent, says so. `bias`: a bias stored apart.
  void unembedding(std::initializer_list<std::string_view> names, bool tied, bool reads_norm = true,
                   std::string_view bias = {});
  /// A parameter that is neither norm, nor linear map, nor input.
  void other(std::string_view name);
  /// Stored, but not a parameter.
  void buffer(std::string_view name);

  /// Adds what can be told only at the end: totals, tensors left over, notes on what is not known, and what
  /// of the configuration is not modelled: fields nobody read that are not known to be `harmless`.
  void finish(std::span<const std::string_view> harmless = {});
  [[nodiscard]] bool used(const checkpoint::Tensor& tensor) const { return used_.contains(&tensor); }

 private:
  struct Scope {
    std::string prefix;
    std::optional<int> layer{};
    std::uint64_t stacked = 0;  // entries of stacked tensors; 0 outside
  };
  // A stored parameter, or one entry of a stacked one.
  struct Parameter {
    const checkpoint::Tensor* tensor = nullptr;
    std::span<const std::uint64_t> shape;
    Slice slice;
  };

  [[nodiscard]] std::string full(std::string_view name) const { return scope_.prefix + std::string(name); }
  void add_layers(std::int64_t count);
  void in_scope(Scope scope, const std::function<void()>& body);
  std::optional<Parameter> find(std::string_view name, std::initializer_list<std::string_view> endings);
  std::optional<Slice> find_bias(const std::string& name, std::initializer_list<std::string_view> endings,
                                 std::uint64_t width);
  std::optional<Linear> find_linear(std::string_view role, std::string_view name, std::uint64_t in,
                                    std::uint64_t out);
  [[nodiscard]] std::string wanted(std::string_view name) const;
  void miss(const std::string& tensor);
  void miss_reader(std::string_view name);
  [[noreturn]] void reject(const Parameter& parameter, const std::string& expected) const;

  std::optional<std::size_t> add_norm(std::string_view name, std::string_view role, Placement placement,
                                      std::uint64_t width, std::uint64_t groups);
  void give_writers(Norm& norm);
  void add_reader(const Linear& reader);
  void add_writer(std::optional<Linear> writer, std::string_view name, Need need);
  [[nodiscard]] std::uint64_t read_width() const;

  std::optional<Linear> find_fused(std::string_view name);
  void resolve_heads(const Linear& query, const Linear* key);
  void add_heads(const std::optional<Linear>& query, const std::optional<Linear>& key,
                 const std::optional<Linear>& value, std::uint64_t stride);
  [[nodiscard]] std::string layer_kind(int layer) const;
  void set_rotary(Head& head);
  void set_window(Head& head) const;
  void set_scale(Head& head) const;

  [[nodiscard]] bool repeats_token_embedding(const Linear& map) const;
  void flag_leftovers();
  void flag_attention_leftovers();
  void flag_biased_norms();
  void flag_fields(std::span<const std::string_view> harmless);
  [[nodiscard]] std::string layer_of(std::string_view tensor) const;

  const checkpoint::Checkpoint& checkpoint_;
  const Config& config_;
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
  double logit_scale_ = 1.0;
  double logit_cap_ = 0.0;
  Layout layout_ = Layout::out_in;
  bool relabel_ = false;
  std::uint64_t width_ = 0;
  std::string stack_;
  int applications_ = 1;

  Scope scope_;
  std::optional<std::size_t> reading_;  // the norm being read
  // The norm and the map that led over to this stream, as long as nothing else has written to it.
  std::optional<std::pair<std::size_t, Linear>> led_;
  std::vector<Linear> writers_;  // of the stream, since its last norm
  std::vector<std::string> writing_norms_;
  bool writers_known_ = true;
  std::optional<Linear> token_embedding_;

  struct BiasUse {
    bool present = false;
    std::vector<std::string> absent;
  };
  std::map<std::string, BiasUse, std::less<>> biases_;  // by role, to tell a missing one from none
  std::map<std::string, std::size_t, std::less<>> norm_indices_;
  std::map<std::string, std::size_t> head_indices_;  // first head by query projection
  std::set<std::string, std::less<>> layer_prefixes_;
  std::set<const checkpoint::Tensor*> used_;
  std::uint64_t buffered_ = 0;
  std::uint64_t unlisted_ = 0;
  bool attends_ = false;
};

}  // namespace normscope::model
