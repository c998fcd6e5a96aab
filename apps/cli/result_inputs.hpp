#pragma once

#include <nlohmann/json.hpp>

#include <normscope/certificates/result.hpp>

#include "command.hpp"
#include "matrix_input.hpp"

namespace normscope::cli {

/// Largest number of values of points stored in a result itself; more are only written to the folder of
/// --certificates.
inline constexpr std::size_t most_inline_numbers = 1'000'000;

/// The inputs recorded in a result.
[[nodiscard]] nlohmann::ordered_json inputs_json(const certificates::Inputs& inputs);

/// Adds an array named on the command line.
void add_array(certificates::Inputs& inputs, const std::string& role, const std::string& name,
               const MatrixInput& matrix, unsigned threads);

/// Adds gain and bias of a norm as they are used, and the names that the command line gave for them.
void add_norm(certificates::Inputs& inputs, const NormOptions& options, const NormSpec& norm);

/// Where a result's points are: "here", "nowhere", or the folder.
[[nodiscard]] nlohmann::ordered_json certificates_json(bool here, const std::string& folder);

}  // namespace normscope::cli
