#include "branch_scale.hpp"

#include "builder.hpp"

namespace normscope::models {

void branch_scale(Builder& b, std::string_view name) {
  if (!b.has(name)) return;
  b.other(name);
  b.writes_are_indirect();
}

}  // namespace normscope::models
