#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include <normscope/verify/result.hpp>

/// Common fields of results with certificates: the inputs they were computed from, and where their points
/// are.
namespace normscope::results {

/// Largest number of values of points stored in a result itself; more are only written to the folder of
/// certificates.
inline constexpr std::size_t most_inline_numbers = 1'000'000;

/// `inputs` of a result.
[[nodiscard]] nlohmann::ordered_json inputs(const verify::Inputs& inputs);

/// `certificates` of a result, where its points are: "here", "nowhere" without a folder, or the folder.
[[nodiscard]] nlohmann::ordered_json certificates(bool here, const std::string& folder);

}  // namespace normscope::results
