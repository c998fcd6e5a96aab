#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>

namespace normscope::files {

/// Receiver of a JSON document's events. Every event is an error unless a reader overrides it.
///
/// Errors    Format, in messages that begin with `where`
class JsonEvents : public nlohmann::json::json_sax_t {
 public:
  explicit JsonEvents(const std::string& where) : where_(where) {}

  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { unexpected(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { unexpected(std::to_string(value)); }
  bool number_float(number_float_t value, const std::string& text) override;
  bool string(std::string& text) override;
  bool binary(binary_t& /*bytes*/) override { unexpected("bytes"); }
  bool start_object(std::size_t /*count*/) override { unexpected("an object"); }
  bool start_array(std::size_t /*count*/) override { unexpected("an array"); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    not_json(position);
  }
  /// Throws an Error for text that stops being JSON at its `position`-th byte.
  [[noreturn]] void not_json(std::size_t position) const;

 protected:
  /// Throws an Error that states where `found` occurred and what was expected there.
  [[nodiscard]] virtual std::string misplaced(std::string_view found) const = 0;
  [[noreturn]] void unexpected(std::string_view found) const { fail(ErrorCode::Format, misplaced(found)); }
  [[noreturn]] void fail(ErrorCode code, const std::string& what) const {
    throw Error(code, where_ + ": " + what);
  }

 private:
  const std::string& where_;
};

/// Sends the JSON document `text`, which has no NUL byte, to `events`; returns false if one of them did, or
/// if it is no JSON. `*position` is always the number of bytes read so far: during `key` and `string`, the
/// byte after the closing quote.
bool send_json(std::string_view text, nlohmann::json::json_sax_t& events, std::size_t* position);

/// Sends any text to `events`, and throws where it is no JSON.
/// Errors    of the events
void parse_json(std::string_view text, JsonEvents& events, std::size_t* position);

}  // namespace normscope::files
