#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/norm_kind.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/witness.hpp>

/// Whether two checkpoints of one architecture compute the same function, norm by norm.
namespace normscope::rewrite {

enum class Agreement {
  same,        ///< equal parameters and weights
  equivalent,  ///< other parameters, but the same composites of norm and readers, up to rounding
  quantized,   ///< equivalent up to quantization: what differs further, the block formats explain
  different,   ///< by a witness, or by what is computed: a kind, an eps, a configuration, a missing tensor
  undecided,   ///< nothing proves a difference, and not everything agrees or could be compared
};

[[nodiscard]] const char* to_string(Agreement agreement);

/// One linear map of both models, and the norm that it reads. Errors are of the worst output, relative to its
/// row; 1 where they differ in a value that is not finite.
struct ReaderComparison {
  std::string old_weight;
  std::string new_weight;
  double composite = 0.0;     ///< |W' G' - W G| / |W G|
  double raw = 0.0;           ///< |W' - W| / |W|
  double folded_twice = 0.0;  ///< |W' - W G| / |W G|: a fold that left the gain
  double bias = 0.0;          ///< |c' + W' b' - c - W b| / (|c| + Σ |W b|)
  /// The reader of OLD, and its norm, whose weights NEW has here; empty unless the composite differs and one
  /// is found.
  std::string taken_from{};
  std::string taken_from_norm{};

  /// Whether the composite and the bias do; false for NaN.
  [[nodiscard]] bool agrees(double tolerance) const { return composite <= tolerance && bias <= tolerance; }
};

struct NormComparison {
  std::string old_name;
  std::string new_name;
  Agreement agreement = Agreement::same;
  NormKind old_kind = NormKind::layer;
  NormKind new_kind = NormKind::layer;
  double old_eps = 0.0;
  double new_eps = 0.0;
  double gain_change = 0.0;  ///< |g' - g| / |g|
  /// Cosine of the angle between both gains; for zero gains 1 if they are equal, else 0.
  double gain_cosine = 1.0;
  double bias_change = 0.0;   ///< |b' - b| / |b|, or |b'| where b is 0
  bool agrees_itself = true;  ///< but for its readers
  bool eps_known = true;      ///< whether both files state their eps
  /// What makes each of them this norm, for graphs (`models::Norm::reasons`).
  std::vector<std::string> old_reasons{}, new_reasons{};
  std::vector<ReaderComparison> readers{};

  /// To the rounding of the 32-bit numbers that some formats store.
  [[nodiscard]] bool same_eps() const;
};

/// A tensor that writes to a residual stream. Errors are relative to what one input feature writes.
struct WriterComparison {
  std::string old_weight;
  std::string new_weight;
  double raw = 0.0;
  double centered = 0.0;          ///< without the means over the stream's features
  bool only_layer_norms = false;  ///< of the stream's readers: the mean then does not count

  /// The change that counts.
  [[nodiscard]] double change() const { return only_layer_norms ? centered : raw; }
  [[nodiscard]] bool agrees(double tolerance) const { return change() <= tolerance; }
};

/// A tensor that belongs to no norm, reader or writer.
struct OtherComparison {
  std::string name;
  std::string new_name{};  ///< where NEW calls it otherwise
  bool in_old = true;
  bool in_new = true;
  double change = 0.0;     ///< of the row that changes most, relative
  double tolerance = 0.0;  ///< changes up to this count as rounding
};

/// By what keys or values of a head of NEW are multiplied to be those of OLD.
enum class HeadMap { none, scales, matrix };

[[nodiscard]] const char* to_string(HeadMap map);

/// A head of OLD and the one of NEW that it was compared with, both numbered within their layer. Errors are
/// the largest of an output or an input of its maps, relative as those of readers and writers.
struct HeadMatch {
  std::size_t old_head = 0;
  std::size_t new_head = 0;
  HeadMap keys = HeadMap::none;    ///< what queries undo
  HeadMap values = HeadMap::none;  ///< what the output map undoes
  double error = 0.0;
  bool agrees = true;  ///< to the tolerance, or its format explains what differs
};

/// An MLP of OLD, or an expert of one, and that of NEW which it was compared with.
struct MlpMatch {
  std::optional<std::size_t> old_expert{}, new_expert{};  ///< empty for an MLP that every token passes
  std::size_t neurons = 0;
  std::size_t moved = 0;       ///< neurons that NEW has in another place
  std::size_t scaled = 0;      ///< neurons that NEW has times a factor
  double largest_scale = 1.0;  ///< the factor furthest from 1 by its logarithm, without its sign
  std::size_t different = 0;   ///< neurons that do not agree
  double error = 0.0;
};

/// What matches what in one branch: attention has heads, the others MLPs.
struct BranchComparison {
  std::optional<int> layer{};
  std::string stack{};
  std::string norm;  ///< of OLD, which it reads; if it reads the stream itself, that of its output
  std::vector<HeadMatch> heads{};
  std::vector<MlpMatch> mlps{};
};

enum class FieldEffect {
  none,       ///< both descriptions say the same
  different,  ///< what is computed differs
  unknown,
};

[[nodiscard]] const char* to_string(FieldEffect effect);

/// A configuration field that differs, but for names, versions, training and generation.
struct FieldComparison {
  std::string field;          ///< its path
  std::string before, after;  ///< as JSON; empty where it is not stated
  FieldEffect effect = FieldEffect::unknown;
};

/// Whether the block format of a quantized tensor explains how it differs from the original. Every element
/// then has, of the values that its block represents with the scales that it stores, the one nearest to the
/// original's; up to the rounding of the scales and of the original to 16 bits, and for an original beyond
/// the block's range, up to what the resolution of the scales and quantizers that clip leave
/// (`files::QuantizedElement`). In formats whose scales quantizers choose after the codes (Q4_0, Q4_1, Q5_0,
/// Q5_1, IQ4_NL), it may have the value next to the nearest.
struct Quantization {
  std::string old_weight;
  std::string new_weight;
  std::string format;            ///< such as "Q4_K"
  bool new_is_quantized = true;  ///< else OLD is
  bool explained = false;
  /// Whether quantizers of this format do nothing else, so that what is not explained is of another original.
  /// Those of formats that a config.json states may also make up for errors elsewhere (GPTQ) or learn scales.
  bool is_by_rule = true;
  // The next members are about the element that is furthest beyond, or closest to, what its block explains:
  std::uint64_t row = 0;    ///< of the stored tensor
  std::uint64_t block = 0;  ///< of the row
  /// Its error, in steps between values that the block represents; empty if that is one value, or if an
  /// element is not finite.
  std::optional<double> steps{};
  std::uint64_t blocks = 0;
  std::uint64_t wrong_blocks = 0;  ///< with an element that is not explained
};

struct ComparisonFinding {
  std::string kind;  ///< "eps", "offset", "lost_gain", ...
  std::string text;

  /// Whether what was found changes nothing that is computed, beyond a format's rounding.
  [[nodiscard]] bool keeps_function() const;
};

/// What counts as rounding: that of the coarsest dtype, or what block formats explain as well.
enum class Tolerance { rounding, quantization };

struct Comparison {
  Agreement agreement = Agreement::same;
  Tolerance tolerates = Tolerance::rounding;
  double tolerance = 0.0;  ///< relative errors up to this count as rounding
  std::vector<NormComparison> norms{};
  std::vector<WriterComparison> writers{};
  /// In the order of the forward pass; empty for models whose forward pass is not modelled, and for graphs.
  std::vector<BranchComparison> branches{};
  std::vector<OtherComparison> others{};
  /// Readers and writers that differ and of which one is quantized.
  std::vector<Quantization> quantizations{};
  std::vector<FieldComparison> configuration{};
  /// What heads, logits or activations compute otherwise, in sentences.
  std::vector<std::string> computations{};
  std::vector<ComparisonFinding> findings{};
  std::vector<std::string> not_compared{};  ///< in words
  /// Empty if the models are equivalent, or if none was found or sought.
  std::optional<Witness> witness{};
  std::string no_witness{};  ///< why there is none, in words; empty for models that need none

  /// Whether the format of a matrix explains how it differs, and that counts as rounding.
  [[nodiscard]] bool is_quantization(std::string_view new_weight) const;
};

/// Compares norms in the order of the forward pass: kinds, eps, gains and biases, and for each reader the
/// composite W G and c + W b. Two models are equivalent if all composites and writers agree to `tolerance`:
/// two roundings of the coarsest dtype of their weights, or 1e-7 if that is more. The mean of a writer does
/// not count if only LayerNorms read its stream. Readers of LayerNorms are compared up to the mean over their
/// inputs, unembeddings up to a shift of all logits alike. If maps differ, symmetries are looked for: an
/// orthogonal matrix of a stack's stream; heads, neurons and experts in another order; maps of values, keys
/// and neurons that another map undoes.
///
/// Configurations are compared by what the descriptions say: heads, their scores and rotations, logits,
/// activations. A field that differs and that no description contains makes two models at most `undecided`.
/// So does whatever is not modelled (an adapter, scales of quantized weights, an unknown model_type): then
/// tensors are compared as they are stored, and are `same` or `undecided`.
///
/// Where a tensor is quantized, `quantizations` says whether its format explains the difference; with
/// `Tolerance::quantization` it then counts as rounding, and the models are at best `quantized`.
///
/// Models whose weights differ, or that are undecided, are run to find a witness (`seek_witness`). Without
/// one, they are `different` only if they compute otherwise by their descriptions, or a tensor is missing;
/// otherwise `undecided`, and `no_witness` says why.
///
/// A file that states a graph (ONNX) has other names, transposed matrices and no writers. Its norms, what
/// reads them and its other tensors are matched by their values, and two such models are at most `undecided`,
/// since the operations of the graph are not compared.
///
/// Errors    Unsupported if the architecture is not known or not the same, or norms and shapes do not match
///
/// Cost      reads every reader and writer of both once, and where they differ some times more; memory 64 MiB
///           and a row of the largest matrix
[[nodiscard]] Comparison compare(const files::Checkpoint& old_file, const models::Model& old_model,
                                 const files::Checkpoint& new_file, const models::Model& new_model,
                                 const Progress& progress = {}, Tolerance tolerates = Tolerance::rounding);

}  // namespace normscope::rewrite
