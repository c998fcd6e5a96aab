#include "config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

namespace normscope::models {

namespace {

constexpr double kPi = std::numbers::pi;

[[noreturn]] void reject(const Config& config, std::string_view what) {
  throw Error(ErrorCode::Format, fmt::format("model: {}: {}", config.where(), what));
}

double positive(const Config& config, Config::Keys keys, double fallback) {
  const double value = config.number(keys).value_or(fallback);
  if (!(value > 0.0))
    reject(config, fmt::format("\"{}\" is {}, expected a number > 0", *keys.begin(), value));
  return value;
}

/// The parameters of a layer's kind. Newer writers put all of them into "rope_parameters", by kind if kinds
/// differ; older ones next to the other fields, with "rope_scaling" for non-default types.
struct Place {
  std::optional<Config> scaling{};
  std::optional<double> theta{};
  std::optional<double> portion{};
  double assumed_theta = 0.0;
  std::string not_modelled{};
};

std::string_view scaling_name(const Config& config) {
  return config.has({"rope_parameters"}) ? "rope_parameters" : "rope_scaling";
}

// Whether the class has parameters for each kind of layer. Other classes read none of the objects by kind.
bool is_by_kind(const RotaryStyle& style) {
  return style.by_kind || style.has_local_theta || style.windows_unscaled;
}

void refuse(std::string& not_modelled, std::string what) {
  if (not_modelled.empty()) not_modelled = std::move(what);
}

// A field that only some versions of transformers read may state nothing but what is used anyway.
void expect_same(const Config& config, const char* key, double used, std::string& not_modelled) {
  const std::optional<double> stated = config.number({key});
  if (stated && *stated != used)
    refuse(not_modelled, fmt::format("{}: {} where the class uses {}", key, *stated, used));
}

// A number that a section and the configuration around it, there named `outer_key`, may state. Versions of
// transformers differ in which of the two they read.
std::optional<double> number_of(const Config& config, const std::optional<Config>& section, const char* key,
                                const char* outer_key, std::string& not_modelled) {
  const std::optional<double> outer = config.number({outer_key});
  const std::optional<double> inner = section ? section->number({key}) : std::nullopt;
  if (inner && outer && *inner != *outer) {
    refuse(not_modelled,
           fmt::format("{}: {} beside {} in \"{}\"", outer_key, *outer, *inner, scaling_name(config)));
  }
  return inner ? inner : outer;
}

// The object of a kind in "rope_parameters". What is beside such objects is not used, except "truncate".
std::optional<Config> section_of(const Config& parameters, std::string_view kind, std::string& not_modelled) {
  const std::string key(kind);
  std::optional<Config> section = parameters.inside({key.c_str()});
  if (!section) {
    refuse(not_modelled, fmt::format("rope_parameters without \"{}\"", kind));
    return section;
  }
  for (const Config::Field& beside : parameters.unread()) {
    if (beside.value != "an object")
      refuse(not_modelled, fmt::format("rope_parameters.{} beside \"{}\"", beside.key, kind));
  }
  return section;
}

// A section "rope_scaling" beside "rope_parameters" is left unread, and so reported: versions differ in which
// of the two they use.
Place place_of(const Config& config, const RotaryStyle& style, std::string_view kind) {
  Place place;
  const bool is_windowed = kind == "sliding_attention";
  const bool local = style.has_local_theta && is_windowed;
  const bool unscaled = local || (style.windows_unscaled && is_windowed);
  std::optional<Config> section = config.inside({"rope_parameters"});
  if (section && is_by_kind(style)) {
    section = section_of(*section, kind, place.not_modelled);
  } else if (!section) {
    section = config.inside({"rope_scaling"});
    if (unscaled) section.reset();
  }
  if (style.must_state && !section) refuse(place.not_modelled, "rope_parameters, which are not stated");
  if (section && is_by_kind(style) && !section->flag({"truncate"}).value_or(true)) {
    // transformers reads it beside the objects, its earlier versions inside.
    refuse(place.not_modelled, fmt::format("{}: truncate: false, by kind", scaling_name(config)));
  }
  place.assumed_theta = local ? style.local_theta : style.theta;
  if (local) {
    place.theta = section ? section->number({"rope_theta"}) : std::nullopt;
    if (!place.theta) place.theta = config.number({style.local_theta_key});
    static_cast<void>(config.number({style.theta_key}));  // read by the other layers
  } else if (unscaled) {
    // transformers gives the base of the configuration to the other layers alone, its earlier versions to
    // all.
    place.theta = section ? section->number({"rope_theta"}) : std::nullopt;
    expect_same(config, style.theta_key, place.theta.value_or(style.theta), place.not_modelled);
  } else {
    if (style.has_local_theta) static_cast<void>(config.number({style.local_theta_key}));
    place.theta = number_of(config, section, "rope_theta", style.theta_key, place.not_modelled);
    expect_same(config, "rope_theta", place.theta.value_or(style.theta), place.not_modelled);
  }
  place.portion = number_of(config, section, "partial_rotary_factor", style.portion_key, place.not_modelled);
  expect_same(config, style.other_portion_key, place.portion.value_or(style.portion.value_or(1.0)),
              place.not_modelled);
  place.scaling = std::move(section);
  return place;
}

std::vector<double> base_frequencies(double theta, std::size_t dims) {
  std::vector<double> frequencies(dims / 2);
  for (std::size_t j = 0; j < frequencies.size(); ++j) {
    frequencies[j] = std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(dims));
  }
  return frequencies;
}

// Long wavelengths are stretched, short ones are unchanged, and those in between are interpolated. If none
// are in between, those that are both long and short are stretched in some programs and unchanged in others.
void stretch_llama3(const Config& scaling, double factor, double context, StatedRotary& stated) {
  const double low = positive(scaling, {"low_freq_factor"}, 1.0);
  const double high = positive(scaling, {"high_freq_factor"}, 4.0);
  if (low > high)
    stated.not_modelled = fmt::format("low_freq_factor: {} above high_freq_factor: {}", low, high);
  for (double& frequency : stated.rotary.frequencies) {
    const double turns = context * frequency / (2.0 * kPi);
    if (turns > high) continue;
    const double kept = turns < low ? 0.0 : (turns - low) / (high - low);
    frequency = (1.0 - kept) * frequency / factor + kept * frequency;
  }
}

double yarn_factor(double scale, double weight) {
  return scale <= 1.0 ? 1.0 : 0.1 * weight * std::log(scale) + 1.0;
}

double yarn_attention(const Config& scaling, double factor) {
  if (const std::optional<double> stated = scaling.number({"attention_factor"})) return *stated;
  const double weight = scaling.number({"mscale"}).value_or(0.0);
  const double all = scaling.number({"mscale_all_dim"}).value_or(0.0);
  if (weight != 0.0 && all != 0.0) return yarn_factor(factor, weight) / yarn_factor(factor, all);
  return yarn_factor(factor, 1.0);
}

// Pairs below `low` keep their frequency, those above `high` are interpolated, with a linear ramp in between.
void stretch_yarn(const Config& scaling, double theta, double context, double factor,
                  std::vector<double>& frequencies) {
  const double dims = 2.0 * static_cast<double>(frequencies.size());
  const auto pair_with_turns = [&](double turns) {
    return dims * std::log(context / (turns * 2.0 * kPi)) / (2.0 * std::log(theta));
  };
  double low = pair_with_turns(positive(scaling, {"beta_fast"}, 32.0));
  double high = pair_with_turns(positive(scaling, {"beta_slow"}, 1.0));
  if (scaling.flag({"truncate"}).value_or(true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t j = 0; j < frequencies.size(); ++j) {
    const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    frequencies[j] = frequencies[j] / factor * ramp + frequencies[j] * (1.0 - ramp);
  }
}

std::string field(const Config& config, std::string_view type) {
  return fmt::format("{}: {}", scaling_name(config), type);
}

// The first required field of a type that is missing.
std::string_view missing_field(const Config& scaling, std::string_view type) {
  const auto lacks = [&](const char* key) { return !scaling.has({key}); };
  if ((type == "linear" || type == "llama3") && lacks("factor")) return "factor";
  if (type == "llama3" && lacks("low_freq_factor")) return "low_freq_factor";
  if (type == "llama3" && lacks("high_freq_factor")) return "high_freq_factor";
  return {};
}

// Implementations differ in whether a stated factor or the ratio of the contexts is used; this takes the
// larger one.
double longrope_attention(const Config& scaling, double original, double context) {
  if (const std::optional<double> stated = scaling.number({"attention_factor"})) return *stated;
  const double ratio = original > 1.0 ? context / original : 1.0;
  const double factor = std::max(ratio, scaling.number({"factor"}).value_or(1.0));
  return factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
}

void scale(const Config& config, const Config& scaling, bool by_kind, double theta, StatedRotary& stated) {
  const std::string type = scaling.text({"rope_type", "type"}).value_or("default");
  if (type == "default") return;
  Rotary& rotary = stated.rotary;
  if (const std::string_view missing = missing_field(scaling, type); !missing.empty()) {
    stated.not_modelled = fmt::format("{} without \"{}\"", field(config, type), missing);
    return;
  }
  const double context = static_cast<double>(rotary.context);
  const char* const original_key = "original_max_position_embeddings";
  double original = 0.0;
  if (by_kind) {
    original = scaling.number({original_key}).value_or(context);
    expect_same(config, original_key, original, stated.not_modelled);
  } else {
    original = number_of(config, scaling, original_key, original_key, stated.not_modelled).value_or(context);
  }
  if (!stated.not_modelled.empty()) return;
  if (original <= 1.0 && (type == "llama3" || type == "yarn" || type == "longrope" || type == "su")) {
    stated.not_modelled = fmt::format("{} without \"{}\"", field(config, type), original_key);
    return;
  }
  const bool has_default_factor = type == "yarn" || type == "longrope" || type == "su" || type == "dynamic";
  if (context == 0.0 && has_default_factor && !scaling.has({"factor"})) {
    stated.not_modelled = fmt::format("{} without \"max_position_embeddings\"", field(config, type));
    return;
  }
  const double factor = positive(scaling, {"factor"}, original > 0.0 ? context / original : 1.0);
  if (type == "linear") {
    for (double& frequency : rotary.frequencies) frequency /= factor;
  } else if (type == "llama3") {
    stretch_llama3(scaling, factor, original, stated);
  } else if (type == "yarn") {
    const double attention = yarn_attention(scaling, factor);
    rotary.score_factor = attention * attention;
    stretch_yarn(scaling, theta, original, factor, rotary.frequencies);
  } else if (type == "longrope" || type == "su") {
    const double attention = longrope_attention(scaling, original, context);
    rotary.score_factor = attention * attention;
    rotary.frequencies.clear();
  } else if (type == "proportional") {
    const double stated_factor = positive(scaling, {"factor"}, 1.0);
    for (double& frequency : rotary.frequencies) frequency /= stated_factor;
  } else if (type == "dynamic") {
    rotary.frequencies.clear();
  } else {
    stated.not_modelled = field(config, type);
    return;
  }
  if (rotary.frequencies.empty()) {
    stated.notes.push_back(
        fmt::format("{} changes the rotary frequencies with the length of the context, so none are listed",
                    field(config, type)));
  }
}

// The first field that belongs to no type; its effect on the frequencies is unknown.
std::string unknown_field(const Config& config, const Config& scaling, bool sections) {
  constexpr std::array known = {"type",
                                "rope_type",
                                "rope_theta",
                                "factor",
                                "low_freq_factor",
                                "high_freq_factor",
                                "beta_fast",
                                "beta_slow",
                                "truncate",
                                "mscale",
                                "mscale_all_dim",
                                "attention_factor",
                                "short_factor",
                                "long_factor",
                                "original_max_position_embeddings",
                                "partial_rotary_factor"};
  for (const Config::Field& unread : scaling.unread()) {
    if (sections && unread.key.starts_with("mrope_")) continue;
    if (std::find(known.begin(), known.end(), unread.key) == known.end()) {
      return fmt::format("{}.{}: {}", scaling_name(config), unread.key, unread.value);
    }
  }
  return {};
}

}  // namespace

StatedRotary stated_rotary(const Config& config, const RotaryStyle& style, std::size_t head_dim,
                           std::string_view kind) {
  StatedRotary stated;
  const Place place = style.is_fixed ? Place{.theta = style.theta} : place_of(config, style, kind);
  const double theta = place.theta.value_or(place.assumed_theta);
  stated.not_modelled = place.not_modelled;
  if (!place.theta && theta == 0.0) refuse(stated.not_modelled, "rope_theta: not stated");
  if (!stated.not_modelled.empty()) return stated;
  if (!place.theta) {
    stated.notes.push_back(
        fmt::format("rotary base {} is assumed, the published default: no configuration states it", theta));
  }
  if (!(theta > 0.0)) reject(config, fmt::format("the rotary base is {}, expected a number > 0", theta));
  const double portion = place.portion.value_or(style.portion.value_or(1.0));
  const bool proportional =
      place.scaling && place.scaling->text({"rope_type", "type"}).value_or("") == "proportional";
  if (!style.portion && portion != 1.0 && !proportional) {
    // transformers rotates all coordinates of such a model, other programs a part of them.
    stated.not_modelled = fmt::format("partial_rotary_factor: {}", portion);
    return stated;
  }
  Rotary& rotary = stated.rotary;
  rotary.interleaved = style.interleaved;
  const auto turning = static_cast<std::size_t>(portion * static_cast<double>(head_dim));
  rotary.dims = style.dims != 0 ? style.dims : proportional ? head_dim : turning;
  if (portion > 1.0 || rotary.dims > head_dim || rotary.dims % 2 != 0) {
    stated.not_modelled = fmt::format("a rotary embedding of {} of a head's {} coordinates",
                                      style.dims != 0 ? static_cast<double>(style.dims) : portion, head_dim);
    return stated;
  }
  rotary.context = config.positions({"max_position_embeddings", "max_seq_len", "n_positions"}).value_or(0);
  rotary.frequencies = base_frequencies(theta, rotary.dims);
  if (proportional) {  // the first pairs turn, with frequencies of the whole head
    std::fill(rotary.frequencies.begin() + static_cast<std::ptrdiff_t>(std::min(turning, head_dim) / 2),
              rotary.frequencies.end(), 0.0);
  }
  if (place.scaling) {
    scale(config, *place.scaling, is_by_kind(style), theta, stated);
    if (stated.not_modelled.empty())
      stated.not_modelled = unknown_field(config, *place.scaling, style.sections);
  }
  if (style.backwards) {
    for (double& frequency : rotary.frequencies) frequency = -frequency;
  }
  if (style.before_norms && rotary.score_factor != 1.0 && stated.not_modelled.empty()) {
    stated.not_modelled =
        fmt::format("a factor of \"{}\" before the norms of queries and keys", scaling_name(config));
  }
  const auto is_finite = [](double frequency) { return std::isfinite(frequency); };
  if (!std::all_of(rotary.frequencies.begin(), rotary.frequencies.end(), is_finite) ||
      !std::isfinite(rotary.score_factor)) {
    reject(config, "the rotary embedding's fields give frequencies that are not finite");
  }
  return stated;
}

}  // namespace normscope::models
