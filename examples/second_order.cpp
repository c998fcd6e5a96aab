// The nonlinearity of a grouped norm (LN-G): its curvature compared to that of plain LayerNorm, and its first
// and second derivative along a direction, which predict the output after a step.
#include <cmath>
#include <cstdio>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/norm/norm.hpp>

namespace norm = normscope::norm;

int main() {
  const std::size_t width = 64;
  normscope::Random random(1);
  std::vector<double> x(width), v(width);
  for (double& value : x) value = random.normal();
  for (double& value : v) value = random.normal();
  const auto row = [](std::vector<double>& of) {
    return normscope::MatrixView<double>(of.data(), 1, of.size());
  };

  normscope::NormSpec plain{.width = width, .eps = 1e-5};
  normscope::NormSpec grouped{.width = width, .groups = 16, .eps = 1e-5};
  const double bends = norm::curvature(plain, row(x))[0];
  const double grouped_bends = norm::curvature(grouped, row(x))[0];

  // y(x + t v) = y + t J v + t²/2 D²y[v, v] + O(t³).
  std::vector<double> y(width), first(width), second(width), moved(width);
  norm::forward(grouped, row(x), row(y));
  norm::jacobian_vector(grouped, row(x), row(v), row(first));
  norm::second_derivative(grouped, row(x), row(v), row(v), row(second));
  const double t = 1e-3;
  for (std::size_t i = 0; i < width; ++i) moved[i] = x[i] + t * v[i];
  norm::forward(grouped, row(moved), row(moved));
  double straight = 0.0;
  double bent = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    const double line = y[i] + t * first[i];
    straight = std::fmax(straight, std::abs(moved[i] - line));
    bent = std::fmax(bent, std::abs(moved[i] - (line + t * t / 2.0 * second[i])));
  }

  std::printf("curvature %.3g, in 16 groups %.3g; a step's end foretold to %.1e, with the bend to %.1e\n",
              bends, grouped_bends, straight, bent);
  return grouped_bends > 8.0 * bends && bent < 0.05 * straight ? 0 : 1;
}
