#pragma once

#include <normscope/audit/usual.hpp>

namespace normscope::audit {

inline constexpr std::string_view architectures_0[] = {"gpt2"};
inline constexpr std::string_view models_0[] = {"a", "b"};
inline constexpr UsualRange ranges_0[] = {{"condition", 1.0, 2.0}};
inline constexpr UsualFamily usual_families[] = {{"GPT-2", architectures_0, models_0, 2, ranges_0}};

}  // namespace normscope::audit
