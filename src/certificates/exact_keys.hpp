#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/view.hpp>

#include "fields.hpp"
#include "integers.hpp"

namespace normscope::certificates {

/// An exact proof that a key is selectable or unselectable, in integers.
struct ExactKey {
  std::string answer{};              ///< "selectable", "unselectable", or "undecided", which claims nothing
  std::vector<std::string> query{};  ///< if selectable
  std::vector<Numerator> weights{};  ///< if unselectable: weights of other keys
  std::string denominator{};
};

[[nodiscard]] ExactKey read_exact_key(const Field& field, std::size_t rows);

/// Whether the integers prove the answer for key `index`; empty if this build has no arithmetic for them.
[[nodiscard]] std::optional<bool> proves(const ExactKey& exact, MatrixView<const double> keys,
                                         std::size_t index);

}  // namespace normscope::certificates
