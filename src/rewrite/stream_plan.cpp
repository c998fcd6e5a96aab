#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include <normscope/files/quote.hpp>

#include "planning.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using models::Linear;
using models::Model;
using models::Norm;
using models::Placement;

/// Architectures whose centred models were run with RMSNorm in place of LayerNorm
/// (scripts/model_oracle/rewrite.py). Others are refused: a file does not show embeddings that are computed,
/// so the list of writers alone does not prove that the stream is centred.
constexpr std::array<std::string_view, 16> verified = {
    "clip", "cohere",  "falcon",   "gpt2", "gpt_bigcode", "gpt_neo",   "gpt_neox", "gptj",
    "mpt",  "mixtral", "nemotron", "olmo", "opt",         "persimmon", "phi",      "stablelm"};
constexpr std::array<std::string_view, 2> verified_too = {"starcoder2", "vit"};

bool is_verified(std::string_view architecture) {
  return std::find(verified.begin(), verified.end(), architecture) != verified.end() ||
         std::find(verified_too.begin(), verified_too.end(), architecture) != verified_too.end();
}

bool reads_stream(const Norm& norm) {
  return norm.placement == Placement::pre || norm.placement == Placement::post;
}

class StreamPlanner : Planner {
 public:
  using Planner::Planner;

  StreamPlan decide(const std::string& stack) {
    StreamPlan result;
    result.stack = stack;
    std::vector<Linear> writers;
    for (std::size_t index = 0; index < model_.norms.size(); ++index) {
      const Norm& norm = model_.norms[index];
      if (norm.stack != stack || !reads_stream(norm)) continue;
      result.norms.push_back(index);
      for (const Linear& writer : norm.writers) {
        const bool known = std::any_of(writers.begin(), writers.end(), [&](const Linear& other) {
          return place_of(other.weight) == place_of(writer.weight);
        });
        if (!known) writers.push_back(whole(writer));
      }
    }
    for (const Linear& writer : writers) result.writers.push_back(writer.weight.selector());
    if (plan_.centered_before) {
      result.reason = "centred before, as the file's metadata say";
      return result;
    }
    result.reason = why_not(result, writers);
    if (result.reason.empty()) {
      result.centered = true;
      for (const Linear& writer : writers) add_edits(writer, result.norms.back());
    }
    return result;
  }

 private:
  [[nodiscard]] std::string why_not(const StreamPlan& stream, const std::vector<Linear>& writers) const {
    for (const std::size_t index : stream.norms) {
      if (std::string why = why_not_reader(model_.norms[index]); !why.empty()) return why;
    }
    if (model_.norms[stream.norms.back()].role != "final") {
      return "its last reader is not a final norm";
    }
    for (const Linear& writer : writers) {
      if (std::string why = why_not_writer(writer); !why.empty()) return why;
    }
    if (!is_verified(model_.architecture)) {
      return fmt::format("all that writes to the stream of {} is not known for certain", model_.title);
    }
    return {};
  }

  [[nodiscard]] static std::string why_not_reader(const Norm& norm) {
    if (!norm.not_modelled.empty()) return "not modelled: " + norm.not_modelled;
    if (norm.kind == NormKind::rms) {
      return fmt::format("{} is an RMSNorm, whose output depends on the mean", norm.name);
    }
    if (norm.kind != NormKind::layer || norm.groups != 1) return fmt::format("{} is no LayerNorm", norm.name);
    if (norm.placement == Placement::post) {
      return fmt::format("the output of {} is the stream (post-norm), which its gain takes off the centre",
                         norm.name);
    }
    if (!norm.writing_norms.empty()) {
      return fmt::format("the norm {} writes to the stream, which its gain takes off the centre",
                         norm.writing_norms.front());
    }
    if (!norm.connections_known) return fmt::format("not all of what writes to {} is known", norm.name);
    return {};
  }

  [[nodiscard]] std::string why_not_writer(const Linear& writer) const {
    if (!writer.not_modelled.empty()) return "not modelled: " + writer.not_modelled;
    const std::string name = files::quote(writer.weight.selector());
    const files::Tensor& tensor = *checkpoint_.find(writer.weight.tensor);
    if (!is_rewritable(tensor.dtype)) return fmt::format("{} is stored as {}", name, to_string(tensor.dtype));
    if (uses_.stacks_written(writer.weight) > 1) return fmt::format("{} writes to two streams", name);
    if (model_.vocabulary && model_.vocabulary->tied && !plan_.untied && writer.role == "token embedding") {
      return fmt::format("{} is the head too; {}", name, advice_on_tie(checkpoint_, model_, tensor.name));
    }
    const bool reads = !uses_.readers_of(writer.weight).empty();
    const bool is_head = plan_.untied && plan_.untied->table == writer.weight.tensor;
    if (reads && !is_head) return fmt::format("{} reads a norm and writes to the stream", name);
    return {};
  }

  void add_edits(const Linear& writer, std::size_t reader) {
    plan_.edits.push_back({Change::center_outputs, writer.weight.tensor, writer.weight, writer, reader});
    if (!writer.bias) return;
    plan_.edits.push_back({Change::center, writer.bias->tensor, *writer.bias, writer, reader});
  }
};

}  // namespace

void plan_streams(const Checkpoint& checkpoint, const Model& model, const Uses& uses, Plan& plan) {
  if (!plan.options.center) return;
  StreamPlanner planner(checkpoint, model, uses, plan);
  for (const std::string& stack : stacks_of(model, reads_stream))
    plan.streams.push_back(planner.decide(stack));
}

}  // namespace normscope::rewrite
