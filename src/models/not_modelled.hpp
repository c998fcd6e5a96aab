#pragma once

#include <string>
#include <string_view>

#include <normscope/models/model.hpp>

#include "fields.hpp"

namespace normscope::models {

/// Adds `what` to a list of features that are not modelled, unless it is empty or already there.
void add_not_modelled(std::string& list, std::string_view what);

/// Adds `what` to every head and to the vocabulary, according to `effect`.
void add_not_modelled(Model& model, Effect effect, std::string_view what);

}  // namespace normscope::models
