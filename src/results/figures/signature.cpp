#include <normscope/results/figures.hpp>

#include <algorithm>

#include <nlohmann/json.hpp>

#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {

nlohmann::ordered_json singular_values(const signature::Subspace& subspace) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  const std::vector<double>& values = subspace.singular_values;
  // A logarithmic axis has no zero; values far below the noise say nothing.
  const double least = values.empty() ? 0.0 : std::max(1e-9 * values.front(), 1e-3 * subspace.noise);
  // As many beyond the subspace as within it.
  const std::size_t shown = std::min(values.size(), 2 * std::max<std::size_t>(subspace.rank, 8));
  for (std::size_t k = 0; k < shown; ++k) {
    if (!(values[k] > least)) continue;
    rows.push_back({{"series", "singular value"}, {"x", k + 1}, {"y", values[k]}});
  }
  for (const std::size_t k : {std::size_t{1}, shown}) {
    rows.push_back({{"series", "explained by rounding"}, {"x", k}, {"y", subspace.noise}});
  }
  Json figure = vega::curves(std::move(rows), {.x = "number", .y = "size", .logarithmic_y = true});
  figure["description"] =
      "Singular values of the rows without their mean, divided by the square root of the number of rows.";
  return figure;
}

}  // namespace normscope::figures
