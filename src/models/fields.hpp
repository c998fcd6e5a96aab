#pragma once

#include <span>
#include <string_view>

#include "config.hpp"

namespace normscope::models {

/// What an unread configuration field could affect.
enum class Effect { none, scores, logits, everything };

/// The effect of a field, by the table in fields.cpp. An unknown field may affect everything. `harmless`:
/// names without effect for the current architecture; '*' stands for any characters.
[[nodiscard]] Effect effect_of(const Config::Field& field, std::span<const std::string_view> harmless);

/// Whether no value of the field changes what the model computes: names and versions, training, generation.
[[nodiscard]] bool is_inert(std::string_view key);

}  // namespace normscope::models
