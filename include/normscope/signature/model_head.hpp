#pragma once

#include <normscope/audit/vocabulary.hpp>
#include <normscope/signature/verify.hpp>

namespace normscope::signature {

/// The head of a model, in the form that signatures need.
[[nodiscard]] Head head_of(audit::VocabularyHead head);

}  // namespace normscope::signature
