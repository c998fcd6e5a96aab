#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/model/model.hpp>

#include "config.hpp"

namespace normscope::model {

/// How an architecture turns queries and keys where its configuration does not say.
struct RotaryStyle {
  bool interleaved = false;
  double theta = 10'000.0;
  bool has_local_theta = false;
  double local_theta = 10'000.0;  ///< of layers that see a window, where those have a base of their own
  double portion = 1.0;           ///< of a head's coordinates that turn
  /// What the family calls "rope_theta" and "partial_rotary_factor" besides, where it does.
  const char* theta_key = "rope_theta";
  const char* portion_key = "partial_rotary_factor";
  bool windows_only = false;      ///< layers that see everything do not turn
  std::uint64_t still_every = 0;  ///< every so many-th layer does not turn, 0 for none
};

/// A rotary embedding as a configuration states it.
struct StatedRotary {
  Rotary rotary{};
  std::string not_modelled{};  ///< the field that is, with its value; `rotary` says nothing then
  std::vector<std::string> notes{};
};

/// The rotary embedding of a layer of `kind` ("full_attention", "sliding_attention", or empty where all
/// layers are alike), for heads of `head_dim` coordinates.
/// Formulas  base frequencies theta^(-2j/dims); rope_type default, linear, llama3, yarn as
/// modeling_rope_utils
///           of Hugging Face's transformers defines them; dynamic and longrope leave the frequencies out,
///           since they change with the length of the context
/// Errors    Format for values of the wrong type, or that make frequencies which are not finite
[[nodiscard]] StatedRotary stated_rotary(const Config& config, const RotaryStyle& style, std::size_t head_dim,
                                         std::string_view kind = {});

}  // namespace normscope::model
