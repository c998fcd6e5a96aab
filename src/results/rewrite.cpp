#include <normscope/results/documents.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "shared.hpp"

namespace normscope::results {

template <>
inline constexpr auto last_value<rewrite::Agreement> = rewrite::Agreement::undecided;
template <>
inline constexpr auto last_value<rewrite::HeadMap> = rewrite::HeadMap::matrix;
template <>
inline constexpr auto last_value<rewrite::FieldEffect> = rewrite::FieldEffect::unknown;
template <>
inline constexpr auto last_value<rewrite::Fold> = rewrite::Fold::scales;
template <>
inline constexpr auto last_value<rewrite::Change> = rewrite::Change::rotate;

namespace {

constexpr const char* about_given = "as given on the command line";
constexpr const char* about_files = "that were written";
constexpr const char* about_not_copied =
    "files of the folder that were left, such as weights in other formats";
constexpr const char* about_stack = "\"encoder\", \"decoder\", ... of a model with several stacks";
constexpr const char* about_stated = "value as JSON; null where it is not stated";
constexpr const char* about_rounding = "unit roundoff of the dtype";

/// The weights that read a norm, each once.
std::vector<std::string> readers_of(const models::Norm& norm) {
  std::set<std::string> seen;
  std::vector<std::string> readers;
  for (const models::Linear& reader : norm.readers) {
    if (seen.insert(reader.weight.selector()).second) readers.push_back(reader.weight.selector());
  }
  return readers;
}

/// The edit to which a certificate belongs.
const rewrite::Edit& edit_of(const rewrite::Plan& plan, const rewrite::Certificate& certificate) {
  const auto found = std::find_if(plan.edits.begin(), plan.edits.end(), [&](const rewrite::Edit& edit) {
    models::Slice slice = edit.from;
    slice.tensor = edit.tensor;
    return edit.change == certificate.change && slice.selector() == certificate.tensor;
  });
  return found == plan.edits.end() ? empty<rewrite::Edit>() : *found;
}

/// Whether an edit is of a stored matrix: the tensor's own, or the reader that gave it a norm's bias.
bool is_of_map(const rewrite::Edit& edit) {
  return edit.change != rewrite::Change::center && edit.change != rewrite::Change::rotate && edit.map.in != 0;
}

auto paths(const std::vector<std::filesystem::path>& files) {
  return each(files, [](const std::filesystem::path& file) { return file.string(); });
}

}  // namespace

template <class V>
void fields(V& v, const rewrite::ReaderComparison& reader) {
  v("old", reader.old_weight);
  v("new", reader.new_weight);
  v("composite", not_negative(reader.composite), "|W' G' - W G| / |W G| of the worst output");
  v("raw", not_negative(reader.raw), "|W' - W| / |W| of the worst output");
  v("bias", not_negative(reader.bias), "error of c + W b of the worst output");
}

template <class V>
void fields(V& v, const rewrite::NormComparison& norm) {
  v("old", norm.old_name, "name");
  v("new", norm.new_name, "name");
  v("agreement", norm.agreement);
  v("old_kind", to_string(norm.old_kind));
  v("new_kind", to_string(norm.new_kind));
  v("old_eps", not_negative(norm.old_eps), "of OLD");
  v("new_eps", not_negative(norm.new_eps), "of NEW");
  v("gain_change", not_negative(norm.gain_change), "|g' - g| / |g|");
  v("gain_cosine", norm.gain_cosine, "of the angle between both gains");
  v("bias_change", not_negative(norm.bias_change), "|b' - b| / |b|");
  v("readers", norm.readers, "linear maps that read the norm");
  v.maybe(!norm.old_reasons.empty(), "old_reasons", norm.old_reasons, "of a graph: what makes it this norm");
  v.maybe(!norm.new_reasons.empty(), "new_reasons", norm.new_reasons, "likewise of NEW");
}

template <class V>
void fields(V& v, const rewrite::WriterComparison& writer) {
  v("old", writer.old_weight);
  v("new", writer.new_weight);
  v("raw", not_negative(writer.raw), "of what one input feature writes");
  v("centered", not_negative(writer.centered), "the same without the mean over the stream's features");
  v("only_layer_norms", writer.only_layer_norms,
    "whether LayerNorms alone read the stream, so that the mean does not count");
}

template <class V>
void fields(V& v, const rewrite::HeadMatch& head) {
  v("old", head.old_head, "of the layer, from 0");
  v("new", head.new_head, "that it was compared with");
  v("keys", head.keys,
    "what NEW's keys are multiplied by to be those of OLD, which its queries undo: none, a scale of each "
    "feature, or another matrix");
  v("values", head.values, "likewise of values, which the output map undoes");
  v("error", not_negative(head.error), "largest of an output or input of its maps, relative");
  v("agrees", head.agrees, "to the tolerance, or a block format explains what differs");
}

template <class V>
void fields(V& v, const rewrite::MlpMatch& mlp) {
  v("old_expert", mlp.old_expert, "from 0; null for an MLP that every token passes");
  v("new_expert", mlp.new_expert, "that it was compared with");
  v("neurons", mlp.neurons);
  v("moved", mlp.moved, "neurons that NEW has in another place");
  v("scaled", mlp.scaled, "neurons that NEW has times a factor, which its output map undoes");
  v("largest_scale", not_negative(mlp.largest_scale), "the factor furthest from 1, without its sign");
  v("different", mlp.different, "neurons that do not agree to the tolerance");
  v("error", not_negative(mlp.error), "largest of a neuron's maps, relative");
}

template <class V>
void fields(V& v, const rewrite::BranchComparison& branch) {
  v("layer", branch.layer);
  v("stack", text_or_null(branch.stack), about_stack);
  v("norm", branch.norm, "of OLD, which the branch reads");
  v("heads", branch.heads, "of attention, in the order of OLD");
  v("mlps", branch.mlps, "of the others: one MLP, or experts in the order of OLD");
}

template <class V>
void fields(V& v, const rewrite::OtherComparison& other) {
  v("name", other.name);
  v("new", text_or_null(other.new_name), "name in NEW, where it is another");
  v("in_old", other.in_old);
  v("in_new", other.in_new);
  v("change", not_negative(other.change), "relative");
}

template <class V>
void fields(V& v, const rewrite::Quantization& found) {
  v("old", found.old_weight);
  v("new", found.new_weight);
  v("format", found.format, "of the quantized matrix, such as Q4_K");
  v("new_is_quantized", found.new_is_quantized, "whether that is NEW's; else it is OLD's");
  v("explained", found.explained,
    "whether every element has the nearest value that its block represents, or for Q4_0, Q4_1, Q5_0, Q5_1 "
    "and IQ4_NL one next to it");
  v("row", found.row, "of the element that is furthest from what its block explains");
  v("block", found.block, "its block in the row");
  v("steps", found.steps, "its error in steps of its block; null if the block represents one value");
  v("blocks", found.blocks, "of the matrix");
  v("wrong_blocks", found.wrong_blocks, "with an element that is not explained");
}

template <class V>
void fields(V& v, const rewrite::FieldComparison& field) {
  v("field", field.field, "path, such as rope_scaling.factor");
  v("old", text_or_null(field.before), about_stated);
  v("new", text_or_null(field.after), about_stated);
  v("effect", field.effect,
    "none: both models are described alike; different: what is computed differs; unknown: the field "
    "makes the models at most undecided");
}

template <class V>
void fields(V& v, const rewrite::LogitPair& pair) {
  v("token", pair.token);
  v("old", finite_or_null(pair.before));
  v("new", finite_or_null(pair.after));
}

template <class V>
void fields(V& v, const rewrite::Witness& witness) {
  v("tokens", witness.tokens, "the context");
  v("position", witness.position, "in the context, from 0");
  v("of_features", witness.of_features,
    "whether the numbers are features of the last hidden state, of an encoder without a language head");
  v("token", witness.logit.token, "of the logit, or the feature");
  v("old_logit", finite_or_null(witness.logit.before));
  v("new_logit", finite_or_null(witness.logit.after));
  v("old_error", finite_or_null(witness.old_error),
    "estimated: 8 times the largest movement where all operations are disturbed by their rounding");
  v("new_error", finite_or_null(witness.new_error));
  v("rounding", finite_or_null(witness.rounding),
    "how far logits move, likewise but times 3, by changes of weights that count as rounding");
  v("logits", witness.logits, "of that position, those that differ most");
}

template <class V>
void fields(V& v, const rewrite::ComparisonFinding& finding) {
  v("kind", finding.kind);
  v("text", finding.text);
}

struct ComparisonFields {
  std::string before;
  std::string after;
  const rewrite::Comparison& compared;
};

template <class V>
void fields(V& v, const ComparisonFields& x) {
  const rewrite::Comparison& compared = x.compared;
  begin(v, "compare");
  v("old", x.before, about_given);
  v("new", x.after, about_given);
  v("agreement", compared.agreement,
    "same: equal values and configurations; equivalent: the same function to `tolerance`; equivalent up to "
    "quantization: so too, but for what block formats explain; undecided: nothing is known to differ, but "
    "not everything could be compared");
  v("tolerance", not_negative(compared.tolerance), "relative errors up to this count as rounding");
  v("findings", compared.findings, "what differs and what was rewritten, in sentences");
  v("configuration", compared.configuration,
    "configuration fields that differ, but for names, versions, training and generation");
  v("norms", compared.norms, "in the order of the forward pass");
  v("writers", compared.writers, "tensors that write to a residual stream");
  v("branches", compared.branches,
    "what matches what in each branch, in the order of the forward pass; empty where that is not modelled");
  v("others", compared.others, "tensors that no norm, reader or writer has");
  v("quantizations", compared.quantizations, "matrices that differ of which one is quantized");
  v("not_compared", compared.not_compared, "in words");
  v.maybe("witness", compared.witness, "logits further apart than their errors and what rounding explains");
  v.maybe(!compared.no_witness.empty(), "no_witness", compared.no_witness, "why there is no witness");
}

Json comparison(const files::Checkpoint& before, const files::Checkpoint& after,
                const rewrite::Comparison& compared) {
  return json_of(ComparisonFields{before.path().string(), after.path().string(), compared});
}
Json describe_compare(SchemaMaker& maker) { return maker.schema_of(ComparisonFields{{}, {}, {}}); }

template <class V>
void fields(V& v, const rewrite::Untied& untied) {
  v("table", untied.table, "the token embedding");
  v("head", untied.head, "the tensor that the head reads afterwards");
  v("bytes", untied.bytes, "that the checkpoint grows by");
}

struct PlannedNorm {
  const models::Norm& norm;
  const rewrite::NormPlan& plan;
};

template <class V>
void fields(V& v, const PlannedNorm& x) {
  v("name", x.norm.name);
  v("role", x.norm.role);
  v("kind", to_string(x.norm.kind));
  v("eps", not_negative(x.norm.eps), "unchanged by a rewrite");
  v("groups", positive(x.norm.groups));
  v("gain", slice_or_null(x.norm.gain), about_stored_gain);
  v("gain_offset", x.norm.gain_offset, about_gain_offset);
  v("bias", slice_or_null(x.norm.bias), about_stored_bias);
  v("readers", readers_of(x.norm), "weights of the linear maps that read it");
  v("fold", x.plan.fold,
    "what was folded; left: nothing, for the reason given; neutral: there was nothing to fold; gain: the "
    "bias stays as bias / gain; scales: powers of two moved from gain and bias into the readers");
  v("reason", text_or_null(x.plan.reason), "why nothing is folded, or why the bias stays");
}

struct CertificateFields {
  const rewrite::Certificate& certificate;
  const rewrite::Edit& edit;
};

template <class V>
void fields(V& v, const CertificateFields& x) {
  const rewrite::Certificate& certificate = x.certificate;
  const models::Linear& map = x.edit.map;
  v("tensor", certificate.tensor, "in the output");
  v("input", x.edit.from.selector(), "the tensor in the input");
  v("map", nullable(is_of_map(x.edit), object([&map](auto& stored) {
                      stored("tensor", map.weight.selector());
                      stored("layout", layout_text(map.layout), about_layout);
                      stored("in", positive(map.in));
                      stored("out", positive(map.stored_out));
                    })),
    "the stored matrix, in the input: the tensor itself, or of add_folded_bias the reader of the norm; "
    "null for other vectors");
  v("change",
    one_of<"scale_inputs", "center_outputs", "center", "add_folded_bias", "divide_by_gain", "divide_by_scale",
           "rotate_inputs", "rotate_outputs", "rotate">(to_string(certificate.change)));
  v("norm", text_or_null(certificate.norm), "whose gain or bias it took, or that reads what it writes");
  v("dtype", to_string(certificate.dtype));
  v("rounding", not_negative(certificate.rounding), about_rounding);
  v("bound", not_negative(certificate.bound),
    "proved: largest absolute error of an output for any input of the norm; of what writes to a stream, of "
    "what one input feature, one row of a table, or a bias writes; of what a norm keeps, of an entry");
  v("relative_bound", not_negative(certificate.relative_bound),
    "proved: the same over the largest value that the output can take, or over the length of what is "
    "written; 0 for the gain or bias that a norm keeps, whose error the certificates of its readers contain");
  v("observed_in_double", not_negative(certificate.observed_in_double),
    "largest relative difference of old and new outputs for the inputs tried, before rounding to the dtype");
  v("observed_as_stored", not_negative(certificate.observed_as_stored), "the same for the values stored");
  v("undo_roundings", not_negative(certificate.undo_roundings),
    "largest error of a value that --undo restores, in units of `rounding` times the larger of it and "
    "the value stored in its place (less its gain), or for rotated matrices the length of its row; 0 "
    "where it comes back bit for bit");
}

template <class V>
void fields(V& v, const rewrite::ReaderOnRows& reader) {
  v("reader", reader.reader, "in the output");
  v("largest", not_negative(reader.largest),
    "largest difference of old and new outputs, in the unit of relative_bound");
  v("relative", not_negative(reader.relative), "largest |new - old| / |old| of the outputs of one row");
}

template <class V>
void fields(V& v, const rewrite::NormOnRows& norm) {
  v("norm", norm.norm);
  v("given", norm.given, "rows in the file");
  v("tried", norm.tried, "of them, spread evenly");
  v("mean_share", not_negative(norm.mean_share),
    "largest share of a row's squared length along (1, ..., 1), which centring removes");
  v("readers", norm.readers);
}

struct RewriteFields {
  std::string input;
  const models::Model& model;
  const rewrite::Plan& plan;
  const rewrite::Result& result;
};

template <class V>
void fields(V& v, const RewriteFields& x) {
  const rewrite::Plan& plan = x.plan;
  const auto norm = [&x](std::size_t index) -> const models::Norm& {
    return index < x.model.norms.size() ? x.model.norms[index] : empty<models::Norm>();
  };
  const auto names = [&norm](const std::vector<std::size_t>& norms) {
    return each(norms, [&norm](std::size_t index) { return norm(index).name; });
  };
  begin(v, "rewrite");
  v("input", x.input, about_given);
  v("architecture", x.model.architecture);
  v("fold_gains", plan.options.fold_gains, "whether folding was asked for");
  v("migrate", plan.options.migrate, "whether the migration of scales was asked for");
  v("center", plan.options.center, "whether centring was asked for");
  v("untied", plan.untied, "the head's own tensor, where it was the token embedding");
  v("norms",
    each(plan.norms,
         [&](const rewrite::NormPlan& planned) {
           return PlannedNorm{norm(planned.norm), planned};
         }),
    "in the order of the forward pass");
  v("streams",
    each(plan.streams,
         [&](const rewrite::StreamPlan& stream) {
           return object([&](auto& item) {
             item("stack", text_or_null(stream.stack), about_stack);
             item("centered", stream.centered);
             item("reason", text_or_null(stream.reason), "why not");
             item("norms", names(stream.norms),
                  "LayerNorms that read the stream; if it is centred, RMSNorms of the same eps, gain and "
                  "bias compute the same");
             item("writers", stream.writers, "tensors that write to the stream");
           });
         }),
    "of --center");
  v("rotations",
    each(plan.rotations,
         [&](const rewrite::RotationPlan& stream) {
           return object([&](auto& item) {
             item("stack", text_or_null(stream.stack), about_stack);
             item("rotated", stream.rotation != nullptr);
             item("keeps_mean", stream.rotation && stream.rotation->keeps_ones(),
                  "whether the matrix maps (1, ..., 1) to itself, as LayerNorms need");
             item("reason", text_or_null(stream.reason), "why not");
             item("norms", names(stream.norms), "that read the stream");
             item("writers", stream.writers, "tensors that write to the stream");
           });
         }),
    "of --rotate");
  v("certificates",
    each(x.result.certificates,
         [&](const rewrite::Certificate& certificate) {
           return CertificateFields{certificate, edit_of(plan, certificate)};
         }),
    "one for every tensor whose values were computed; empty for a plan");
  v("activations", x.result.on_rows,
    "of --norm-inputs: old and new composites, with both files' stored values, on rows that enter a norm");
  v("configuration", x.result.configuration, "changes of config.json, in words");
  v("files", paths(x.result.files), about_files);
  v("not_copied", x.result.not_copied, about_not_copied);
  const std::string recipe = x.result.recipe.string();
  v("undo", text_or_null(recipe), "the file that --undo needs, beside the weights");
  v("not_undone", text_or_null(x.result.not_undone), "why there is none");
}

Json rewrite(const files::Checkpoint& checkpoint, const models::Model& model, const rewrite::Plan& plan,
             const rewrite::Result* result) {
  return json_of(RewriteFields{checkpoint.path().string(), model, plan,
                               result == nullptr ? empty<rewrite::Result>() : *result});
}
Json describe_rewrite(SchemaMaker& maker) { return maker.schema_of(RewriteFields{{}, {}, {}, {}}); }

template <class V>
void fields(V& v, const rewrite::Restored& tensor) {
  v("tensor", tensor.tensor);
  v("change", tensor.change, "that was undone");
  v("dtype", to_string(tensor.dtype));
  v("rounding", not_negative(tensor.rounding), about_rounding);
  v("roundings", not_negative(tensor.roundings),
    "largest error of a value, as `undo_roundings` of the rewrite's certificates; 0: bit for bit");
}

struct UndoFields {
  std::string input;
  const rewrite::Restoration& restoration;
};

template <class V>
void fields(V& v, const UndoFields& x) {
  begin(v, "undo");
  v("input", x.input, about_given);
  v("tensors", x.restoration.tensors, "one for every changed slice of a tensor; all others are copied");
  v("files", paths(x.restoration.files), about_files);
  v("not_copied", x.restoration.not_copied, about_not_copied);
}

Json undone(const files::Checkpoint& rewritten, const rewrite::Restoration& restoration) {
  return json_of(UndoFields{rewritten.path().string(), restoration});
}
Json describe_undo(SchemaMaker& maker) { return maker.schema_of(UndoFields{{}, {}}); }

}  // namespace normscope::results
