#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment.hpp"
#include "store/store.hpp"

/// Rules and completed runs as JSON lines, the form in which they are committed: a line for each rule,
/// {"rule": …}, then one for each run, {"run": …}.
namespace normscope::lab {

/// The rules of an experiment's claims, as the store has them.
[[nodiscard]] std::vector<StoredRule> rules_of(const Experiment& experiment);

/// The experiment's rules and completed runs; empty without a run.
[[nodiscard]] std::string run_lines(const Store& store, const Experiment& experiment);

struct Imported {
  std::size_t runs = 0;  ///< that the store did not have
  std::size_t rules = 0;
};

/// Adds the rules and runs of such a file to a store, with the times that it states; all or, on an error,
/// none.
///
/// Errors    Io; Format, naming file and line; as Store::import_run
Imported import_lines(Store& store, const std::filesystem::path& file);

}  // namespace normscope::lab
