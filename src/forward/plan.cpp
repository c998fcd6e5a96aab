#include "plan.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

namespace normscope::forward {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::Unsupported, "not modelled: " + what);
}

void expect_complete(const models::Model& model) {
  if (!model.is_known()) refuse(model.title);
  if (!model.decoder) refuse("the forward pass of " + model.title);
  if (!model.missing.empty()) refuse(fmt::format("{}, which is missing", model.missing.front()));
  if (!model.decoder->not_modelled.empty()) refuse(model.decoder->not_modelled);
  if (const std::string why = models::why_no_logits(model); !why.empty()) {
    throw Error(ErrorCode::Unsupported, why);
  }
  if (!model.other_norms.empty()) refuse(models::other_norms_text(model));
  if (!model.decoder->activation) {
    refuse("the activation, which the file does not state; state it as gelu or gelu_new");
  }
}

void expect_head(const models::Head& head) {
  if (const std::string why = models::why_no_scores(head); !why.empty()) {
    throw Error(ErrorCode::Unsupported, why);
  }
  if (!head.value) refuse(head.place() + ", whose weights are not all there");
  if (head.between || !head.later_norms.empty()) refuse("layers that share their weights");
  if (head.rotary && head.rotary->frequencies.empty()) {
    refuse("a rotary embedding whose frequencies depend on the length of the context");
  }
}

/// Follows the stream through the norms of a model.
class Planner {
 public:
  explicit Planner(const models::Model& model) : model_(model) {}

  Plan plan() {
    for (std::size_t i = 0; i < model_.norms.size(); ++i) {
      const models::Norm& norm = model_.norms[i];
      if (!norm.connections_known || !norm.order_known) {
        refuse(fmt::format("tensors beside those of {} near {}", model_.title, norm.name));
      }
      if (norm.applications != 1 && norm.placement != models::Placement::inside) {
        refuse(fmt::format("{}, which is applied {} times", norm.name, norm.applications));
      }
      if (norm.placement == models::Placement::pre) add_step(i);
      if (norm.placement == models::Placement::post) refuse(fmt::format("{}, behind a sum", norm.name));
    }
    const bool ends = !plan_.steps.empty() && open_.empty() &&
                      model_.norms[plan_.steps.back().norm].name == model_.vocabulary->final_norm;
    if (!ends || plan_.tokens == nullptr) refuse("the end of its residual stream");
    return std::move(plan_);
  }

 private:
  bool is_new(const models::Linear& writer) {
    return seen_.insert(writer.weight.selector() + " " + writer.role).second;
  }

  /// The branch that ends with `writer`, whose other maps have been described.
  Branch close(const models::Linear& writer) {
    const bool is_attention = writer.role == "attention out";
    if (!is_attention && writer.role != "mlp out")
      refuse("\"" + writer.weight.selector() + "\", " + writer.role);
    const auto at = std::find_if(open_.begin(), open_.end(),
                                 [&](const Branch& branch) { return branch.heads.empty() != is_attention; });
    if (at == open_.end()) refuse("what \"" + writer.weight.selector() + "\" reads");
    Branch branch = *at;
    open_.erase(at);
    branch.out = &writer;
    return branch;
  }

  void add_step(std::size_t index) {
    const models::Norm& norm = model_.norms[index];
    Step step{.norm = index};
    for (const models::Linear& writer : norm.writers) {
      if (!is_new(writer)) continue;
      const bool is_first = plan_.steps.empty();
      if (is_first && writer.role == "token embedding") {
        plan_.tokens = &writer;
      } else if (is_first && writer.role == "position embedding") {
        plan_.positions = &writer;
      } else {
        step.before.push_back(close(writer));
      }
    }
    for (const std::string& name : norm.writing_norms) {
      const models::Norm* const after = models::find_norm(model_, name);
      if (after == nullptr || after->writers.size() != 1) refuse(name);
      if (!is_new(after->writers.front())) continue;
      step.before.push_back(close(after->writers.front()));
      step.before.back().after = after;
    }
    plan_.steps.push_back(std::move(step));
    open_branches(index);
  }

  void open_branches(std::size_t index) {
    const models::Norm& norm = model_.norms[index];
    Branch mlp{.norm = index};
    bool attends = false;
    for (const models::Linear& reader : norm.readers) {
      if (reader.role == "mlp in") {
        mlp.in = &reader;
      } else if (reader.role == "mlp gate") {
        mlp.gate = &reader;
      } else if (reader.role == "query" || reader.role == "key" || reader.role == "value") {
        attends = true;
      } else if (reader.role != "unembedding") {
        refuse("\"" + reader.weight.selector() + "\", " + reader.role);
      }
    }
    if (attends) open_.push_back(attention(index));
    if (mlp.in != nullptr) open_.push_back(mlp);
  }

  Branch attention(std::size_t index) {
    Branch branch{.norm = index};
    for (std::size_t i = 0; i < model_.heads.size(); ++i) {
      if (model_.heads[i].norm != model_.norms[index].name) continue;
      expect_head(model_.heads[i]);
      branch.heads.push_back(i);
    }
    if (branch.heads.empty()) refuse("the number of heads, which is not stated");
    return branch;
  }

  const models::Model& model_;
  Plan plan_{};
  std::vector<Branch> open_{};  ///< branches that are not added to the stream yet
  std::set<std::string> seen_{};
};

}  // namespace

Plan plan_of(const models::Model& model) {
  expect_complete(model);
  return Planner(model).plan();
}

}  // namespace normscope::forward
