#include <normscope/signature/model_head.hpp>

#include <utility>

namespace normscope::signature {

Head head_of(selectability::VocabularyHead head) {
  const double per_entry = head.norm.squared_radius() / static_cast<double>(head.norm.width);
  return {.logits = std::move(head.logits),
          .sizes = std::move(head.sizes),
          .eps = head.norm.eps * per_entry,
          .soft_cap = head.soft_cap};
}

}  // namespace normscope::signature
