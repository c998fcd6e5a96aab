#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "builder.hpp"
#include "config.hpp"

namespace normscope::models {

namespace {

/// A buffer may have been rounded to bfloat16, whose relative error is 1/256.
constexpr double kBufferError = 1.0 / 200.0;

/// More frequencies than the widest head has.
constexpr std::uint64_t kMostFrequencies = 100'000;

}  // namespace

std::string Builder::layer_kind(int layer) const {
  const std::optional<std::uint64_t> stated =
      windows_ && windows_->period != 0 ? config_.count({"sliding_window_pattern", "_sliding_window_pattern"})
                                        : std::nullopt;
  const std::uint64_t layers = config_.count({"num_hidden_layers"}).value_or(0);
  if (windows_ && windows_->last_is_full && static_cast<std::uint64_t>(layer) + 1 == layers) {
    return "full_attention";
  }
  const char* const key = windows_ ? windows_->kinds_key : "layer_types";
  if (const auto kinds = config_.texts({key})) {
    const std::string kind =
        static_cast<std::size_t>(layer) < kinds->size() ? (*kinds)[static_cast<std::size_t>(layer)] : "";
    return kind == "global" ? "full_attention" : kind == "local" ? "sliding_attention" : kind;
  }
  const std::uint64_t period = stated.value_or(windows_ ? windows_->period : 0);
  if (period == 0) return {};
  const bool first_is_full = windows_ && windows_->first_is_full;
  const std::uint64_t place = static_cast<std::uint64_t>(layer) + (first_is_full ? 0 : 1);
  return place % period == 0 ? "full_attention" : "sliding_attention";
}

void Builder::set_scale(Head& head) const {
  head.scale = scores_.scale.value_or(1.0 / std::sqrt(static_cast<double>(head.head_dim)));
  if (scores_.divided_by_layer) head.scale /= static_cast<double>(head.layer) + 1.0;
  head.soft_cap = scores_.soft_cap;
  if (scores_.clip && *scores_.clip > 0.0) {
    head.clip = *scores_.clip;
  } else if (scores_.clip) {
    add_not_modelled(head.not_modelled, fmt::format("clip_qkv: {}", *scores_.clip));
  }
}

// The slopes of a power of two of heads are powers of one number; further heads have those in between.
void Builder::set_alibi(Head& head) const {
  if (scores_.most_alibi == 0.0) return;
  std::uint64_t regular = 1;
  while (2 * regular <= counts_.heads) regular *= 2;
  const auto number = static_cast<std::uint64_t>(head.head);
  const double place =
      number < regular ? static_cast<double>(number + 1) : static_cast<double>(number - regular) + 0.5;
  head.alibi = Alibi{.slope = std::exp2(-scores_.most_alibi * place / static_cast<double>(regular)),
                     .factor_of_rounded = scores_.rounded_alibi ? head.scale : 0.0};
}

void Builder::lack_norm_of_heads(const std::string& name) {
  for (Head& head : model_.heads) {
    if (head.layer == scope_.layer) {
      add_not_modelled(head.not_modelled, fmt::format("\"{}\", which is missing", name));
    }
  }
}

void Builder::set_window(Head& head) const {
  const std::string kind = layer_kind(head.layer);
  if (!kind.empty() && kind != "full_attention" && (kind != "sliding_attention" || !windows_)) {
    add_not_modelled(head.not_modelled, "layer_types: " + kind);
  }
  if (!windows_) return;
  const std::optional<std::uint64_t> size =
      config_.positions({"sliding_window", "sliding_window_size", "attention_window_size", "window_size"});
  const bool enabled = !windows_->must_be_enabled || config_.flag({"use_sliding_window"}).value_or(false);
  const std::uint64_t first = config_.positions({"max_window_layers"}).value_or(28);
  if (!enabled && kind == "sliding_attention") {
    add_not_modelled(head.not_modelled, "layer_types: sliding_attention without use_sliding_window");
  }
  if (!size || !enabled) return;
  const bool by_kind = kind.empty() || kind == "sliding_attention";
  const bool late =
      !windows_->must_be_enabled || !kind.empty() || static_cast<std::uint64_t>(head.layer) >= first;
  if (by_kind && late) head.window = *size;
}

void Builder::set_rotary(Head& head) {
  if (!rotary_) return;
  const std::string kind = layer_kind(head.layer);
  const auto layer = static_cast<std::size_t>(head.layer);
  if (rotary_->windows_only && kind == "full_attention") return;
  if (rotary_->still_every != 0) {
    const std::uint64_t every = config_.count({"no_rope_layer_interval"}).value_or(rotary_->still_every);
    const auto turning = config_.numbers({"no_rope_layers"});
    if (turning && layer < turning->size() ? (*turning)[layer] == 0.0 : (layer + 1) % every == 0) return;
  }
  StatedRotary stated = stated_rotary(config_, *rotary_, head.head_dim, kind);
  for (std::string& text : stated.notes) note(std::move(text));
  add_not_modelled(head.not_modelled, stated.not_modelled);
  head.rotary = std::move(stated.rotary);
}

void Builder::rotary_buffer(std::string_view name) {
  const files::Tensor* const stored = checkpoint_.find(full(name));
  buffer(name);
  if (stored == nullptr || model_.heads.empty() || !is_floating(stored->dtype)) return;
  const Head& head = model_.heads.back();
  if (!head.rotary || head.rotary->frequencies.empty() || head.layer != scope_.layer) return;
  const std::vector<double>& expected = head.rotary->frequencies;
  bool same = stored->shape.size() == 1 && stored->shape[0] == expected.size();
  if (same) {
    const std::vector<double> values = files::read(*stored);
    for (std::size_t j = 0; same && j < expected.size(); ++j) {
      same = std::abs(values[j] - expected[j]) <= kBufferError * expected[j] + 1e-7;
    }
  }
  if (!same) {
    note(
        fmt::format("\"{}\" holds other rotary frequencies than the configuration gives; those of the "
                    "configuration are used",
                    stored->name));
  }
}

void Builder::rotary_divisors(std::string_view name) {
  const files::Tensor* const stored = checkpoint_.find(full(name));
  buffer(name);
  if (stored == nullptr) return;
  const bool is_read = stored->shape.size() == 1 && stored->shape[0] <= kMostFrequencies &&
                       is_floating(stored->dtype) && stored->is_decodable();
  const std::vector<double> divisors = is_read ? files::read(*stored) : std::vector<double>();
  const bool are_positive = std::all_of(divisors.begin(), divisors.end(), [](double divisor) {
    return divisor > 0.0 && std::isfinite(1.0 / divisor);
  });
  for (Head& head : model_.heads) {
    if (!head.rotary || head.rotary->frequencies.empty()) continue;
    if (!are_positive || divisors.size() != head.rotary->frequencies.size()) {
      add_not_modelled(head.not_modelled, stored->name);
      continue;
    }
    for (std::size_t j = 0; j < divisors.size(); ++j) head.rotary->frequencies[j] /= divisors[j];
  }
}

void Builder::logits(double scale, double soft_cap) {
  logit_scale_ = scale;
  logit_cap_ = soft_cap;
}

}  // namespace normscope::models
