#pragma once

#include <string>
#include <vector>

#include "parser_facts.hpp"

namespace normscope::cli {

/// The manual page normscope(1), as roff, made from the parser.
[[nodiscard]] std::string manual_page(const CommandFacts& root, const std::vector<CommandFacts>& commands);

}  // namespace normscope::cli
