#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <normscope/analysis/text.hpp>
#include "finding_rules.hpp"

namespace normscope::analysis {
namespace {

/// Largest over smallest median gain from which their range is a finding.
constexpr double widespread = 2.0;

/// Norms for which `holds`, in forward order.
template <typename Predicate>
std::vector<std::size_t> where(const Report& report, Predicate holds) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    if (holds(report.norms[i])) result.push_back(i);
  }
  return result;
}

/// One finding about all norms for which `holds`; `text` gets their names and the first of them.
template <typename Predicate, typename Text>
void about_all(const Report& report, Findings& findings, const char* kind, double severity, Predicate holds,
               Text text) {
  const std::vector<std::size_t> which = where(report, holds);
  if (which.empty()) return;
  const NormReport& first = report.norms[which.front()];
  findings.push_back({kind,
                      which.front(),
                      text(names(report, which), first),
                      {{"norms", static_cast<double>(which.size())}},
                      severity,
                      first.reproduce});
}

/// ", from h.0.ln_1 to ln_f", where these norms are in the order of the forward pass.
std::string from_first_to_last(const Report& report, const std::vector<std::size_t>& norms) {
  const bool ordered = std::all_of(norms.begin(), norms.end(),
                                   [&](std::size_t i) { return report.norms[i].norm.order_known; });
  return ordered ? fmt::format(", from {} to {}", report.norms[norms.front()].norm.name,
                               report.norms[norms.back()].norm.name)
                 : "";
}

void shared_outliers(const Report& report, Findings& findings) {
  std::map<std::size_t, std::vector<std::size_t>> norms_by_coordinate;
  std::size_t with_gain = 0;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    // The coordinates of a norm inside attention are not those of the stream.
    if (report.norms[i].norm.placement == models::Placement::inside || !report.norms[i].gain) continue;
    ++with_gain;
    for (const Outlier& outlier : report.norms[i].outliers)
      norms_by_coordinate[outlier.coordinate].push_back(i);
  }
  std::vector<std::pair<std::size_t, std::size_t>> shared;  // (norms, coordinate)
  for (const auto& [coordinate, norms] : norms_by_coordinate) {
    if (norms.size() >= 3 && 8 * norms.size() >= with_gain) shared.emplace_back(norms.size(), coordinate);
  }
  std::sort(shared.rbegin(), shared.rend());
  for (std::size_t k = 0; k < std::min(shared.size(), named_per_rule); ++k) {
    const auto [count, coordinate] = shared[k];
    const std::vector<std::size_t>& norms = norms_by_coordinate[coordinate];
    findings.push_back(
        {"shared_outlier",
         norms.front(),
         fmt::format("Coordinate {} has an outlier gain in {} of {} norms{}.", coordinate, count, with_gain,
                     from_first_to_last(report, norms)),
         {{"coordinate", static_cast<double>(coordinate)}, {"norms", static_cast<double>(count)}},
         0.4 + 0.5 * static_cast<double>(count) / static_cast<double>(with_gain),
         report.norms[norms.front()].reproduce});
  }
}

void switched_off_features(const Report& report, Findings& findings) {
  const std::vector<std::size_t> norms =
      where(report, [](const NormReport& norm) { return !norm.switched_off.empty(); });
  if (norms.empty()) return;
  std::size_t gains = 0;
  for (const std::size_t i : norms) gains += report.norms[i].switched_off.size();
  const std::size_t with_gain =
      where(report, [](const NormReport& norm) { return norm.gain.has_value(); }).size();
  const auto most = std::max_element(
      report.features.begin(), report.features.end(),
      [](const UnusualFeature& a, const UnusualFeature& b) { return a.off.size() < b.off.size(); });
  std::string recurring;
  if (most != report.features.end() && most->off.size() > 1) {
    recurring = fmt::format(" Coordinate {} is off in {} of {} norms.", most->coordinate, most->off.size(),
                            most->norms.size());
  }
  const NormReport& first = report.norms[norms.front()];
  findings.push_back(
      {"switched_off",
       norms.front(),
       fmt::format("{} in {} of {} norms {} at most {:g} % of the norm's median: {} switched off, the first "
                   "coordinate {} in {}.{}",
                   counted(gains, "gain"), norms.size(), with_gain, gains == 1 ? "is" : "are",
                   100.0 * off_ratio, gains == 1 ? "the feature is" : "these features are",
                   first.switched_off[0].coordinate, first.norm.name, recurring),
       {{"gains", static_cast<double>(gains)}, {"norms", static_cast<double>(norms.size())}},
       0.35 + 0.3 * static_cast<double>(norms.size()) / static_cast<double>(with_gain),
       first.reproduce});
}

void gain_through_depth(const Report& report, Findings& findings) {
  const std::vector<std::size_t> gains = where(report, [](const NormReport& norm) {
    return norm.gain && norm.gain->not_finite == 0 && norm.norm.placement != models::Placement::inside;
  });
  if (gains.size() < 2) return;
  const auto typical = [&](std::size_t i) { return report.norms[i].gain->median_abs; };
  const auto [low, high] = std::minmax_element(
      gains.begin(), gains.end(), [&](std::size_t a, std::size_t b) { return typical(a) < typical(b); });
  if (typical(*high) < widespread * typical(*low)) return;
  findings.push_back(
      {"gain_range",
       *high,
       fmt::format("The median gain runs from {} in {} to {} in {}.", number(typical(*low)),
                   report.norms[*low].norm.name, number(typical(*high)), report.norms[*high].norm.name),
       {{"least", typical(*low)}, {"most", typical(*high)}},
       0.12,
       report.norms[*high].reproduce});
}

void signs_and_zeros(const Report& report, Findings& findings) {
  about_all(
      report, findings, "zero_gain", 0.8,
      [](const NormReport& norm) { return norm.gain && norm.gain->zero > 0; },
      [](const std::string& which, const NormReport& first) {
        return fmt::format(
            "Coordinates are erased outright, by gains of exactly zero, in {}: {} in the first.", which,
            counted(first.gain->zero, "coordinate"));
      });
  std::size_t negative = 0;
  const std::vector<std::size_t> flipping =
      where(report, [](const NormReport& norm) { return norm.sign_changes > 0; });
  if (flipping.empty()) return;
  for (const std::size_t i : flipping) negative += report.norms[i].sign_changes;
  const std::size_t most =
      *std::max_element(flipping.begin(), flipping.end(), [&](std::size_t a, std::size_t b) {
        return report.norms[a].sign_changes < report.norms[b].sign_changes;
      });
  findings.push_back(
      {"negative_gain",
       most,
       fmt::format("{} below zero {}, {}in {}.", counted(negative, "gain"),
                   negative == 1 ? "changes the sign of its feature" : "change the sign of their features",
                   negative == 1          ? ""
                   : flipping.size() == 1 ? "all "
                                          : fmt::format("{} of them ", report.norms[most].sign_changes),
                   report.norms[most].norm.name),
       {{"negative", static_cast<double>(negative)}},
       0.25,
       report.norms[most].reproduce});
}

void suspicious_norms(const Report& report, Findings& findings) {
  about_all(
      report, findings, "not_measured", 1.0,
      [](const NormReport& norm) { return !norm.not_measured.empty(); },
      [](const std::string& which, const NormReport& first) {
        return fmt::format("No numbers are given for {}: {}.", which, first.not_measured);
      });
  about_all(
      report, findings, "not_finite", 1.0,
      [](const NormReport& norm) { return norm.gain && norm.gain->not_finite > 0; },
      [](const std::string& which, const NormReport& first) {
        return fmt::format("Gains that are not finite leave {} without an image: {} in the first.", which,
                           counted(first.gain->not_finite, "gain"));
      });
  about_all(
      report, findings, "image_out_of_range", 1.0,
      [](const NormReport& norm) { return norm.gain && norm.gain->not_finite == 0 && !norm.image; },
      [](const std::string& which, const NormReport& first) {
        return fmt::format(
            "Gains up to {} leave {} without an image: its semi-axes are beyond float64's range.",
            number(std::max(std::abs(first.gain->min), std::abs(first.gain->max))), which);
      });
  about_all(
      report, findings, "bias_not_finite", 1.0,
      [](const NormReport& norm) { return norm.bias && norm.bias->not_finite > 0; },
      [](const std::string& which, const NormReport& first) {
        return fmt::format("Biases that are not finite make the outputs of {} not finite: {} in the first.",
                           which, first.bias->not_finite);
      });
  about_all(
      report, findings, "constant_gain", 0.5,
      [](const NormReport& norm) {
        return norm.gain && norm.gain->not_finite == 0 && norm.norm.width > 1 &&
               norm.gain->min == norm.gain->max;
      },
      [](const std::string& which, const NormReport& first) {
        return fmt::format(
            "All gains are equal, as in an untrained or a folded norm: {} (to {} in the first).", which,
            number(first.gain->mean));
      });
  about_all(
      report, findings, "huge_eps", 0.9, [](const NormReport& norm) { return norm.norm.eps >= 1.0; },
      [](const std::string& which, const NormReport& first) {
        return fmt::format(
            "An eps of {:g} makes the divisor nearly constant, so that nothing is normalized: {}.",
            first.norm.eps, which);
      });
}

void what_the_file_says(const Report& report, Findings& findings) {
  about_all(
      report, findings, "gain_offset", 0.6,
      [](const NormReport& norm) { return norm.norm.gain_offset != 0.0; },
      [](const std::string& which, const NormReport&) {
        return fmt::format(
            "The file stores gain − 1; every number here is of the gain that the model uses, with 1 added: "
            "{}.",
            which);
      });
  std::set<std::string> assumed;
  for (const NormReport& norm : report.norms) {
    if (norm.norm.eps_source == models::Source::assumed) assumed.insert(fmt::format("{:g}", norm.norm.eps));
  }
  if (!assumed.empty()) {
    findings.push_back(
        {"assumed_eps",
         {},
         fmt::format("No file states eps; {} was assumed, which changes no axis and no null direction.",
                     fmt::join(assumed, " or ")),
         {},
         0.15});
  }
  const std::vector<std::string>& missing = report.model.missing;
  if (!missing.empty()) {
    findings.push_back(
        {"missing_tensors",
         {},
         fmt::format("The file lacks {} of {}, the first {}: their reads and writes are left out.",
                     counted(missing.size(), "tensor"), report.model.title, missing.front()),
         {{"missing", static_cast<double>(missing.size())}},
         0.5});
  }
}

void norms_that_do_not_normalize(const Report& report, Findings& findings) {
  about_all(
      report, findings, "normalization_off", 1.0,
      [](const NormReport& norm) { return norm.norm.effect() == NormEffect::off; },
      [](const std::string& which, const NormReport& first) {
        return fmt::format(
            "Normalization is off in {}: eps {:g} exceeds the mean square m of any row, so each is a linear "
            "map within m/(2 eps) relative. No bounds are given for what reads them.",
            which, first.norm.eps);
      });
  about_all(
      report, findings, "elementwise_norm", 0.5,
      [](const NormReport& norm) { return norm.norm.effect() == NormEffect::elementwise; },
      [](const std::string& which, const NormReport& first) {
        return fmt::format(
            "{} in {} acts on every feature separately: the image is a box of half-widths |g|, nothing is "
            "projected or scaled, and no bounds are given for what reads it.",
            facts(first.norm.kind).title, which);
      });
}

}  // namespace

void add_parameter_findings(const Report& report, Findings& findings) {
  norms_that_do_not_normalize(report, findings);
  shared_outliers(report, findings);
  switched_off_features(report, findings);
  gain_through_depth(report, findings);
  signs_and_zeros(report, findings);
  suspicious_norms(report, findings);
  what_the_file_says(report, findings);
}

}  // namespace normscope::analysis
