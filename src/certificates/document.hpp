#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/certificates/result.hpp>

#include "shape.hpp"
#include "weights.hpp"

namespace normscope::certificates {

/// A value of a result and its path, for messages. A missing value or one of the wrong type is an Error
/// (Format) that names the path.
class Field {
 public:
  Field(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The path without the name of the file.
  [[nodiscard]] std::string place() const;
  [[nodiscard]] bool has(const char* key) const;
  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  [[nodiscard]] bool is_text() const { return value_->is_string(); }
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] bool is_list() const { return value_->is_array(); }
  [[nodiscard]] Field operator[](const char* key) const;
  [[nodiscard]] Field operator[](std::size_t index) const;
  [[nodiscard]] std::size_t size() const;  ///< of a list

  [[nodiscard]] double number() const;
  /// `when_null` if the value is null.
  [[nodiscard]] double number_or(double when_null) const;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::size_t index(std::size_t below) const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] std::vector<double> numbers(std::size_t expected) const;
  [[nodiscard]] std::vector<std::size_t> indices(std::size_t below) const;
  /// A list of {`key`: index, "weight": number}.
  [[nodiscard]] std::vector<Weight> weights(const char* key, std::size_t below) const;
  [[noreturn]] void refuse(const char* expected) const;
  /// The names of its members that are not in the list, and not null or empty.
  [[nodiscard]] std::vector<std::string> members_beside(std::initializer_list<std::string_view> names) const;

 private:
  const Json* value_;
  std::string path_;
};

/// Lists the members of an object that `handled` does not name as not proved: each member of a result is
/// either compared with what was derived, or listed here. Those that claim nothing are among `handled`.
void list_unproved(Verification& found, const Field& object, std::initializer_list<std::string_view> handled,
                   const char* reason = "the result has no proof of it");

struct Result::Fields {
  Json document;
  std::string source;
  std::string kind;
  std::size_t bytes = 0;  ///< of its text
  std::optional<std::string> folder{};
  Inputs inputs{};

  [[nodiscard]] Field root() const { return {document, source + ": "}; }
};

}  // namespace normscope::certificates
