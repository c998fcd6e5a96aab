#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/models/model.hpp>

/// Checks results of `select`, `separate`, `reach` and `heads` from their JSON and their inputs alone, by
/// plain arithmetic that shares no code with the search; docs/certificates.md has the formats and
/// inequalities.
namespace normscope::verify {

/// An input named on the command line, with its role: "keys", "model", ...
struct Argument {
  std::string role{};
  std::string name{};
};

/// An array that a result was computed from: its role, its shape, and the piecewise SHA-256 of its values as
/// float64, little-endian, row by row.
struct InputArray {
  std::string role{};
  std::vector<std::size_t> shape{};
  std::string sha256{};
};

[[nodiscard]] InputArray describe_array(std::string role, std::vector<std::size_t> shape,
                                        std::span<const double> values, unsigned threads = 0);

struct Inputs {
  std::vector<Argument> arguments{};
  std::vector<InputArray> arrays{};
  std::optional<double> gain_offset{};  ///< --gain-offset of the command line, added to the gain's array
  models::Stated stated{};              ///< what the user stated about the model
};

/// A statement of a result, and why it does not hold or cannot be checked.
struct Finding {
  std::string item;
  std::string reason;
};

struct Verification {
  std::size_t checked = 0;  ///< statements, those that failed among them
  std::vector<Finding> failed{};
  std::vector<Finding> not_checkable{};

  /// Counts a statement, and records it as failed, with that reason, unless it holds.
  void check(bool holds, const std::string& item, std::string_view reason);
};

/// A result read from its JSON.
class Result {
 public:
  /// `source` names it in messages.
  ///
  /// Errors    Format for text that is no result of a kind that can be checked
  Result(std::string_view text, std::string source);
  Result(Result&&) noexcept;
  Result& operator=(Result&&) noexcept;
  ~Result();

  /// "select", "separate", "reach" or "heads".
  [[nodiscard]] const std::string& kind() const;
  [[nodiscard]] const std::string& source() const;
  [[nodiscard]] const Inputs& inputs() const;
  /// The name that the command line gave for that role, or empty.
  [[nodiscard]] std::string argument(std::string_view role) const;
  /// Errors    Argument if `found` differs from the arrays that the result states; `who` names them
  void expect_arrays(const std::vector<InputArray>& found, const std::string& who) const;
  /// A text, a number or a list of texts of the result, at a path of nested names.
  ///
  /// Errors    Format if there is none
  [[nodiscard]] std::string text(std::initializer_list<const char*> path) const;
  [[nodiscard]] double number(std::initializer_list<const char*> path) const;
  [[nodiscard]] std::vector<std::string> texts(std::initializer_list<const char*> path) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::initializer_list<const char*> path) const;
  [[nodiscard]] bool has(std::initializer_list<const char*> path) const;  ///< and is not null
  /// The folder that its certificates were written into; none where they are in the JSON.
  [[nodiscard]] const std::optional<std::string>& folder() const;

  struct Fields;
  [[nodiscard]] const Fields& fields() const { return *fields_; }

 private:
  std::unique_ptr<Fields> fields_;
};

}  // namespace normscope::verify
