#pragma once

#include <normscope/selectability/vocabulary.hpp>
#include <normscope/signature/verify.hpp>

namespace normscope::signature {

/// The head of a model, in the form that signatures need.
[[nodiscard]] Head head_of(selectability::VocabularyHead head);

}  // namespace normscope::signature
