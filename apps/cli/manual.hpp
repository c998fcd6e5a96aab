#pragma once

#include <string>
#include <vector>

#include "parser_facts.hpp"

namespace normscope::cli {

/// The manual page normscope(1), as roff, made from the parser.
[[nodiscard]] std::string manual_page(const CommandFacts& root);

}  // namespace normscope::cli
