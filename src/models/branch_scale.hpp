#pragma once

#include <string_view>

namespace normscope::models {

class Builder;

/// A learned scale per feature between a branch and the stream (layer scale); nothing where the file has
/// none.
void branch_scale(Builder& b, std::string_view name);

}  // namespace normscope::models
