#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/trace.hpp>

namespace normscope::figures {

/// Figures of a text through a model, in the form of `charts`: what each norm divides each token by and
/// projects away, how far along its longest axes the tokens lie, the keys that each head can select, and the
/// likeliest next tokens. `names` are those of the tokens, empty if they are not known.
[[nodiscard]] nlohmann::ordered_json token_trace_charts(const analysis::TokenTrace& trace,
                                                        const std::vector<std::string>& names);

}  // namespace normscope::figures
