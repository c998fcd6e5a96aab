#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/geometry/image.hpp>
#include <normscope/geometry/steps.hpp>
#include <normscope/norm/norm.hpp>

#include "dense/eigen.hpp"
#include "frame/experiment.hpp"

namespace normscope::lab {
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
  return plan;
}

NormSpec spec_of(const Run& run, Random& random) {
  NormSpec spec{.width = run.get<std::size_t>("width"), .eps = run.get<double>("eps")};
  const auto gains = run.get<std::string>("gains");
  for (std::size_t i = 0; i < spec.width; ++i) {
    double gain = gains == "ones" ? 1.0 : 1.0 + 0.3 * random.normal();
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

void formula(Run& run, const NormSpec& spec, const std::vector<double>& x) {
  const MatrixView<const double> view{x.data(), x.size() / spec.width, spec.width};
  std::vector<double> whole(x.size());
  norm::forward(spec, view, {whole.data(), view.rows(), spec.width});
  std::vector<double> stepped(x);
  const MatrixView<double> steps{stepped.data(), view.rows(), spec.width};
  for (const geometry::Step step :
       {geometry::Step::project, geometry::Step::scale, geometry::Step::stretch, geometry::Step::shift})
    geometry::apply(step, spec, steps, steps);
  double largest = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(whole[i] - stepped[i]));
  run.measure("formula", 1, largest);

  // Without the bias, outputs have no component in the null space of the image.
  const geometry::NormImage image(spec);
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
  const geometry::NormImage image(spec);
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

void perform(Run& run) {
  Random random(run.seed());
  const NormSpec spec = spec_of(run, random);
  std::vector<double> x(run.get<std::size_t>("rows") * spec.width);
  for (double& value : x) value = random.normal();
  formula(run, spec, x);
  axes(run, spec);
}

/// Every run's number at most `limit`.
Finding within(const Results& results, const char* metric, const char* what, double limit) {
  if (results.runs().empty()) return {"not run", std::nullopt};
  const double most = results.last(metric).most;
  return {fmt::format("{} at most {:.1e}, {} runs", what, most, results.runs().size()), most <= limit};
}

Finding four_steps(const Results& results) {
  return within(results, "formula", "difference of an output", 1e-11);
}

Finding null_space(const Results& results) {
  Finding finding = within(results, "null_space", "cosine of an output and an erased direction", 1e-12);
  if (finding.holds) *finding.holds = *finding.holds && results.last("dimension_off").most == 0.0;
  return finding;
}

Finding principal_axes(const Results& results) {
  Finding lengths =
      within(results, "semi_axes", "difference of a squared semi-axis and its eigenvalue", 1e-12);
  const Finding directions = within(results, "axes", "residual of an axis", 1e-12);
  if (lengths.holds) *lengths.holds = *lengths.holds && *directions.holds;
  lengths.ours += "; " + directions.ours;
  return lengths;
}

}  // namespace

namespace experiments {

extern const Experiment riechers_geometry;
const Experiment riechers_geometry{
    .name = "riechers-geometry",
    .paper = "Riechers 2024",
    .claim =
        "LayerNorm projects, scales, stretches and shifts: its outputs fill an ellipsoid whose null space "
        "and principal axes are determined by the gains.",
    .quick_seconds = 1,
    .full_minutes = 0.5,
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "four_steps",
          .says = "LayerNorm is the composition of the four steps.",
          .paper = "eq. 6",
          .rule = "no output differs by more than 1e-11, for all gains and widths",
          .judge = four_steps},
         {.name = "null_space",
          .says = "The null space is the direction 1/g, or the coordinates with zero gain.",
          .paper = "II.1",
          .rule =
              "every output without its bias is orthogonal to it, cosines at most 1e-12, and the dimension "
              "is 1 or the number of zero gains",
          .judge = null_space},
         {.name = "principal_axes",
          .says =
              "The principal axes are the eigenvectors of N G P G, P the projection, and the semi-axes the "
              "roots of its eigenvalues.",
          .paper = "II.1",
          .rule =
              "eigenvalues of a dense solver (Jacobi's rotations) and ours to 1e-12 of the largest, and so "
              "the residuals of the axes",
          .judge = principal_axes}},
    .figures = nullptr};

}  // namespace experiments
}  // namespace normscope::lab
