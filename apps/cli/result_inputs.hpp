#pragma once

#include <nlohmann/json.hpp>

#include <normscope/certificates/result.hpp>

#include "command.hpp"
#include "matrix_input.hpp"

namespace normscope::cli {

/// Numbers of queries, witnesses and other points that a result holds itself; where there are more, they go
/// into the folder of --certificates alone.
inline constexpr std::size_t most_inline_numbers = 1'000'000;

/// What a result says of what it was computed from.
[[nodiscard]] nlohmann::ordered_json inputs_json(const certificates::Inputs& inputs);

/// Adds an array named on the command line.
void add_array(certificates::Inputs& inputs, const std::string& role, const std::string& name,
               const MatrixInput& matrix, unsigned threads);

/// Adds gain and bias of a norm as they are used, and the names that the command line gave for them.
void add_norm(certificates::Inputs& inputs, const NormOptions& options, const NormSpec& norm);

/// Where a result's points are: "here", "nowhere", or the folder.
[[nodiscard]] nlohmann::ordered_json certificates_json(bool here, const std::string& folder);

}  // namespace normscope::cli
