#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/verify/verify.hpp>

#include "inputs.hpp"

namespace normscope::cli {

/// The files and folder that `verify` reads a result's inputs and certificates from.
struct VerifyInputs {
  std::vector<std::string> names;  ///< in the order of the result's arguments; empty: those the result names
  std::string folder;              ///< of the certificates; empty: the one that the result names
  std::string output;              ///< a file that must not be one of the inputs; may be empty
  unsigned threads = 0;
  Progress progress{};
};

/// Opens the inputs, compares them with what the result states about them and checks every statement.
///
/// Errors    as the readers; Argument for inputs that the result was not computed from, for more or fewer of
///           them than it names, and for an output that would replace one of them
[[nodiscard]] verify::Verification verify_result(const verify::Result& result, const VerifyInputs& given,
                                                 Inputs& inputs);

}  // namespace normscope::cli
