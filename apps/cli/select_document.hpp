#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <normscope/selectability/select.hpp>

#include "key_norm.hpp"
#include "matrix_input.hpp"
#include "result_inputs.hpp"

namespace normscope::cli {

/// Least, median and largest margin of the selectable keys.
struct Margins {
  double least = 0.0;
  double median = 0.0;
  double largest = 0.0;
};

/// Of the finite margins; nothing where there is none.
[[nodiscard]] std::optional<Margins> margins_of(const selectability::Selection& selection);

/// What `select` was asked and found.
struct SelectResult {
  const KeyNorm& norm;
  const std::optional<GivenNorm>& spec;
  const MatrixInput& keys;
  const selectability::Selection& selection;
  bool exact;  ///< whether rational arithmetic was asked
  const certificates::Inputs& inputs;
  std::string folder;  ///< of certificates, or empty
};

/// The result of `select` as docs/schemas/select.schema.json describes it.
[[nodiscard]] nlohmann::ordered_json select_document(const SelectResult& result);

}  // namespace normscope::cli
