#pragma once

#include <string>

#include <normscope/verify/verify.hpp>

#include "command.hpp"
#include "matrix_input.hpp"

namespace normscope::cli {

/// Adds an array named on the command line.
void add_array(verify::Inputs& inputs, const std::string& role, const std::string& name,
               const MatrixInput& matrix, unsigned threads);

/// Adds gain and bias of a norm as they are used, and the names that the command line gave for them.
void add_norm(verify::Inputs& inputs, const NormOptions& options, const NormSpec& norm);

}  // namespace normscope::cli
