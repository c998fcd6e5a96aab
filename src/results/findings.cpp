#include <normscope/results/words.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

namespace normscope::results {
namespace {

using analysis::off_ratio;
using analysis::outlier_ratio;
using Indices = std::vector<std::size_t>;

/// Norms, heads or tokens that a sentence names; the others are counted.
constexpr std::size_t named = 3;

double as_number(std::size_t count) { return static_cast<double>(count); }

/// "a, b, c and 9 others", each formatted by `name`.
template <typename Name>
std::string first_few(const Indices& which, const Name& name) {
  std::string text;
  const std::size_t shown = std::min(which.size(), named);
  for (std::size_t k = 0; k < shown; ++k) text += (k == 0 ? "" : ", ") + name(which[k]);
  return which.size() == shown ? text : text + " and " + counted(which.size() - shown, "other");
}

std::string token_names(const analysis::Report& report, const Indices& which) {
  return first_few(
      which, [&](std::size_t token) { return selectability::token_name(report.vocabulary.names, token); });
}

/// The sentences about a finding, by kind.
class Description {
 public:
  Description(const analysis::Finding& finding, const analysis::Report& report)
      : finding_(finding), report_(report) {}

  FindingText operator()(const analysis::NoNorms& /*found*/) const {
    const std::string others = models::other_norms_text(report_.model);
    return {"no_norms",
            others.empty()
                ? "No norm was recognized by the names and shapes of the tensors, or in the graph."
                : fmt::format("No norm of the file is of a kind that is analysed: it has {}.", others),
            {},
            "",
            inspect()};
  }

  FindingText operator()(const analysis::StretchedAxis& found) const {
    return {
        "stretched_axis",
        fmt::format("The longest axis of the image of {} is {} times the median axis; it lies {}.", name(),
                    format_number(found.ratio_to_median), along(found.largest)),
        {{"ratio_to_median", found.ratio_to_median},
         {"length", found.length},
         {"coordinate", as_number(found.largest.coordinate)},
         {"weight", found.largest.weight}},
        "It adds more to dot products of the norm's outputs than any other axis, and widens the range that "
        "quantized activations need.",
        geometry()};
  }

  FindingText operator()(const analysis::StretchedAxesCount& found) const {
    return {"stretched_axes_count",
            fmt::format(
                "In {} of {} norms, the longest axis of the image is at least {:g} times the median axis.",
                found.norms, report_.norms.size(), outlier_ratio),
            {{"norms", as_number(found.norms)}},
            "Long axes add most to dot products of the norms' outputs, and widen the range that quantized "
            "activations need.",
            geometry(found.most)};
  }

  FindingText operator()(const analysis::ConcentratedImage& found) const {
    return {
        "concentrated_image",
        fmt::format("{} has the most concentrated image: its effective dimension is {} of {}; its longest "
                    "axis holds {} % of the energy (the sum of squared semi-axes), its eight longest {} %.",
                    name(), format_number(found.effective_dimension), norm().image->semi_axes,
                    format_number(100.0 * found.energy_top_1), format_number(100.0 * found.energy_top_8)),
        {{"effective_dimension", found.effective_dimension},
         {"energy_top_1", found.energy_top_1},
         {"energy_top_8", found.energy_top_8}},
        "Directions differ in how much of the norm's output they carry; methods that treat them alike "
        "(cosine similarity, random probes) weigh the longest axes most.",
        geometry()};
  }

  FindingText operator()(const analysis::ConditionRange& found) const {
    std::string without;
    if (found.without_switched_off) {
      without = fmt::format(" {} switches off {}: without its {} shortest axes the ratio would be {}.",
                            name(), counted(found.switched_off, "feature"), found.switched_off,
                            format_number(*found.without_switched_off));
    }
    return {"condition_range",
            fmt::format("The longest axis of an image is {} ({}) to {} ({}) times its shortest.{}",
                        format_number(found.least), name(found.least_norm), format_number(found.most), name(),
                        without),
            {{"least", found.least}, {"most", found.most}},
            "Along the shortest axes the norm's output hardly varies: recovering its input from its "
            "output amplifies errors there by up to this factor.",
            geometry()};
  }

  FindingText operator()(const analysis::NullDirection& found) const {
    return {
        "null_direction",
        fmt::format(
            "The output of {} does not vary along one direction, which lies {}{}. With equal gains it "
            "would be all-ones (cosine: {:.3f}; below {:g} in {} of {} norms).",
            name(), along(found.largest), found.switched_off ? ", a feature that the norm switches off" : "",
            found.cosine_to_ones, analysis::tilted_cosine, found.tilted, found.norms),
        {{"cosine_to_ones", found.cosine_to_ones},
         {"coordinate", as_number(found.largest.coordinate)},
         {"weight", found.largest.weight}},
        "No layer that reads this norm can use what varies along that direction.",
        geometry() + " --null-space"};
  }

  FindingText operator()(const analysis::ImageChange& found) const {
    const models::Norm& next = report_.norms[found.next].norm;
    return {
        "image_change",
        fmt::format("Of norms that follow each other, {} and {} stretch the most different directions: the "
                    "similarity of their images is {:.3f} (1 is the same shape).",
                    name(), next.name, found.similarity),
        {{"similarity", found.similarity}, {"top_axis_cosine", found.top_axis_cosine}},
        "The two norms stretch different directions: a probe or a feature of one layer's input does not "
        "carry over to the next without their gains.",
        geometry() + " --similar-to " +
            shell_quoted(command_path(report_.path) + ":" + next.gain->selector())};
  }

  FindingText operator()(const analysis::LargeBias& found) const {
    const double ratio = found.shift_over_radius;
    return {
        "large_bias",
        fmt::format("The bias of {} is {} times as long as the root-mean-square radius of its image: what it "
                    "outputs is {} one constant vector.",
                    name(), format_number(ratio), ratio >= 1.0 ? "mostly" : "in good part"),
        {{"shift_over_radius", ratio}},
        "All outputs share this constant: it raises their cosine similarities and shifts attention scores.",
        geometry() + " --bias " +
            shell_quoted(command_path(report_.path) + ":" + norm().norm.bias->selector())};
  }

  FindingText operator()(const analysis::NormalizationOff& found) const {
    return about(
        found.norms, "normalization_off",
        fmt::format("Normalization is off in {}: eps ({:g}) exceeds the mean square of any row. Nothing is "
                    "scaled by its size, and no bounds are given for what reads the output.",
                    names(found.norms), found.eps));
  }

  FindingText operator()(const analysis::ElementwiseNorm& found) const {
    return about(
        found.norms, "elementwise_norm",
        fmt::format("{} in {} acts on every feature separately: the image is a box of half-widths |g|, "
                    "nothing is projected or scaled, and no bounds are given for what reads it.",
                    facts(norm().norm.kind).title, names(found.norms)));
  }

  FindingText operator()(const analysis::SharedOutlier& found) const {
    const bool ordered = std::all_of(found.norms.begin(), found.norms.end(),
                                     [&](std::size_t i) { return report_.norms[i].norm.order_known; });
    return {
        "shared_outlier",
        fmt::format("Coordinate {} has an outlier gain, at least {:g} times the norm's median, in {} of {} "
                    "norms{}.",
                    found.coordinate, outlier_ratio, found.norms.size(), found.of_norms,
                    ordered
                        ? fmt::format(", from {} to {}", name(found.norms.front()), name(found.norms.back()))
                        : ""),
        {{"coordinate", as_number(found.coordinate)}, {"norms", as_number(found.norms.size())}},
        "A feature that many norms single out often holds massive activations; low-precision formats must "
        "leave room for it.",
        geometry()};
  }

  FindingText operator()(const analysis::SwitchedOff& found) const {
    std::string recurring;
    if (found.recurring) {
      recurring = fmt::format(" Coordinate {} is switched off in {} of {} norms.",
                              found.recurring->coordinate, found.recurring->off, found.recurring->norms);
    }
    return {"switched_off",
            fmt::format("{} of {} {} off {} in all, with gains of at most {:g} % of the norm's median; the "
                        "first is coordinate {} in {}.{}",
                        found.norms, counted(found.of_norms, "norm"),
                        found.norms == 1 ? "switches" : "switch", counted(found.gains, "feature"),
                        100.0 * off_ratio, found.first_coordinate, name(), recurring),
            {{"gains", as_number(found.gains)}, {"norms", as_number(found.norms)}},
            "Readers of these norms hardly see the features; small gains also tilt null directions and make "
            "condition numbers large.",
            geometry()};
  }

  FindingText operator()(const analysis::GainRange& found) const {
    return {
        "gain_range",
        fmt::format("The median magnitude of a norm's gains runs from {} in {} to {} in {}.",
                    format_number(found.least), name(found.least_norm), format_number(found.most), name()),
        {{"least", found.least}, {"most", found.most}},
        "Layers read the residual stream at different strengths; learning rates and pruning "
        "thresholds that ignore gains treat layers differently.",
        geometry()};
  }

  FindingText operator()(const analysis::ZeroGain& found) const {
    return about(found.norms, "zero_gain",
                 fmt::format("Gains of exactly zero erase coordinates in {}: {}{}.", names(found.norms),
                             counted(found.gains, "coordinate"), in_the_first(found.norms)),
                 "The norm's output has a constant there, whatever the input: readers' weights on it can be "
                 "removed.");
  }

  FindingText operator()(const analysis::NegativeGain& found) const {
    const bool one = found.gains == 1;
    return {"negative_gain",
            fmt::format("{} below zero {}, {}in {}.", counted(found.gains, "gain"),
                        one ? "changes the sign of its feature" : "change the sign of their features",
                        one                ? ""
                        : found.norms == 1 ? "all "
                                           : fmt::format("{} of them ", found.most),
                        name()),
            {{"negative", as_number(found.gains)}},
            "A feature with a negative gain is read with its sign changed: compare features across norms "
            "by gain times weight.",
            geometry()};
  }

  FindingText operator()(const analysis::NotMeasured& found) const {
    return about(found.norms, "not_measured",
                 fmt::format("No numbers are given for {}: {}.", names(found.norms), norm().not_measured),
                 "These norms have no image, and statements about their readers leave them out.");
  }

  FindingText operator()(const analysis::NotFinite& found) const {
    return about(found.norms, "not_finite",
                 fmt::format("Gains that are not finite leave {} without an image: {}{}.", names(found.norms),
                             counted(found.gains, "gain"), in_the_first(found.norms)));
  }

  FindingText operator()(const analysis::ImageOutOfRange& found) const {
    return about(
        found.norms, "image_out_of_range",
        fmt::format("Gains up to {} leave {} without an image: its semi-axes are beyond float64's range.",
                    format_number(found.largest), names(found.norms)));
  }

  FindingText operator()(const analysis::BiasNotFinite& found) const {
    return about(found.norms, "bias_not_finite",
                 fmt::format("Biases that are not finite make the outputs of {} not finite: {}{}.",
                             names(found.norms), found.entries, in_the_first(found.norms)));
  }

  FindingText operator()(const analysis::ConstantGain& found) const {
    return about(found.norms, "constant_gain",
                 fmt::format("All gains are equal in {}, as in an untrained or a folded norm: {}{}.",
                             names(found.norms), format_number(found.gain), in_the_first(found.norms)),
                 "The norm rotates nothing and stretches nothing: its image is a sphere.");
  }

  FindingText operator()(const analysis::HugeEps& found) const {
    return about(found.norms, "huge_eps",
                 fmt::format("Rows whose mean square is below eps ({:g}) are hardly normalized in {}.",
                             found.eps, names(found.norms)));
  }

  FindingText operator()(const analysis::GainOffset& found) const {
    return about(
        found.norms, "gain_offset",
        fmt::format("The file stores gain minus {:g} for {}; every number here is of the gain that the model "
                    "uses.",
                    found.offset, names(found.norms)));
  }

  FindingText operator()(const analysis::GainsOnText& found) const {
    const analysis::GainConsistency& measured = found.found;
    if (!measured.shift) {
      return {"gain_convention_undecided",
              fmt::format("Whether gains are off by 1 does not show in what the model makes of a text: {}.",
                          measured.undecided)};
    }
    const auto& gains = measured.gains;
    const char* const begins = *measured.shift == 0 ? "are those that the model was trained with"
                               : *measured.shift < 0
                                   ? "are 1 too large, as if 1 had been added once too often"
                                   : "are 1 too small, as if 1 had not been added";
    return about(
        measured.norms,
        *measured.shift == 0  ? "gain_convention"
        : *measured.shift < 0 ? "gain_shifted_twice"
                              : "gain_not_shifted",
        fmt::format(
            "The gains of {} {}: the next of {} tokens of a text surprises the model by {:.2f} nats with the "
            "gains as described, {:.2f} with 1 less and {:.2f} with 1 more (equally likely tokens: {:.2f}; "
            "the same tokens in another order, with the best of these gains: {:.2f}), and the stream grows "
            "{:.3g}, {:.3g} and {:.3g} times. This is evidence, no proof.",
            names(measured.norms), begins, measured.tokens, gains[0].loss, gains[1].loss, gains[2].loss,
            measured.uniform, measured.shuffled, gains[0].growth, gains[1].growth, gains[2].growth),
        *measured.shift == 0 ? "" : "A gain that is off by 1 is that of another model.");
  }

  FindingText operator()(const analysis::GainConvention& found) const {
    using Kind = analysis::GainConvention::Kind;
    const models::GainShifts& shifts = found.shifts;
    const bool was_shifted = report_.norms[found.norms.front()].norm.gain_was_shifted;
    const std::string entry = fmt::format("entry {}, {:.6g} as stored, of {}", shifts.index, shifts.value,
                                          report_.norms[found.norms.front()].norm.name);
    const std::string left =
        found.undecided == 0 ? ""
                             : fmt::format(" For {} no entry tells.", counted(found.undecided, "other norm"));
    switch (found.kind) {
      case Kind::as_expected:
        return about(
            found.norms, "gain_convention",
            fmt::format(
                "In the type that stores them, 1 was {} added to the gains of {}: {} is not what a number of "
                "{} bits becomes by {}.{}",
                was_shifted ? "at most once" : "never", names(found.norms), entry, shifts.bits,
                was_shifted ? "adding 1 twice" : "adding 1", left),
            "A gain to which 1 is added once too often is that of another model.");
      case Kind::not_shifted:
        return about(
            found.norms, "gain_not_shifted",
            fmt::format("The file's form says that 1 was added to the gains of {}, but {} is not what a "
                        "number of {} bits becomes by that: unless a wider type was used, 1 is missing.{}",
                        names(found.norms), entry, shifts.bits, left),
            "A gain without its 1 is that of another model.");
      case Kind::looks_shifted: break;
    }
    return about(
        found.norms, "gain_shifted_twice",
        fmt::format(
            "The gains of {} look shifted twice: all stored entries below 1/2 in size of the first are "
            "multiples of 2^-{}, as sums of 1 and a number of {} bits are, and of other numbers of "
            "their sizes one in 2^{:.0f}. This is evidence, no proof; compare with the original "
            "decides.{}",
            names(found.norms), shifts.bits, shifts.bits, shifts.evidence_bits, left),
        "The class adds 1 to what is stored: with 1 in it already, the gain is that of another model.");
  }

  FindingText operator()(const analysis::AssumedEps& found) const {
    std::set<std::string> values;
    for (const double eps : found.eps) values.insert(fmt::format("{:g}", eps));
    return {"assumed_eps",
            fmt::format("No file states eps; {} was assumed. Axes and null directions do not depend on it.",
                        fmt::join(values, " or ")),
            {},
            "Rows much smaller than the square root of eps are scaled less than others; bounds that depend "
            "on eps are for the assumed one.",
            inspect()};
  }

  FindingText operator()(const analysis::MissingTensors& found) const {
    return {"missing_tensors",
            fmt::format("The file lacks {} of {}, the first {}: what they read and write is left out.",
                        counted(found.tensors, "tensor"), report_.model.title, report_.model.missing.front()),
            {{"missing", as_number(found.tensors)}},
            "Only tensors in the file are named as readers and writers of norms.",
            inspect()};
  }

  FindingText operator()(const analysis::RemovedWeight& found) const {
    return {
        "removed_weight",
        fmt::format("{} % of the squared weight of {} has no effect, because it lies along what {} removes; "
                    "of random weights, {} % would.",
                    format_number(100.0 * found.removed), reader(found.reader), name(),
                    format_number(100.0 * found.chance)),
        {{"removed", found.removed}, {"chance", found.chance}},
        "Centring or folding removes this part; lengths and comparisons of raw weights include it.",
        geometry()};
  }

  FindingText operator()(const analysis::FeatureReader& found) const {
    return {"feature_reader",
            fmt::format(
                "{} of {} norms amplify coordinate {} or switch it off. The map that reads it most is {}: "
                "{} % of its squared weight, with the gain, is on that coordinate, {} times the mean of "
                "all coordinates.",
                found.unusual, found.norms, found.coordinate, reader(found.reader),
                format_number(100.0 * found.share), format_number(found.over_mean)),
            {{"coordinate", as_number(found.coordinate)}, {"share", found.share}},
            "A layer that depends on one feature is most sensitive to its quantization or pruning.",
            geometry()};
  }

  FindingText operator()(const analysis::NeverUniform& found) const {
    return {"never_uniform",
            fmt::format(
                "{} can never attend to all keys nearly alike: {}. Whatever the query, some possible key "
                "has at least e times the weight of another (in one of these heads, {} times).",
                counted(found.different, "head"), head_names(found.heads), format_exp_at_least(found.spread)),
            {{"heads", as_number(found.different)}, {"spread", found.spread}},
            "Such a head cannot average over every context: whatever the query, some possible keys get more "
            "weight than others.",
            command("heads")};
  }

  FindingText operator()(const analysis::NeverSharp& found) const {
    return {
        "never_sharp",
        fmt::format("{} of {} can never put half of their attention on one of 1024 keys: {}. In the least "
                    "sharp one, any two weights are within a factor of {}.",
                    found.different, counted(found.known, "head"), head_names(found.heads),
                    format_at_most(std::exp(found.spread))),
        {{"heads", as_number(found.different)}, {"spread", found.spread}},
        "Over 1024 keys such a head mixes many tokens: it cannot copy from one.",
        command("heads")};
  }

  FindingText operator()(const analysis::UnreachableTokens& found) const {
    return {
        "unreachable_tokens",
        fmt::format("{} of {} can never have the largest logit after the final norm: {}. If hidden "
                    "states of any length were possible, it would be {}.",
                    found.tokens.size(), counted(report_.vocabulary.survey->tokens.size(), "token"),
                    token_names(report_, found.tokens), found.without_bound),
        {{"unreachable", as_number(found.tokens.size())}, {"without_bound", as_number(found.without_bound)}},
        "Greedy decoding never produces these tokens, whatever the prompt.",
        command("reach")};
  }

  FindingText operator()(const analysis::TiedTokens& found) const {
    return {
        "tied_tokens",
        fmt::format("{} of {} share their weights with another token, so that their logits are always equal. "
                    "They form {}, the first of {}.",
                    found.tokens, counted(report_.vocabulary.survey->tokens.size(), "token"),
                    counted(found.groups, "group"), token_names(report_, report_.vocabulary.ties.front())),
        {{"tokens", as_number(found.tokens)}, {"groups", as_number(found.groups)}},
        "Which of them greedy decoding produces is decided by the order of ids, not by the model.",
        command("reach")};
  }

  FindingText operator()(const analysis::ImprobableToken& found) const {
    return {"improbable_token",
            fmt::format("No context gives {} a probability above {}.", token_names(report_, {found.token}),
                        format_at_most(found.probability)),
            {{"probability", found.probability}},
            "Whatever the prompt, sampling at temperature 1 more often produces another token.",
            command("reach")};
  }

 private:
  [[nodiscard]] const analysis::NormReport& norm() const { return report_.norms[*finding_.norm]; }
  [[nodiscard]] const std::string& name() const { return norm().norm.name; }
  [[nodiscard]] const std::string& name(std::size_t index) const { return report_.norms[index].norm.name; }

  /// "a", "a and b", "a, b, c and 9 others".
  [[nodiscard]] std::string names(const Indices& which) const {
    if (which.size() > named || which.size() < 2) {
      return first_few(which, [&](std::size_t index) { return name(index); });
    }
    const Indices front(which.begin(), which.end() - 1);
    return first_few(front, [&](std::size_t index) { return name(index); }) + " and " + name(which.back());
  }

  /// "mostly along coordinate 80 (weight 0.79)": the direction of a unit vector, by its largest entry.
  static std::string along(const analysis::Component& largest) {
    const double weight = std::abs(largest.weight);
    // From one half of the squared length on, all other coordinates together have less.
    return fmt::format("{} along coordinate {} (weight {:.2f})",
                       weight >= 0.985          ? "almost exactly"
                       : weight * weight >= 0.5 ? "mostly"
                                                : "in largest part",
                       largest.coordinate, weight);
  }

  /// " in the first" of several norms.
  static const char* in_the_first(const Indices& norms) { return norms.size() > 1 ? " in the first" : ""; }

  /// "layer 0 head 2, layer 1 head 0 (first pass) and 3 others".
  [[nodiscard]] std::string head_names(const Indices& which) const {
    return first_few(which, [&](std::size_t index) {
      const heads::HeadReach& reach = report_.heads[index];
      return report_.model.heads[reach.head].place() + (reach.pass.empty()      ? ""
                                                        : reach.pass == "first" ? " (first pass)"
                                                                                : " (later passes)");
    });
  }

  [[nodiscard]] std::string reader(std::size_t index) const {
    const models::Linear& linear = norm().norm.readers[index];
    return fmt::format("{} ({})", linear.role, linear.weight.selector());
  }

  [[nodiscard]] std::string command(const char* name) const {
    return fmt::format("normscope {} {}", name, shell_quoted(command_path(report_.path)));
  }
  /// Findings about the whole file are reproduced by its description.
  [[nodiscard]] std::string inspect() const { return command("inspect"); }
  [[nodiscard]] std::string geometry() const { return geometry(*finding_.norm); }
  [[nodiscard]] std::string geometry(std::size_t index) const {
    const analysis::NormReport& of = report_.norms[index];
    return of.not_measured.empty() ? geometry_command(report_.path, of.norm) : inspect();
  }

  /// A finding about several norms.
  [[nodiscard]] FindingText about(const Indices& norms, const char* kind, std::string text,
                                  const char* why = "") const {
    return {kind, std::move(text), {{"norms", as_number(norms.size())}}, why, geometry()};
  }

  const analysis::Finding& finding_;
  const analysis::Report& report_;
};

}  // namespace

std::string shell_quoted(const std::string& text) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:+=@%,";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  std::string quoted = printable ? "'" : "$'";
  for (const char c : text) {
    if (printable) {
      quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    } else if (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\') {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return quoted + "'";
}

std::string command_path(const std::string& path) {
  const std::filesystem::path whole(path);
  if (!whole.is_absolute()) return path;
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

FindingText describe(const analysis::Finding& finding, const analysis::Report& report) {
  FindingText text = std::visit(Description(finding, report), finding.property);
  text.norm = finding.norm;
  text.severity = finding.severity;
  return text;
}

std::string geometry_command(const std::string& path, const models::Norm& norm) {
  std::string command = "normscope geometry";
  if (norm.gain && norm.gain->count == norm.width) {
    command += " --gain " + shell_quoted(command_path(path) + ":" + norm.gain->selector());
  } else {
    command += fmt::format(" --width {}", norm.width);
  }
  if (norm.gain_offset != 0.0) command += fmt::format(" --gain-offset {}", norm.gain_offset);
  command += fmt::format(" --norm {}", to_string(norm.kind));
  if (norm.groups != 1) command += fmt::format(" --groups {}", norm.groups);
  if (!is_elementwise(norm.kind)) command += fmt::format(" --eps {}", norm.eps);
  return command + " --axes 1";
}

}  // namespace normscope::results
