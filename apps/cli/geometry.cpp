#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include <fmt/core.h>

#include <normscope/analysis/report.hpp>
#include <normscope/core/error.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/results/documents.hpp>

#include "norm_options.hpp"

namespace normscope::cli {
namespace {

struct GeometryOptions {
  NormOptions norm;
  std::size_t width = 0;
  std::size_t axes = 0;
  bool null_space = false;
  std::string similar_to;
};

/// Limit on the numbers of axes and null vectors in one output.
constexpr std::size_t most_entries = std::size_t{1} << 24;

void check_entries(const char* option, std::size_t rows, std::size_t width) {
  if (rows > most_entries / width) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {} rows of width {}, expected at most {} numbers",
                                                 option, rows, width, most_entries));
  }
}

/// Number of coordinates printed for a direction.
constexpr std::size_t shown_coordinates = 5;

using Directions = results::Directions;

Directions leading_axes(const norm::NormImage& image, std::size_t wanted, unsigned threads) {
  check_entries("--axes", std::min(wanted, image.semi_axes().size()), image.width());
  return results::longest_axes(image, wanted, threads);
}

Directions null_space(const norm::NormImage& image) {
  check_entries("--null-space", image.null_space_dim(), image.width());
  return results::null_space(image);
}

std::string direction(std::span<const double> vector) {
  std::vector<std::size_t> order(vector.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t shown = std::min(shown_coordinates, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) { return std::abs(vector[a]) > std::abs(vector[b]); });
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += fmt::format("  {}: {:+.4f}", order[i], vector[order[i]]);
  return text + (shown < vector.size() ? "  …" : "");
}

/// Six digits of a number that may exceed the largest double.
std::string number(double value) {
  return std::isinf(value) ? "more than 1.7e308" : fmt::format("{:.6g}", value);
}

/// Text output, printed after the JSON has been written.
using Lines = std::vector<std::string>;

/// Statistics of gain and bias, if they are given.
void add_parameters(const results::GeometryDetails& details, const NormSpec& spec, Lines& lines) {
  if (details.gain) {
    const analysis::ParameterStatistics& gain = *details.gain;
    lines.push_back(fmt::format("gain from {:.6g} to {:.6g}, median size {:.6g}; {} negative, {} zero",
                                gain.min, gain.max, gain.median_abs, gain.negative, gain.zero));
  }
  if (spec.bias.empty()) return;
  const std::optional<double> shift = norm::shift_over_radius(spec);
  lines.push_back(shift ? fmt::format("shifted by {} times its root-mean-square radius", number(*shift))
                        : "its image is one point, the bias");
}

/// Similarity of the image to that of another gain of the same kind.
results::GainComparison compare(const Session& session, const NormInput& other, const NormSpec& spec,
                                const norm::NormImage& image) {
  const GivenNorm other_spec = other.of_width(0);
  const norm::NormImage other_image(other_spec, session.threads, session.progress());
  return {norm::image_similarity(spec, other_spec), norm::longest_axes_cosine(image, other_image)};
}

/// Adds what the semi-axes mean for a kind that does not normalize.
void add_effect(const NormSpec& spec, std::span<const double> lengths, Lines& lines) {
  if (spec.elementwise()) {
    lines.push_back(fmt::format(
        "{} acts on every feature separately: its image is a box, and the semi-axes are its half-widths",
        facts(spec.kind).title));
  }
  if (spec.effect() == NormEffect::off && !lengths.empty()) {
    const double factor = spec.radius() * std::sqrt(spec.eps);
    lines.push_back(fmt::format(
        "normalization is off: eps {:g} exceeds the mean square m of any row, and within m/(2 eps) relative "
        "the norm is a linear map of singular values {:.6g} to {:.6g}; the semi-axes are for m far above eps",
        spec.eps, lengths.back() / factor, lengths.front() / factor));
  }
}

int run_geometry(const Session& session, Inputs& inputs, Outputs& outputs, const GeometryOptions& options) {
  const NormInput norm = options.norm.open(inputs);
  std::optional<NormInput> other;
  if (!options.similar_to.empty()) {
    NormOptions with_other_gain = options.norm;
    with_other_gain.gain = options.similar_to;
    other = with_other_gain.open(inputs);
  }
  const GivenNorm spec = norm.of_width(options.width);
  const norm::NormImage image(spec, session.threads, session.progress());
  const std::span<const double> lengths = image.semi_axes();
  results::GeometryDetails details;
  if (!options.norm.gain.empty()) details.gain = analysis::statistics(spec.gain);
  if (other) details.compared = compare(session, *other, spec, image);
  details.axes = leading_axes(image, options.axes, session.threads);
  if (options.null_space) details.null_space = null_space(image);
  details.source = spec.source();

  Lines lines;
  lines.push_back(
      fmt::format("{} of width {}{}: null space of dimension {}, {}", to_string(spec.kind), spec.width,
                  spec.groups > 1 ? fmt::format(" in {} groups", spec.groups) : "", image.null_space_dim(),
                  lengths.size() == 1 ? "1 semi-axis" : fmt::format("{} semi-axes", lengths.size())));
  if (!lengths.empty()) {
    lines.push_back(fmt::format(
        "longest {:.6g}, median {:.6g}, shortest {:.6g}, condition {}, effective dimension {:.6g}",
        lengths.front(), image.median(), lengths.back(), number(image.condition()),
        norm::effective_dimension(spec)));
  }
  add_effect(spec, lengths, lines);
  if (spec.model) lines.push_back(spec.model->line());
  add_parameters(details, spec, lines);
  if (details.compared) {
    lines.push_back(fmt::format("similarity {:.6g} to {}, cosine of the longest axes {:.6g}",
                                details.compared->similarity, printable(options.similar_to),
                                details.compared->top_axis_cosine));
  }
  for (std::size_t i = 0; i < details.axes.size(); ++i) {
    lines.push_back(
        fmt::format("axis {}  length {:.6g} {}", i + 1, lengths[i], direction(details.axes.row(i))));
  }
  if (details.null_space) {
    for (std::size_t i = 0; i < details.null_space->size(); ++i) {
      lines.push_back("erased " + direction(details.null_space->row(i)));
    }
  }
  outputs.commit([&] { return json_text(results::geometry(spec, image, details)); });
  for (const std::string& line : lines) session.say(line);
  return ok;
}

}  // namespace

Command geometry_command() {
  const auto options = std::make_shared<GeometryOptions>();
  options->norm.bias_is_used = false;  // the image is that of the norm before its bias
  return {.name = "geometry",
          .text = "Null space, semi-axes and principal axes of a norm's image",
          .options = joined(
              {option("--axes", options->axes).usually("0"), option("--null-space", options->null_space),
               option("--similar-to", options->similar_to),
               option("--width", options->width).says(", if neither --gain nor --bias gives it")},
              options->norm.arguments()),
          .examples = {"normscope geometry --gain models/kjv_gpt:transformer.ln_f.weight --axes 3",
                       "normscope geometry --norm rms --gain 1,2,0.5 --null-space"},
          .run = with(run_geometry, options)};
}

}  // namespace normscope::cli
