#include <normscope/analysis/findings.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {
namespace {

using Findings = std::vector<Finding>;

/// Findings that one rule makes about single norms or features, at most; others are counted.
constexpr std::size_t most_of_a_rule = 3;
/// Condition number from which the range of condition numbers is a finding.
constexpr double ill_conditioned = 10.0;
/// Condition number from which an image differs from a sphere by more than rounding.
constexpr double stretched_at_all = 1.0 + 1e-9;
/// Largest over smallest median gain from which their range is a finding.
constexpr double widespread = 2.0;
/// Share of a reader's squared weights, as a multiple of chance, from which its removal is a finding.
constexpr double times_chance = 10.0;
/// Multiple of the mean share from which a reader is said to read a feature.
constexpr double times_mean = 20.0;
/// Largest probability below which a token gets a finding.
constexpr double improbable = 0.5;

/// 0 at `low`, 1 at `high`, logarithmic in between.
double log_severity(double value, double low, double high) {
  if (!std::isfinite(value)) return 1.0;
  return std::clamp(std::log(value / low) / std::log(high / low), 0.0, 1.0);
}

/// Whether a finding can state these numbers: the squares of gains near the limits of float64 overflow.
bool are_finite(std::initializer_list<double> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

/// Indices of the norms for which `holds`, in forward order.
template <typename Holds>
std::vector<std::size_t> norms_where(const Report& report, Holds holds) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    if (holds(report.norms[i])) result.push_back(i);
  }
  return result;
}

/// Indices of the norms for which `holds`, by descending `score`.
template <typename Holds, typename Score>
std::vector<std::size_t> ranked(const Report& report, Holds holds, Score score) {
  std::vector<std::size_t> order = norms_where(report, holds);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return score(report.norms[a]) > score(report.norms[b]);
  });
  return order;
}

// Images

/// Whether the image differs from a sphere.
bool more_than_a_sphere(const NormReport& norm) {
  return norm.image && norm.image->condition > stretched_at_all;
}

void find_stretched_axes(const Report& report, Findings& findings) {
  const auto ratio = [](const NormReport& norm) { return norm.image->top_axes[0].ratio_to_median; };
  const std::vector<std::size_t> order = ranked(report, more_than_a_sphere, ratio);
  const std::size_t stretched = std::count_if(
      order.begin(), order.end(), [&](std::size_t i) { return ratio(report.norms[i]) >= outlier_ratio; });
  for (std::size_t k = 0; k < std::min(stretched, most_of_a_rule); ++k) {
    const Axis& axis = report.norms[order[k]].image->top_axes[0];
    if (!are_finite({axis.ratio_to_median, axis.length})) continue;
    findings.push_back({order[k], 0.3 + 0.6 * log_severity(axis.ratio_to_median, outlier_ratio, 50.0),
                        StretchedAxis{axis.ratio_to_median, axis.length, axis.largest}});
  }
  if (stretched > most_of_a_rule) findings.push_back({{}, 0.3, StretchedAxesCount{stretched, order[0]}});
}

void find_concentrated_image(const Report& report, Findings& findings) {
  const auto concentration = [](const NormReport& norm) {
    return static_cast<double>(norm.image->semi_axes) / norm.image->effective_dimension;
  };
  const std::vector<std::size_t> order = ranked(report, more_than_a_sphere, concentration);
  if (order.empty()) return;
  const Image& image = *report.norms[order[0]].image;
  const double value = concentration(report.norms[order[0]]);
  if (value < concentrated_from) return;
  if (!are_finite({image.effective_dimension, image.energy_top_1, image.energy_top_8})) return;
  findings.push_back({order[0], 0.2 + 0.6 * log_severity(value, concentrated_from, 50.0),
                      ConcentratedImage{image.effective_dimension, image.energy_top_1, image.energy_top_8}});
}

void find_condition_range(const Report& report, Findings& findings) {
  const std::vector<std::size_t> order =
      ranked(report, more_than_a_sphere, [](const NormReport& norm) { return norm.image->condition; });
  if (order.size() < 2) return;
  const NormReport& worst = report.norms[order.front()];
  const Image& image = *worst.image;
  ConditionRange range{.most = image.condition,
                       .least = report.norms[order.back()].image->condition,
                       .least_norm = order.back(),
                       .switched_off = worst.switched_off.size()};
  if (range.most < ill_conditioned || !are_finite({range.most, range.least})) return;
  if (range.switched_off > 0 && range.switched_off < image.lengths.size()) {
    range.without_switched_off = image.longest / image.lengths[image.lengths.size() - 1 - range.switched_off];
  }
  findings.push_back({order.front(), 0.1 + 0.5 * log_severity(range.most, ill_conditioned, 1e6), range});
}

void find_null_direction(const Report& report, Findings& findings) {
  const std::vector<std::size_t> single = norms_where(
      report, [](const NormReport& norm) { return norm.null_space && norm.null_space->cosine_to_ones; });
  if (single.empty()) return;
  const auto cosine = [&](std::size_t i) { return *report.norms[i].null_space->cosine_to_ones; };
  const std::size_t most = *std::min_element(
      single.begin(), single.end(), [&](std::size_t a, std::size_t b) { return cosine(a) < cosine(b); });
  const std::size_t tilted =
      std::count_if(single.begin(), single.end(), [&](std::size_t i) { return cosine(i) < tilted_cosine; });
  if (tilted == 0) return;
  const NormReport& norm = report.norms[most];
  const Component& largest = norm.null_space->top[0];
  const bool off = std::any_of(norm.switched_off.begin(), norm.switched_off.end(),
                               [&](const Outlier& one) { return one.coordinate == largest.coordinate; });
  findings.push_back({most, 0.3 + 0.4 * (tilted_cosine - cosine(most)) / tilted_cosine,
                      NullDirection{cosine(most), largest, off, tilted, single.size()}});
}

void find_image_change(const Report& report, Findings& findings) {
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const std::optional<Neighbour>& next = report.norms[i].next;
    // A similarity can be computed again from two stored gains.
    if (!next || !report.norms[i].norm.gain || !report.norms[next->index].norm.gain) continue;
    if (next->similarity < changed_similarity &&
        (!least || next->similarity < report.norms[*least].next->similarity)) {
      least = i;
    }
  }
  if (!least) return;
  const Neighbour& next = *report.norms[*least].next;
  if (!are_finite({next.similarity, next.top_axis_cosine})) return;
  findings.push_back({least, 0.1 + 0.4 * (1.0 - next.similarity),
                      ImageChange{next.index, next.similarity, next.top_axis_cosine}});
}

void find_large_bias(const Report& report, Findings& findings) {
  const auto shifted = [](const NormReport& norm) { return norm.shift_over_radius.has_value(); };
  const auto ratio = [](const NormReport& norm) { return *norm.shift_over_radius; };
  const std::vector<std::size_t> order = ranked(report, shifted, ratio);
  if (order.empty()) return;
  const double most = ratio(report.norms[order[0]]);
  if (most < long_bias || !are_finite({most})) return;
  findings.push_back({order[0], 0.2 + 0.4 * log_severity(most, long_bias, 5.0), LargeBias{most}});
}

// Gains, eps and what the file does not state

/// One finding of this kind about all norms for which `holds`, with what `of` says about the first.
template <typename Kind, typename Holds, typename Of>
void find_group(const Report& report, Findings& findings, double severity, Holds holds, Of of) {
  std::vector<std::size_t> norms = norms_where(report, holds);
  if (norms.empty()) return;
  const std::size_t first = norms.front();
  findings.push_back({first, severity, Kind{std::move(norms), of(report.norms[first])}});
}

template <typename Kind, typename Holds>
void find_group(const Report& report, Findings& findings, double severity, Holds holds) {
  std::vector<std::size_t> norms = norms_where(report, holds);
  if (norms.empty()) return;
  const std::size_t first = norms.front();
  findings.push_back({first, severity, Kind{std::move(norms)}});
}

void find_norms_that_do_not_normalize(const Report& report, Findings& findings) {
  find_group<NormalizationOff>(
      report, findings, 1.0, [](const NormReport& norm) { return norm.norm.effect() == NormEffect::off; },
      [](const NormReport& first) { return first.norm.eps; });
  find_group<ElementwiseNorm>(report, findings, 0.5, [](const NormReport& norm) {
    return norm.norm.effect() == NormEffect::elementwise;
  });
}

void find_shared_outliers(const Report& report, Findings& findings) {
  std::map<std::size_t, std::vector<std::size_t>> norms_of;  // by coordinate
  std::size_t with_gain = 0;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    // The coordinates of a norm inside attention are not those of the stream.
    if (report.norms[i].norm.placement == models::Placement::inside || !report.norms[i].gain) continue;
    ++with_gain;
    for (const Outlier& outlier : report.norms[i].outliers) norms_of[outlier.coordinate].push_back(i);
  }
  std::vector<std::pair<std::size_t, std::size_t>> shared;  // (norms, coordinate)
  for (const auto& [coordinate, norms] : norms_of) {
    if (norms.size() >= 3 && 8 * norms.size() >= with_gain) shared.emplace_back(norms.size(), coordinate);
  }
  std::sort(shared.rbegin(), shared.rend());
  for (std::size_t k = 0; k < std::min(shared.size(), most_of_a_rule); ++k) {
    const auto [count, coordinate] = shared[k];
    const std::vector<std::size_t>& norms = norms_of[coordinate];
    findings.push_back({norms.front(),
                        0.4 + 0.5 * static_cast<double>(count) / static_cast<double>(with_gain),
                        SharedOutlier{coordinate, norms, with_gain}});
  }
}

void find_switched_off(const Report& report, Findings& findings) {
  const std::vector<std::size_t> norms =
      norms_where(report, [](const NormReport& norm) { return !norm.switched_off.empty(); });
  if (norms.empty()) return;
  SwitchedOff found{
      .norms = norms.size(),
      .of_norms = norms_where(report, [](const NormReport& norm) { return norm.gain.has_value(); }).size(),
      .first_coordinate = report.norms[norms.front()].switched_off[0].coordinate};
  for (const std::size_t i : norms) found.gains += report.norms[i].switched_off.size();
  const auto most = std::max_element(
      report.features.begin(), report.features.end(),
      [](const UnusualFeature& a, const UnusualFeature& b) { return a.off.size() < b.off.size(); });
  if (most != report.features.end() && most->off.size() > 1) {
    found.recurring = {most->coordinate, most->off.size(), most->norms.size()};
  }
  findings.push_back({norms.front(),
                      0.35 + 0.3 * static_cast<double>(found.norms) / static_cast<double>(found.of_norms),
                      found});
}

void find_gain_range(const Report& report, Findings& findings) {
  const std::vector<std::size_t> gains = norms_where(report, [](const NormReport& norm) {
    return norm.gain && norm.gain->not_finite == 0 && norm.norm.placement != models::Placement::inside;
  });
  if (gains.size() < 2) return;
  const auto typical = [&](std::size_t i) { return report.norms[i].gain->median_abs; };
  const auto [low, high] = std::minmax_element(
      gains.begin(), gains.end(), [&](std::size_t a, std::size_t b) { return typical(a) < typical(b); });
  if (typical(*high) < widespread * typical(*low)) return;
  findings.push_back({*high, 0.12, GainRange{typical(*high), typical(*low), *low}});
}

void find_signs_and_zeros(const Report& report, Findings& findings) {
  find_group<ZeroGain>(
      report, findings, 0.8, [](const NormReport& norm) { return norm.gain && norm.gain->zero > 0; },
      [](const NormReport& first) { return first.gain->zero; });
  const std::vector<std::size_t> flipping =
      norms_where(report, [](const NormReport& norm) { return norm.sign_changes > 0; });
  if (flipping.empty()) return;
  NegativeGain found{.norms = flipping.size()};
  std::size_t most = flipping.front();
  for (const std::size_t i : flipping) {
    found.gains += report.norms[i].sign_changes;
    if (report.norms[i].sign_changes > report.norms[most].sign_changes) most = i;
  }
  found.most = report.norms[most].sign_changes;
  findings.push_back({most, 0.25, found});
}

void find_suspicious_norms(const Report& report, Findings& findings) {
  find_group<NotMeasured>(report, findings, 1.0,
                          [](const NormReport& norm) { return !norm.not_measured.empty(); });
  find_group<NotFinite>(
      report, findings, 1.0, [](const NormReport& norm) { return norm.gain && norm.gain->not_finite > 0; },
      [](const NormReport& first) { return first.gain->not_finite; });
  find_group<ImageOutOfRange>(
      report, findings, 1.0,
      [](const NormReport& norm) { return norm.gain && norm.gain->not_finite == 0 && !norm.image; },
      [](const NormReport& first) { return std::max(std::abs(first.gain->min), std::abs(first.gain->max)); });
  find_group<BiasNotFinite>(
      report, findings, 1.0, [](const NormReport& norm) { return norm.bias && norm.bias->not_finite > 0; },
      [](const NormReport& first) { return first.bias->not_finite; });
  find_group<ConstantGain>(
      report, findings, 0.5,
      [](const NormReport& norm) {
        return norm.gain && norm.gain->not_finite == 0 && norm.norm.width > 1 &&
               norm.gain->min == norm.gain->max;
      },
      [](const NormReport& first) { return first.gain->mean; });
  find_group<HugeEps>(
      report, findings, 0.9, [](const NormReport& norm) { return norm.norm.eps >= 1.0; },
      [](const NormReport& first) { return first.norm.eps; });
}

/// Odds, in bits, from which entries that are all sums count as evidence of a sum.
constexpr double telling_bits = 20.0;

std::optional<GainConvention::Kind> convention_of(const NormReport& norm) {
  using Kind = GainConvention::Kind;
  if (!norm.shifts || norm.shifts->bits == 0) return std::nullopt;
  const int expected = norm.norm.gain_was_shifted ? 1 : 0;
  const models::GainShifts& shifts = *norm.shifts;
  if (shifts.most && *shifts.most < expected) return Kind::not_shifted;
  if (shifts.most == expected) return Kind::as_expected;
  if (expected == 0 && shifts.evidence_bits >= telling_bits) return Kind::looks_shifted;
  return std::nullopt;
}

void find_conventions(const Report& report, Findings& findings) {
  const std::size_t undecided =
      norms_where(report, [](const NormReport& norm) { return norm.shifts && !convention_of(norm); }).size();
  for (const auto& [kind, severity] : {std::pair(GainConvention::Kind::not_shifted, 0.9),
                                       std::pair(GainConvention::Kind::looks_shifted, 0.9),
                                       std::pair(GainConvention::Kind::as_expected, 0.2)}) {
    const std::vector<std::size_t> norms =
        norms_where(report, [kind = kind](const NormReport& norm) { return convention_of(norm) == kind; });
    if (norms.empty()) continue;
    findings.push_back({norms.front(), severity,
                        GainConvention{norms, kind, *report.norms[norms.front()].shifts, undecided}});
  }
}

// That a usual class's gains are as described is no finding.
void find_gains_on_text(const Report& report, Findings& findings) {
  const GainConsistency& found = report.gains_on_text;
  const bool adds_one = std::any_of(report.norms.begin(), report.norms.end(),
                                    [](const NormReport& norm) { return norm.shifts.has_value(); });
  if (report.norms.empty() || (found.shift.value_or(0) == 0 && !adds_one)) return;
  const std::size_t first = found.norms.empty() ? 0 : found.norms.front();
  findings.push_back({first,
                      found.shift.value_or(0) != 0 ? 0.95
                      : found.shift                ? 0.2
                                                   : 0.1,
                      GainsOnText{found}});
}

void find_assumptions(const Report& report, Findings& findings) {
  find_group<GainOffset>(
      report, findings, 0.6, [](const NormReport& norm) { return norm.norm.gain_offset != 0.0; },
      [](const NormReport& first) { return first.norm.gain_offset; });
  find_conventions(report, findings);
  find_gains_on_text(report, findings);
  std::set<double> eps;
  for (const NormReport& norm : report.norms) {
    if (norm.norm.eps_source == models::Source::assumed) eps.insert(norm.norm.eps);
  }
  if (!eps.empty()) findings.push_back({{}, 0.15, AssumedEps{{eps.begin(), eps.end()}}});
  const std::size_t missing = report.model.missing.size();
  if (missing > 0) findings.push_back({{}, 0.5, MissingTensors{missing}});
}

// Readers

void find_removed_weight(const Report& report, Findings& findings) {
  std::optional<std::size_t> norm;
  const Reader* most = nullptr;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    for (const Reader& reader : report.norms[i].readers) {
      if (reader.removed < std::max(much_removed, times_chance * reader.chance)) continue;
      if (most != nullptr && reader.removed <= most->removed) continue;
      norm = i;
      most = &reader;
    }
  }
  if (most == nullptr) return;
  findings.push_back(
      {norm, 0.3 + 0.4 * most->removed, RemovedWeight{most->index, most->removed, most->chance}});
}

void find_feature_reader(const Report& report, Findings& findings) {
  if (report.features.empty() || report.features[0].unusual() < 2) return;
  const UnusualFeature& feature = report.features[0];
  FeatureReader most{
      .coordinate = feature.coordinate, .unusual = feature.unusual(), .norms = feature.norms.size()};
  std::optional<std::size_t> norm;
  for (const std::size_t i : feature.norms) {
    for (const Reader& reader : report.norms[i].readers) {
      for (const Component& component : reader.features) {
        if (component.coordinate != feature.coordinate || component.weight <= most.share) continue;
        const double over_mean = component.weight * static_cast<double>(report.norms[i].norm.width);
        if (over_mean < times_mean) continue;
        most.reader = reader.index;
        most.share = component.weight;
        most.over_mean = over_mean;
        norm = i;
      }
    }
  }
  if (norm) findings.push_back({norm, 0.3, most});
}

// Heads

/// Number of different heads: with shared weights, a report lists a head once for each norm that it reads.
std::size_t count_heads(const Report& report, const std::vector<std::size_t>& which) {
  std::set<std::size_t> heads;
  for (const std::size_t index : which) heads.insert(report.heads[index].head);
  return heads.size();
}

void find_never_uniform(const Report& report, Findings& findings) {
  NeverUniform found;
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    const std::optional<heads::Attention>& attention = report.heads[i].attention;
    if (!attention || attention->most_uniform.lower < never_uniform_from) continue;
    if (found.heads.empty() || attention->most_uniform.lower > found.spread) {
      found.extreme = i;
      found.spread = attention->most_uniform.lower;
    }
    found.heads.push_back(i);
  }
  if (found.heads.empty() || !are_finite({found.spread})) return;
  found.different = count_heads(report, found.heads);
  findings.push_back({{}, log_severity(found.spread, never_uniform_from, 100.0), found});
}

void find_never_sharp(const Report& report, Findings& findings) {
  NeverSharp found;
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    const std::optional<heads::Attention>& attention = report.heads[i].attention;
    if (!attention) continue;
    known.push_back(i);
    if (attention->sharpest.upper >= singling_out) continue;
    if (found.heads.empty() || attention->sharpest.upper < found.spread) {
      found.extreme = i;
      found.spread = attention->sharpest.upper;
    }
    found.heads.push_back(i);
  }
  if (found.heads.empty()) return;
  found.different = count_heads(report, found.heads);
  found.known = count_heads(report, known);
  findings.push_back({{}, 0.4, found});
}

// Vocabulary

void find_tokens(const Report& report, Findings& findings) {
  if (!report.vocabulary.survey) return;
  const selectability::Survey& survey = *report.vocabulary.survey;
  const std::vector<std::vector<std::size_t>>& ties = report.vocabulary.ties;
  UnreachableTokens unreachable{selectability::without_ties(survey.with(proof::Answer::no), ties)};
  if (!unreachable.tokens.empty()) {
    for (const std::size_t token : unreachable.tokens) {
      unreachable.without_bound += survey.tokens[token].unbounded == proof::Answer::no ? 1 : 0;
    }
    findings.push_back({{}, 0.8, unreachable});
  }
  if (!ties.empty()) {
    TiedTokens tied{.groups = ties.size()};
    for (const std::vector<std::size_t>& group : ties) tied.tokens += group.size();
    findings.push_back({{}, 0.3, tied});
  }
  const std::vector<std::size_t> least = survey.least_probable(1);
  if (!least.empty() && survey.probabilities[least[0]].upper < improbable) {
    // Most vocabularies have a token that was hardly ever trained.
    findings.push_back({{}, 0.2, ImprobableToken{least[0], survey.probabilities[least[0]].upper}});
  }
}

}  // namespace

std::vector<Finding> find(const Report& report) {
  Findings findings;
  if (report.norms.empty()) findings.push_back({{}, 0.5, NoNorms{}});
  for (const auto rule :
       {find_stretched_axes, find_concentrated_image, find_condition_range, find_null_direction,
        find_image_change, find_large_bias, find_norms_that_do_not_normalize, find_shared_outliers,
        find_switched_off, find_gain_range, find_signs_and_zeros, find_suspicious_norms, find_assumptions,
        find_removed_weight, find_feature_reader, find_never_uniform, find_never_sharp, find_tokens}) {
    rule(report, findings);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace normscope::analysis
