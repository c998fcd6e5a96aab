#include <normscope/heads/projection.hpp>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace normscope::heads {
namespace {

bool names(const std::vector<models::Linear>& linears, const models::Linear& wanted) {
  return std::any_of(linears.begin(), linears.end(), [&](const models::Linear& linear) {
    return linear.weight.selector() == wanted.weight.selector() && linear.role == wanted.role;
  });
}

}  // namespace

std::string head_refusal(const models::Model& model, const models::Head& head, const std::string& read,
                         const models::Linear* between) {
  if (std::string why = models::why_no_scores(head); !why.empty()) return why;
  const models::Norm* const norm = find_norm(model, read);
  if (norm == nullptr) return "the norm it reads is not known";
  if (norm->effect() != NormEffect::normalizes) return not_normalizing(*norm);
  if (norm->groups != 1) return fmt::format("its norm has {} groups", norm->groups);
  if (!names(norm->readers, between == nullptr ? *head.key : *between)) {
    return "its keys do not read the norm that its queries read";
  }
  const std::size_t width = between == nullptr ? norm->width : between->out;
  if (head.query->in != width || head.key->in != width) return "it reads a part of its norm";
  if (between != nullptr && between->in != norm->width) return "it reads a part of its norm";
  for (const models::Linear* part : {&*head.query, &*head.key}) {
    const models::Norm* const own = own_norm(model, *part);
    if (own != nullptr && own->effect() != NormEffect::normalizes) return not_normalizing(*own);
    if (own != nullptr && (own->width != head.head_dim || own->groups != 1)) {
      return "its queries or keys pass a norm that is not one of each head";
    }
  }
  return {};
}

}  // namespace normscope::heads
