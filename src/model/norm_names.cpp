#include "norm_names.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

namespace normscope::model {

namespace {

using checkpoint::Checkpoint;
using checkpoint::Tensor;

/// Longer gains are not those of norms, whatever their name.
constexpr std::uint64_t widest_norm = std::uint64_t{1} << 20;
/// Axes that one norm normalizes together, as (channels, height, width).
constexpr std::size_t most_axes = 3;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view last_component(std::string_view name) { return name.substr(name.find_last_of("./") + 1); }

/// `text` behind which only digits and '_' follow, as in "ln_1" or "LayerNorm_0".
std::string_view without_number(std::string_view text) {
  while (!text.empty() && (is_digit(text.back()) || text.back() == '_')) text.remove_suffix(1);
  return text;
}

/// Whether the last component of `stem` names a norm.
bool names_a_norm(std::string_view stem) {
  const std::string last = lower(last_component(stem));
  return last.find("norm") != std::string::npos || last == "ln" || last.starts_with("ln_") ||
         last.ends_with("_ln") || (last.size() > 2 && last.starts_with("ln") && is_digit(last[2])) ||
         last.starts_with("rms_") || last == "rms";
}

bool names_group_norm(std::string_view stem) {
  const std::string last = lower(last_component(stem));
  return last.find("group_norm") != std::string::npos || last.find("groupnorm") != std::string::npos;
}

/// Whether a component of `name` says that an optimizer keeps the tensor, as Flax ("opt_state"), Keras
/// ("optimizer", "adam") and the slots of TensorFlow's Adam ("layer_norm/gamma/Adam_1") do.
bool is_of_optimizer(std::string_view name) {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("./"), name.size());
    const std::string component = lower(name.substr(0, end));
    const std::string_view word = without_number(component);
    for (const char* known : {"opt_state", "optimizer", "optimizer_state", "adam", "adamw"}) {
      if (word == known) return true;
    }
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

/// The ending of a gain's name and those of the bias beside it.
struct Ending {
  std::string_view gain;
  std::array<std::string_view, 5> biases;  ///< empty where there are fewer
  /// Whether a tensor of that name is of one norm: PyTorch and Keras do not stack those of several.
  bool never_stacked = false;
};

constexpr Ending endings[] = {
    {".weight", {".bias", ".beta"}, true},
    {".gamma", {".beta", ".bias"}, true},
    {"/gamma", {"/beta"}, true},
    {".scale", {".bias", ".beta"}},
    {"/scale", {"/bias", "/beta"}},
    {"/vars/0", {"/vars/1"}, true},  // Keras 3 numbers the weights of a layer
    {".g", {".b", ".bias"}},
    {".w", {".b"}},
    {"_weight", {"_bias"}},
    {"_gamma", {"_beta", "_bias"}},
    {"_scale", {"_bias", "_offset"}},
    {"_g", {"_b"}},
    {"", {".bias", ".beta", ".b", "/beta", "/bias"}},
};

/// Whether a bare name, such as "ln_1_bias" or "norm_mean", names something other than a gain.
bool is_beside_a_gain(std::string_view name) {
  const std::string last = lower(last_component(name));
  for (const char* ending :
       {"_bias", "_beta", "_b", "_offset", "_mean", "_var", "_variance", "_eps", "_epsilon"}) {
    if (last.ends_with(ending)) return true;
  }
  return false;
}

/// The name of a variable of TensorFlow ends in ":0".
std::string_view without_output(std::string_view name) {
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

/// The extents other than 1.
std::vector<std::uint64_t> long_axes(const Tensor& tensor) {
  std::vector<std::uint64_t> extents;
  for (const std::uint64_t extent : tensor.shape) {
    if (extent != 1) extents.push_back(extent);
  }
  return extents;
}

bool has_shape_of(const Tensor& a, const Tensor& b) {
  return std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end());
}

/// The kind of the module `stem`, by its name or its running statistics, if it is a norm that is not
/// analysed.
std::string other_kind(const Checkpoint& checkpoint, const std::string& stem, std::string_view output) {
  for (const char* mean : {".running_mean", ".moving_mean", "/moving_mean"}) {
    if (checkpoint.find(fmt::format("{}{}{}", stem, mean, output)) != nullptr) return "BatchNorm";
  }
  const std::string last = lower(last_component(stem));
  if (last.starts_with("batchnorm") || last.starts_with("batch_norm")) return "BatchNorm";
  if (last.find("instance_norm") != std::string::npos || last.find("instancenorm") != std::string::npos) {
    return "InstanceNorm";
  }
  return "";
}

/// The tensor of that name if it is one number.
const Tensor* scalar_at(const Checkpoint& checkpoint, const std::string& name) {
  const Tensor* const tensor = checkpoint.find(name);
  return tensor != nullptr && tensor->elements() == 1 ? tensor : nullptr;
}

/// A module with running statistics and no gain.
std::optional<NamedNorm> batch_norm_without_gain(const Checkpoint& checkpoint, std::string_view name,
                                                 std::string_view output) {
  for (const std::string_view mean : {".running_mean", ".moving_mean", "/moving_mean"}) {
    if (!name.ends_with(mean)) continue;
    const std::string stem(name.substr(0, name.size() - mean.size()));
    for (const char* gain : {".weight", ".gamma", "/gamma", ".scale"}) {
      if (checkpoint.find(fmt::format("{}{}{}", stem, gain, output)) != nullptr) return {};
    }
    return NamedNorm{stem, "BatchNorm"};
  }
  return {};
}

/// The norm of the module `stem`, whose gain is `tensor`.
std::optional<NamedNorm> norm_of(const Checkpoint& checkpoint, const Tensor& tensor, const Ending& ending,
                                 const std::string& stem, std::string_view output) {
  NamedNorm norm{stem};
  norm.not_analysed = other_kind(checkpoint, stem, output);
  if (!norm.not_analysed.empty()) return norm;
  if (!names_a_norm(stem)) return {};
  norm.gain = &tensor;
  for (const std::string_view bias : ending.biases) {
    const Tensor* const beside = checkpoint.find(fmt::format("{}{}{}", stem, bias, output));
    if (norm.bias == nullptr && !bias.empty() && beside != nullptr && has_shape_of(*beside, tensor)) {
      norm.bias = beside;
    }
  }
  norm.is_group = names_group_norm(stem);
  const std::size_t axes = long_axes(tensor).size();
  // Else a matrix, or the gains of several norms.
  if (axes > 1 && !(ending.never_stacked && norm.bias != nullptr)) return {};
  if (axes == 0 && norm.bias == nullptr) {
    // The scale of a quantized gain stands beside it.
    if (ending.gain.empty() || ending.gain.starts_with('_')) return {};
    for (const char* whole : {".weight", ".gamma"}) {
      if (ending.gain != whole && checkpoint.find(fmt::format("{}{}{}", stem, whole, output)) != nullptr)
        return {};
    }
    norm.one_gain = true;
  }
  norm.alpha = scalar_at(checkpoint, stem + ".alpha");
  if (norm.alpha != nullptr) norm.shift = scalar_at(checkpoint, stem + ".shift");
  return norm;
}

}  // namespace

std::optional<NamedNorm> norm_at(const Checkpoint& checkpoint, const Tensor& tensor) {
  const std::uint64_t elements = tensor.elements();
  if (elements == 0 || elements > widest_norm || long_axes(tensor).size() > most_axes) return {};
  if (is_of_optimizer(tensor.name)) return {};
  const std::string_view name = without_output(tensor.name);
  const std::string_view output = tensor.name.substr(name.size());
  if (std::optional<NamedNorm> bare = batch_norm_without_gain(checkpoint, name, output)) return bare;
  for (const Ending& ending : endings) {
    if (!name.ends_with(ending.gain)) continue;
    // An integer under a norm's bare name is a constant; one named as its gain is kept, and refused when
    // read.
    if (ending.gain.empty() && (!is_floating(tensor.dtype) || is_beside_a_gain(name))) continue;
    const std::string stem(name.substr(0, name.size() - ending.gain.size()));
    if (std::optional<NamedNorm> norm = norm_of(checkpoint, tensor, ending, stem, output)) return norm;
    if (!ending.gain.starts_with('_')) return {};
  }
  return {};
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto end_of_zeros = [](std::string_view text, std::size_t at) {
    while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
    return at;
  };
  const auto end_of_digits = [](std::string_view text, std::size_t at) {
    while (at < text.size() && is_digit(text[at])) ++at;
    return at;
  };
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    i = end_of_zeros(a, i);
    j = end_of_zeros(b, j);
    const std::string_view first = a.substr(i, end_of_digits(a, i) - i);
    const std::string_view second = b.substr(j, end_of_digits(b, j) - j);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
    i += first.size();
    j += second.size();
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;
}

}  // namespace normscope::model
