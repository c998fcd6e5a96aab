#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/view.hpp>

#include "fields.hpp"
#include "integers.hpp"

namespace normscope::certificates {

/// Integers that state whether a key is selectable.
struct ExactKey {
  std::string answer{};              ///< "selectable", "unselectable" or "undecided", which states nothing
  std::vector<std::string> query{};  ///< selectable
  std::vector<Numerator> weights{};  ///< unselectable: on other keys
  std::string denominator{};
};

[[nodiscard]] ExactKey read_exact_key(const Field& field, std::size_t rows);

/// Whether they prove the answer for key `index`; nothing where this build has no arithmetic for them.
[[nodiscard]] std::optional<bool> proves(const ExactKey& exact, MatrixView<const double> keys,
                                         std::size_t index);

}  // namespace normscope::certificates
