#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/indices.hpp>

/// Describes the model in a checkpoint: its norms in the order of the forward pass with their readers and
/// writers, its heads, its vocabulary, and missing tensors.
///
/// It is also the one place that decides which claims a file supports. Each map, norm, head, vocabulary and
/// decoder has `not_modelled`: what stands in the way of numbers about it. All are filled when a file is
/// described, `why_no_logits` and its siblings put them in words, and `read_weight`, `read_bias` and
/// `read_norm`, the only way to the values, refuse what is not modelled: no command can forget to ask
/// (tests: Gate.*, tests/cli/gate_test.py).
namespace normscope::models {

/// Consecutive elements of a stored tensor, flattened row-major.
struct Slice {
  std::string tensor;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  /// Index on the tensor's first axis where the slice is one entry of a stacked tensor.
  std::optional<std::uint64_t> index{};

  /// In the form that `read_array` accepts: "name" or "name[3]".
  [[nodiscard]] std::string selector() const;
};

/// How a stored matrix maps features: `out_in` is y = W x (torch Linear), `in_out` is y = Wᵀ x
/// (GPT-2's Conv1D).
enum class Layout { out_in, in_out };

/// A linear map, or the part of a stored one with a single purpose (the query rows of a fused query-key-value
/// matrix). Output feature j of the part is output feature `first_out + j` of the stored matrix, or
/// `out_indices[j]` if the part is not consecutive.
struct Linear {
  std::string role;  ///< "query", "key", "value", "attention out", "mlp in", "mlp gate", "mlp out",
                     ///< "unembedding", ...
  Slice weight;
  std::optional<Slice> bias{};
  Layout layout = Layout::out_in;
  std::uint64_t in = 0;          ///< features the stored matrix reads
  std::uint64_t stored_out = 0;  ///< output features the stored matrix has
  std::uint64_t first_out = 0;
  std::uint64_t out = 0;  ///< output features of this part
  Indices out_indices{};
  /// What stands between the stored matrix and the map that the model applies, as for a head: a tensor beside
  /// it (LoRA, the scale of quantized weights), packed values, a configuration field. `read_weight` and
  /// `read_bias` refuse such a map. Sizes of packed matrices that are not known are 0.
  std::string not_modelled{};

  /// Whether `part`, such as the rows of one head, begins in this map and has its role and stored matrix.
  [[nodiscard]] bool covers(const Linear& part) const;
  /// The output feature of the stored matrix that is output feature `output` of this part.
  [[nodiscard]] std::uint64_t stored_output(std::uint64_t output) const;
};

/// Where a number of the model comes from.
enum class Source { config, tensors, metadata, assumed };

/// Position of a norm: before a branch (pre), after the addition of a branch (post), within a branch (inside:
/// on heads, or on the output of a branch), or unknown.
enum class Placement { pre, post, inside, unknown };

/// One application of a normalization layer in the forward pass. Shared parameters (ALBERT) appear
/// once, with `applications` > 1.
struct Norm {
  std::string name;  ///< tensor name without its last part, such as "h.0.ln_1"; or "rms_att[0]"
  std::string role;  ///< "attention input", "mlp input", "final", "embedding", "attention output", ...
  std::optional<int> layer{};
  std::string stack{};  ///< "encoder" or "decoder" if a model has more than one, else empty
  NormKind kind = NormKind::layer;
  std::size_t width = 0;
  std::size_t groups = 1;
  double eps = 1e-5;
  Source eps_source = Source::assumed;
  std::optional<Slice> gain{};  ///< one entry for each feature, or one for all (ScaleNorm)
  std::optional<Slice> bias{};
  std::optional<Slice> alpha{};   ///< of elementwise kinds
  std::optional<Slice> shift{};   ///< of derf
  double gain_offset = 0.0;       ///< 1 where the file stores gain − 1 (Gemma)
  bool gain_was_shifted = false;  ///< 1 is in the stored gain, of a class that stores gain − 1 (mlx-lm)
  Placement placement = Placement::unknown;
  int applications = 1;
  bool order_known = true;         ///< whether its index in `norms` is its order in the forward pass
  bool connections_known = false;  ///< whether `readers` and `writers` are complete
  bool readers_known = false;      ///< whether `readers` are, which a fold of the gain needs
  std::vector<Linear> readers{};   ///< linear maps that read this norm's output directly
  /// Tensors that have written to the stream of this norm since the previous norm of that stream; for
  /// pre-norms, earlier writers contribute as well, through the residual.
  std::vector<Linear> writers{};
  /// Names of norms whose output itself has entered that stream since then: the previous norm of a post-norm
  /// block, or the norm at the end of a branch (Gemma 2).
  std::vector<std::string> writing_norms{};
  std::string not_modelled{};          ///< as for a head, for its parameters; `read_norm` refuses such a norm
  std::vector<std::string> reasons{};  ///< of a graph: what makes it this norm (`StatedNorm::reasons`)
  /// Whether only its name and shape tell its kind, its groups and the offset of its gain.
  bool kind_is_assumed = false;
  /// Whether it divides by several positions together, or may, as a GroupNorm between convolutions does: its
  /// width then bounds no entry of its output.
  bool spans_positions = false;

  [[nodiscard]] NormEffect effect() const { return effect_of(kind, eps, width / groups); }
};

/// Why nothing is proved about the readers of `norm`.
///
/// Requires  the norm does not normalize
[[nodiscard]] std::string not_normalizing(const Norm& norm);

/// A rotary position embedding: at position t, pair j of the first `dims` coordinates of a query or key is
/// rotated by t times frequencies[j]. The other coordinates are unchanged.
struct Rotary {
  std::size_t dims = 0;      ///< even, at most head_dim
  bool interleaved = false;  ///< pair j is (2j, 2j + 1), else (j, j + dims/2)
  /// Radians per token (dims/2); empty if they depend on the length of the context (dynamic NTK).
  std::vector<double> frequencies{};
  double score_factor =
      1.0;                  ///< multiplies the rotated coordinates' part of a score (YaRN's factor, squared)
  std::size_t context = 0;  ///< positions the model was trained for, 0 if unknown
};

/// Biases of scores by position (ALiBi): the key at position j has slope · j added to its scores, after their
/// scale. Softmax takes that for a bias by distance.
struct Alibi {
  double slope = 0.0;
  /// What multiplies the product of a slope and a position that are both rounded to bfloat16 (Falcon); 0:
  /// nothing is rounded.
  double factor_of_rounded = 0.0;

  /// What is added at a position.
  [[nodiscard]] double bias(std::size_t position) const;
  [[nodiscard]] bool operator==(const Alibi&) const = default;
};

/// One attention head, as parts of the projections.
struct Head {
  int layer = 0;
  std::string stack{};  ///< stack of its layer, as for a norm; empty if all heads are in one stack
  int head = 0;
  int key_value_head = 0;
  std::size_t head_dim = 0;
  double scale = 0.0;  ///< of its scores: 1/sqrt(head_dim) unless the configuration says otherwise
  std::string norm;    ///< name of the norm it reads, empty when unknown
  /// The linear map between `norm` and the projections, if they do not read the norm directly (the first pass
  /// through ALBERT's layers).
  std::optional<Linear> between{};
  /// Norms that later passes through the same weights read instead of `norm` (ALBERT).
  std::vector<std::string> later_norms{};
  std::optional<Linear> query{}, key{}, value{};
  std::optional<Rotary> rotary{};
  double soft_cap = 0.0;                ///< c of c tanh(score/c), 0 without one
  std::optional<std::size_t> window{};  ///< number of positions that it attends to, including its own
  double clip = 0.0;  ///< queries, keys and values are clamped to ±clip, behind their norms; 0: not
  std::optional<Alibi> alibi{};
  std::optional<Slice> sink{};  ///< a learned score beside those of the keys, whose weight has no value
  /// What changes its scores and is not modelled: configuration fields with their values, tensors beside its
  /// projections or its norm. Its scores then have no bound. Empty if there is nothing.
  std::string not_modelled{};

  /// "layer 0 head 2", or "decoder layer 0 head 2" where the model has several stacks.
  [[nodiscard]] std::string place() const;
};

struct Vocabulary {
  std::size_t size = 0;
  std::optional<Linear> unembedding{};
  bool tied = false;
  std::string final_norm;      ///< name of the norm the unembedding reads, empty if it reads none directly
  double logit_scale = 1.0;    ///< logits are this times W h + c
  double soft_cap = 0.0;       ///< C of C tanh(logit/C), 0 without one
  std::string not_modelled{};  ///< as for a head, for logits
};

/// The nonlinearity of an MLP: GELU by the error function or by its usual approximation with tanh, SiLU,
/// ReLU, ReLU squared.
enum class Activation { gelu, gelu_tanh, silu, relu, squared_relu };

/// In gpt-oss a gated MLP computes (u + 1) g σ(α g) of its input u, clamped to ±limit, and its gate g, which
/// is at most `limit`, whatever the activation.
struct ClampedGate {
  double alpha = 0.0;
  double limit = 0.0;
  [[nodiscard]] bool operator==(const ClampedGate&) const = default;
};

/// How a mixture of experts uses them. The score of an expert is the softmax of the router's outputs, or the
/// sigmoid of its own; those with the largest scores are used, each multiplied by its score. Where the router
/// has a correction (`Model::others`, "router correction"), it is added to scores to choose, not to multiply.
struct Routing {
  std::size_t used = 0;     ///< experts that each token uses
  bool normalized = false;  ///< whether the scores of those used are divided by their sum
  bool sigmoid = false;
  double scale = 1.0;      ///< of the scores, after that
  double least_sum = 0.0;  ///< the least divisor
};

/// What the forward pass of a decoder computes beyond its norms, heads and linear maps. Stated only for
/// architectures whose blocks are causal self-attention and an MLP, or a mixture of gated MLPs;
/// and for encoders of BERT's kind.
struct Decoder {
  std::optional<Activation> activation{};  ///< empty if neither file nor architecture determine it
  /// That of a language head's own map, where it is not that of the MLPs.
  std::optional<Activation> head_activation{};
  std::optional<ClampedGate> clamped_gate{};
  double embedding_scale = 1.0;      ///< of the token embedding
  double branch_scale = 1.0;         ///< of the outputs of attention and MLP
  std::uint64_t first_position = 0;  ///< row of the position embedding for the first token
  std::optional<Routing> routing{};  ///< of mixtures of experts
  /// An encoder: heads see all positions, and norms behind sums give the stream itself.
  bool encodes = false;
  /// The token that takes the position before `first_position` and is not counted (RoBERTa's padding).
  std::optional<std::uint64_t> padding{};
  std::string not_modelled{};  ///< as for a head
};

/// A part of a graph that divides by the root of a sum or mean, as norms do, and is none.
struct NearMiss {
  std::string node;  ///< that takes the root: "Sqrt root"
  std::string why;
};

/// Normalization layers of a file that are not analysed.
struct OtherNorms {
  std::string kind;  ///< "BatchNorm"
  std::size_t count = 0;
};

struct Model {
  std::string architecture;  ///< short name such as "gpt2"; "unknown" where none matched
  std::string title;         ///< "GPT-2 or minGPT"
  std::string
      evidence;  ///< reason for that architecture: "config.json model_type gpt2", "tensor names h.*.ln_1"
  bool centres_exactly = false;      ///< whether centred models of that architecture compute the same
  bool rotates_exactly = false;      ///< whether rotated ones do
  std::string in_llama_cpp{};        ///< its architecture in llama.cpp's names; empty for none
  bool in_transformer_lens = false;  ///< whether TransformerLens' names describe such models too
  std::set<std::string> buffers{};   ///< tensors that are not parameters, such as causal masks
  int layers = 0;                    ///< of all stacks together; shared layers count once per application
  std::size_t width = 0;
  std::size_t heads_per_layer = 0;
  std::size_t key_value_heads = 0;
  std::uint64_t parameters = 0;
  /// In the order of the forward pass; norms of unknown order follow, sorted by name.
  std::vector<Norm> norms;
  std::vector<OtherNorms> other_norms{};
  /// Linear maps of a decoder that read the residual stream itself, behind no norm, in the order of the pass.
  std::vector<Linear> stream_readers{};
  std::vector<NearMiss> near_misses{};  ///< of a graph
  std::vector<Head> heads;
  std::optional<Vocabulary> vocabulary{};
  std::optional<Decoder> decoder{};
  /// Parameters that no norm's reader or writer is, as matrices, or as one row each, in the order of the
  /// forward pass. Their roles tell which are the same in files of other names. Listed for RWKV; of mixtures
  /// of experts their "router correction", one for each router.
  std::vector<Linear> others{};
  /// What may act anywhere, such as a configuration field that is not known; part of the `not_modelled` of
  /// each map, head and decoder and of the vocabulary.
  std::string not_modelled{};
  /// Paths of the configuration fields that this description was computed from.
  std::set<std::string> fields_read{};
  std::vector<std::string> missing;  ///< tensors the architecture needs and the file lacks
  std::vector<std::string> notes;    ///< what was assumed, reinterpreted or could not be determined

  [[nodiscard]] bool is_known() const { return architecture != "unknown"; }
};

/// "33 BatchNorm and 2 GroupNorm": the norms that are not analysed; empty if there are none.
[[nodiscard]] std::string other_norms_text(const Model& model);

/// Whether its tensors have TransformerLens' names.
[[nodiscard]] bool has_lens_names(const Model& model);

/// Whether files of both architectures can hold the same model: they are equal, or one is the other in
/// llama.cpp's or TransformerLens' names.
[[nodiscard]] bool is_same_family(const Model& a, const Model& b);

/// The first layer number among the components of a tensor's name, which are separated by '.' and '/'.
[[nodiscard]] std::optional<int> first_number(std::string_view name);

/// Why nothing can be said about the logits: the architecture is unknown, there is no map to a vocabulary,
/// it reads no norm, or something stands in the way. Empty if the file supports claims about them.
[[nodiscard]] std::string why_no_logits(const Model& model);

/// What the scores of a head depend on beyond its queries and keys as a norm's maps give them, such as a
/// clamp or a bias by position: the forward pass has it, bounds do not. Empty if there is nothing.
[[nodiscard]] std::string beyond_bounds(const Head& head);

/// Why nothing can be said about the scores of a head; claims about them also need the norm that it reads.
[[nodiscard]] std::string why_no_scores(const Head& head);

/// Why nothing can be said about any head's scores: the reason for the first one. Empty if some head's scores
/// are known.
[[nodiscard]] std::string why_no_heads(const Model& model);

/// Null for a name that no norm has.
[[nodiscard]] const Norm* find_norm(const Model& model, const std::string& name);

/// The norm applied to queries or keys before the scores; null if there is none.
[[nodiscard]] const Norm* own_norm(const Model& model, const Linear& part);

/// Turns a query or key by its position.
///
/// Requires  frequencies are listed; `part` has at least `rotary.dims` entries
void rotate(const Rotary& rotary, std::size_t position, std::span<double> part);

/// What a user states about a model because its file does not.
struct Stated {
  std::string architecture{};  ///< its short name, which decides instead of model_type and tensor names
  std::uint64_t heads = 0;     ///< attention heads of a layer, 0 if not stated
  /// A file whose configuration is that of the checkpoint too; null: the checkpoint's own.
  const files::Checkpoint* configuration = nullptr;

  [[nodiscard]] bool empty() const { return architecture.empty() && heads == 0 && configuration == nullptr; }
};

/// Recognises the architecture of `checkpoint` and describes it. Unknown architectures are no error: their
/// norms are found by shape and name, and their connections are marked unknown.
///
/// Errors    Format when config.json is not a JSON object; Shape when a tensor of a recognised
///           architecture has the wrong shape (names file, tensor and expectation); Argument for a stated
///           architecture that is unknown or whose tensors are not there, and for a stated number of heads
///           that contradicts the configuration
[[nodiscard]] Model describe(const files::Checkpoint& checkpoint, const Stated& stated = {});

/// The part of a description that contains what a configuration field says.
enum class Described { nowhere, norms, heads, logits, stream };

/// A configuration field that differs between two checkpoints and may affect what they compute.
struct ChangedField {
  std::string field;          ///< its path, such as "rope_scaling.factor"
  std::string before, after;  ///< as JSON; empty where it is not stated
  /// Where the descriptions of both models would differ if it had an effect; nowhere if they do not tell.
  Described described = Described::nowhere;
};

/// The fields that differ between the configurations of two checkpoints, in the order of their paths. Names,
/// versions and fields of training and generation are left out, null and absent fields are equal. Of files
/// that state their configuration in another form (GGUF), only fields of both are compared.
///
/// Errors    as `describe`
[[nodiscard]] std::vector<ChangedField> changed_fields(const files::Checkpoint& old_file,
                                                       const Model& old_model,
                                                       const files::Checkpoint& new_file,
                                                       const Model& new_model);

/// Whether a checkpoint has a configuration: config.json, or metadata that state one.
[[nodiscard]] bool has_configuration(const files::Checkpoint& checkpoint);

/// The norm itself, with gain and bias read (the gain as used, with `gain_offset` added).
///
/// Errors    as `read_weight`
[[nodiscard]] NormSpec read_norm(const files::Checkpoint& checkpoint, const Norm& norm);

/// A norm whose output has, feature by feature, at least the largest magnitude of every norm that `norm` may
/// be: `norm` itself, or, where its kind is assumed, an RMSNorm of one group with the larger of the gain as
/// stored and 1 more.
///
/// Errors    as `read_norm`; Unsupported for a norm that spans positions
[[nodiscard]] NormSpec read_widest_norm(const files::Checkpoint& checkpoint, const Norm& norm);

/// What the entries of a stored gain tell about how often 1 was added to what had been stored before, in the
/// type that stores them. No test by the size of gains is one: gains near 0, 1 and 2 all exist.
///
/// Properties  1. `most` is 0 only if an entry is not fl(1 + w) for any w of the type, and 1 only if one is
/// not
///             fl(1 + fl(1 + w)) (tests: GainConvention.NoSumOfTheTypeIsExcluded). A sum in a wider type that
///             is rounded afterwards may be any value.
struct GainShifts {
  std::optional<int> most{};  ///< times that 1 can have been added, 0 or 1; empty: no entry tells
  std::size_t index = 0;      ///< of the entry that tells
  double value = 0.0;
  int bits = 0;  ///< p of the type, whose sums below 1/2 are multiples of 2^-p; 0 for a type of another kind
  /// All entries below 1/2 are such multiples, which of values of their sizes one in 2^`evidence_bits` is; 0
  /// if `most` is 0, or if the type is wider than what its entries use.
  double evidence_bits = 0.0;
};
[[nodiscard]] GainShifts gain_shifts(std::span<const double> stored, Dtype dtype);
/// Errors    as `read_norm`
[[nodiscard]] GainShifts gain_shifts(const files::Checkpoint& checkpoint, const Norm& norm);

/// Rows [first, first + count) of the matrix W of y = W x + b, whatever its layout in the file.
///
/// Shapes    result (count × linear.in), row-major
///
/// Errors    Argument for a tensor that is not there; Shape where it is too small; Unsupported for one that
///           is not floating-point, and for a map that is `not_modelled`
///
/// Requires  first + count <= linear.out
[[nodiscard]] std::vector<double> read_weight(const files::Checkpoint& checkpoint, const Linear& linear,
                                              std::uint64_t first, std::uint64_t count);

/// Rows to ask `read_weight` for at a time: 64 where a row's weights are stored together; as many as 32 MiB
/// of float64 hold where the matrix is stored in × out, since any of its rows leads through the whole matrix.
[[nodiscard]] std::uint64_t rows_at_once(const Linear& linear);

/// The only number of a slice. Errors as `read_weight`.
[[nodiscard]] double read_number(const files::Checkpoint& checkpoint, const Slice& slice);

/// The map's b (linear.out), empty where it has none. Errors as `read_weight`.
[[nodiscard]] std::vector<double> read_bias(const files::Checkpoint& checkpoint, const Linear& linear);

/// A linear map that reads a norm's output, given by the names of its tensors.
struct StatedReader {
  std::string weight;
  std::string bias{};   ///< empty for none
  bool in_out = false;  ///< whether the weight is stored [in, out]
};

/// A normalization layer that the file states explicitly, as opposed to one recognised by tensor names.
struct StatedNorm {
  std::string name;
  NormKind kind = NormKind::layer;
  std::uint64_t width = 0;
  double eps = 0.0;
  std::string gain{};        ///< tensor of `width` elements, or empty
  std::string bias{};        ///< likewise
  double gain_offset = 0.0;  ///< 1 where the graph adds 1 to the gain
  std::int64_t axis =
      -1;  ///< normalized axis, counted from the end; -1 also for several last axes taken as one
  std::vector<StatedReader> readers{};
  /// Linear maps that read the norm in a way that is not understood, with the reason: "W (Gemm with alpha
  /// 4)".
  std::vector<std::string> other_readers{};
  /// Whether a parameter is also an input of the graph, whose caller may give another.
  bool is_default = false;
  /// What in the file makes it this norm: the operator, or the identity with its nodes, and its constants.
  std::vector<std::string> reasons{};
};

struct StatedNorms {
  std::vector<StatedNorm> norms;
  /// Operators that normalize in a way that is not understood, with the reason.
  std::vector<std::string> not_understood{};
  std::vector<NearMiss> near_misses{};
};

/// The norms that the graph of an ONNX file states, in its order: operators (LayerNormalization,
/// RMSNormalization and those of com.microsoft), and norms expressed as arithmetic. A norm is stated only if
/// every operator of it, with all attributes and the shapes of its constants, is understood. Those of unknown
/// width are left out. Other files state none.
///
/// Errors    Unsupported if the list takes more memory than the graph takes in its file and 32 MiB
[[nodiscard]] StatedNorms stated_norms(const files::Checkpoint& checkpoint);

}  // namespace normscope::models
