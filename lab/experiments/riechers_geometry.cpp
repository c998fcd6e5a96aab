#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/norm/norm.hpp>

#include "dense/eigen.hpp"
#include "ellipse/ellipse.hpp"
#include "frame/experiment.hpp"

namespace normscope::lab::riechers_geometry {
namespace {

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1U : 5U};
  const std::vector<std::size_t> widths =
      quick ? std::vector<std::size_t>{8, 48} : std::vector<std::size_t>{8, 48, 192};
  for (const std::size_t width : widths) {
    for (const char* gains : {"ones", "normal", "some zero", "one large"})
      plan.configurations.push_back({{"width", width}, {"gains", gains}, {"rows", 200}, {"eps", 1e-5}});
  }
  // The smallest case in which a zero gain and the projection meet; without eps the image is a curve.
  plan.configurations.push_back({{"width", 3}, {"gains", "1, 1, 0"}, {"rows", 200}, {"eps", 0.0}});
  return plan;
}

NormSpec spec_of(const Run& run, Random& random) {
  NormSpec spec{.width = run.get<std::size_t>("width"), .eps = run.get<double>("eps")};
  const auto gains = run.get<std::string>("gains");
  for (std::size_t i = 0; i < spec.width; ++i) {
    double gain = gains == "ones" || gains == "1, 1, 0" ? 1.0 : 1.0 + 0.3 * random.normal();
    if (gains == "1, 1, 0" && i == 2) gain = 0.0;
    if (gains == "some zero" && i % 4 == 1) gain = 0.0;
    if (gains == "one large" && i == 2) gain = 20.0;
    spec.gain.push_back(gain);
    spec.bias.push_back(random.normal());
  }
  return spec;
}

/// R² G Π G, entry by entry.
std::vector<double> image_matrix(const NormSpec& spec) {
  const std::size_t width = spec.width;
  const double scale = spec.radius() * spec.radius();
  std::vector<double> matrix(width * width);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      const double centred = (i == j ? 1.0 : 0.0) - 1.0 / static_cast<double>(width);
      matrix[i * width + j] = scale * spec.gain[i] * spec.gain[j] * centred;
    }
  }
  return matrix;
}

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Largest relative difference, over rows, of the mean squared deviation from the mean and |Πa|²/N.
double variance_difference(MatrixView<const double> rows) {
  const auto width = static_cast<double>(rows.width());
  const double unit = 1.0 / std::sqrt(width);
  double off = 0.0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const auto a = rows.row(row);
    double along = 0.0;  // the component along all-ones, which Π removes
    for (const double value : a) along += unit * value;
    const double middle = mean({a.data(), rows.width()});
    double projected = 0.0;
    double variance = 0.0;
    for (const double value : a) {
      projected += std::pow(value - unit * along, 2) / width;
      variance += std::pow(value - middle, 2) / width;
    }
    off = std::max(off, std::abs(projected - variance) / variance);
  }
  return off;
}

/// Largest difference of an output from g ⊙ (a − μ1)/√(σ² + ε) + b, entry by entry.
double entries_difference(const NormSpec& spec, MatrixView<const double> rows,
                          MatrixView<const double> outputs) {
  const auto width = static_cast<double>(spec.width);
  double off = 0.0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const auto a = rows.row(row);
    const double middle = mean({a.data(), spec.width});
    double variance = 0.0;
    for (const double value : a) variance += std::pow(value - middle, 2) / width;
    for (std::size_t i = 0; i < spec.width; ++i) {
      const double entry = spec.gain[i] * (a[i] - middle) / std::sqrt(variance + spec.eps) + spec.bias[i];
      off = std::max(off, std::abs(entry - outputs.row(row)[i]));
    }
  }
  return off;
}

void formula(Run& run, const NormSpec& spec, const std::vector<double>& x) {
  const MatrixView<const double> view{x.data(), x.size() / spec.width, spec.width};
  std::vector<double> whole(x.size());
  norm::forward(spec, view, {whole.data(), view.rows(), spec.width});
  std::vector<double> stepped(x);
  const MatrixView<double> steps{stepped.data(), view.rows(), spec.width};
  for (const norm::Step step :
       {norm::Step::project, norm::Step::scale, norm::Step::stretch, norm::Step::shift})
    norm::apply(step, spec, steps, steps);
  double largest = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(whole[i] - stepped[i]));
  run.measure("formula", 1, largest);
  run.measure("variance", 1, variance_difference(view));
  run.measure("entries", 1, entries_difference(spec, view, {whole.data(), view.rows(), spec.width}));

  // Length of the projected and scaled rows, relative to the sphere's radius.
  std::vector<double> scaled(x);
  const MatrixView<double> inside_sphere{scaled.data(), view.rows(), spec.width};
  for (const norm::Step step : {norm::Step::project, norm::Step::scale})
    norm::apply(step, spec, inside_sphere, inside_sphere);
  std::vector<double> radii;
  for (std::size_t row = 0; row < view.rows(); ++row) {
    const std::span<const double> y(scaled.data() + row * spec.width, spec.width);
    radii.push_back(std::sqrt(dot(y, y)) / spec.radius());
  }
  std::nth_element(radii.begin(), radii.begin() + static_cast<std::ptrdiff_t>(radii.size() / 2), radii.end());
  run.measure("median_radius", 1, radii[radii.size() / 2]);

  // Without the bias, outputs have no component in the null space of the image.
  const norm::NormImage image(spec);
  std::vector<double> basis(image.null_space_dim() * spec.width);
  image.null_space({basis.data(), image.null_space_dim(), spec.width});
  double inside = 0.0;
  for (std::size_t row = 0; row < view.rows(); ++row) {
    std::vector<double> y(whole.begin() + static_cast<std::ptrdiff_t>(row * spec.width),
                          whole.begin() + static_cast<std::ptrdiff_t>((row + 1) * spec.width));
    for (std::size_t i = 0; i < spec.width; ++i) y[i] -= spec.bias[i];
    for (std::size_t null = 0; null < image.null_space_dim(); ++null) {
      const std::span<const double> direction(basis.data() + null * spec.width, spec.width);
      inside = std::max(inside, std::abs(dot(y, direction)) / std::sqrt(dot(y, y)));
    }
  }
  run.measure("null_space", 1, inside);
  const auto zeros = static_cast<std::size_t>(std::count(spec.gain.begin(), spec.gain.end(), 0.0));
  run.measure("dimension_off", 1,
              std::abs(static_cast<double>(image.null_space_dim()) -
                       static_cast<double>(std::max<std::size_t>(1, zeros))));
}

void axes(Run& run, const NormSpec& spec) {
  const norm::NormImage image(spec);
  const dense::Eigen solved = dense::symmetric_eigen(image_matrix(spec), spec.width);
  const std::span<const double> lengths = image.semi_axes();
  const double longest = lengths.front();
  double off = 0.0;
  for (std::size_t i = 0; i < spec.width; ++i) {
    const double length = i < lengths.size() ? lengths[i] : 0.0;
    // Compares squares, the eigenvalues of the matrix, whose rounding is relative to the largest one.
    off = std::max(off, std::abs(length * length - solved.values[i]) / (longest * longest));
  }
  run.measure("semi_axes", 1, off);
  const std::vector<double> matrix = image_matrix(spec);
  std::vector<double> found(lengths.size() * spec.width);
  image.axes(0, {found.data(), lengths.size(), spec.width});
  double residual = 0.0;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const std::span<const double> axis(found.data() + rank * spec.width, spec.width);
    double squares = 0.0;
    for (std::size_t i = 0; i < spec.width; ++i) {
      const double entry = dot({matrix.data() + i * spec.width, spec.width}, axis);
      squares += std::pow(entry - lengths[rank] * lengths[rank] * axis[i], 2);
    }
    residual = std::max(residual, std::sqrt(squares) / (longest * longest));
  }
  run.measure("axes", 1, residual);
}

/// The paper's matrix Π₂ G⁻² Π₂, entry by entry. Without zero gains Π₂ removes the direction 1/g. With zero
/// gains G⁻¹ is the Drazin inverse, 0 where the gain is 0, and Π₂ removes those coordinates.
std::vector<double> papers_matrix(const NormSpec& spec) {
  const std::size_t width = spec.width;
  std::vector<double> inverse(width);
  for (std::size_t i = 0; i < width; ++i) inverse[i] = spec.gain[i] == 0.0 ? 0.0 : 1.0 / spec.gain[i];
  const bool zeros = std::find(spec.gain.begin(), spec.gain.end(), 0.0) != spec.gain.end();
  const double squares = dot(inverse, inverse);
  std::vector<double> projection(width * width);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      projection[i * width + j] = i != j ? 0.0 : zeros && spec.gain[i] == 0.0 ? 0.0 : 1.0;
      if (!zeros) projection[i * width + j] -= inverse[i] * inverse[j] / squares;
    }
  }
  std::vector<double> matrix(width * width);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t k = 0; k < width; ++k) {
      const double left = projection[i * width + k] * inverse[k] * inverse[k];
      for (std::size_t j = 0; j < width; ++j) matrix[i * width + j] += left * projection[k * width + j];
    }
  }
  return matrix;
}

/// The paper's semi-axes √(N/λ) of the eigenvalues λ > 0, descending.
std::vector<double> papers_semi_axes(const NormSpec& spec) {
  std::vector<double> values = dense::symmetric_eigen(papers_matrix(spec), spec.width).values;
  std::vector<double> lengths;
  for (auto value = values.rbegin(); value != values.rend(); ++value) {
    if (*value > 1e-12 * values.front())
      lengths.push_back(std::sqrt(static_cast<double>(spec.width) / *value));
  }
  return lengths;
}

/// The paper's recipe beside the image. Lengths compare as 1/length², the eigenvalues of its matrix.
void recipe(Run& run, const NormSpec& spec) {
  const std::vector<double> papers = papers_semi_axes(spec);
  const norm::NormImage image(spec);
  const std::span<const double> lengths = image.semi_axes();
  const double shortest = lengths.back();
  double off = papers.size() == lengths.size() ? 0.0 : 1.0;
  for (std::size_t i = 0; i < std::min(papers.size(), lengths.size()); ++i) {
    off = std::max(off, std::abs(std::pow(shortest / papers[i], 2) - std::pow(shortest / lengths[i], 2)));
  }
  run.measure("recipe", 1, off);
  const std::vector<double> matrix = papers_matrix(spec);
  std::vector<double> axes(lengths.size() * spec.width);
  image.axes(0, {axes.data(), lengths.size(), spec.width});
  double residual = 0.0;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const std::span<const double> axis(axes.data() + rank * spec.width, spec.width);
    const double value = static_cast<double>(spec.width) / (lengths[rank] * lengths[rank]);
    double squares = 0.0;
    for (std::size_t i = 0; i < spec.width; ++i)
      squares += std::pow(dot({matrix.data() + i * spec.width, spec.width}, axis) - value * axis[i], 2);
    residual = std::max(residual, std::sqrt(squares) * shortest * shortest / static_cast<double>(spec.width));
  }
  run.measure("recipe_directions", 1, residual);
  run.measure("recipe_axes", 1, static_cast<double>(papers.size()));
  run.measure("image_axes", 1, static_cast<double>(lengths.size()));
  if (spec.width != 3) return;
  run.measure("recipe_longest", 1, papers.front());
  run.measure("recipe_shortest", 1, papers.back());
  // The image itself: outputs of the norm along a circle in the plane without a mean.
  constexpr std::size_t points = 100'000;
  std::vector<double> x(3 * points);
  for (std::size_t i = 0; i < points; ++i) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points);
    const double first = std::cos(angle) / std::sqrt(2.0);
    const double second = std::sin(angle) / std::sqrt(6.0);
    x[3 * i] = first + second;
    x[3 * i + 1] = second - first;
    x[3 * i + 2] = -2.0 * second;
  }
  std::vector<double> y(x.size());
  norm::forward(spec, {x.data(), points, 3}, {y.data(), points, 3});
  double longest = 0.0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < points; ++i) {
    double squares = 0.0;
    for (std::size_t j = 0; j < 3; ++j) squares += std::pow(y[3 * i + j] - spec.bias[j], 2);
    longest = std::max(longest, std::sqrt(squares));
    least = std::min(least, std::sqrt(squares));
  }
  run.measure("image_longest", 1, longest);
  run.measure("image_shortest", 1, least);
}

void perform(Run& run) {
  Random random(run.seed());
  const NormSpec spec = spec_of(run, random);
  std::vector<double> x(run.get<std::size_t>("rows") * spec.width);
  for (double& value : x) value = random.normal();
  formula(run, spec, x);
  axes(run, spec);
  recipe(run, spec);
}

/// Every run's number at most `limit`.
Finding within(const Results& results, const char* metric, const char* what, double limit) {
  if (results.runs().empty()) return {"not run"};
  for (const Done& run : results.runs()) {
    if (!run.has(metric)) return {"not measured by these runs"};
  }
  const double most = results.last(metric).most;
  return {fmt::format("{} at most {:.1e}, {} runs", what, most, results.runs().size()),
          results.numbers([&](const Done& run) { return run.last(metric) <= limit ? 1.0 : 0.0; })};
}

Finding four_steps(const Results& results) {
  return within(results, "formula", "difference of an output", 1e-11);
}

Finding entries(const Results& results) {
  return within(results, "entries", "difference of an output", 1e-11);
}

Finding variance(const Results& results) {
  return within(results, "variance", "relative difference of a row's variance", 1e-12);
}

Finding null_space(const Results& results) {
  Finding finding = within(results, "null_space", "cosine of an output and an erased direction", 1e-12);
  if (!results.runs().empty() && results.last("dimension_off").most != 0.0) finding.effects = {0.0};
  return finding;
}

Finding principal_axes(const Results& results) {
  Finding lengths =
      within(results, "semi_axes", "difference of a squared semi-axis and its eigenvalue", 1e-12);
  const Finding directions = within(results, "axes", "residual of an axis", 1e-12);
  lengths.effects.insert(lengths.effects.end(), directions.effects.begin(), directions.effects.end());
  lengths.ours += "; " + directions.ours;
  return lengths;
}

bool has_zero_gains(const Done& run) { return run.is("gains", "some zero") || run.is("gains", "1, 1, 0"); }

Results with_zero_gains(const Results& results, bool zero) {
  std::vector<Done> found;
  for (const Done& run : results.runs()) {
    if (has_zero_gains(run) == zero) found.push_back(run);
  }
  return Results(std::move(found));
}

Finding recipe_without_zeros(const Results& results) {
  return within(with_zero_gains(results, false), "recipe", "difference of a squared inverse semi-axis", 1e-9);
}

Finding recipe_directions(const Results& results) {
  return within(with_zero_gains(results, false), "recipe_directions", "residual of an axis", 1e-9);
}

Finding near_surface(const Results& results) {
  std::string ours;
  std::vector<double> effects;
  for (const Json& width : results.all("width")) {
    const Results some = results.where("width", width);
    double least = 1.0;
    for (const Done& run : some.runs()) {
      if (!run.has("median_radius")) return {"not measured by these runs"};
      least = std::min(least, run.last("median_radius"));
    }
    ours += fmt::format("{}{:.6f} at N = {}", ours.empty() ? "least median radius " : ", ", least,
                        width.get<std::size_t>());
    effects.push_back(least >= 0.99 ? 1.0 : 0.0);
  }
  return {std::move(ours), std::move(effects)};
}

Finding recipe_with_zeros(const Results& results) {
  const Results runs = with_zero_gains(results, true);
  const Results smallest = runs.where("gains", "1, 1, 0");
  if (smallest.runs().empty()) return {"not run"};
  const Spread off = runs.last("recipe");
  return {
      fmt::format("g = (1, 1, 0), eps 0: semi-axes {:.4f} and {:.4f} by the recipe, {:.4f} and {:.4f} of the "
                  "image, from 100,000 outputs; the recipe differs in every run by at least {:.2g} of the "
                  "largest 1/length²",
                  smallest.last("recipe_longest").mean, smallest.last("recipe_shortest").mean,
                  smallest.last("image_longest").mean, smallest.last("image_shortest").mean, off.least),
      runs.numbers([](const Done& run) { return run.last("recipe") <= 1e-9 ? 1.0 : 0.0; })};
}

/// The norm's own, which depend on no run.
std::vector<Figure> figures(const Results&) { return ellipse_figures(); }

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "riechers-geometry",
    .paper = "Riechers 2024",
    .claim =
        "LayerNorm projects, scales, stretches and shifts: its outputs fill an ellipsoid whose null space "
        "and principal axes are determined by the gains.",
    .quick_seconds = 1,
    .full_minutes = 0.5,
    .scale = {.paper = "equations, for every width", .ours = "widths 3, 8, 48 and 192, 200 rows each"},
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "four_steps",
          .says = "LayerNorm is the composition of the four steps.",
          .paper = "eq. 6",
          .rule = {"no output differs by more than 1e-11, for all gains and widths", Test::every_case, 5},
          .judge = four_steps},
         {.name = "entries",
          .says = "LayerNorm by mean and variance is eq. 6, with Πa for a − μ1 and |Πa|²/N for the variance.",
          .paper = "eqs. 1 to 3 and 6, and so eqs. 4 and 5, which lead from one to the other",
          .rule = {"no output of eq. 6 differs by more than 1e-11 from g ⊙ (a − μ1)/√(σ² + ε) + b, for all "
                   "gains and widths",
                   Test::every_case, 5},
          .judge = entries},
         {.name = "variance",
          .says = "The variance of a row is |Πa|²/N, Π = I − 11ᵀ/N.",
          .paper = "eq. 5, by its place between the variance, eq. 3, and eq. 6; its print was not seen",
          .rule = {"mean squared deviation from the mean and |Πa|²/N to 1e-12 of it, for all rows",
                   Test::every_case, 5},
          .judge = variance},
         {.name = "null_space",
          .says = "The null space is the direction 1/g, or the coordinates with zero gain.",
          .paper = "II.1",
          .rule =
              {"every output without its bias is orthogonal to it, cosines at most 1e-12, and the dimension "
               "is 1 or the number of zero gains",
               Test::every_case, 5},
          .judge = null_space},
         {.name = "principal_axes",
          .says = "The principal axes are the eigenvectors of G P G, P the projection, and the semi-axes "
                  "√(Nζ), ζ its "
                  "eigenvalues but 0.",
          .paper = "II.1, √(Nζ)",
          .rule =
              {"eigenvalues of a dense solver (Jacobi's rotations) and ours to 1e-12 of the largest, and so "
               "the residuals of the axes",
               Test::every_case, 5},
          .judge = principal_axes},
         {.name = "recipe_without_zero_gains",
          .says = "Without zero gains the semi-axes are √(N/λ), λ the eigenvalues of the paper's own matrix "
                  "Π₂G⁻²Π₂ but 0.",
          .paper = "II.2",
          .rule = {"1/length² from a dense solver for that matrix and from ours to 1e-9 of the largest",
                   Test::every_case, 5},
          .judge = recipe_without_zeros},
         {.name = "recipe_directions",
          .says = "Without zero gains the principal axes are the eigenvectors of Π₂G⁻²Π₂.",
          .paper = "II.2",
          .rule = {"every axis of the image, N over its squared length as the eigenvalue, has a residual of "
                   "at most 1e-9 "
                   "of the largest eigenvalue",
                   Test::every_case, 5},
          .judge = recipe_directions},
         {.name = "near_surface",
          .says = "Typical inputs are mapped near the surface of the ellipsoid.",
          .paper = "abstract",
          .rule = {"normal rows of deviation 1, eps 1e-5 or 0: the median over rows of |u| is at least 0.99 "
                   "at every "
                   "width, with outputs √N G u",
                   Test::every_case, 5},
          .judge = near_surface,
          .measured = true},
         {.name = "recipe_with_zero_gains",
          .says =
              "With zero gains and the Drazin inverse for G⁻¹, they are too. (An erratum of the paper: they "
              "are not, since the recipe drops the projection of the features that remain.)",
          .paper = "II.2; for g = (1, 1, 0) its recipe gives √3 and √3",
          .rule = {"1/length² from a dense solver for that matrix and from ours to 1e-9 of the largest",
                   Test::every_case, 5},
          .judge = recipe_with_zeros}},
    .figures = figures};

}  // namespace normscope::lab::riechers_geometry
