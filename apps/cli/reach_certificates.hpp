#pragma once

#include <string>
#include <vector>

#include <normscope/selectability/survey.hpp>

namespace normscope::cli {

/// The files that `write_witnesses` writes into `folder`; none for an empty name.
[[nodiscard]] std::vector<std::string> witness_files(const std::string& folder);

/// Writes rows.npy and offsets.npy (the logits A u + a, means of all tokens taken out), reachable.npy
/// (tokens), witnesses.npy (a point u of the ball for each) and leads.npy (by how much its token leads
/// there); in the same way probability_, tangent_ and far_tokens.npy and _points.npy: where tokens have the
/// least that their largest probability is, where a bound of it is taken, and (u, height) where tokens lead
/// without the ball. Nothing for an empty name. Errors    Io
void write_witnesses(const std::string& folder, const selectability::Logits& logits,
                     const selectability::Survey& results, double tolerance);

}  // namespace normscope::cli
