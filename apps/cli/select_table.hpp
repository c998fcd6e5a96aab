#pragma once

#include <normscope/selectability/random_table.hpp>

#include "command.hpp"
#include "key_norm.hpp"

namespace normscope::cli {

/// `select --random-table`: shares of random keys that cannot be selected, printed, and as heat maps in
/// `figures` unless that is empty. Outputs replace none of `inputs`.
int run_random_table(const Session& session, const Inputs& inputs, const KeyNorm& norm,
                     selectability::RandomTable table, const std::string& figures);

}  // namespace normscope::cli
