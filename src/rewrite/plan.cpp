#include <normscope/rewrite/plan.hpp>

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/json_value.hpp>
#include <normscope/files/quote.hpp>

#include "planning.hpp"

namespace normscope::rewrite {
namespace {

/// The name of a language model's head in transformers.
constexpr const char* separate_head = "lm_head.weight";

using files::Checkpoint;
using models::Model;

[[noreturn]] void refuse(const Checkpoint& checkpoint, const std::string& why) {
  throw Error(ErrorCode::Unsupported, fmt::format("rewrite: {}: {}", checkpoint.path().string(), why));
}

/// Refuses a model unless its wiring is that of an architecture that was compared with running models.
void expect_known(const Checkpoint& checkpoint, const Model& model) {
  if (checkpoint.format() != "safetensors") {
    refuse(checkpoint, fmt::format("is a {} file, expected safetensors", checkpoint.format()));
  }
  if (!model.is_known()) refuse(checkpoint, "not modelled: " + model.title);
  if (!model.missing.empty()) {
    refuse(checkpoint,
           fmt::format("is incomplete: tensor {} is missing{}", files::quote(model.missing.front()),
                       model.missing.size() > 1 ? ", and others" : ""));
  }
  if (!model.not_modelled.empty()) refuse(checkpoint, "not modelled: " + model.not_modelled);
}

}  // namespace

const char* to_string(Fold fold) {
  switch (fold) {
    case Fold::nothing: return "left";
    case Fold::neutral: return "neutral";
    case Fold::gain: return "gain";
    case Fold::gain_and_bias: return "gain and bias";
    case Fold::scales: return "scales";
  }
  return "";
}

const char* to_string(Change change) {
  switch (change) {
    case Change::scale_inputs: return "scale_inputs";
    case Change::center_outputs: return "center_outputs";
    case Change::center: return "center";
    case Change::add_folded_bias: return "add_folded_bias";
    case Change::neutral_gain: return "neutral_gain";
    case Change::zero: return "zero";
    case Change::divide_by_gain: return "divide_by_gain";
    case Change::divide_by_scale: return "divide_by_scale";
    case Change::rotate_inputs: return "rotate_inputs";
    case Change::rotate_outputs: return "rotate_outputs";
    case Change::rotate: return "rotate";
  }
  return "";
}

std::string why_not_untied(const Checkpoint& checkpoint, const Model& model) {
  if (!checkpoint.config_text())
    return "without a config.json, the code that loads the file decides whether it is tied; name the folder "
           "that "
           "holds both";
  const nlohmann::json config = files::read_json(*checkpoint.config_text()).value_or(nlohmann::json());
  if (config.contains("text_config")) {
    return "its configuration has a section for the language model";
  }
  for (const models::Norm& norm : model.norms) {
    if (!norm.stack.empty()) return "untying would separate the tables of encoder and decoder too";
  }
  const auto final_norm = std::find_if(model.norms.begin(), model.norms.end(), [&](const models::Norm& norm) {
    return norm.name == model.vocabulary->final_norm;
  });
  if (final_norm == model.norms.end() || final_norm->placement != models::Placement::pre) {
    return "no norm of the residual stream is what the head reads";
  }
  if (checkpoint.find(separate_head) != nullptr) return {};
  const std::string& table = model.vocabulary->unembedding->weight.tensor;
  if (table.starts_with("transformer.") || table.starts_with("model.")) return {};
  return "the file holds the model without its head, so a head's tensor would not be loaded; save the model "
         "from "
         "its class with a head first";
}

std::string advice_on_tie(const Checkpoint& checkpoint, const Model& model, std::string_view table) {
  const std::string why = why_not_untied(checkpoint, model);
  if (!why.empty()) return "the head cannot be untied: " + why;
  return fmt::format("--untie gives the head a tensor of its own, {} bytes",
                     checkpoint.find(table)->bytes.size());
}

Plan make_plan(const Checkpoint& checkpoint, const Model& model, const Options& options) {
  expect_known(checkpoint, model);
  Plan plan;
  plan.options = options;
  if (const auto found = checkpoint.metadata().find(marker_key); found != checkpoint.metadata().end()) {
    const std::optional<nlohmann::json> done = files::read_json(found->second);
    if (done && done->is_object()) {
      plan.folded_before = done->value("gains", nlohmann::json()) == "folded";
      plan.migrated_before = done->value("gains", nlohmann::json()) == "migrated";
      plan.centered_before = done->value("streams", nlohmann::json()) == "centered";
    }
  }
  const Uses uses(model);
  plan.specs.resize(model.norms.size());
  if (options.untie && model.vocabulary && model.vocabulary->tied) {
    if (const std::string why = why_not_untied(checkpoint, model); !why.empty()) {
      refuse(checkpoint, "the head cannot be untied: " + why);
    }
    const std::string& table = model.vocabulary->unembedding->weight.tensor;
    const files::Tensor* const stored = checkpoint.find(separate_head);
    plan.untied = Untied{table, separate_head, stored != nullptr ? 0 : checkpoint.find(table)->bytes.size()};
  } else if (options.untie) {
    refuse(checkpoint, "has no tied head, which --untie asks to separate");
  }
  plan_folds(checkpoint, model, uses, plan);
  plan_streams(checkpoint, model, uses, plan);
  plan_rotations(checkpoint, model, uses, plan);
  return plan;
}

void expect_something(const Checkpoint& checkpoint, const Plan& plan) {
  if ((plan.options.fold_gains || plan.options.migrate) && !plan.norms.empty() &&
      std::all_of(plan.norms.begin(), plan.norms.end(),
                  [](const NormPlan& norm) { return norm.fold == Fold::nothing; })) {
    refuse(checkpoint, "no gain can be folded exactly: " + plan.norms.front().reason);
  }
  if (!plan.streams.empty() && !plan.centered_before &&
      std::none_of(plan.streams.begin(), plan.streams.end(),
                   [](const StreamPlan& stream) { return stream.centered; })) {
    refuse(checkpoint, "cannot be centred exactly: " + plan.streams.front().reason);
  }
  if (plan.options.rotation &&
      std::none_of(plan.rotations.begin(), plan.rotations.end(),
                   [](const RotationPlan& stream) { return stream.rotation != nullptr; })) {
    refuse(checkpoint,
           "cannot be rotated exactly: " + (plan.rotations.empty() ? std::string("it has no residual stream")
                                                                   : plan.rotations.front().reason));
  }
}

std::string marker(const Plan& plan) {
  const auto changed = [&](auto&& is_one_of) {
    return std::any_of(plan.edits.begin(), plan.edits.end(),
                       [&](const Edit& edit) { return is_one_of(edit.change); });
  };
  nlohmann::ordered_json value = nlohmann::ordered_json::object();
  if (plan.migrated_before || changed([](Change c) { return c == Change::divide_by_scale; })) {
    value["gains"] = "migrated";
  }
  if (plan.folded_before || changed([](Change c) { return c == Change::neutral_gain; }))
    value["gains"] = "folded";
  const bool centers = std::any_of(plan.streams.begin(), plan.streams.end(),
                                   [](const StreamPlan& stream) { return stream.centered; });
  if (plan.centered_before || centers) {
    value["streams"] = "centered";
  }
  if (changed([](Change c) { return c == Change::rotate_outputs; })) value["rotated"] = true;
  return value.empty() ? std::string() : value.dump();
}

}  // namespace normscope::rewrite
