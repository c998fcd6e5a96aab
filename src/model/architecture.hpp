#pragma once

#include <vector>

namespace normscope::model {

struct Architecture;

std::vector<const Architecture*> all_architectures();

}  // namespace normscope::model
