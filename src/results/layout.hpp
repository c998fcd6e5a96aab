#pragma once

#include <normscope/models/model.hpp>

namespace normscope::results {

[[nodiscard]] inline const char* layout_text(models::Layout layout) {
  return layout == models::Layout::in_out ? "in_out" : "out_in";
}

}  // namespace normscope::results
