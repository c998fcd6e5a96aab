#include <normscope/forward/plan.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

namespace normscope::forward {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::Unsupported, "not modelled: " + what);
}

void expect_complete(const models::Model& model, bool encoders) {
  if (!model.is_known()) refuse(model.title);
  if (!model.decoder || (model.decoder->encodes && !encoders)) refuse("the forward pass of " + model.title);
  if (!model.missing.empty()) refuse(fmt::format("{}, which is missing", model.missing.front()));
  if (!model.decoder->not_modelled.empty()) refuse(model.decoder->not_modelled);
  const bool has_no_head = model.decoder->encodes && (!model.vocabulary || !model.vocabulary->unembedding);
  if (const std::string why = models::why_no_logits(model); !why.empty() && !has_no_head) {
    throw Error(ErrorCode::Unsupported, why);
  }
  if (!model.other_norms.empty()) refuse(models::other_norms_text(model));
  if (!model.decoder->activation) {
    refuse("the activation, which the file does not state; state it as gelu or gelu_new");
  }
}

void expect_head(const models::Model& model, const models::Head& head) {
  const bool encodes = model.decoder->encodes;
  if (!head.not_modelled.empty()) refuse(head.not_modelled);
  if (!head.query || !head.key || !head.value) {
    refuse(head.place() + ", whose weights are not all there");
  }
  if (models::own_norm(model, *head.value) != nullptr) refuse(head.place() + ", whose values pass a norm");
  if (encodes && head.window) refuse(head.place() + ", which sees a window on both sides");
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
    open_branches_of_stream();
    for (std::size_t i = 0; i < model_.norms.size(); ++i) {
      const models::Norm& norm = model_.norms[i];
      // A language head's own norm reads an activation, which is no map.
      const bool is_of_head = transform_ != nullptr && is_final(norm);
      if ((!norm.connections_known && !is_of_head) || !norm.order_known) {
        refuse(fmt::format("tensors beside those of {} near {}", model_.title, norm.name));
      }
      if (norm.applications != 1 && norm.placement != models::Placement::inside) {
        refuse(fmt::format("{}, which is applied {} times", norm.name, norm.applications));
      }
      if (norm.placement == models::Placement::pre) add_step(i);
      if (norm.placement == models::Placement::post) {
        // The norm of a token embedding gives the stream of a decoder too.
        if (!model_.decoder->encodes && (!plan_.steps.empty() || norm.writers.size() != 1)) {
          refuse(fmt::format("{}, behind a sum", norm.name));
        }
        add_step(i);
      }
      if (is_of_head) plan_.steps.push_back({.norm = i, .transform = transform_});
    }
    const bool has_head = model_.vocabulary && model_.vocabulary->unembedding;
    const bool ends =
        !plan_.steps.empty() && open_.empty() &&
        (is_final(model_.norms[plan_.steps.back().norm]) || (model_.decoder->encodes && !has_head));
    if (!ends || plan_.tokens == nullptr) refuse("the end of its residual stream");
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool is_final(const models::Norm& norm) const {
    return model_.vocabulary && model_.vocabulary->unembedding && norm.name == model_.vocabulary->final_norm;
  }

  bool is_new(const models::Linear& writer) {
    return seen_.insert(writer.weight.selector() + " " + writer.role).second;
  }

  /// The next MLP of a mixture that has no output map yet; null if all have one.
  static Mlp* unfinished(Experts& experts) {
    for (Mlp& mlp : experts.mlps) {
      if (mlp.out == nullptr) return &mlp;
    }
    return experts.shared && experts.shared->out == nullptr ? &*experts.shared : nullptr;
  }

  /// The branch that ends with `writer`, whose other maps have been described; empty if other experts of it
  /// are still to come.
  std::optional<Branch> close(const models::Linear& writer) {
    const bool is_attention = writer.role == "attention out";
    if (!is_attention && writer.role != "mlp out")
      refuse("\"" + writer.weight.selector() + "\", " + writer.role);
    const auto at = std::find_if(open_.begin(), open_.end(),
                                 [&](const Branch& branch) { return branch.heads.empty() != is_attention; });
    if (at == open_.end()) refuse("what \"" + writer.weight.selector() + "\" reads");
    if (at->experts.router != nullptr) {
      unfinished(at->experts)->out = &writer;
      if (unfinished(at->experts) != nullptr) return {};
    } else {
      at->mlp.out = &writer;
    }
    Branch branch = *at;
    open_.erase(at);
    return branch;
  }

  void add_step(std::size_t index) {
    const models::Norm& norm = model_.norms[index];
    Step step{.norm = index, .becomes_stream = norm.placement == models::Placement::post};
    for (const models::Linear& writer : norm.writers) {
      if (!is_new(writer)) continue;
      const bool is_first = plan_.steps.empty();
      if (is_first && writer.role == "token embedding") {
        plan_.tokens = &writer;
      } else if (is_first && writer.role == "position embedding") {
        plan_.positions = &writer;
      } else if (is_first && model_.decoder->encodes && writer.role == "token type embedding") {
        plan_.types = &writer;
      } else {
        std::optional<Branch> branch = close(writer);
        // Whether branches beside each other read the same stream is then not known.
        if (branch && !branch->norm) refuse("\"" + writer.weight.selector() + "\", behind no norm");
        if (branch) step.before.push_back(std::move(*branch));
      }
    }
    for (const std::string& name : norm.writing_norms) {
      if (!plan_.steps.empty() && plan_.steps.back().becomes_stream &&
          model_.norms[plan_.steps.back().norm].name == name) {
        continue;
      }
      const models::Norm* const after = models::find_norm(model_, name);
      if (after == nullptr || after->writers.empty()) refuse(name);
      if (!is_new(after->writers.front())) continue;
      std::optional<Branch> branch;
      for (const models::Linear& expert : after->writers) {
        if (branch) refuse(name);
        branch = close(expert);
      }
      if (!branch) refuse(name);
      branch->after = after;
      step.before.push_back(std::move(*branch));
    }
    plan_.steps.push_back(std::move(step));
    open_branches(index, norm.readers);
  }

  static bool is_attended(const models::Linear& reader) {
    return reader.role == "query" || reader.role == "key" || reader.role == "value";
  }

  /// The maps of an attention follow each other among the readers of the stream, and so do those of an MLP.
  void open_branches_of_stream() {
    std::span<const models::Linear> left = model_.stream_readers;
    while (!left.empty()) {
      const auto end = std::find_if(left.begin(), left.end(), [&](const models::Linear& reader) {
        return is_attended(reader) != is_attended(left.front());
      });
      const auto count = static_cast<std::size_t>(end - left.begin());
      open_branches({}, left.first(count));
      left = left.subspan(count);
    }
  }

  void open_branches(std::optional<std::size_t> index, std::span<const models::Linear> readers) {
    Branch branch{.norm = index};
    std::vector<Mlp> mlps;
    bool attends = false;
    for (const models::Linear& reader : readers) {
      if (reader.role == "mlp in" || reader.role == "mlp gate") {
        // A gate comes before its input or after it.
        const bool is_gate = reader.role == "mlp gate";
        if (mlps.empty() || (is_gate ? mlps.back().gate : mlps.back().in) != nullptr) mlps.emplace_back();
        (is_gate ? mlps.back().gate : mlps.back().in) = &reader;
      } else if (is_attended(reader)) {
        attends = true;
      } else if (model_.decoder->encodes && reader.role == "prediction transform") {
        transform_ = &reader;
      } else if (model_.decoder->encodes &&
                 (reader.role == "pooler" || reader.role == "classifier transform")) {
        // Their outputs are not logits of tokens.
      } else if (reader.role == "router") {
        branch.experts.router = &reader;
      } else if (reader.role == "shared expert gate") {
        branch.experts.shared_gate = &reader;
      } else if (reader.role != "unembedding") {
        refuse("\"" + reader.weight.selector() + "\", " + reader.role);
      }
    }
    if (attends) open_.push_back(attention(index, readers));
    if (mlps.empty() && branch.experts.router == nullptr) return;
    if (branch.experts.router != nullptr) {
      set_experts(mlps, branch.experts);
    } else if (mlps.size() == 1) {
      branch.mlp = mlps.front();
    } else {
      refuse("MLPs beside each other");
    }
    open_.push_back(branch);
  }

  void set_experts(std::vector<Mlp>& mlps, Experts& experts) {
    const auto count = static_cast<std::size_t>(experts.router->out);
    const std::optional<models::Routing>& routing = model_.decoder->routing;
    if (!routing || routing->used == 0 || routing->used > count) {
      refuse("\"" + experts.router->weight.selector() + "\", router");
    }
    if (mlps.size() != count && mlps.size() != count + 1) {
      refuse(fmt::format("{} experts of \"{}\", which has {} outputs", mlps.size(),
                         experts.router->weight.selector(), count));
    }
    if (mlps.size() > count) {
      experts.shared = mlps.back();
      mlps.pop_back();
    }
    experts.mlps = mlps;
    experts.correction = next_correction(count);
  }

  /// The correction of this router, the next in the order of the pass; null in a model without any.
  const models::Linear* next_correction(std::size_t count) {
    const auto at =
        std::find_if(model_.others.begin() + static_cast<std::ptrdiff_t>(next_other_), model_.others.end(),
                     [](const models::Linear& other) { return other.role == "router correction"; });
    if (at == model_.others.end()) {
      if (next_other_ != 0) refuse("routers of which some have a correction");
      return nullptr;
    }
    if (at->out != count) {
      refuse(fmt::format("\"{}\" of {} numbers, for {} experts", at->weight.selector(), at->out, count));
    }
    next_other_ = static_cast<std::size_t>(at - model_.others.begin()) + 1;
    return &*at;
  }

  Branch attention(std::optional<std::size_t> index, std::span<const models::Linear> readers) {
    Branch branch{.norm = index};
    const auto reads = [&](const models::Head& head) {
      if (index) return head.norm == model_.norms[*index].name;
      return head.norm.empty() && head.query &&
             std::any_of(readers.begin(), readers.end(),
                         [&](const models::Linear& reader) { return reader.covers(*head.query); });
    };
    for (std::size_t i = 0; i < model_.heads.size(); ++i) {
      if (!reads(model_.heads[i])) continue;
      expect_head(model_, model_.heads[i]);
      branch.heads.push_back(i);
    }
    if (branch.heads.empty()) refuse("the number of heads, which is not stated");
    return branch;
  }

  const models::Model& model_;
  Plan plan_{};
  const models::Linear* transform_ = nullptr;  ///< of the language head
  std::size_t next_other_ = 0;                 ///< in `models::Model::others`
  std::vector<Branch> open_{};                 ///< branches that are not added to the stream yet
  std::set<std::string> seen_{};
};

}  // namespace

Plan plan_of(const models::Model& model, bool encoders) {
  expect_complete(model, encoders);
  return Planner(model).plan();
}

}  // namespace normscope::forward
