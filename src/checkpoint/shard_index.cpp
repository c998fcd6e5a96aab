#include "shard_index.hpp"

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>

#include "json_events.hpp"

namespace normscope::checkpoint {
namespace {

/// Reads `weight_map` and skips the rest of the index.
class IndexReader : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  std::map<std::string, std::string, std::less<>> read(std::string_view text) {
    std::size_t position = 0;
    parse_json(text, *this, &position);
    // For example a config.json.
    if (!seen_map_) {
      fail(ErrorCode::Format,
           "has no weight_map, which an index of shards has; name the model's folder or its file of weights");
    }
    if (map_.empty()) fail(ErrorCode::Format, "weight_map is empty");
    return std::move(map_);
  }

  bool null() override { return skip("null"); }
  bool boolean(bool value) override { return skip(value ? "true" : "false"); }
  bool number_integer(number_integer_t) override { return skip("a number"); }
  bool number_unsigned(number_unsigned_t) override { return skip("a number"); }
  bool number_float(number_float_t, const std::string&) override { return skip("a number"); }

  bool start_object(std::size_t) override {
    if (in_map()) unexpected("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    skip("an array");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool key(std::string& text) override {
    if (depth_ == 1) {
      if (text == "weight_map") {
        if (seen_map_) fail(ErrorCode::Format, "index has weight_map twice");
        seen_map_ = in_map_ = true;
      }
    } else if (in_map()) {
      tensor_ = text;
    }
    return true;
  }

  bool string(std::string& text) override {
    if (!in_map()) return skip("a string");
    if (text.empty() || text == "." || text == ".." ||
        text.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      fail(ErrorCode::Format, fmt::format("weight_map puts tensor {} into {}, expected a plain file name",
                                          bytes::quote(tensor_), bytes::quote(text)));
    }
    if (!map_.emplace(tensor_, text).second)
      fail(ErrorCode::Format, fmt::format("weight_map has tensor {} twice", bytes::quote(tensor_)));
    return true;
  }

 protected:
  [[nodiscard]] std::string misplaced(std::string_view found) const override {
    if (depth_ == 0) return fmt::format("index is {}, expected an object", found);
    if (depth_ == 1) return fmt::format("weight_map is {}, expected an object", found);
    return fmt::format("weight_map has {} for tensor {}, expected a file name", found, bytes::quote(tensor_));
  }

 private:
  [[nodiscard]] bool in_map() const { return in_map_ && depth_ == 2; }
  bool skip(std::string_view found) {
    if (depth_ == 0 || in_map_) unexpected(found);
    return true;
  }

  std::size_t depth_ = 0;
  bool seen_map_ = false;
  bool in_map_ = false;  ///< between the key weight_map and the end of its value
  std::string tensor_;
  std::map<std::string, std::string, std::less<>> map_;
};

}  // namespace

std::map<std::string, std::string, std::less<>> parse_shard_index(std::string_view text,
                                                                  const std::string& where) {
  return IndexReader(where).read(text);
}

}  // namespace normscope::checkpoint
