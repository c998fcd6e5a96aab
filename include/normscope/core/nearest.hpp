#pragma once

#include <span>
#include <string_view>

namespace normscope {

/// The name that `wanted` probably stands for, to be suggested in a message; empty if none is similar.
///
/// A name is similar if one of the two begins or ends with the other and is at most three times as long
/// (`ln_f.weight` for `transformer.ln_f.weight`), or if at most a third of the characters of `wanted` have to
/// be inserted, removed, replaced or swapped with their neighbour. Case is ignored. The one that needs the
/// fewest changes is returned, of several the first; a missing or additional part counts as two changes.
///
/// Cost      O(total length of the names); nothing is suggested for words of more than 128 characters
[[nodiscard]] std::string_view nearest_name(std::string_view wanted, std::span<const std::string_view> names);

}  // namespace normscope
