#pragma once

#include <normscope/model/model.hpp>

namespace normscope::documents {

[[nodiscard]] inline const char* layout_text(model::Layout layout) {
  return layout == model::Layout::in_out ? "in_out" : "out_in";
}

}  // namespace normscope::documents
