#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/certificates/verify.hpp>

namespace normscope::cli {

/// What `verify` checks a result against: the files that its inputs are read from anew.
struct VerifyInputs {
  std::vector<std::string> names;  ///< in the order of the result's arguments; none for the names it states
  std::string folder;              ///< of its certificates; empty for the one it states
  unsigned threads = 0;
  Progress progress{};
};

/// The files that would be read. Errors    Argument where there are more or fewer names than arguments
[[nodiscard]] std::vector<std::string> files_of_result(const certificates::Result& result,
                                                       const VerifyInputs& inputs);

/// Reads the inputs, holds them against what the result says of them and checks every statement.
/// Errors    as the readers; Argument for inputs that the result was not computed from
[[nodiscard]] certificates::Verification verify_result(const certificates::Result& result,
                                                       const VerifyInputs& inputs);

}  // namespace normscope::cli
