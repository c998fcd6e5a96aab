#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/certificates/result.hpp>

#include "weights.hpp"

namespace normscope::certificates {

using Json = nlohmann::json;

/// A value of a result and its path, for messages. A missing value or one of the wrong type is an Error
/// (Format) that names the path.
class Field {
 public:
  Field(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
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

 private:
  const Json* value_;
  std::string path_;
};

struct Result::Fields {
  Json document;
  std::string source;
  std::string kind;
  std::optional<std::string> folder{};
  Inputs inputs{};

  [[nodiscard]] Field root() const { return {document, source + ": "}; }
};

}  // namespace normscope::certificates
