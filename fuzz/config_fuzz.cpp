#include <cmath>

#include <nlohmann/json.hpp>

#include <normscope/files/json_value.hpp>

#include "fuzz_target.hpp"

using namespace normscope;

namespace {

using Json = nlohmann::json;

/// The opening brackets of the text, at least as many as it nests deep.
std::size_t brackets(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += c == '[' || c == '{' ? 1 : 0;
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<Json> read = files::read_json(text);
  if (text.find('\0') == std::string_view::npos && text.find_first_of("NI") == std::string_view::npos &&
      brackets(text) <= files::json_depth) {
    // Where JSON is all there is, it is the library's value.
    const Json expected = Json::parse(text, nullptr, false);
    fuzz_require(read.has_value() == !expected.is_discarded());
    if (read) fuzz_require(*read == expected);
  }
  if (read && read->is_object()) {
    const std::optional<std::string> flagged = files::with_json_flag(text, "flag", true);
    const auto before = read->find("flag");
    fuzz_require(flagged.has_value() ||
                 (before != read->end() && !before->is_boolean() && !before->is_null()));
    if (flagged) {
      const std::optional<Json> after = files::read_json(*flagged);
      fuzz_require(after && after->at("flag") == true &&
                   after->size() == read->size() + (before == read->end() ? 1 : 0));
    }
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string many = "{\"x\":[";
  for (int i = 0; i < 300; ++i) many += "{},";
  many += "{}]}";
  return {
      R"({"model_type":"gpt2","n_head":12,"layer_norm_epsilon":1e-05,"flag":false,"task":{"a":[1,-2,0.5,null]}})",
      R"({"time_step_limit": [0.0, Infinity], "low": -Infinity, "flag": NaN, "text": "NaN \" Infinity"})",
      R"({"flag":null,"flag":true,"a":{"flag":[]}})",
      "{ }",
      "[[[[[[[[[[[[[[[[[[[[{\"a\":1}]]]]]]]]]]]]]]]]]]]]",
      "{\"a\":" + std::string(300, '[') + std::string(300, ']') + "}",
      many,
  };
}
