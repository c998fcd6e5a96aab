#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/view.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/norm/image.hpp>

namespace normscope::results {

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

/// Parts of the document besides the image.
struct GeometryDetails {
  Directions axes{};                                    ///< the longest principal axes, in order
  std::optional<Directions> null_space{};               ///< an orthonormal basis
  std::optional<analysis::ParameterStatistics> gain{};  ///< of a gain that was given
  std::optional<GainComparison> compared{};
  nlohmann::ordered_json source{};  ///< the model that the norm is from; null for none
};

/// The image of a norm, schema "normscope.geometry/1" (docs/schemas/geometry.schema.json).
[[nodiscard]] nlohmann::ordered_json geometry(const NormSpec& spec, const norm::NormImage& image,
                                              const GeometryDetails& details);

/// Curvature of `spec` at some number of rows, per number of groups, schema "normscope.curvature/1"
/// (docs/schemas/curvature.schema.json). `source` as in `GeometryDetails`.
[[nodiscard]] nlohmann::ordered_json curvature(const NormSpec& spec, std::size_t rows,
                                               const std::vector<norm::GroupCurvature>& groups,
                                               const nlohmann::ordered_json& source);

}  // namespace normscope::results
