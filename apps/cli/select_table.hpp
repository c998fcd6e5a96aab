#pragma once

#include <normscope/selectability/select.hpp>

#include "command.hpp"
#include "key_norm.hpp"

namespace normscope::cli {

/// `select --random-table`: prints the shares of random keys that cannot be selected, and draws them as heat
/// maps in the folder `figures` unless that is empty. Outputs must not replace any of `inputs`.
int run_random_table(const Session& session, const Inputs& inputs, const KeyNorm& norm,
                     selectability::RandomTable table, const std::string& figures);

}  // namespace normscope::cli
