#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/audit/report.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/version.hpp>
#include <normscope/geometry/image.hpp>
#include <normscope/geometry/moments.hpp>

#include "command.hpp"
#include "inputs.hpp"

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

/// Directions, one per row.
struct ShownRows {
  std::vector<double> values{};
  std::size_t width = 1;

  [[nodiscard]] std::size_t size() const { return values.size() / width; }
  [[nodiscard]] std::span<const double> row(std::size_t index) const {
    return {values.data() + index * width, width};
  }
  [[nodiscard]] MatrixView<double> view() { return {values.data(), size(), width}; }
};

ShownRows empty_rows(std::size_t count, std::size_t width) {
  return {.values = std::vector<double>(count * width), .width = width};
}

nlohmann::ordered_json to_json(const ShownRows& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) list.emplace_back(rows.row(i));
  return list;
}

ShownRows leading_axes(const geometry::NormImage& image, std::size_t width, std::size_t wanted,
                       unsigned threads) {
  const std::size_t count = std::min(wanted, image.semi_axes().size());
  check_entries("--axes", count, width);
  ShownRows axes = empty_rows(count, width);
  image.axes(0, axes.view(), threads);
  return axes;
}

ShownRows null_space(const geometry::NormImage& image, std::size_t width) {
  check_entries("--null-space", image.null_space_dim(), width);
  ShownRows basis = empty_rows(image.null_space_dim(), width);
  image.null_space(basis.view());
  return basis;
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
void add_parameters(const GeometryOptions& options, const NormSpec& spec, nlohmann::ordered_json& json,
                    Lines& lines) {
  if (!options.norm.gain.empty()) {
    const audit::ParameterStatistics gain = audit::statistics(spec.gain);
    json["gain"] = {{"min", gain.min},           {"max", gain.max},
                    {"mean", gain.mean},         {"median_abs", gain.median_abs},
                    {"negative", gain.negative}, {"zero", gain.zero}};
    lines.push_back(fmt::format("gain from {:.6g} to {:.6g}, median size {:.6g}; {} negative, {} zero",
                                gain.min, gain.max, gain.median_abs, gain.negative, gain.zero));
  }
  if (spec.bias.empty()) return;
  const std::optional<double> shift = geometry::shift_over_radius(spec);
  json["shift_over_radius"] = shift ? nlohmann::ordered_json(*shift) : nullptr;
  lines.push_back(shift ? fmt::format("shifted by {} times its root-mean-square radius", number(*shift))
                        : "its image is one point, the bias");
}

/// Similarity of the image to that of another gain of the same kind.
void add_similarity(const Session& session, const GeometryOptions& options,
                    const std::optional<NormInput>& other, const NormSpec& spec,
                    const geometry::NormImage& image, nlohmann::ordered_json& json, Lines& lines) {
  if (!other) return;
  const GivenNorm other_spec = other->of_width(0);
  const geometry::NormImage other_image(other_spec, session.threads, session.progress());
  const double similarity = geometry::image_similarity(spec, other_spec);
  const double cosine = geometry::longest_axes_cosine(image, other_image);
  json["similarity"] = similarity;
  json["top_axis_cosine"] = cosine;
  lines.push_back(fmt::format("similarity {:.6g} to {}, cosine of the longest axes {:.6g}", similarity,
                              printable(options.similar_to), cosine));
}

/// What the semi-axes mean for a norm that does not normalize.
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

int run_geometry(const Session& session, const GeometryOptions& options) {
  Inputs inputs;
  const NormInput norm = options.norm.open(inputs);
  std::optional<NormInput> other;
  if (!options.similar_to.empty()) {
    NormOptions with_other_gain = options.norm;
    with_other_gain.gain = options.similar_to;
    other = with_other_gain.open(inputs);
  }
  inputs.keep_apart({session.json});
  const GivenNorm spec = norm.of_width(options.width);
  const geometry::NormImage image(spec, session.threads, session.progress());
  const std::span<const double> lengths = image.semi_axes();
  const double dimension = geometry::effective_dimension(spec);
  const ShownRows axes = leading_axes(image, spec.width, options.axes, session.threads);
  const ShownRows erased = options.null_space ? null_space(image, spec.width) : ShownRows{};

  nlohmann::ordered_json json = {{"schema", "normscope.geometry/1"},
                                 {"version", version},
                                 {"norm", std::string(to_string(spec.kind))},
                                 {"width", spec.width},
                                 {"groups", spec.groups},
                                 {"eps", spec.eps},
                                 {"effect", std::string(to_string(spec.effect()))},
                                 {"null_space_dim", image.null_space_dim()},
                                 {"semi_axes", lengths},
                                 {"median", image.median()},
                                 {"condition", image.condition()},
                                 {"effective_dimension", dimension},
                                 {"rms_radius", geometry::rms_radius(spec)},
                                 {"energy", geometry::energy(spec)}};
  if (spec.elementwise()) {
    json["alpha"] = spec.alpha;
    json["shift"] = spec.shift;
  }
  if (spec.model) json["source"] = spec.source();
  json["axes"] = to_json(axes);
  if (options.null_space) json["null_space"] = to_json(erased);

  Lines lines;
  lines.push_back(
      fmt::format("{} of width {}{}: null space of dimension {}, {}", to_string(spec.kind), spec.width,
                  spec.groups > 1 ? fmt::format(" in {} groups", spec.groups) : "", image.null_space_dim(),
                  lengths.size() == 1 ? "1 semi-axis" : fmt::format("{} semi-axes", lengths.size())));
  if (!lengths.empty()) {
    lines.push_back(fmt::format(
        "longest {:.6g}, median {:.6g}, shortest {:.6g}, condition {}, effective dimension {:.6g}",
        lengths.front(), image.median(), lengths.back(), number(image.condition()), dimension));
  }
  add_effect(spec, lengths, lines);
  if (spec.model) lines.push_back(spec.model->line());
  add_parameters(options, spec, json, lines);
  add_similarity(session, options, other, spec, image, json, lines);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    lines.push_back(fmt::format("axis {}  length {:.6g} {}", i + 1, lengths[i], direction(axes.row(i))));
  }
  for (std::size_t i = 0; i < erased.size(); ++i) lines.push_back("erased " + direction(erased.row(i)));
  session.write_json(json_text(json));
  for (const std::string& line : lines) session.say(line);
  return ok;
}

}  // namespace

void add_geometry(CLI::App& root, Session& session) {
  const auto options = std::make_shared<GeometryOptions>();
  CLI::App* command = add_command(root, session, "geometry",
                                  "Compute the null space, semi-axes and principal axes of a norm's image",
                                  [&session, options] { return run_geometry(session, *options); });
  options->norm.bias_is_used = false;  // the image is that of the norm before its bias
  options->norm.declare(*command);
  command->add_option("--width", options->width, "Width of the norm, if neither --gain nor --bias gives it")
      ->type_name("N")
      ->check(counts(1, largest_count));
  command->add_option("--axes", options->axes, "Also give the K longest principal axes (default 0)")
      ->type_name("K")
      ->check(counts(0, largest_count));
  command->add_option("--similar-to", options->similar_to, "Also compare the image with that of this gain")
      ->type_name("ARRAY");
  command->add_flag("--null-space", options->null_space, "Also give an orthonormal basis of the null space");
}

}  // namespace normscope::cli
