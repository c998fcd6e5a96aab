#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "builder.hpp"

namespace normscope::model {

namespace {

/// A buffer may have been rounded to bfloat16, whose relative error is 1/256.
constexpr double kBufferError = 1.0 / 200.0;

}  // namespace

std::string Builder::layer_kind(int layer) const {
  if (const auto kinds = config_.texts({"layer_types"})) {
    return static_cast<std::size_t>(layer) < kinds->size() ? (*kinds)[static_cast<std::size_t>(layer)] : "";
  }
  const std::uint64_t period =
      config_.count({"sliding_window_pattern", "_sliding_window_pattern"}).value_or(window_period_);
  if (period == 0) return {};
  return (static_cast<std::uint64_t>(layer) + 1) % period == 0 ? "full_attention" : "sliding_attention";
}

void Builder::set_positions(Head& head) {
  if (!rotary_) return;
  StatedRotary stated = stated_rotary(config_, *rotary_, head.head_dim, layer_kind(head.layer));
  for (std::string& text : stated.notes) note(std::move(text));
  head.not_modelled = std::move(stated.not_modelled);
  head.rotary = std::move(stated.rotary);
}

void Builder::rotary_buffer(std::string_view name) {
  const checkpoint::Tensor* const stored = checkpoint_.find(full(name));
  buffer(name);
  if (stored == nullptr || model_.heads.empty() || !is_floating(stored->dtype)) return;
  const Head& head = model_.heads.back();
  if (!head.rotary || head.rotary->frequencies.empty() || head.layer != scope_.layer) return;
  const std::vector<double>& expected = head.rotary->frequencies;
  bool same = stored->shape.size() == 1 && stored->shape[0] == expected.size();
  if (same) {
    const std::vector<double> values = checkpoint::read(*stored);
    for (std::size_t j = 0; same && j < expected.size(); ++j) {
      same = std::abs(values[j] - expected[j]) <= kBufferError * expected[j] + 1e-7;
    }
  }
  if (!same) {
    note(
        fmt::format("\"{}\" holds other rotary frequencies than the configuration gives; the latter are used",
                    stored->name));
  }
}

}  // namespace normscope::model
