#include "command.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/models/model.hpp>

#include "inputs.hpp"

namespace normscope::cli {
namespace {

std::vector<double> read_parameter(Inputs& inputs, const std::string& name) {
  const std::optional<files::OpenedArray> array = inputs.optional_array(name);
  if (!array) return {};
  std::vector<double> row = array->row();
  if (row.empty())
    throw Error(ErrorCode::Shape, fmt::format("{}: is empty, expected a row of numbers", name));
  return row;
}

/// A norm of a model, and the title of the model.
struct Found {
  NormSpec spec;
  models::Norm norm;
  std::string title;
};

/// The norm of a model whose gain is `gain`; empty if the array is not the gain of a norm.
std::optional<Found> norm_of_gain(Inputs& inputs, const std::string& gain) {
  const std::optional<files::OpenedArray> array = inputs.optional_array(gain);
  if (!array || !array->checkpoint()) return std::nullopt;
  const files::Checkpoint& checkpoint = *array->checkpoint();
  const models::Model& model = inputs.model_of(checkpoint);
  for (const models::Norm& norm : model.norms) {
    if (norm.gain && norm.gain->selector() == array->tensor() && norm.gain->count == norm.width) {
      return Found{models::read_norm(checkpoint, norm), norm, model.title};
    }
  }
  return std::nullopt;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

std::string ModelNorm::line() const {
  return fmt::format("from the model ({}), {}: {}", title, printable(name), text);
}

void GivenNorm::say_source(const Session& session) const {
  if (model) session.say(model->line());
}

nlohmann::ordered_json GivenNorm::source() const {
  if (!model) return nullptr;
  return {{"norm", model->name}, {"model", model->title}, {"taken", model->taken}};
}

void NormOptions::declare(CLI::App& command) {
  command
      .add_option("--norm", kind,
                  "Kind of norm (default: the model's if --gain is the gain of a model's norm, else layer)")
      ->check(CLI::IsMember(norm_kind_names()));
  command.add_option("--gain", gain, "Gain: G.npy, G.npz:NAME, MODEL:TENSOR or 1,2,0.5 (default: ones)")
      ->type_name("ARRAY");
  command
      .add_option("--gain-offset", gain_offset,
                  "Number added to every gain entry (default: the model's, e.g. 1 for Gemma, else 0)")
      ->type_name("X")
      ->check(numbers(-1e300, 1e300));
  command.add_option("--bias", bias, "Bias, given like the gain (default: the model's, else zeros)")
      ->type_name("ARRAY");
  command
      .add_option("--groups", groups,
                  "Number of groups, each normalized separately (default: the model's, else 1)")
      ->type_name("K")
      ->check(counts(1, largest_count));
  command
      .add_option("--eps", eps,
                  fmt::format("Added to the mean square, for spherical to the squared length (default: the "
                              "model's, else {:g})",
                              usual_eps))
      ->type_name("E")
      ->check(numbers(0.0, 1e300));
  command
      .add_option("--alpha", alpha,
                  "Factor of x in an elementwise norm, dyt or derf (default: the model's, else 1)")
      ->type_name("A")
      ->check(numbers(-1e300, 1e300));
  command.add_option("--shift", shift, "Added to alpha times x in derf (default: the model's, else 0)")
      ->type_name("S")
      ->check(numbers(-1e300, 1e300));
}

NormInput NormOptions::open(Inputs& inputs) const {
  GivenNorm norm;
  norm.kind = norm_kind(kind.value_or("layer"));
  norm.alpha = alpha.value_or(1.0);
  norm.shift = shift.value_or(0.0);
  norm.groups = groups.value_or(1);
  norm.eps = eps.value_or(usual_eps);
  norm.gain = read_parameter(inputs, gain);
  norm.bias = read_parameter(inputs, bias);
  double offset = gain_offset.value_or(0.0);
  if (gain.empty() && offset != 0.0) throw CLI::ValidationError("--gain-offset", "needs --gain");
  if (const std::optional<Found> found = norm_of_gain(inputs, gain)) {
    norm.model = ModelNorm{.name = found->norm.name, .title = found->title};
    const auto take = [&](const char* what, const std::string& value) {
      norm.model->text += (norm.model->taken.empty() ? "" : ", ") + value;
      norm.model->taken.emplace_back(what);
    };
    // A norm that only its name tells may be of another kind.
    const char* const guess = found->norm.kind_is_assumed() ? " (assumed)" : "";
    if (!kind) {
      norm.kind = found->spec.kind;
      take("norm", fmt::format("kind {}{}", to_string(norm.kind), guess));
    }
    if (is_elementwise(norm.kind) && found->spec.elementwise()) {
      if (!alpha) {
        norm.alpha = found->spec.alpha;
        take("alpha", fmt::format("alpha {:g}", norm.alpha));
      }
      if (!shift && facts(norm.kind).has_shift && facts(found->spec.kind).has_shift) {
        norm.shift = found->spec.shift;
        take("shift", fmt::format("shift {:g}", norm.shift));
      }
    } else if (!eps) {
      norm.eps = found->spec.eps;
      const bool assumed = found->norm.eps_source == models::Source::assumed;
      take("eps", fmt::format("eps {:g}{}", norm.eps, assumed ? " (assumed)" : ""));
    }
    if (!gain_offset && found->norm.gain_offset != 0.0) {
      offset = found->norm.gain_offset;
      take("gain_offset", fmt::format("gain offset {:g}{}", offset, guess));
    }
    if (!groups && groups_are_used && found->spec.groups != 1) {
      norm.groups = found->spec.groups;
      take("groups", fmt::format("{} groups", norm.groups));
    }
    if (bias.empty() && !found->spec.bias.empty() && (bias_is_used || all_finite(found->spec.bias))) {
      norm.bias = found->spec.bias;
      take("bias", "bias");
    }
    if (norm.model->taken.empty()) norm.model.reset();
  }
  for (double& g : norm.gain) g += offset;
  return NormInput(std::move(norm));
}

GivenNorm NormInput::of_width(std::size_t width) const {
  GivenNorm norm = norm_;
  norm.width = width;
  if (norm.width == 0) norm.width = std::max(norm.gain.size(), norm.bias.size());
  if (norm.width == 0) throw CLI::ValidationError("--gain, --bias or --width", "one of them is needed");
  validate(norm);
  return norm;
}

void add_stated(CLI::App& command, models::Stated& stated) {
  command
      .add_option("--arch", stated.architecture,
                  "Architecture, if the file does not state it: a short name such as gpt2 or llama")
      ->type_name("NAME");
  command
      .add_option("--heads", stated.heads,
                  "Attention heads per layer, if neither configuration nor shapes determine them")
      ->type_name("N")
      ->check(counts(1, 1'000'000));
}

void add_model_options(CLI::App& command, ModelName& model) {
  command
      .add_option_function<std::string>(
          "--member", [&model](const std::string& member) { model.path += ":" + member; },
          "State dict to read from a PyTorch file that holds several, such as ema/module; the same as "
          "FILE:NAME")
      ->type_name("NAME");
  add_stated(command, model.stated);
}

void say_notes(const Session& session, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) session.say("note: " + printable(note));
}

}  // namespace normscope::cli
