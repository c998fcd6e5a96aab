#pragma once

#include <span>
#include <string_view>

#include "config.hpp"

namespace normscope::model {

/// What a configuration field that nothing here reads could change.
enum class Effect { none, scores, logits, everything };

/// The effect of a field, by the table in fields.cpp. One that is in no table could change everything.
/// `harmless`: names that are so for the architecture at hand alone; '*' stands for any characters.
[[nodiscard]] Effect effect_of(const Config::Field& field, std::span<const std::string_view> harmless);

}  // namespace normscope::model
