#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/selectability/random_table.hpp>
#include <normscope/selectability/select.hpp>
#include <normscope/verify/result.hpp>

namespace normscope::results {

/// Parts of a result of `select` besides the answers.
struct SelectDetails {
  std::size_t width = 0;          ///< of the keys
  nlohmann::ordered_json norm{};  ///< applied to the keys first; null for none
  bool exact = false;             ///< whether rational arithmetic was requested
  const verify::Inputs& inputs;
  std::string folder{};  ///< of the certificates, or empty
};

/// Which keys can be selected, schema "normscope.select/1" (docs/schemas/select.schema.json).
[[nodiscard]] nlohmann::ordered_json select(const selectability::Selection& selection,
                                            const SelectDetails& details);

/// Shares of random keys that cannot be selected, schema "normscope.select-table/1"
/// (docs/schemas/select-table.schema.json). `norm` as in `SelectDetails`.
[[nodiscard]] nlohmann::ordered_json random_table(const selectability::RandomTable& table,
                                                  const std::vector<selectability::RandomCell>& cells,
                                                  const nlohmann::ordered_json& norm);

}  // namespace normscope::results
