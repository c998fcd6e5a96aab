#pragma once

#include <vector>

#include "frame/experiment.hpp"

namespace normscope::lab {

/// Outputs of a LayerNorm of three entries for three values of eps: after scaling, inside a circle, and after
/// stretching, inside the ellipse whose axes the image has. Each is seen orthogonally to the plane that it is
/// in.
///
/// Source    [Riechers 2024, figures 1 and 2]
[[nodiscard]] std::vector<Figure> ellipse_figures();

}  // namespace normscope::lab
