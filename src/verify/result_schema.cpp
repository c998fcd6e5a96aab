#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "document.hpp"

namespace normscope::verify {
namespace {

/// No result is nested deeper than this.
constexpr std::size_t deepest = 24;

/// Goes through a text without keeping it: nesting, numbers of values, and members that occur twice.
class TextGuard : public nlohmann::json_sax<Json> {
 public:
  explicit TextGuard(std::size_t bytes) : most_values_(bytes / 3 + 1024), most_groups_(bytes / 6 + 1024) {}

  [[nodiscard]] const std::string& refused() const { return refused_; }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(std::int64_t) override { return value(); }
  bool number_unsigned(std::uint64_t) override { return value(); }
  bool number_float(double number, const std::string&) override {
    return value() && (std::isfinite(number) || refuse("a number beyond the range of float64"));
  }
  bool string(std::string&) override { return value(); }
  bool binary(binary_t&) override { return refuse("binary values"); }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    return members_.back().insert(name).second ||
           refuse(fmt::format("the member {} twice in one object", name).c_str());
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return refuse("text that is not JSON");
  }

 private:
  bool refuse(const char* what) {
    refused_ = what;
    return false;
  }
  bool value() { return ++values_ <= most_values_ || refuse("more values than results of its size have"); }
  bool open() {
    members_.emplace_back();
    if (members_.size() > deepest) return refuse("deeper nesting than results have");
    return ++groups_ <= most_groups_ || refuse("more lists and objects than results of its size have");
  }
  bool close() {
    members_.pop_back();
    return true;
  }

  std::size_t most_values_;
  std::size_t most_groups_;
  std::size_t values_ = 0;
  std::size_t groups_ = 0;
  std::vector<std::set<std::string>> members_{};
  std::string refused_{};
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The patterns of the schemas, without an engine for all: texts may have thousands of digits.
bool matches(const std::string& pattern, const std::string& text) {
  if (pattern == "^[0-9a-f]{64}$") {
    return text.size() == 64 && std::all_of(text.begin(), text.end(),
                                            [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
  }
  const bool positive = pattern == "^[1-9][0-9]*$";
  if (!positive && pattern != "^(0|-?[1-9][0-9]*)$") return false;
  if (!positive && text == "0") return true;
  const std::size_t first = !positive && !text.empty() && text[0] == '-' ? 1 : 0;
  return text.size() > first && text[first] != '0' &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(first), text.end(), is_digit);
}

bool is_of_type(const std::string& type, const Json& value) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

std::string list_of(const Json& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 < words.size() ? ", " : " or ";
    text += words[i].is_string() ? words[i].get_ref<const std::string&>() : words[i].dump();
  }
  return text;
}

/// Compares values with a schema. Of JSON Schema it knows what the schemas of results use.
class Shape {
 public:
  /// The first difference, as "PATH, expected ...", or nothing.
  [[nodiscard]] std::optional<std::string> difference(const Json& schema, const Json& value) {
    path_.clear();
    root_ = &schema;
    if (fits(schema, value)) return std::nullopt;
    return wrong_;
  }

 private:
  bool refuse(const std::string& expected) {
    wrong_ = fmt::format("{}, expected {}", path_.empty() ? "the result" : path_.substr(path_[0] == '.'),
                         expected);
    return false;
  }

  bool fits(const Json& schema, const Json& value) {
    if (schema.contains("$ref")) {
      constexpr std::size_t prefix = std::string_view("#/$defs/").size();
      return fits((*root_)["$defs"][schema["$ref"].get_ref<const std::string&>().substr(prefix)], value);
    }
    if (schema.contains("const") && value != schema["const"]) return refuse(schema["const"].dump());
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return refuse(list_of(schema["enum"]));
    }
    if (schema.contains("type")) {
      const Json& type = schema["type"];
      const auto is_one = [&](const Json& name) {
        return is_of_type(name.get_ref<const std::string&>(), value);
      };
      if (type.is_string() ? !is_one(type) : std::none_of(type.begin(), type.end(), is_one)) {
        return refuse(type.is_string() ? type.get<std::string>() : list_of(type));
      }
    }
    if (value.is_number() && !is_in_range(schema, value.get<double>())) return false;
    if (value.is_string() && schema.contains("pattern") &&
        !matches(schema["pattern"].get_ref<const std::string&>(), value.get_ref<const std::string&>())) {
      return refuse(schema["pattern"].get<std::string>());
    }
    if (value.is_array() && !fits_list(schema, value)) return false;
    if (value.is_object() && !fits_object(schema, value)) return false;
    return fits_conditions(schema, value);
  }

  bool is_in_range(const Json& schema, double value) {
    const auto bound = [&](const char* name) { return schema[name].get<double>(); };
    if (schema.contains("minimum") && !(value >= bound("minimum")))
      return refuse(fmt::format("at least {}", bound("minimum")));
    if (schema.contains("maximum") && !(value <= bound("maximum")))
      return refuse(fmt::format("at most {}", bound("maximum")));
    if (schema.contains("exclusiveMinimum") && !(value > bound("exclusiveMinimum")))
      return refuse(fmt::format("more than {}", bound("exclusiveMinimum")));
    return true;
  }

  bool fits_list(const Json& schema, const Json& list) {
    if (schema.contains("minItems") && list.size() < schema["minItems"].get<std::size_t>())
      return refuse(fmt::format("at least {} entries", schema["minItems"].get<std::size_t>()));
    if (schema.contains("maxItems") && list.size() > schema["maxItems"].get<std::size_t>())
      return refuse(fmt::format("at most {} entries", schema["maxItems"].get<std::size_t>()));
    if (!schema.contains("items")) return true;
    const Json& items = schema["items"];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t length = path_.size();
      path_ += '[';
      path_ += std::to_string(i);
      path_ += ']';
      if (!fits(items, list[i])) return false;
      path_.resize(length);
    }
    return true;
  }

  bool fits_object(const Json& schema, const Json& object) {
    if (schema.contains("required")) {
      for (const Json& name : schema["required"]) {
        if (!object.contains(name.get_ref<const std::string&>())) return miss(name);
      }
    }
    if (!schema.contains("properties")) return true;
    const Json& properties = schema["properties"];
    for (auto member = object.begin(); member != object.end(); ++member) {
      const std::size_t length = path_.size();
      path_ += '.' + member.key();
      const auto property = properties.find(member.key());
      if (property == properties.end()) {
        // Alternatives of an object name only some of its members.
        if (!schema.contains("type")) {
          path_.resize(length);
          continue;
        }
        return refuse("no member of this name");
      }
      if (!fits(*property, *member)) return false;
      path_.resize(length);
    }
    return true;
  }

  bool miss(const Json& name) {
    path_ += '.' + name.get<std::string>();
    wrong_ = fmt::format("{} is missing, expected the JSON of this version", path_.substr(1));
    return false;
  }

  bool fits_conditions(const Json& schema, const Json& value) {
    const std::string path = path_;
    const auto holds = [&](const Json& alternative) {
      path_ = path;
      return fits(alternative, value);
    };
    if (schema.contains("oneOf")) {
      const auto fitting = std::count_if(schema["oneOf"].begin(), schema["oneOf"].end(), holds);
      path_ = path;
      if (fitting != 1) return refuse("one of the forms in the schema");
    }
    if (schema.contains("anyOf")) {
      // If the schema allows null or an object, the object's difference is the one to name.
      if (std::none_of(schema["anyOf"].begin(), schema["anyOf"].end(), holds)) {
        return value.is_object() ? holds(schema["anyOf"].front()) : refuse("one of the forms in the schema");
      }
      path_ = path;
    }
    if (schema.contains("if") && holds(schema["if"]) && !holds(schema["then"])) return false;
    path_ = path;
    if (schema.contains("dependentRequired")) {
      for (const auto& [name, needed] : schema["dependentRequired"].items()) {
        if (!value.contains(name)) continue;
        for (const Json& other : needed) {
          if (!value.contains(other.get_ref<const std::string&>())) return miss(other);
        }
      }
    }
    return true;
  }

  const Json* root_ = nullptr;
  std::string path_{};
  std::string wrong_{};
};

}  // namespace

Json read_document(std::string_view text, const std::string& source) {
  const auto refuse = [&](const std::string& what) {
    return Error(ErrorCode::Format, fmt::format("{}: {}", source, what));
  };
  TextGuard guard(text.size());
  if (!Json::sax_parse(text.begin(), text.end(), &guard)) {
    throw refuse(guard.refused() == "text that is not JSON"
                     ? "is not JSON, expected a result as JSON"
                     : fmt::format("has {}, expected a result as JSON", guard.refused()));
  }
  Json document = Json::parse(text.begin(), text.end());
  constexpr std::string_view prefix = "normscope.";
  constexpr std::string_view layout = "/1";
  std::string kind;
  if (document.is_object() && document.contains("schema") && document["schema"].is_string()) {
    kind = document["schema"].get<std::string>();
  }
  const bool named = kind.size() > prefix.size() + layout.size() &&
                     kind.compare(0, prefix.size(), prefix) == 0 &&
                     kind.compare(kind.size() - layout.size(), layout.size(), layout) == 0;
  const std::string_view schema =
      named ? schema_text(kind.substr(prefix.size(), kind.size() - prefix.size() - layout.size()))
            : std::string_view();
  if (schema.empty())
    throw refuse("schema, expected normscope.select/1, separate/1, reach/1, heads/1 or attribute/1");
  if (const auto difference = Shape().difference(Json::parse(schema.begin(), schema.end()), document)) {
    throw refuse(*difference);
  }
  return document;
}

}  // namespace normscope::verify
