#include "json_events.hpp"

#include <cstddef>
#include <iterator>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>

namespace normscope::checkpoint {
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

bool JsonEvents::string(std::string& text) { unexpected(bytes::quote(text)); }

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

}  // namespace normscope::checkpoint
