#pragma once

#include <string>
#include <vector>

#include <normscope/selectability/reach.hpp>

namespace normscope::cli {

/// The files that `write_witnesses` writes into `folder`; none if its name is empty.
[[nodiscard]] std::vector<std::string> witness_files(const std::string& folder);

/// Writes rows.npy and offsets.npy (the logits A u + a, with means of all tokens subtracted), reachable.npy
/// (tokens), witnesses.npy (a point u of the ball for each) and leads.npy (the lead there). In the same way,
/// writes the tokens and points of probability_ (lower bounds of largest probabilities), tangent_ (upper
/// bounds) and far_ ((u, height) of leads without the ball). Does nothing if the name is empty.
///
/// Errors    Io
void write_witnesses(const std::string& folder, const selectability::Logits& logits,
                     const selectability::Survey& results, double tolerance);

}  // namespace normscope::cli
