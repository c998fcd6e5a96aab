#include "norm_options.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/norm/norm.hpp>

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

std::optional<results::NormSource> GivenNorm::source() const {
  if (!model) return std::nullopt;
  return results::NormSource{model->name, model->title, model->taken};
}

std::vector<Argument> NormOptions::arguments(const std::vector<std::string>& left_out) {
  std::vector<std::pair<std::string, Argument>> all{
      {"--norm", option("--norm", kind)
                     .usually("the model's if --gain is the gain of a model's norm, else layer")
                     .one_of(norm_kind_names())},
      {"--gain", option("--gain", gain)},
      {"--gain-offset", option("--gain-offset", gain_offset)},
      {"--bias", option("--bias", bias)},
      {"--groups", option("--groups", groups)},
      {"--eps", option("--eps", eps).usually(fmt::format("the model's, else {:g}", usual_eps))},
      {"--alpha", option("--alpha", alpha)},
      {"--shift", option("--shift", shift)}};
  std::vector<Argument> arguments;
  for (auto& [name, argument] : all) {
    if (std::find(left_out.begin(), left_out.end(), name) == left_out.end()) {
      arguments.push_back(std::move(argument));
    }
  }
  return arguments;
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
    const char* const guess = found->norm.kind_is_assumed ? " (assumed)" : "";
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

namespace {

/// Throws unless all keys are finite after `what`; they were checked to be finite before it.
void expect_finite_keys(std::string_view what, MatrixView<const double> keys) {
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    for (std::size_t i = 0; i < keys.width(); ++i) {
      if (std::isfinite(keys.row(row)[i])) continue;
      throw Error(
          ErrorCode::Argument,
          fmt::format("keys: {} makes entry {} of key {} larger than float64 holds, expected smaller ones",
                      what, i, row));
    }
  }
}

}  // namespace

std::vector<Argument> KeyNormOptions::arguments() {
  return joined(norm.arguments(), {option("--step", steps)
                                       .says(", or several of them, apart by commas")
                                       .usually("all")
                                       .one_of({"project", "scale", "stretch", "shift"})});
}

KeyNorm KeyNormOptions::open(Inputs& inputs) const {
  const bool given = norm.kind || !norm.gain.empty() || !norm.bias.empty() || norm.groups || norm.eps;
  if (!given && steps.empty()) return {};
  return {norm.open(inputs), steps};
}

const std::vector<std::string>& KeyNorm::all_steps() {
  static const std::vector<std::string> steps = {"project", "scale", "stretch", "shift"};
  return steps;
}

std::optional<GivenNorm> KeyNorm::of_width(std::size_t width) const {
  return norm ? std::optional(norm->of_width(width)) : std::nullopt;
}

void KeyNorm::apply(const std::optional<GivenNorm>& spec, MatrixView<double> keys) const {
  if (!spec) return;
  if (steps.empty()) norm::forward(*spec, keys, keys);
  for (const std::string& step : steps) {
    norm::apply(norm::step(step), *spec, keys, keys);
    expect_finite_keys(step, keys);
  }
  expect_finite_keys("the norm", keys);
}

std::optional<results::KeyNorm> KeyNorm::stated(const std::optional<GivenNorm>& spec) const {
  if (!spec) return std::nullopt;
  return results::KeyNorm{.kind = spec->kind,
                          .steps = steps.empty() ? all_steps() : steps,
                          .groups = spec->groups,
                          .eps = spec->eps,
                          .source = spec->source()};
}

void add_array(verify::Inputs& inputs, const std::string& role, const std::string& name,
               const MatrixInput& matrix, unsigned threads) {
  inputs.arguments.push_back({role, name});
  inputs.arrays.push_back(verify::describe_array(role, {matrix.rows, matrix.width}, matrix.values, threads));
}

void add_norm(verify::Inputs& inputs, const NormOptions& options, const NormSpec& norm) {
  if (!options.gain.empty()) inputs.arguments.push_back({"gain", options.gain});
  if (!options.bias.empty()) inputs.arguments.push_back({"norm bias", options.bias});
  inputs.gain_offset = options.gain_offset;
  const auto add = [&](const char* role, const std::vector<double>& values) {
    if (!values.empty()) inputs.arrays.push_back(verify::describe_array(role, {values.size()}, values));
  };
  add("gain", norm.gain);
  add("norm bias", norm.bias);
}

}  // namespace normscope::cli
