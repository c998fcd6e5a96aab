#include <normscope/analysis/report.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/image.hpp>

#include "measure.hpp"

namespace normscope::analysis {
namespace {

constexpr std::size_t top_components = 8;
constexpr std::size_t top_axes = 4;

/// For all heads of a report together, some ten seconds of one core; alone they may take more.
constexpr double work_on_heads = 0x1p39;

/// Larger bases are not computed; no known norm needs one.
constexpr std::size_t largest_basis = std::size_t{1} << 24;

NullSpace null_space(const norm::NormImage& image, const NormSpec& spec) {
  NullSpace result{.dim = image.null_space_dim()};
  for (std::size_t i = 0; i < spec.width && result.top.size() < top_components; ++i) {
    if (spec.gain_at(i) == 0.0) result.top.push_back({i, 1.0});
  }
  if (!result.top.empty() || result.dim == 0 || result.dim * spec.width > largest_basis) return result;
  std::vector<double> basis(result.dim * spec.width);
  image.null_space({basis.data(), result.dim, spec.width});
  for (std::size_t row = 0; row < result.dim; ++row) {
    const std::vector<double> direction(basis.begin() + static_cast<std::ptrdiff_t>(row * spec.width),
                                        basis.begin() + static_cast<std::ptrdiff_t>((row + 1) * spec.width));
    const double cosine = std::abs(sum(direction)) / std::sqrt(static_cast<double>(spec.block_width()));
    if (result.cosine_to_ones && cosine >= *result.cosine_to_ones) continue;
    result.cosine_to_ones = cosine;
    result.top = largest_components(direction, std::min(top_components, spec.block_width()));
  }
  return result;
}

/// Fraction of Σ length² in the `count` longest semi-axes, from ratios, whose squares stay in range.
double share_of_energy(std::span<const double> lengths, std::size_t count) {
  std::vector<double> ratios(lengths.begin(), lengths.end());
  for (double& ratio : ratios) ratio /= lengths.front();
  return sum_of_squares(std::span<const double>(ratios).first(std::min(count, ratios.size()))) /
         sum_of_squares(ratios);
}

Image image_summary(const norm::NormImage& image, const NormSpec& spec) {
  const std::span<const double> lengths = image.semi_axes();
  Image result{.semi_axes = lengths.size()};
  if (lengths.empty()) return result;
  result.longest = lengths.front();
  result.median = image.median();
  result.shortest = lengths.back();
  result.condition = image.condition();
  result.effective_dimension = norm::effective_dimension(spec);
  result.rms_radius = norm::rms_radius(spec);
  result.energy = norm::energy(spec);
  result.energy_top_1 = share_of_energy(lengths, 1);
  result.energy_top_8 = share_of_energy(lengths, 8);
  result.lengths.assign(lengths.begin(), lengths.end());
  std::vector<double> axis(spec.width);
  for (std::size_t i = 0; i < std::min(top_axes, lengths.size()); ++i) {
    image.axis(i, axis);
    result.top_axes.push_back(
        {i + 1, lengths[i], lengths[i] / result.median, largest_components(axis, 1)[0]});
  }
  return result;
}

/// A measured norm that is to be compared with the next one of its width.
struct Measured {
  std::size_t index;
  NormSpec spec;
  norm::NormImage image;
};

NormReport measure(const files::Checkpoint& checkpoint, const models::Norm& norm,
                   const std::vector<bool>& readers, unsigned threads, const Progress& poll,
                   std::size_t index, FeatureCollector& features, std::unique_ptr<Measured>& measured) {
  NormReport report{.norm = norm};
  NormSpec spec = models::read_norm(checkpoint, norm);
  if (norm.gain) report.gain = statistics(spec.gain);
  if (norm.gain_offset == 1.0 || norm.gain_was_shifted) report.shifts = models::gain_shifts(checkpoint, norm);
  if (norm.bias) report.bias = statistics(spec.bias);
  if (report.gain && report.gain->not_finite > 0) return report;
  if (report.gain) {
    features.measure(index, spec.gain, report);
    add_gain_shape(spec.gain, report);
  }
  if (!std::isfinite(spec.radius() * largest_size(spec.gain))) return report;

  if (norm.effect() == NormEffect::off) return report;
  // The image is that of the norm before its bias, which may have any values.
  if (report.bias && report.bias->not_finite == 0) report.shift_over_radius = norm::shift_over_radius(spec);
  spec.bias.clear();
  norm::NormImage image(spec, threads, poll);
  report.null_space = null_space(image, spec);
  report.image = image_summary(image, spec);
  if (norm.effect() == NormEffect::normalizes) {
    std::vector<double> longest(image.semi_axes().empty() ? 0 : spec.width);
    if (!longest.empty()) image.axis(0, longest);
    measure_readers(checkpoint, spec, longest, readers, threads, poll, report);
  }
  measured = std::make_unique<Measured>(Measured{index, std::move(spec), std::move(image)});
  return report;
}

/// Whether `b` may be the next norm of the space in which `a` acts. Norms inside attention (of one head's
/// query, for example) do not act on the stream.
bool comparable(const models::Norm& a, const models::Norm& b) {
  return a.order_known && b.order_known && a.width == b.width && a.stack == b.stack &&
         (a.placement == models::Placement::inside) == (b.placement == models::Placement::inside) &&
         (a.placement != models::Placement::inside || a.role == b.role);
}

}  // namespace

ParameterStatistics statistics(const std::vector<double>& values) {
  ParameterStatistics result;
  std::vector<double> finite;
  std::vector<double> magnitudes;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      ++result.not_finite;
      continue;
    }
    finite.push_back(value);
    magnitudes.push_back(std::abs(value));
    result.negative += value < 0.0 ? 1 : 0;
    result.zero += value == 0.0 ? 1 : 0;
  }
  if (finite.empty()) return result;
  const auto [min, max] = std::minmax_element(finite.begin(), finite.end());
  result.min = *min;
  result.max = *max;
  result.median_abs = median(std::move(magnitudes));
  result.length = euclidean_norm(finite);
  const BinaryScale size = BinaryScale::of(finite);
  size.divide(finite);
  const double middle = mean(finite);
  result.mean = size.multiply(middle);
  result.std = size.multiply(std::sqrt(sum_of_squares(finite, middle) / static_cast<double>(finite.size())));
  return result;
}

std::vector<std::size_t> thinned_ranks(std::size_t count, std::size_t points) {
  std::vector<std::size_t> ranks;
  if (count <= points) {
    for (std::size_t rank = 1; rank <= count; ++rank) ranks.push_back(rank);
    return ranks;
  }
  const double step = std::log(static_cast<double>(count)) / static_cast<double>(points - 1);
  for (std::size_t i = 0; i < points; ++i) {
    const auto rank = static_cast<std::size_t>(std::lround(std::exp(step * static_cast<double>(i))));
    if (ranks.empty() || rank > ranks.back()) ranks.push_back(std::min(rank, count));
  }
  return ranks;
}

Report audit(const files::Checkpoint& checkpoint, unsigned threads, const Progress& progress,
             const selectability::VocabularyOptions& vocabulary) {
  return audit(checkpoint, models::describe(checkpoint), threads, progress, vocabulary);
}

Report audit_norms(const files::Checkpoint& checkpoint, models::Model model, unsigned threads,
                   const Progress& progress, double budget) {
  Report report;
  report.path = checkpoint.path().string();
  const std::filesystem::path whole = spelled_out(checkpoint.path());
  report.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  report.format = checkpoint.format();
  for (const std::filesystem::path& file : checkpoint.files()) {
    report.files.push_back({file.filename().string(), std::filesystem::file_size(file)});
  }
  report.tensors = checkpoint.tensors().size();
  report.metadata.assign(checkpoint.metadata().begin(), checkpoint.metadata().end());
  report.model = std::move(model);

  // Norms of different stacks and widths interleave, so several may wait for their successor.
  std::vector<std::unique_ptr<Measured>> waiting;
  FeatureCollector features;
  std::vector<models::Norm>& norms = report.model.norms;
  if (norms.size() > most_norms) {
    report.model.notes.push_back(
        fmt::format("the file holds {} norms; the first {} are measured", norms.size(), most_norms));
    norms.resize(most_norms);
  }
  const std::vector<std::vector<bool>> within = readers_within(report.model, budget);
  for (std::size_t i = 0; i < norms.size(); ++i) {
    progress("measuring norms", i, norms.size());
    std::unique_ptr<Measured> measured;
    // Within a wide norm, the same line also checks for cancellation.
    const Progress poll([&](std::string_view, std::size_t, std::size_t) {
      progress("measuring norms", i, norms.size());
      return true;
    });
    try {
      report.norms.push_back(measure(checkpoint, norms[i], within[i], threads, poll, i, features, measured));
    } catch (const Error& error) {
      // For example a type without decoder: the rest of the file is still analysed.
      if (error.code() == ErrorCode::Cancelled) throw;
      report.norms.push_back({.norm = norms[i], .not_measured = error.what()});
    }
    if (!measured) continue;
    const auto before = std::find_if(waiting.begin(), waiting.end(), [&](const auto& other) {
      return comparable(norms[other->index], norms[i]);
    });
    if (before == waiting.end()) {
      waiting.push_back(std::move(measured));
      continue;
    }
    report.norms[(*before)->index].next = {i, norm::image_similarity((*before)->spec, measured->spec),
                                           norm::longest_axes_cosine((*before)->image, measured->image)};
    *before = std::move(measured);
  }
  progress("measuring norms", norms.size(), norms.size());
  report.features = features.features(report.norms);
  return report;
}

LeftOut left_out(const Report& report) {
  LeftOut result;
  for (const heads::HeadReach& head : report.heads) result.heads += head.left_out ? 1 : 0;
  for (const NormRanges& norm : report.ranges.norms) {
    for (const ReaderRanges& reader : norm.readers) result.readers += reader.left_out ? 1 : 0;
  }
  if (report.vocabulary.survey) result.tokens = report.vocabulary.survey->left_out.tokens;
  if (report.vocabulary.left_out) result.tokens = report.model.vocabulary->size;
  return result;
}

Report audit(const files::Checkpoint& checkpoint, models::Model model, unsigned threads,
             const Progress& progress, const selectability::VocabularyOptions& vocabulary) {
  Report report = audit_norms(checkpoint, std::move(model), threads, progress, vocabulary.budget);
  report.heads = heads::reach_of_heads(checkpoint, report.model, threads, progress,
                                       {.work = work_on_heads, .budget = vocabulary.budget});
  report.ranges = of_model(checkpoint, report.model, threads, progress, vocabulary.budget);
  report.vocabulary =
      selectability::reach_of_vocabulary(checkpoint, report.model, vocabulary, threads, progress);
  add_embedding_uses(checkpoint, report, progress);
  report.gains_on_text = gain_consistency(checkpoint, report.model, threads, progress, vocabulary.budget);
  report.findings = find(report);
  report.measures = compare_measures(report);
  report.causes = find_causes(report);
  add_coordinate_details(checkpoint, vocabulary.budget, progress, report);
  return report;
}

}  // namespace normscope::analysis
