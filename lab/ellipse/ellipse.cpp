#include "ellipse.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/results/figures/vega.hpp>

namespace normscope::lab {
namespace {

constexpr std::size_t outputs = 300;
constexpr std::array eps_shown{0.01, 0.1, 1.0};

using Axes2 = std::array<double, 6>;  // two directions of space

NormSpec spec_with(double eps) {
  return {.width = 3, .eps = eps, .gain = {1.6, 1.0, 0.5}, .bias = {0.0, 0.0, 0.0}};
}

double along(const Axes2& axes, std::size_t which, const double* point) {
  double sum = 0.0;
  for (std::size_t f = 0; f < 3; ++f) sum += axes[3 * which + f] * point[f];
  return sum;
}

/// Points of one value of eps after the steps, seen along the two axes.
void add(Json& rows, double eps, std::vector<double> points, bool stretched, const Axes2& axes) {
  const NormSpec spec = spec_with(eps);
  const MatrixView<double> view{points.data(), points.size() / 3, 3};
  norm::project(spec, view, view);
  norm::scale(spec, view, view);
  if (stretched) norm::stretch(spec, view, view);
  for (std::size_t i = 0; i < view.rows(); ++i) {
    const double* point = points.data() + 3 * i;
    rows.push_back({{"series", fmt::format("eps = {:g}", eps)},
                    {"x", rounded_to_digits(along(axes, 0, point), 5)},
                    {"y", rounded_to_digits(along(axes, 1, point), 5)}});
  }
}

/// The border, which no output reaches while eps > 0.
Json border(double longest, double shortest) {
  constexpr int corners = 120;
  Json rows = Json::array();
  for (int i = 0; i <= corners; ++i) {
    const double angle = 2.0 * std::numbers::pi * i / corners;
    rows.push_back({{"order", i},
                    {"x", rounded_to_digits(longest * std::cos(angle), 5)},
                    {"y", rounded_to_digits(shortest * std::sin(angle), 5)}});
  }
  // The axes' titles are those of the points.
  const auto axis = [](const char* field) {
    return Json{{"field", field}, {"type", "quantitative"}, {"title", nullptr}};
  };
  return {{"data", vega::values(std::move(rows))},
          {"mark", {{"type", "line"}, {"color", "gray"}, {"strokeDash", {4, 3}}}},
          {"encoding",
           {{"x", axis("x")}, {"y", axis("y")}, {"order", {{"field", "order"}, {"type", "quantitative"}}}}}};
}

Figure figure(const char* name, const char* caption, Json rows, double longest, double shortest,
              const vega::Axes& titles) {
  constexpr int pixels = 420;
  Json points = vega::points(std::move(rows), titles);
  Json layer{{"data", points["data"]}, {"mark", points["mark"]}, {"encoding", points["encoding"]}};
  for (const char* axis : {"x", "y"}) {
    layer["encoding"][axis]["scale"] = {{"domain", {-1.1 * longest, 1.1 * longest}}, {"nice", false}};
  }
  return {name, caption,
          vega::specification({{"width", pixels},
                               {"height", pixels},
                               {"layer", Json::array({border(longest, shortest), std::move(layer)})}})};
}

}  // namespace

std::vector<Figure> ellipse_figures() {
  Random random(1);
  std::vector<double> inputs(3 * outputs);
  for (double& entry : inputs) entry = random.normal();

  const norm::NormImage image(spec_with(0.0));
  const std::span<const double> lengths = image.semi_axes();
  Axes2 axes{};
  image.axes(0, {axes.data(), 2, 3});
  const double root2 = std::sqrt(0.5);
  const double root6 = std::sqrt(1.0 / 6.0);
  const Axes2 plane{root2, -root2, 0.0, root6, root6, -2.0 * root6};

  Json scaled = Json::array();
  Json stretched = Json::array();
  for (const double eps : eps_shown) {
    add(scaled, eps, inputs, false, plane);
    add(stretched, eps, inputs, true, axes);
  }
  const double radius = spec_with(0.0).radius();
  return {figure("scaled", "LayerNorm of three entries after scaling, for three values of eps.",
                 std::move(scaled), radius, radius, {.x = "along (1, -1, 0)", .y = "along (1, 1, -2)"}),
          figure("stretched",
                 "The same after stretching by the gains 1.6, 1 and 0.5, along the axes of the image.",
                 std::move(stretched), lengths[0], lengths[1],
                 {.x = "along the longest axis", .y = "along the shortest axis"})};
}

}  // namespace normscope::lab
