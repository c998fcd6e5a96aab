#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/files/checkpoint.hpp>

namespace normscope::models {

/// The tensor names of a checkpoint, indexed for queries by pattern.
class Inventory {
 public:
  explicit Inventory(const files::Checkpoint& checkpoint);

  /// The prefix before `pattern` in the names that contain it at the start of a component: "" or a prefix
  /// ending in '.'. The shortest one if there are several; empty if there is none.
  [[nodiscard]] std::optional<std::string> prefix_of(std::string_view pattern) const;

  /// The prefix before the first of `patterns` that stands before most of the others as well, such as that of
  /// the text model where another tower has layers of the same names. The shortest one of several.
  [[nodiscard]] std::optional<std::string> prefix_of(std::span<const std::string_view> patterns) const;

  /// The numbers that follow `head` in names such as head + "12.rest", ascending.
  [[nodiscard]] std::vector<int> numbers_after(std::string_view head) const;

  /// The tensors whose name starts with `head`.
  [[nodiscard]] std::span<const files::Tensor> starting_with(std::string_view head) const;

 private:
  [[nodiscard]] std::set<std::string, std::less<>> prefixes_of(std::string_view pattern) const;

  std::span<const files::Tensor> tensors_;
  std::set<std::string, std::less<>> forms_;
};

/// The layer number that `digits` represent; empty unless it is below 1,000,000 and has no leading zeros.
[[nodiscard]] std::optional<int> layer_number(std::string_view digits);

}  // namespace normscope::models
