#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/certificates/verify.hpp>

#include "inputs.hpp"

namespace normscope::cli {

/// What `verify` checks a result against: the files that its inputs are read from anew.
struct VerifyInputs {
  std::vector<std::string> names;  ///< in the order of the result's arguments; none for the names it states
  std::string folder;              ///< of its certificates; empty for the one it states
  std::string output;              ///< a file that may be none of the inputs, or empty
  unsigned threads = 0;
  Progress progress{};
};

/// Opens the inputs, compares them with what the result states about them and checks every statement.
/// Errors    as the readers; Argument for inputs that the result was not computed from, for more or fewer of
///           them than it names, and for an output that would replace one of them
[[nodiscard]] certificates::Verification verify_result(const certificates::Result& result,
                                                       const VerifyInputs& given, Inputs& inputs);

}  // namespace normscope::cli
