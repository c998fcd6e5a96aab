#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/attribution.hpp>
#include <normscope/analysis/in_model.hpp>
#include <normscope/analysis/observer.hpp>
#include <normscope/analysis/ranges.hpp>
#include <normscope/analysis/report.hpp>
#include <normscope/analysis/trace.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/heads/heads.hpp>
#include <normscope/models/model.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/nets/rnn/counting.hpp>
#include <normscope/nets/rnn/network.hpp>
#include <normscope/nets/rnn/train.hpp>
#include <normscope/nets/scatter.hpp>
#include <normscope/nets/train.hpp>
#include <normscope/nets/train_runs.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/proof/separate.hpp>
#include <normscope/rewrite/compare.hpp>
#include <normscope/rewrite/rewrite.hpp>
#include <normscope/selectability/reach.hpp>
#include <normscope/selectability/select.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/signature/compare.hpp>
#include <normscope/signature/extract.hpp>
#include <normscope/signature/verify.hpp>
#include <normscope/verify/verify.hpp>

/// JSON as text for files and terminals.
namespace normscope {

/// One line, or one line per entry if `indent` is 0 or more. Bytes of names that are not UTF-8 become
/// replacement characters.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace normscope

/// Common fields of results with certificates: the inputs they were computed from, and where their points
/// are.
namespace normscope::results {

/// The schema of one kind of document.
struct Schema {
  std::string name{};        ///< as in docs/schemas/<name>.schema.json
  std::string id{};          ///< what such documents call it, in Markdown
  std::string written_by{};  ///< the command that writes such documents, in Markdown
  std::string text{};        ///< JSON Schema 2020-12
};

/// The schemas of all documents, made from the fields that their JSON is made from.
[[nodiscard]] std::vector<Schema> schemas();

/// Largest number of values of points stored in a result itself; more are only written to the folder of
/// certificates.
inline constexpr std::size_t most_inline_numbers = 1'000'000;

/// A report, schema "normscope.report/1" (docs/schemas/report.schema.json). A spectrum is a
/// selection of ranks, dense at the top; `whole_spectra` lists every rank. At most
/// `analysis::listed_outliers` outliers of a norm are listed.
[[nodiscard]] nlohmann::ordered_json report(const analysis::Report& audited, bool whole_spectra = false);

/// A checkpoint's tensors and the model found in it, schema "normscope.inspect/1"
/// (docs/schemas/inspect.schema.json).
[[nodiscard]] nlohmann::ordered_json inspection(const files::Checkpoint& checkpoint,
                                                const models::Model& model);

/// Directions, one per row.
struct Directions {
  std::vector<double> values{};
  std::size_t width = 1;

  [[nodiscard]] std::size_t size() const { return values.size() / width; }
  [[nodiscard]] std::span<const double> row(std::size_t index) const {
    return {values.data() + index * width, width};
  }
  [[nodiscard]] MatrixView<double> view() { return {values.data(), size(), width}; }
};

/// The `count` longest principal axes of an image, or all of fewer.
[[nodiscard]] Directions longest_axes(const norm::NormImage& image, std::size_t count, unsigned threads);

/// An orthonormal basis of the directions that the norm erases.
[[nodiscard]] Directions null_space(const norm::NormImage& image);

/// Comparison of the image of a norm with the image for another gain:
/// `norm::image_similarity`, `norm::longest_axes_cosine`.
struct GainComparison {
  double similarity = 0.0;
  double top_axis_cosine = 0.0;
};

/// The model's norm that a gain belongs to.
struct NormSource {
  std::string norm{};                ///< as in `report`
  std::string model{};               ///< its title
  std::vector<std::string> taken{};  ///< the options whose values are the norm's
};

/// A norm applied to keys before they are analysed.
struct KeyNorm {
  NormKind kind = NormKind::layer;
  std::vector<std::string> steps{};
  std::size_t groups = 1;
  double eps = 0.0;
  std::optional<NormSource> source{};
};

/// The result of `normscope apply`.
struct Applied {
  std::string output{};  ///< the file, or empty
  Dtype dtype = Dtype::F64;
  std::size_t rows = 0;
  std::size_t width = 0;
  std::optional<NormSource> source{};  ///< of the norm
};

/// Schema "normscope.apply/1" (docs/schemas/apply.schema.json).
[[nodiscard]] nlohmann::ordered_json applied(const Applied& result);

/// Parts of the document besides the image.
struct GeometryDetails {
  Directions axes{};                                    ///< the longest principal axes, in order
  std::optional<Directions> null_space{};               ///< an orthonormal basis
  std::optional<analysis::ParameterStatistics> gain{};  ///< of a gain that was given
  std::optional<GainComparison> compared{};
  std::optional<NormSource> source{};
};

/// The image of a norm, schema "normscope.geometry/1" (docs/schemas/geometry.schema.json).
[[nodiscard]] nlohmann::ordered_json geometry(const NormSpec& spec, const norm::NormImage& image,
                                              const GeometryDetails& details);

/// Curvature of `spec` at some number of rows, per number of groups, schema "normscope.curvature/1"
/// (docs/schemas/curvature.schema.json).
[[nodiscard]] nlohmann::ordered_json curvature(const NormSpec& spec, std::size_t rows,
                                               const std::vector<norm::GroupCurvature>& groups,
                                               const std::optional<NormSource>& source);

/// Parts of the document besides the bounds.
struct HeadDetails {
  bool queries = false;                    ///< queries, keys and rows that attain the extremes
  bool certificates = false;               ///< certificates from which a checker proves each bound
  std::optional<verify::Inputs> inputs{};  ///< what it was computed from
};

/// The heads of a checkpoint and their bounds, schema "normscope.heads/1" (docs/schemas/heads.schema.json).
[[nodiscard]] nlohmann::ordered_json heads(const files::Checkpoint& checkpoint, const models::Model& model,
                                           const std::vector<heads::HeadReach>& bounded,
                                           const HeadDetails& details);

/// Parts of a result of `reach` besides the survey.
struct ReachDetails {
  std::string source;                     ///< name of the model, or of the unembedding
  const std::vector<std::string>& names;  ///< of tokens; empty without a known vocabulary
  const std::vector<std::string>& notes;  ///< assumptions and unknowns of the model's description
  const verify::Inputs& inputs;
  double tolerance = 1e-12;
  std::string folder{};  ///< of the certificates, or empty
  bool complete = true;  ///< false if the search was interrupted
};

/// Which tokens a vocabulary head can output, schema "normscope.reach/1" (docs/schemas/reach.schema.json).
[[nodiscard]] nlohmann::ordered_json reach(const selectability::VocabularyHead& head,
                                           const selectability::Survey& results, const ReachDetails& details);

/// Parts of a result of `select` besides the answers.
struct SelectDetails {
  std::size_t width = 0;          ///< of the keys
  std::optional<KeyNorm> norm{};  ///< applied to the keys first
  bool exact = false;             ///< whether rational arithmetic was requested
  const verify::Inputs& inputs;
  std::string folder{};  ///< of the certificates, or empty
};

/// Which keys can be selected, schema "normscope.select/1" (docs/schemas/select.schema.json).
[[nodiscard]] nlohmann::ordered_json select(const selectability::Selection& selection,
                                            const SelectDetails& details);

/// Shares of random keys that cannot be selected, schema "normscope.select-table/1"
/// (docs/schemas/select-table.schema.json). `norm` as in `SelectDetails`.
[[nodiscard]] nlohmann::ordered_json random_table(const selectability::RandomTable& table,
                                                  const std::vector<selectability::RandomCell>& cells,
                                                  const std::optional<KeyNorm>& norm);

/// The result of `separate` for rows of several classes, sorted by class.
struct SeparateResult {
  std::size_t width;
  std::span<const std::size_t> class_rows;  ///< number of rows of each class
  std::span<const std::size_t> given_row;   ///< a row's index in the input that its class came from
  std::span<const std::int64_t> classes;    ///< the label of each class; none for A and B
  double ssr;
  const nets::LinearRatio& linear;
  const std::optional<proof::Separation>& separation;  ///< of two classes
  const verify::Inputs& inputs;
};

/// How well classes separate, schema "normscope.separate/1" (docs/schemas/separate.schema.json).
[[nodiscard]] nlohmann::ordered_json separate(const SeparateResult& result);

/// The ranges of the numbers directly behind every norm of a model, schema "normscope.ranges/1"
/// (docs/schemas/ranges.schema.json).
[[nodiscard]] nlohmann::ordered_json ranges(const files::Checkpoint& checkpoint, const models::Model& model,
                                            const analysis::ModelRanges& found);

/// Statistics of the rows that entered the norms of a model, in the order of their first calls, schema
/// "normscope.activations/1" (docs/schemas/activations.schema.json). `not_understood` has the names of norms
/// that were called and are not measured, each with the reason.
[[nodiscard]] nlohmann::ordered_json activations(
    const std::string& model, const std::vector<analysis::ObservedNorm>& norms,
    const std::vector<std::pair<std::string, std::string>>& not_understood,
    const analysis::InModel* within = nullptr);

/// Components and a logit, schema "normscope.attribute/1" (docs/schemas/attribute.schema.json);
/// `inputs` name the model, and `with_proofs` adds what `verify` needs.
[[nodiscard]] nlohmann::ordered_json attribution(const verify::Inputs& inputs,
                                                 const analysis::Attribution& attributed,
                                                 const std::vector<std::string>& names,
                                                 bool with_proofs = false);

/// The tokens of a text in the norms of a model, schema "normscope.token-trace/1"
/// (docs/schemas/token-trace.schema.json). `names` are those of the tokens, empty if they are not known.
[[nodiscard]] nlohmann::ordered_json token_trace(const files::Checkpoint& checkpoint,
                                                 const analysis::TokenTrace& trace,
                                                 const std::vector<std::string>& names);

/// The plan of a rewrite and, once it is written, its certificates (`result`, null for a plan alone): schema
/// "normscope.rewrite/1" (docs/schemas/rewrite.schema.json).
[[nodiscard]] nlohmann::ordered_json rewrite(const files::Checkpoint& checkpoint, const models::Model& model,
                                             const rewrite::Plan& plan, const rewrite::Result* result);

/// A rewrite undone, schema "normscope.undo/1" (docs/schemas/undo.schema.json).
[[nodiscard]] nlohmann::ordered_json undone(const files::Checkpoint& rewritten,
                                            const rewrite::Restoration& restoration);

/// Two checkpoints compared, schema "normscope.compare/1" (docs/schemas/compare.schema.json).
[[nodiscard]] nlohmann::ordered_json comparison(const files::Checkpoint& before,
                                                const files::Checkpoint& after,
                                                const rewrite::Comparison& comparison);

/// The model or ellipse against which rows were tested.
struct SignatureSource {
  std::string path;
  std::string kind;  ///< "model" or "ellipse"
  std::string outputs;
  std::size_t dimension = 0;  ///< of u
  double temperature = 1.0;
};

/// Whether rows of outputs come from a model, schema "normscope.signature-verify/1"
/// (docs/schemas/signature-verify.schema.json).
[[nodiscard]] nlohmann::ordered_json signature_verify(const signature::Verification& result,
                                                      const signature::Outputs& outputs,
                                                      const SignatureSource& source);

/// The ellipse estimated from outputs, schema "normscope.signature-extract/1"
/// (docs/schemas/signature-extract.schema.json). `path` is where the ellipse is written.
[[nodiscard]] nlohmann::ordered_json signature_extract(const signature::Extraction& result,
                                                       const signature::Subspace& subspace,
                                                       const signature::Outputs& outputs,
                                                       const std::string& path);

/// The norm behind outputs, schema "normscope.signature-kind/1" (docs/schemas/signature-kind.schema.json).
[[nodiscard]] nlohmann::ordered_json signature_kind(const signature::Kind& result,
                                                    const signature::Subspace& subspace,
                                                    const signature::Outputs& outputs);

/// Two ellipses, schema "normscope.signature-compare/1" (docs/schemas/signature-compare.schema.json).
[[nodiscard]] nlohmann::ordered_json signature_compare(const signature::Comparison& result,
                                                       const std::string& one, const std::string& other);

/// The verification of a result of `kind` ("select", "reach", …), schema "normscope.verify/1"
/// (docs/schemas/verify.schema.json).
[[nodiscard]] nlohmann::ordered_json verification(const std::string& kind, const verify::Verification& found);

/// The labels that `net` gave to rows, schema "normscope.run/1" (docs/schemas/run.schema.json).
[[nodiscard]] nlohmann::ordered_json classification(const nets::Net& net,
                                                    std::span<const std::int64_t> labels);

/// An LN-Net that Projection Merge made and `output` holds (empty for none), schema "normscope.build/1"
/// (docs/schemas/build.schema.json).
[[nodiscard]] nlohmann::ordered_json construction(const nets::Construction& made, nets::Mode mode,
                                                  const std::string& output);

/// One line of JSON per layer (docs/schemas/build-trace.schema.json); an infinite gap, where no other class
/// is on the opposite side, is null.
[[nodiscard]] std::string fold_lines(const std::vector<nets::Fold>& folds);

/// Data of the animation from layer to layer: {"schema", "width", "labels": [rows], "states": [[[x, y, …]]]},
/// the samples, padded with zeros to the widest layer, and then every layer's output, each to four decimals
/// (docs/schemas/morph.schema.json). Frames in between are `nets::morph_frame`.
///
/// Source    [Winsor 2022], the morphs of spiral and sphere
///
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] nlohmann::ordered_json morph(const nets::Net& net, const nets::Dataset& data);

/// The data that the runs were trained on, as named by the user.
struct TrainedOn {
  std::string data;      ///< name of the task, or of the array of samples
  std::string claim{};   ///< the claim of a paper about the task, or empty
  std::string output{};  ///< the file of the net, or empty
};

/// Several runs and the best of them (`nets::best_of`), schema "normscope.train/1"
/// (docs/schemas/train.schema.json).
[[nodiscard]] nlohmann::ordered_json training(const TrainedOn& on, const std::vector<nets::TrainRun>& runs);

/// A network reading the member of its language with `n` of every letter: {"schema": "normscope.trace/1",
/// "cell", "language", "head", "n", "letters", "accepted", "signals": [{"name", "values": [[a unit]]}],
/// "probabilities": [[an output]], "outputs", "drifts": [{"unit", "counts", "blocks": [{"mean",
/// "deviation"}]}]}. The first row of each is after the start symbol; drifts are included for n of at least
/// `nets::rnn::least_drift_length` (docs/schemas/trace.schema.json).
///
/// Errors    as `nets::rnn::accepts`
[[nodiscard]] nlohmann::ordered_json trace(const nets::rnn::Network& network, std::size_t n);

/// Loss and accuracy of a training after every epoch.
struct TrainingCourse {
  std::vector<double> loss;
  std::vector<double> accuracy;
};

/// The result of testing how far a network counts.
struct CountResult {
  const nets::rnn::Network& network;
  const nets::rnn::TrainSpec& spec;
  const std::optional<TrainingCourse>& trained;  ///< none for a stored network
  const nets::rnn::Range& range;
  const nets::rnn::Score& near_members;
  std::size_t n;  ///< of the word over which drifts are computed
  const std::vector<nets::rnn::UnitDrift>& drifts;
};

/// Schema "normscope.count/1" (docs/schemas/count.schema.json).
[[nodiscard]] nlohmann::ordered_json count(const CountResult& result);

/// The contents of `automata/hierarchy.hpp`, schema "normscope.hierarchy/1"
/// (docs/schemas/hierarchy.schema.json).
[[nodiscard]] nlohmann::ordered_json hierarchy();

}  // namespace normscope::results
