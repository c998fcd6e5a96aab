#include "head_facts.hpp"

namespace normscope::certificates {
namespace {

/// A list of names in a text.
class Names {
 public:
  void add_unless(bool holds, const char* name) {
    if (!holds) text_ += (text_.empty() ? "" : ", ") + std::string(name);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_{};
};

bool is_norm(const Field& field, const std::optional<NormSpec>& norm) {
  if (!norm) return field.is_null();
  return !field.is_null() && field["kind"].text() == to_string(norm->kind) &&
         field["eps"].number() == norm->eps;
}

bool is_rotation(const Field& rotation, const std::optional<model::Rotary>& rotary) {
  if (!rotary || rotation.is_null()) return rotation.is_null() != rotary.has_value();
  return rotation["dims"].count() == rotary->dims && rotation["interleaved"].flag() == rotary->interleaved &&
         rotation["score_factor"].number() == rotary->score_factor &&
         rotation["frequencies_known"].flag() == !rotary->frequencies.empty() &&
         (rotation["context"].is_null() ? 0 : rotation["context"].count()) == rotary->context;
}

}  // namespace

bool is_null_or(const Field& field, const std::string& text) {
  return text.empty() ? field.is_null() : field.is_text() && field.text() == text;
}

std::string differing_facts(const Field& entry, const AttentionHead& read) {
  const model::Head& head = read.head;
  const auto selector = [](const std::optional<model::Linear>& linear) {
    return linear ? linear->weight.selector() : std::string();
  };
  Names names;
  names.add_unless(entry["stack"].text() == head.stack, "stack");
  names.add_unless(entry["layer"].integer() == head.layer, "layer");
  names.add_unless(entry["head"].integer() == head.head, "head");
  names.add_unless(entry["key_value_head"].integer() == head.key_value_head, "key_value_head");
  names.add_unless(entry["head_dim"].count() == head.head_dim, "head_dim");
  names.add_unless(entry["scale"].number() == head.scale, "scale");
  names.add_unless(entry["norm"].text() == read.norm_name, "norm");
  names.add_unless(is_null_or(entry["pass"], read.pass), "pass");
  names.add_unless(is_null_or(entry["query"], selector(head.query)), "query");
  names.add_unless(is_null_or(entry["key"], selector(head.key)), "key");
  names.add_unless(is_null_or(entry["value"], selector(head.value)), "value");
  names.add_unless(entry["rotary"].flag() == head.rotary.has_value(), "rotary");
  names.add_unless(is_rotation(entry["rotation"], head.rotary), "rotation");
  names.add_unless(entry["soft_cap"].number_or(0.0) == head.soft_cap, "soft_cap");
  const Field window = entry["window"];
  names.add_unless(
      window.is_null() ? !head.window.has_value() : head.window && window.count() == *head.window, "window");
  // An entry of a norm without a map between may leave it out.
  const std::string between = head.between && read.norm_name == head.norm ? selector(head.between) : "";
  names.add_unless(entry.has("between") ? is_null_or(entry["between"], between) : between.empty(), "between");
  return names.text();
}

std::string differing_norms(const Field& certificates, const AttentionHead& head) {
  Names names;
  names.add_unless(certificates["norm"]["kind"].text() == to_string(head.norm.kind), "norm.kind");
  names.add_unless(is_norm(certificates["query_norm"], head.query.own), "query_norm kind or eps");
  names.add_unless(is_norm(certificates["key_norm"], head.key.own), "key_norm kind or eps");
  return names.text();
}

}  // namespace normscope::certificates
