#include <normscope/results/documents.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <normscope/analysis/report.hpp>
#include <normscope/results/words.hpp>
#include <normscope/selectability/reach.hpp>

#include "model.hpp"

namespace normscope::results {

using analysis::Axis;
using analysis::Component;
using analysis::Image;
using analysis::NormReport;
using analysis::Outlier;
using analysis::ParameterStatistics;
using analysis::Report;

template <>
inline constexpr auto last_value<analysis::Measure> = analysis::measures.back().measure;

namespace {

/// Number of points of a spectrum, unless the whole is requested.
constexpr std::size_t spectrum_points = 128;

/// The first tokens of each list; `normscope reach` has all.
constexpr std::size_t listed_tokens = 20;

/// Shares may exceed 1 by rounding.
auto share(double part) { return narrowed(part, {.minimum = 0, .maximum = 1.0000001}); }

template <class T>
std::span<const T> first_of(const std::vector<T>& list, std::size_t most) {
  return {list.data(), std::min(list.size(), most)};
}

std::string name_of(const Report& report, std::size_t norm) {
  return norm < report.norms.size() ? report.norms[norm].norm.name : std::string();
}

}  // namespace

template <class V>
void fields(V& v, const Component& component) {
  v.define("component");
  v("coordinate", component.coordinate);
  v("weight", component.weight);
}

/// The statistics of a norm's parameter and the tensor that holds it.
struct ParameterFields {
  const ParameterStatistics& statistics;
  const models::Slice& slice;
};

template <class V>
void fields(V& v, const ParameterFields& x) {
  const ParameterStatistics& statistics = x.statistics;
  v.define("parameter", "A gain as used (gain_offset added), or a bias");
  v("tensor", x.slice.selector());
  v("min", statistics.min);
  v("max", statistics.max);
  v("mean", statistics.mean);
  v("std", statistics.std);
  v("median_abs", statistics.median_abs, "median of the absolute values");
  v("length", finite_or_null(statistics.length), "Euclidean length; null beyond the range of float64");
  v("negative", statistics.negative);
  v("zero", statistics.zero);
  v("not_finite", statistics.not_finite);
}

template <class V>
void fields(V& v, const analysis::NullSpace& space) {
  v.define("null_space");
  v("dim", space.dim, "number of dimensions that the norm erases");
  v("cosine_to_ones", space.cosine_to_ones,
    "of the erased direction, with groups the least one; null where coordinates are erased outright");
  v("top", space.top, "largest entries of that direction, or the first erased coordinates");
}

template <class V>
void fields(V& v, const Axis& axis) {
  v.define("axis", "a semi-axis and its largest entry");
  v("rank", axis.rank);
  v("length", axis.length);
  v("ratio_to_median", finite_or_null(axis.ratio_to_median));
  v("coordinate", axis.largest.coordinate, "largest entry of the axis");
  v("weight", axis.largest.weight);
}

struct ImageFields {
  const Image& image;
  bool whole_spectrum;
};

template <class V>
void fields(V& v, const ImageFields& x) {
  const Image& image = x.image;
  std::vector<std::pair<std::size_t, double>> spectrum;
  for (const std::size_t rank : analysis::thinned_ranks(image.lengths.size(), spectrum_points)) {
    spectrum.push_back({rank, image.lengths[rank - 1]});
  }
  v.define("image", "The ellipsoid of all outputs before the bias");
  v("semi_axes", image.semi_axes, "how many are not zero");
  v("longest", image.longest);
  v("median", image.median);
  v("shortest", image.shortest);
  v("condition", finite_or_null(image.condition), "longest over shortest; null beyond the range of float64");
  v("effective_dimension", image.effective_dimension, "participation ratio of the squared semi-axes");
  v("rms_radius", finite_or_null(image.rms_radius), about_rms_radius);
  v("energy", finite_or_null(image.energy), about_energy);
  v("energy_top_1", image.energy_top_1, "share of the longest");
  v("energy_top_8", image.energy_top_8, "share of the eight longest");
  v("spectrum",
    each(spectrum,
         [](const std::pair<std::size_t, double>& point) {
           return object([&point](auto& at) {
             at("rank", point.first);
             at("length", point.second);
           });
         }),
    "a selection of ranks");
  v("top_axes", image.top_axes);
  v.maybe(x.whole_spectrum, "lengths", image.lengths, "every semi-axis, with --deep");
}

template <class V>
void fields(V& v, const analysis::Reader& reader) {
  v.define("reader_weights",
           "what a reader takes from the norm, as shares of its squared weights with the gain folded in");
  v("reader", reader.index, "index into `readers`");
  v("removed", share(reader.removed), "along the directions that the projection removes");
  v("removed_by_chance", share(reader.chance), "that share for weights without a preferred direction");
  v("rows_along_longest_axis", reader.along_longest,
    "rows with a cosine of at least 1/2 to the image's longest axis");
  v("features",
    each(reader.features,
         [](const Component& component) {
           return object([&component](auto& feature) {
             feature("coordinate", component.coordinate);
             feature("share", share(component.weight));
           });
         }),
    "the coordinates with the largest shares");
}

struct ReportedNorm {
  const NormReport& report;
  std::size_t index;
  const Report& whole;
  bool whole_spectra;
};

template <class V>
void fields(V& v, const ReportedNorm& x) {
  const NormReport& report = x.report;
  const auto parameter = [](const std::optional<ParameterStatistics>& statistics,
                            const std::optional<models::Slice>& slice) {
    return nullable(statistics && slice, ParameterFields{or_empty(statistics), or_empty(slice)});
  };
  v.define("norm");
  v("index", x.index);
  add_identity(v, report.norm);
  v("not_measured", text_or_null(report.not_measured),
    "why the norm's tensors cannot be read; its numbers are then null");
  v("gain", parameter(report.gain, report.norm.gain));
  v("bias", parameter(report.bias, report.norm.bias));
  v("null_space", report.null_space);
  v("image", nullable(report.image, [&](const Image& image) { return ImageFields{image, x.whole_spectra}; }));
  v("shift_over_radius", nullable(report.shift_over_radius, finite_or_null),
    "length of the bias over the image's rms_radius; null without a bias or an image, where the image is "
    "a point, and beyond the range of float64");
  v("outlier_count", report.outliers.size());
  v("outliers",
    each(first_of(report.outliers, analysis::listed_outliers),
         [](const Outlier& outlier) {
           return object([&outlier](auto& item) {
             item("coordinate", outlier.coordinate);
             item("gain", outlier.gain);
             item("ratio_to_median", finite_or_null(outlier.ratio_to_median));
           });
         }),
    "gains at least four times the median, the largest first");
  v("switched_off_count", report.switched_off.size());
  v("switched_off",
    each(first_of(report.switched_off, analysis::listed_outliers),
         [](const Outlier& off) {
           return object([&off](auto& item) {
             item("coordinate", off.coordinate);
             item("gain", off.gain);
           });
         }),
    "the first 16 features whose gain is at most 2 % of the median");
  v("sign_changes", report.sign_changes, "negative gains of features that are not switched off");
  v("next",
    nullable(report.next,
             [&](const analysis::Neighbour& next) {
               return object([&](auto& item) {
                 item("index", next.index);
                 item("name", name_of(x.whole, next.index));
                 item("similarity", next.similarity, "tr(AB)/√(tr A² tr B²) of the image matrices");
                 item("top_axis_cosine", next.top_axis_cosine);
               });
             }),
    "Compared with the next norm of the same width");
  add_connections(v, report.norm);
  v("reader_weights", report.readers, "of the readers whose weights can be read");
  // What cannot be read has no image.
  v("reproduce", report.not_measured.empty() ? geometry_command(x.whole.path, report.norm) : std::string(),
    "command that computes the image again");
}

template <class V>
void fields(V& v, const analysis::FileSize& file) {
  v("name", file.name);
  v("bytes", file.bytes);
}

struct ReportedModel {
  const Report& report;
};

template <class V>
void fields(V& v, const ReportedModel& x) {
  v.define("model");
  v("name", x.report.name);
  v("path", x.report.path);
  v("format", x.report.format);
  v("files", x.report.files);
  v("tensors", x.report.tensors);
  add_model(v, x.report.model);
  v("metadata", by_name(x.report.metadata));
}

/// A token whose logit was compared with all others.
struct ReportedToken {
  const selectability::VocabularyReach& vocabulary;
  std::size_t token;
};

template <class V>
void fields(V& v, const ReportedToken& x) {
  const selectability::Survey& survey = or_empty(x.vocabulary.survey);
  const bool known = x.token < survey.tokens.size();
  const auto reach = known ? survey.tokens[x.token] : selectability::TokenReach{};
  const auto probability = known ? survey.probabilities[x.token] : selectability::Probability{};
  v.define("token");
  v("token", x.token);
  v("name", name_or_null(x.vocabulary.names, x.token), "its text, by a vocabulary file beside the weights");
  v("lead_at_most", finite_or_null(reach.upper),
    "upper bound of its largest lead: its logit minus the largest other one; null where none is proved");
  v("probability", std::array{probability.lower, probability.upper},
    "proved lower and upper bound of its largest probability");
}

template <class V>
void fields(V& v, const selectability::VocabularyReach& vocabulary) {
  const selectability::Survey& survey = or_empty(vocabulary.survey);
  const auto tokens = [&](std::vector<std::size_t> which) {
    which.resize(std::min(which.size(), listed_tokens));
    return each(std::move(which), [&](std::size_t token) { return ReportedToken{vocabulary, token}; });
  };
  const std::vector<std::size_t> unreachable = survey.with(proof::Answer::no);
  v.define("vocabulary_reach",
           "which tokens can have the largest logit after the final norm; lists have at most 20 entries, "
           "those of `normscope reach` are complete");
  v("reachable", survey.with(proof::Answer::yes).size());
  v("unreachable", unreachable.size());
  v("undecided", survey.with(proof::Answer::undecided).size());
  v("unreachable_without_ball", survey.unargmaxable(), "whatever the length of the hidden state");
  v("unreachable_tokens", tokens(selectability::without_ties(unreachable, vocabulary.ties)),
    "without those of `ties`");
  v("tie_groups", vocabulary.ties.size(),
    "groups of tokens with equal weights and bias, whose logits are always equal");
  v("ties", each(first_of(vocabulary.ties, listed_tokens), tokens), "the first 20 groups");
  v("nearest", tokens(survey.nearest(listed_tokens)), "reachable, with the smallest largest lead");
  v("least_probable", tokens(survey.least_probable(listed_tokens)));
  v("left_out", object([&left = survey.left_out](auto& part) {
      part("tokens", left.tokens, "tokens that were not decided");
      part("leads", left.leads, "tokens whose largest lead might be smaller than that of some in `nearest`");
      part("probabilities", left.probabilities,
           "tokens whose largest probability is bounded by their leads alone");
    }),
    "what a report's work did not suffice for; `normscope reach` works it out");
}

struct ReportedVocabulary {
  const models::Vocabulary& vocabulary;
  const selectability::VocabularyReach& reach;
};

template <class V>
void fields(V& v, const ReportedVocabulary& x) {
  const bool known = x.reach.survey.has_value();
  v.define("vocabulary");
  v("size", x.vocabulary.size);
  v("tied", x.vocabulary.tied, "unembedding is the embedding");
  v("unembedding", weight_or_null(x.vocabulary.unembedding));
  v("final_norm", x.vocabulary.final_norm);
  v("logit_scale", x.vocabulary.logit_scale, "what the configuration multiplies logits by");
  v("soft_cap", not_negative(x.vocabulary.soft_cap), "C of C tanh(logit/C), 0 without one");
  v.maybe(known, "reach", x.reach);
  v.maybe(!known, "refused", x.reach.refused, "why `reach` is not there");
}

template <class V>
void fields(V& v, const analysis::EmbeddingRow& row) {
  v("token", row.token);
  v("name", text_or_null(row.name));
  v("entry", row.entry);
  v("share", fraction(row.share), "of the entry's square in the squared length of the token's row");
}

template <class V>
void fields(V& v, const analysis::EmbeddingUse& use) {
  v.define("embedding_use");
  v("over_mean", not_negative(use.over_mean), "mean square of the coordinate over that of all coordinates");
  v("rows", at_most_items(5, use.rows), "the tokens with the largest entries there, by magnitude");
}

template <class V>
void fields(V& v, const analysis::UnusualFeature& feature) {
  v.define("feature");
  v("coordinate", feature.coordinate);
  v("stack", feature.stack, "whose stream it is in; empty where there is one");
  v("switched_off_by", feature.off, "indices into `norms`");
  v("outlier_in", feature.outliers, "indices into `norms`");
  v("norms", feature.norms.size(), "number of norms of that stream");
  v("embedding", feature.embedding,
    "how the token embedding uses the coordinate; null where none writes to that stream, or it has more "
    "than 2^27 entries");
}

template <class V>
void fields(V& v, const analysis::Usual& usual) {
  v.define("usual", "what reference models show, of which none is the model itself");
  v("limit", usual.limit, "usual values are at most this, or at least, by the measure");
  v("within", usual.within, "reference models of which every norm or head is within the limit");
  v("of", usual.of, "reference models that have the measure");
}

struct ReportedMeasure {
  const analysis::ComparedMeasure& compared;
  const Report& report;
};

template <class V>
void fields(V& v, const ReportedMeasure& x) {
  v.define("compared_measure", "the most unusual value of a measure, and what is usual");
  v("measure", defined("measure", x.compared.measure));
  v("unusual", one_of<"small", "large">(facts(x.compared.measure).large ? "large" : "small"),
    "which values are unusual");
  v("extreme", finite_or_null(x.compared.extreme.value));
  v("usual", x.compared.usual, "null for fewer than 4 reference models");
}

template <class V>
void fields(V& v, const NumberText& number) {
  v.define("unusual_number");
  v("measure", defined("measure", number.measure));
  v("name", number.name);
  v("text", number.text, "the value with its unit");
  v("usual", number.usual, "the limit with its unit");
  v("value", number.value);
  v("limit", number.limit);
  v("within", number.within, "reference models of which every norm or head is within the limit");
  v("of", number.of, "reference models that have the measure");
  v("norm_index", number.norm, "index into `norms`; null for a measure of coordinates or heads");
}

struct ReportedCause {
  const analysis::Cause& cause;
  const Report& report;
  std::size_t index;
};

template <class V>
void fields(V& v, const ReportedCause& x) {
  const bool there = x.index < x.report.causes.size();
  const CauseText text = there ? describe(x.cause, x.report) : CauseText{};
  v.define("cause", "unusual values that have one cause, gathered");
  v("subject", one_of<"coordinate", "norm", "heads", "finding">(x.cause.subject), "what they have in common");
  v("title", text.title, "the cause in one sentence");
  v("severity", fraction(x.cause.severity));
  v("coordinates", x.cause.coordinates, "most unusual first");
  v("switched_off", x.cause.switched_off, "whether norms switch the coordinates off and do not amplify them");
  v("norm_index", x.cause.norm, "index into `norms`: where it is most unusual");
  v("norms", x.cause.norms, "indices into `norms`: all that are concerned");
  v("heads", x.cause.heads, "indices into `heads`: all that are concerned");
  v("readers",
    each(text.readers,
         [](const std::pair<std::string, analysis::CoordinateReader>& reader) {
           return object([&reader](auto& item) {
             item("name", reader.first, "\"head 3.7\" is head 7 of layer 3");
             item("norm_index", reader.second.norm);
             item("share", share(reader.second.share), "of its squared weights with the gain folded in");
             item("over_mean", not_negative(reader.second.over_mean), "that share over the mean share");
           });
         }),
    "the head and the other map that read the coordinate most");
  v("numbers", text.numbers, "most unusual first; empty for a finding");
  v("why", text.why, "why it matters; may be empty");
  v("advice", text.advice, "what to do; may be empty");
  v("reproduce", text.reproduce, "command that shows the numbers again");
  v("findings", x.cause.findings, "indices into `findings`: those about the same");
  v("chart", nullable(x.index < analysis::first_causes && !x.cause.values.empty(), cause_chart_id(x.index)),
    "id of its chart");
}

struct ReportedFinding {
  const FindingText& finding;
  const Report& report;
};

template <class V>
void fields(V& v, const ReportedFinding& x) {
  const FindingText& finding = x.finding;
  v.define("finding");
  v("kind", finding.kind);
  v("norm", nullable(finding.norm, [&](std::size_t norm) { return name_of(x.report, norm); }));
  v("norm_index", finding.norm);
  v("text", finding.text);
  v("numbers", by_name(finding.numbers, finite_or_null), "null beyond the range of float64");
  v("severity", fraction(finding.severity));
  v("reproduce", finding.reproduce, "command that shows the numbers again");
  v("why", finding.why, "what it means for who reads or changes the model; may be empty");
}

template <class V>
void fields(V& v, const analysis::LeftOut& left) {
  v("heads", left.heads, "heads without bounds");
  v("readers", left.readers, "linear maps without statistics and ranges");
  v("tokens", left.tokens, "tokens that are not decided");
}

struct ReportFields {
  const Report& report;
  bool whole_spectra;
};

template <class V>
void fields(V& v, const ReportFields& x) {
  const Report& report = x.report;
  const analysis::LeftOut left_out = analysis::left_out(report);
  std::vector<FindingText> findings;
  for (const analysis::Finding& finding : report.findings) findings.push_back(describe(finding, report));
  begin(v, "report");
  v("model", ReportedModel{report});
  v("complete", left_out.nothing(), "whether the budget sufficed for everything");
  v("left_out", left_out, "what the budget, which counts work and not time, did not suffice for");
  v("verdict", verdict(report), "the report in one sentence");
  v("causes",
    each(report.causes,
         [&](const analysis::Cause& cause, std::size_t index) {
           return ReportedCause{cause, report, index};
         }),
    "what is unusual, gathered by what it has in common; most severe first");
  v("measures",
    each(report.measures,
         [&](const analysis::ComparedMeasure& compared) {
           return ReportedMeasure{compared, report};
         }),
    "what the causes are found by");
  v("references",
    each(references_for(report),
         [](const analysis::Reference* reference) {
           return std::string(reference == nullptr ? "" : reference->name);
         }),
    "names of the models that this one is compared with");
  v("norms",
    each(report.norms,
         [&](const NormReport& norm, std::size_t index) {
           return ReportedNorm{norm, index, report, x.whole_spectra};
         }),
    "in the order of the forward pass");
  v("features", report.features,
    "features of the residual stream that stand out or are switched off, those in most norms first");
  v("heads", each(report.heads, [&](const heads::HeadReach& reach) {
      return HeadFields{head_of(report.model, reach), reach};
    }));
  v("ranges", RangesFields{report.ranges});
  v("vocabulary", nullable(report.model.vocabulary, [&](const models::Vocabulary& vocabulary) {
      return ReportedVocabulary{vocabulary, report.vocabulary};
    }));
  v("findings",
    each(findings,
         [&](const FindingText& finding) {
           return ReportedFinding{finding, report};
         }),
    "most severe first");
}

Json report(const Report& audited, bool whole_spectra) {
  return json_of(ReportFields{audited, whole_spectra});
}
Json describe_report(SchemaMaker& maker) { return maker.schema_of(ReportFields{{}, false}); }

}  // namespace normscope::results
