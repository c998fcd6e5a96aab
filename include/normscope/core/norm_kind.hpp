#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The kinds of normalization layers. `norm_kinds` is the only list: the names that the command, Python, the
/// JSON schemas and TypeScript accept are derived from it (`scripts/norm_kinds` writes them into the files
/// that cannot include this header, the target `schemas` into docs/schemas). docs/design/norm.md says how to
/// add one.
namespace normscope {

/// With x a row of `width` N, Π x = x − mean(x):
///   layer      y = g · Πx / sqrt(|Πx|²/N + eps) + b           LayerNorm
///   rms        y = g · x  / sqrt(|x|²/N + eps) + b            RMSNorm
///   spherical  y = g · x  / sqrt(|x|² + eps) + b              projection onto the unit sphere
///   dyt        y = g · tanh(αx) + b                           Dynamic Tanh
///   derf       y = g · erf(αx + s) + b                        Dynamic erf
/// Those that divide by a number of the row normalize; with `groups` k > 1 they normalize k consecutive
/// blocks of N/k entries separately (LN-G). Elementwise kinds replace a norm without computing any statistics
/// of the row. Gain and bias always have N entries.
///
/// Source    [Riechers 2024, eq. 6]; [Ni et al. 2024, LN-G]; [Winsor 2022, u_eps]; [Zhu et al. 2025] dyt;
///           [Chen et al. 2025] derf
enum class NormKind { layer, rms, spherical, dyt, derf };

/// What a block of deviations is divided by.
enum class Divisor { root_mean_square, length, nothing };

struct NormKindFacts {
  NormKind kind;
  std::string_view name;   ///< in options, JSON, Python and TypeScript
  std::string_view title;  ///< in text
  bool centers;            ///< whether the mean is subtracted first
  Divisor divisor;         ///< `nothing` for elementwise kinds
  bool has_shift;          ///< whether `shift` (s) is a parameter; elementwise kinds have `alpha`
};

inline constexpr auto norm_kinds = std::to_array<NormKindFacts>({
    {NormKind::layer, "layer", "LayerNorm", true, Divisor::root_mean_square, false},
    {NormKind::rms, "rms", "RMSNorm", false, Divisor::root_mean_square, false},
    {NormKind::spherical, "spherical", "spherical norm", false, Divisor::length, false},
    {NormKind::dyt, "dyt", "Dynamic Tanh", false, Divisor::nothing, false},
    {NormKind::derf, "derf", "Dynamic erf", false, Divisor::nothing, true},
});

[[nodiscard]] constexpr const NormKindFacts& facts(NormKind kind) {
  return norm_kinds[static_cast<std::size_t>(kind)];
}

[[nodiscard]] constexpr std::string_view to_string(NormKind kind) { return facts(kind).name; }

/// Whether every output depends on the input of its own feature alone.
[[nodiscard]] constexpr bool is_elementwise(NormKind kind) { return facts(kind).divisor == Divisor::nothing; }

/// What a norm does to rows as models have them.
enum class NormEffect {
  normalizes,
  elementwise,  ///< acts on every feature separately: the image is a box, b ± |g|
  off           ///< eps exceeds the mean square of any row so far that the norm is a linear map
};

/// "normalizes", "elementwise" or "off".
[[nodiscard]] std::string_view to_string(NormEffect effect);

/// The eps, added to a mean square, from which a norm is off: the entries of models' rows are far below 1e4
/// in root mean square. A row of mean square m is then mapped to G Πx/√eps + b within m/(2 eps) relative.
/// Checkpoints published as "without LayerNorm" have 1e12.
inline constexpr double eps_of_off = 1e8;

/// The effect of a norm of that kind over blocks of `width` entries.
[[nodiscard]] NormEffect effect_of(NormKind kind, double eps, std::size_t width);

/// The kind of that name.
///
/// Errors    Argument if there is none
[[nodiscard]] NormKind norm_kind(std::string_view name);

/// The names of all kinds, or of those that normalize.
[[nodiscard]] std::vector<std::string> norm_kind_names();
[[nodiscard]] std::vector<std::string> normalizing_kind_names();

}  // namespace normscope
