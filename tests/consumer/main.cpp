#include <cstdio>

#include <normscope/audit/report.hpp>
#include <normscope/geometry/image.hpp>

int main() {
  const normscope::geometry::NormImage image({.width = 4, .gain = {1.0, 1.0, 1.0, 1.0}});
  std::printf("%zu semi-axes, the longest %g\n", image.semi_axes().size(), image.semi_axes()[0]);
}
