#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/models/model.hpp>

#include "config.hpp"

namespace normscope::models {

/// The rotary embedding of an architecture if its configuration does not specify it.
struct RotaryStyle {
  bool interleaved = false;
  bool is_fixed = false;    ///< the class reads no field but the number of coordinates that rotate
  double theta = 10'000.0;  ///< 0: versions differ, so the configuration has to state it
  bool has_local_theta = false;
  double local_theta = 10'000.0;  ///< for layers with a window, if they have a base of their own
  /// Fraction of a head's coordinates that rotate if the configuration states none. Empty: the class rotates
  /// all of them, whatever the configuration states.
  std::optional<double> portion{};
  std::size_t dims = 0;           ///< or their number, which takes precedence
  bool windows_unscaled = false;  ///< "rope_scaling" does not concern layers with a window
  /// Alternative names of the family for "rope_theta" and "partial_rotary_factor".
  const char* theta_key = "rope_theta";
  const char* portion_key = "partial_rotary_factor";
  bool windows_only = false;      ///< layers without a window do not rotate
  std::uint64_t still_every = 0;  ///< layers without rotation: every so-many-th; 0 for none
};

/// A rotary embedding as specified by a configuration.
struct StatedRotary {
  Rotary rotary{};
  std::string not_modelled{};  ///< field and value; `rotary` is then meaningless
  std::vector<std::string> notes{};
};

/// The rotary embedding of a layer of `kind` ("full_attention", "sliding_attention", or empty if all layers
/// are alike), for heads of `head_dim` coordinates. Base frequencies are theta^(-2j/dims). The rope types
/// default, linear, llama3 and yarn are those of modeling_rope_utils in Hugging Face's transformers. Types
/// dynamic and longrope leave the frequencies out, because they change with the length of the context.
///
/// Errors    Format for values of the wrong type, or that make frequencies which are not finite
[[nodiscard]] StatedRotary stated_rotary(const Config& config, const RotaryStyle& style, std::size_t head_dim,
                                         std::string_view kind = {});

}  // namespace normscope::models
