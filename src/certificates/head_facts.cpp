#include "head_facts.hpp"

namespace normscope::certificates {
namespace {

bool is_norm(const Field& field, const std::optional<NormSpec>& norm) {
  if (!norm) return field.is_null();
  return !field.is_null() && field["kind"].text() == to_string(norm->kind) &&
         field["eps"].number() == norm->eps;
}

}  // namespace

bool is_null_or(const Field& field, const std::string& text) {
  return text.empty() ? field.is_null() : field.is_text() && field.text() == text;
}

bool facts_hold(const Field& entry, const AttentionHead& read) {
  const model::Head& head = read.head;
  const auto selector = [](const std::optional<model::Linear>& linear) {
    return linear ? linear->weight.selector() : std::string();
  };
  const std::string stack = entry.has("stack") ? entry["stack"].text() : "";
  bool same =
      stack == head.stack && entry["layer"].integer() == head.layer && entry["head"].integer() == head.head &&
      entry["key_value_head"].integer() == head.key_value_head &&
      entry["head_dim"].count() == head.head_dim && entry["scale"].number() == head.scale &&
      entry["norm"].text() == read.norm_name && is_null_or(entry["pass"], read.pass) &&
      is_null_or(entry["query"], selector(head.query)) && is_null_or(entry["key"], selector(head.key)) &&
      is_null_or(entry["value"], selector(head.value)) && entry["rotary"].flag() == head.rotary.has_value() &&
      entry["soft_cap"].number_or(0.0) == head.soft_cap &&
      entry["window"].is_null() != head.window.has_value();
  if (same && head.window) same = entry["window"].count() == *head.window;
  if (read.between)
    same = same && entry.has("between") && is_null_or(entry["between"], selector(head.between));
  const Field rotation = entry["rotation"];
  same = same && rotation.is_null() != head.rotary.has_value();
  if (same && head.rotary) {
    same = rotation["dims"].count() == head.rotary->dims &&
           rotation["interleaved"].flag() == head.rotary->interleaved &&
           rotation["score_factor"].number() == head.rotary->score_factor &&
           rotation["frequencies_known"].flag() == !head.rotary->frequencies.empty() &&
           (rotation["context"].is_null() ? 0 : rotation["context"].count()) == head.rotary->context;
  }
  return same;
}

bool norms_hold(const Field& certificates, const AttentionHead& head) {
  return certificates["norm"]["kind"].text() == to_string(head.norm.kind) &&
         is_norm(certificates["query_norm"], head.query.own) &&
         is_norm(certificates["key_norm"], head.key.own);
}

}  // namespace normscope::certificates
