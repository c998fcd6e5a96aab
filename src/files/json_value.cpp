#include "json_events.hpp"

#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/files/json_value.hpp>
#include <normscope/files/source.hpp>

namespace normscope::files {
namespace {

/// An iterator that records how far the parser has read.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  Cursor(std::string_view text, std::size_t at, std::size_t* position)
      : text_(text.data()), at_(at), position_(position) {}

  char operator*() const { return text_[at_]; }
  Cursor& operator++() {
    *position_ = ++at_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* text_;
  std::size_t at_;
  std::size_t* position_;
};

}  // namespace

bool JsonEvents::number_float(number_float_t /*value*/, const std::string& text) {
  unexpected(text.substr(0, 40));
}

bool JsonEvents::string(std::string& text) { unexpected(quote(text)); }

void JsonEvents::not_json(std::size_t position) const {
  fail(ErrorCode::Format, fmt::format("not one JSON object: syntax error at byte {}", position));
}

bool send_json(std::string_view text, nlohmann::json::json_sax_t& events, std::size_t* position) {
  *position = 0;
  return nlohmann::json::sax_parse(Cursor(text, 0, position), Cursor(text, text.size(), position), &events);
}

void parse_json(std::string_view text, JsonEvents& events, std::size_t* position) {
  // The library treats a NUL byte as the end of its input.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) events.not_json(nul + 1);
  send_json(text, events, position);
}

namespace {

using Json = nlohmann::json;

/// A number that JSON does not have, and where it begins.
struct NotFinite {
  std::size_t begin;
  double value;
};

/// JSON in which a zero of the same length stands for each number that is not finite.
struct PlainJson {
  std::string text;
  std::vector<NotFinite> numbers{};
};

bool may_precede(char c) { return std::string_view(" \t\n\r[,:").find(c) != std::string_view::npos; }
bool may_follow(char c) { return std::string_view(" \t\n\r],}").find(c) != std::string_view::npos; }

PlainJson plain_json(std::string_view given) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr std::array<std::pair<std::string_view, double>, 3> words = {
      {{"NaN", std::numeric_limits<double>::quiet_NaN()}, {"Infinity", infinity}, {"-Infinity", -infinity}}};
  PlainJson plain{std::string(given)};
  bool in_string = false;
  for (std::size_t at = 0; at < given.size(); ++at) {
    const char c = given[at];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++at;
    if (in_string || (c != 'N' && c != 'I' && c != '-')) continue;
    for (const auto& [word, value] : words) {
      const std::size_t end = at + word.size();
      if (given.substr(at, word.size()) != word || (at > 0 && !may_precede(given[at - 1])) ||
          (end < given.size() && !may_follow(given[end]))) {
        continue;
      }
      plain.text.replace(at, word.size(), word.size(), ' ');
      plain.text.replace(at, 3, "0.0");
      plain.numbers.push_back({at, value});
    }
  }
  return plain;
}

/// Builds the value of the events it receives.
class ValueReader : public nlohmann::json::json_sax_t {
 public:
  ValueReader(const std::vector<NotFinite>& numbers, const std::size_t& position)
      : numbers_(numbers), position_(position) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const std::string& /*text*/) override {
    // The parser has read past the beginning of this number, and of none behind it.
    if (next_ < numbers_.size() && numbers_[next_].begin < position_) value = numbers_[next_++].value;
    return add(value);
  }
  bool string(std::string& text) override { return add(std::move(text)); }
  bool binary(binary_t& /*bytes*/) override { return false; }
  bool key(std::string& text) override {
    key_ = std::move(text);
    return true;
  }
  bool start_object(std::size_t /*count*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*count*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  bool counted() { return ++values_ <= most_json_values; }

  Json* place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool add(Json value) {
    if (skipped_ == 0) place(std::move(value));
    return counted();
  }
  bool open(Json value) {
    if (skipped_ > 0 || open_.size() == json_depth) {
      ++skipped_;
    } else {
      open_.push_back(place(std::move(value)));
    }
    return counted();
  }
  bool close() {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  const std::vector<NotFinite>& numbers_;
  const std::size_t& position_;
  std::size_t next_ = 0;  ///< of `numbers_`
  Json root_{};
  std::vector<Json*> open_{};
  std::string key_{};
  std::size_t values_ = 0;
  std::size_t skipped_ = 0;  ///< open containers that are too deep
};

/// Finds where a member of the outermost object is.
class MemberFinder : public nlohmann::json::json_sax_t {
 public:
  MemberFinder(std::string_view name, const std::size_t& position) : name_(name), position_(position) {}

  bool null() override { return depth_ > 0; }
  bool boolean(bool /*value*/) override { return depth_ > 0; }
  bool number_integer(number_integer_t /*value*/) override { return depth_ > 0; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return depth_ > 0; }
  bool number_float(number_float_t /*value*/, const std::string& /*text*/) override { return depth_ > 0; }
  bool string(std::string& /*text*/) override { return depth_ > 0; }
  bool binary(binary_t& /*bytes*/) override { return false; }
  bool key(std::string& text) override {
    empty = false;
    if (depth_ == 1 && text == name_) behind_key = position_;
    return true;
  }
  bool start_object(std::size_t /*count*/) override {
    if (depth_++ == 0) behind_brace = position_;
    return true;
  }
  bool start_array(std::size_t /*count*/) override { return depth_++ > 0; }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

  std::size_t behind_brace = 0;
  std::size_t behind_key = 0;  ///< the last one of that name; 0 if there is none
  bool empty = true;           ///< whether there is no key at all

 private:
  bool close() {
    --depth_;
    return true;
  }

  std::string_view name_;
  const std::size_t& position_;
  std::size_t depth_ = 0;
};

}  // namespace

std::optional<Json> read_json(std::string_view text) {
  // The library treats a NUL byte as the end of its input.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  const PlainJson plain = plain_json(text);
  std::size_t position = 0;
  ValueReader reader(plain.numbers, position);
  if (!send_json(plain.text, reader, &position)) return std::nullopt;
  return reader.take();
}

std::optional<std::string> with_json_flag(std::string_view text, std::string_view key, bool value) {
  const PlainJson plain = plain_json(text);
  std::size_t position = 0;
  MemberFinder found(key, position);
  if (text.find('\0') != std::string_view::npos || !send_json(plain.text, found, &position))
    return std::nullopt;
  std::string result(text);
  const std::string_view word = value ? "true" : "false";
  if (found.behind_key == 0) {
    result.insert(found.behind_brace,
                  "\n  \"" + std::string(key) + "\": " + std::string(word) + (found.empty ? "\n" : ","));
    return result;
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n:", found.behind_key);
  for (const std::string_view old : {"true", "false", "null"}) {
    if (text.substr(begin, old.size()) == old) return result.replace(begin, old.size(), word);
  }
  return std::nullopt;
}

}  // namespace normscope::files
