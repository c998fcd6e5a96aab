#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/heads/heads.hpp>
#include <normscope/selectability/select.hpp>
#include <normscope/selectability/survey.hpp>

/// Figures of single analyses, in the form of `charts`: empty arrays where there is nothing to draw.
namespace normscope::figures {

/// Semi-axes of one norm's image by rank, "semi-axes".
///
/// Requires  descending and positive, with this median
[[nodiscard]] nlohmann::ordered_json image_charts(std::span<const double> semi_axes, double median);

/// Bounds of attention heads by layer, "head-spread", and of rotary ones over the distance, "head-distance".
[[nodiscard]] nlohmann::ordered_json head_charts(const models::Model& model,
                                                 const std::vector<heads::HeadReach>& heads);

/// Margins of the selectable keys, the largest first, "margins".
[[nodiscard]] nlohmann::ordered_json selection_charts(const selectability::Selection& selection);

/// Leads of the tokens, the smallest first, "leads". Tokens without a finite bound are left out.
[[nodiscard]] nlohmann::ordered_json reach_charts(const selectability::Survey& survey);

/// Rows of classes along a direction, as counts in equal bins, "along-direction", and the hyperplane between
/// two classes at `boundary`.
///
/// Shapes    along, class_of (rows)
[[nodiscard]] nlohmann::ordered_json separation_charts(std::span<const double> along,
                                                       std::span<const std::size_t> class_of,
                                                       std::optional<double> boundary);

}  // namespace normscope::figures
