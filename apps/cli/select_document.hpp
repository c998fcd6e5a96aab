#pragma once

#include <cstddef>
#include <optional>

#include <nlohmann/json.hpp>

#include <normscope/selectability/select.hpp>

#include "key_norm.hpp"
#include "matrix_input.hpp"

namespace normscope::cli {

/// Keys decided by that proof.
[[nodiscard]] std::size_t count_proofs(const selectability::Selection& selection, selectability::Proof proof);

/// Least, median and largest margin of the selectable keys; null where none has a finite one.
[[nodiscard]] nlohmann::ordered_json margins_json(const selectability::Selection& selection);

/// The result of `select` as docs/schemas/select.schema.json describes it.
[[nodiscard]] nlohmann::ordered_json select_document(const KeyNorm& norm,
                                                     const std::optional<GivenNorm>& spec,
                                                     const MatrixInput& keys,
                                                     const selectability::Selection& selection);

}  // namespace normscope::cli
