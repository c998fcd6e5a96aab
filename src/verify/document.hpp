#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/verify/verify.hpp>

#include "arithmetic.hpp"

/// Reads a result strictly, before anything of it is used.
namespace normscope::verify {

using Json = nlohmann::json;

/// The document of a text that fits the schema of its kind, one of docs/schemas. Memory is proportional to
/// the text: texts of mostly brackets or commas are refused before a value of them is kept.
///
/// Errors    Format, naming the member, for a text that is not JSON, has a member twice, or differs from the
///           schema: a missing or unknown member, another type, a word or number that the schema excludes
[[nodiscard]] Json read_document(std::string_view text, const std::string& source);

/// The schema of results of that kind, "select" and so on; empty for others.
[[nodiscard]] std::string_view schema_text(std::string_view kind);

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
  [[nodiscard]] const Json& json() const { return *value_; }

 private:
  const Json* value_;
  std::string path_;
};

/// What a member of a result is to its checker.
enum class Basis {
  derived,      ///< derived from the inputs and the certificates, and compared
  certificate,  ///< a part of a proof: it states nothing but what is derived from it
  nothing,      ///< states nothing: where a result is from, and where its parts are
  unproved,     ///< stated, and nothing in a result proves it
};

/// A member with all that it contains, as "verdicts[selectable].margin": an entry of a list that has an
/// answer or is refused may be told by that.
struct Claim {
  std::string_view path;
  Basis basis;
  const char* by;  ///< the function that derives it or reads it, or why it is not proved
};

/// The members of results of that kind.
[[nodiscard]] std::span<const Claim> claims_of(std::string_view kind);

/// Lists as not proved what a result states and its claims leave unproved, and all that they do not name.
void list_unproved(Verification& found, const Result::Fields& fields);

struct Result::Fields {
  Json document;
  std::string source;
  std::string kind;
  std::size_t bytes = 0;  ///< of its text
  std::optional<std::string> folder{};
  Inputs inputs{};

  [[nodiscard]] Field root() const { return {document, source + ": "}; }
};

}  // namespace normscope::verify
