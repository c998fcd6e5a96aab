#include <normscope/rewrite/plan.hpp>

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/dtype.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/json_value.hpp>
#include <normscope/files/source.hpp>

#include "planning.hpp"

namespace normscope::rewrite {

using models::Linear;
using models::Norm;
using models::Slice;

models::Linear whole(models::Linear map) {
  map.first_out = 0;
  map.out = map.stored_out;
  map.out_indices.clear();
  return map;
}

void add_once(std::vector<Linear>& maps, const Linear& map) {
  const bool known = std::any_of(maps.begin(), maps.end(), [&](const Linear& other) {
    return place_of(other.weight) == place_of(map.weight);
  });
  if (!known) maps.push_back(whole(map));
}

bool is_head_table(const models::Model& model, const Linear& map) {
  return model.vocabulary && model.vocabulary->tied &&
         place_of(model.vocabulary->unembedding->weight) == place_of(map.weight);
}

bool is_rewritable(Dtype dtype) {
  return dtype == Dtype::F64 || dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16;
}

Stream Planner::stream_of(const std::string& stack) const {
  Stream stream;
  for (std::size_t index = 0; index < model_.norms.size(); ++index) {
    const Norm& norm = model_.norms[index];
    if (norm.stack != stack || !reads_stream(norm)) continue;
    stream.norms.push_back(index);
    for (const Linear& writer : norm.writers) add_once(stream.writers, writer);
  }
  return stream;
}

std::string why_not_passed(const Norm& norm, const StreamWords& words) {
  if (norm.placement == models::Placement::post) {
    return fmt::format("the output of {} is the stream (post-norm), {}", norm.name, words.gain_in_stream);
  }
  if (!norm.writing_norms.empty()) {
    return fmt::format("the norm {} writes to the stream, {}", norm.writing_norms.front(),
                       words.gain_in_stream);
  }
  if (!norm.connections_known) {
    return fmt::format("not all of what {} {} is known", words.touches, norm.name);
  }
  return {};
}

std::string Planner::why_not_stored(const Slice& slice) const {
  const Dtype dtype = checkpoint_.find(slice.tensor)->dtype;
  if (is_rewritable(dtype)) return {};
  return fmt::format("{} is stored as {}", files::quote(slice.selector()), to_string(dtype));
}

std::string Planner::why_not_reader(std::size_t norm, const Linear& reader, std::string_view name) const {
  if (!reader.not_modelled.empty()) return "not modelled: " + reader.not_modelled;
  const std::string weight = files::quote(reader.weight.selector());
  if (std::string why = why_not_stored(reader.weight); !why.empty()) return why;
  if (reader.in != model_.norms[norm].width) {
    return fmt::format("{} reads {} features, the norm has {}", weight, reader.in, model_.norms[norm].width);
  }
  if (uses_.readers_of(reader.weight).size() > 1) return fmt::format("{} reads another norm too", weight);
  if (!uses_.covered(norm, reader)) {
    return fmt::format("not all outputs of {} are known to read {}", weight, name);
  }
  return {};
}

std::string Planner::why_not_writer(const Linear& writer) const {
  if (!writer.not_modelled.empty()) return "not modelled: " + writer.not_modelled;
  if (std::string why = why_not_stored(writer.weight); !why.empty()) return why;
  if (writer.bias) {
    if (std::string why = why_not_stored(*writer.bias); !why.empty()) return why;
  }
  const std::string name = files::quote(writer.weight.selector());
  if (uses_.stacks_written(writer.weight) > 1) return fmt::format("{} writes to two streams", name);
  if (!uses_.readers_of(writer.weight).empty() && !is_head_table(model_, writer)) {
    return fmt::format("{} reads a norm and writes to the stream", name);
  }
  return {};
}

Uses::Uses(const models::Model& model) : model_(model) {
  for (std::size_t index = 0; index < model.norms.size(); ++index) {
    const Norm& norm = model.norms[index];
    for (const Linear& reader : norm.readers) {
      readers_[place_of(reader.weight)].insert(index);
      if (reader.bias) biases_[place_of(*reader.bias)].insert(place_of(reader.weight));
    }
    // The input of a norm within a branch is not part of the stream.
    if (norm.placement != models::Placement::inside) {
      for (const Linear& writer : norm.writers) writers_[place_of(writer.weight)].insert(norm.stack);
    }
    for (const auto* parameter : {&norm.gain, &norm.bias}) {
      if (*parameter) ++parameters_[place_of(**parameter)];
    }
    streaming_.insert(norm.writing_norms.begin(), norm.writing_norms.end());
  }
}

const std::set<std::size_t>& Uses::readers_of(const Slice& weight) const {
  static const std::set<std::size_t> none;
  const auto found = readers_.find(place_of(weight));
  return found == readers_.end() ? none : found->second;
}

bool Uses::covered(std::size_t norm, const Linear& reader) const {
  std::vector<bool> outputs(reader.stored_out);
  for (const Linear& part : model_.norms[norm].readers) {
    if (place_of(part.weight) != place_of(reader.weight)) continue;
    for (std::uint64_t j = 0; j < part.out; ++j) {
      outputs[part.stored_output(j)] = true;
    }
  }
  return std::find(outputs.begin(), outputs.end(), false) == outputs.end();
}

std::size_t Uses::parameters_at(const Slice& slice) const { return parameters_.at(place_of(slice)); }

std::size_t Uses::biases_at(const Slice& slice) const { return biases_.at(place_of(slice)).size(); }

std::size_t Uses::stacks_written(const Slice& slice) const { return writers_.at(place_of(slice)).size(); }

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
  if (!checkpoint.quantization().empty()) {
    refuse(checkpoint, fmt::format("has quantized matrices ({}), expected floating-point ones",
                                   checkpoint.quantization()));
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
    if (norm.applications > 1 && norm.gain) {
      return fmt::format("untying would also separate the layers that share {}", norm.name);
    }
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
  return fmt::format("untying gives the head a tensor of its own, {} bytes",
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
    refuse(checkpoint, "has no tied head, which untying separates");
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
