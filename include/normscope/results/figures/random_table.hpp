#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/selectability/random_table.hpp>

namespace normscope::figures {

/// A table of random keys (`selectability::random_table`) as a heat map, a Vega-Lite specification that holds
/// its data.
[[nodiscard]] nlohmann::ordered_json random_table(const std::vector<selectability::RandomCell>& cells,
                                                  double selectability::RandomCell::*share,
                                                  std::string_view title);

/// The same for an unfinished table: its axes cover all of `table`.
[[nodiscard]] nlohmann::ordered_json random_table(const selectability::RandomTable& table,
                                                  const std::vector<selectability::RandomCell>& cells,
                                                  double selectability::RandomCell::*share,
                                                  std::string_view title);

}  // namespace normscope::figures
