#include "found_norms.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "inventory.hpp"

namespace normscope::models {

namespace {

using files::Checkpoint;
using files::Tensor;

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
  const auto has = [&last](const char* word) { return last.find(word) != std::string::npos; };
  if (last == "ln" || last.starts_with("ln_") || last.ends_with("_ln") || last.starts_with("rms_") ||
      last == "rms" || (last.size() > 2 && last.starts_with("ln") && is_digit(last[2]))) {
    return true;
  }
  // Reparametrizations of weights, and surface normals.
  if (has("weight_norm") || has("weightnorm") || has("spectral_norm") || has("spectralnorm")) return false;
  return has("norm") && (!has("normal") || has("normali"));
}

/// Whether the last component of `stem` names the norm of queries or keys, whose gain may have a row for each
/// head.
bool names_a_head_norm(std::string_view stem) {
  const std::string last = lower(last_component(stem));
  const auto starts = [&last](const char* word) { return last.starts_with(word); };
  return names_a_norm(stem) &&
         (starts("q_") || starts("k_") || starts("query_") || starts("key_") || starts("qk_"));
}

/// Whether the last component of `stem` names a batch norm as short as "bn" and "bn1".
bool names_bn(std::string_view stem) { return without_number(lower(last_component(stem))) == "bn"; }

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

/// The last part of a gain's name and those of the bias beside it.
struct Ending {
  std::string_view gain;
  std::array<std::string_view, 5> biases;  ///< empty where there are fewer
  /// Whether a tensor of that name with a bias of its shape is of one norm: PyTorch and Keras do not stack
  /// those of several.
  bool never_stacked = false;
};

constexpr Ending endings[] = {
    {"weight", {"bias", "beta"}, true},
    {"gamma", {"beta", "bias"}, true},
    {"scale", {"bias", "beta", "offset"}},
    {"g", {"b", "bias"}},
    {"w", {"b"}},
    {"gain", {"bias"}},
    {"a_2", {"b_2"}, true},
    {"alpha", {"bias", "beta"}, true},
    {"vars/0", {"vars/1"}, true},  // Keras 3 numbers the weights of a layer
};
/// What stands before the last part; libraries of modules within modules write "//" before a parameter. After
/// '_', only the first four endings are those of gains.
constexpr std::string_view separators[] = {".", "//", "/", "_"};
constexpr std::size_t endings_after_underscore = 4;
/// A gain that has the name of its module.
constexpr Ending bare{"", {".bias", ".beta", ".b", "/beta", "/bias"}};

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
  for (const char* mean : {".running_mean", ".moving_mean", "/moving_mean", "/running_mean"}) {
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

/// Whether a linear map near the place `stem` in a Sequential reads or writes `width` features.
bool is_beside_linear(const Checkpoint& checkpoint, std::string_view stem, std::uint64_t width) {
  const std::string_view last = last_component(stem);
  const std::optional<int> place = layer_number(last);
  if (!place) return false;
  constexpr int farthest = 3;
  for (int other = std::max(0, *place - farthest); other <= *place + farthest; ++other) {
    const Tensor* const weight =
        checkpoint.find(fmt::format("{}{}.weight", stem.substr(0, stem.size() - last.size()), other));
    if (other == *place || weight == nullptr || weight->shape.size() != 2) continue;
    if (weight->shape[0] == width || weight->shape[1] == width) return true;
  }
  return false;
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

/// A gain under the name `stem` + `separator` + `ending.gain`.
struct Gain {
  const Tensor& tensor;
  std::string stem;
  std::string_view separator;
  const Ending& ending;
  std::string_view output;  ///< ":0" where the name ends so
  const Tensor* bias = nullptr;
};

const Tensor* bias_of(const Checkpoint& checkpoint, const Gain& gain) {
  for (const std::string_view bias : gain.ending.biases) {
    if (bias.empty()) continue;
    const Tensor* const beside =
        checkpoint.find(fmt::format("{}{}{}{}", gain.stem, gain.separator, bias, gain.output));
    if (beside != nullptr && has_shape_of(*beside, gain.tensor)) return beside;
  }
  return nullptr;
}

/// Whether the module is a norm, by its name or by what stands beside it; `norm.doubt` then says what else it
/// may be.
bool is_a_norm(const Checkpoint& checkpoint, const Gain& gain, bool has_convolutions, NamedNorm& norm) {
  if (gain.ending.gain == "a_2") {
    norm.doubt = "names of the Annotated Transformer, which divides by the unbiased deviation plus eps";
    return gain.bias != nullptr;
  }
  if (names_a_norm(gain.stem)) {
    if (gain.ending.gain == "alpha")
      norm.doubt = "code with this name often divides by the unbiased deviation plus eps";
    return true;
  }
  const bool is_vector = gain.tensor.shape.size() == 1 && gain.bias != nullptr &&
                         gain.ending.gain == "weight" && gain.separator == "." && gain.tensor.elements() > 1;
  if (!is_vector || has_convolutions || !is_floating(gain.tensor.dtype)) return false;
  norm.may_span_positions = true;
  if (names_bn(gain.stem)) {
    norm.doubt = "a BatchNorm by its name, but without running statistics";
    return true;
  }
  norm.doubt =
      "known by its place in a Sequential beside linear maps only, where a BatchNorm or GroupNorm may stand";
  return is_beside_linear(checkpoint, gain.stem, gain.tensor.elements());
}

/// Sets the default of eps by the library whose names these are.
void set_default_eps(const Gain& gain, NamedNorm& norm) {
  const std::string last = lower(last_component(gain.stem));
  const auto set = [&norm](double eps, std::string_view library) {
    norm.eps = eps;
    norm.eps_of = library;
  };
  if (last.starts_with("layer_normalization") || last.starts_with("group_normalization"))
    return set(1e-3, "Keras");
  if (last.starts_with("rms_normalization")) return set(1e-6, "Keras");
  if (gain.ending.gain == "a_2" || gain.ending.gain == "alpha") return set(1e-6, "code with such names");
  if (gain.bias != nullptr && gain.bias->name.find("offset") != std::string::npos) return set(1e-5, "Haiku");
}

/// The norm of the module, or the norms.
std::optional<NamedNorm> norm_of(const Checkpoint& checkpoint, Gain gain, bool has_convolutions) {
  const Tensor& tensor = gain.tensor;
  NamedNorm norm{gain.stem};
  norm.not_analysed = other_kind(checkpoint, gain.stem, gain.output);
  if (!norm.not_analysed.empty()) return norm;
  gain.bias = bias_of(checkpoint, gain);
  if (!is_a_norm(checkpoint, gain, has_convolutions, norm)) return {};
  norm.gain = &tensor;
  norm.bias = gain.bias;
  norm.is_group = names_group_norm(gain.stem);
  set_default_eps(gain, norm);
  const std::size_t axes = long_axes(tensor).size();
  const bool is_bare = gain.ending.gain.empty();
  const bool is_head_norm = names_a_head_norm(gain.stem);
  if (axes > 1 && (is_head_norm || !(gain.ending.never_stacked && norm.bias != nullptr))) {
    // Else a matrix.
    if (is_bare || (gain.ending.never_stacked && !is_head_norm)) return {};
    constexpr std::uint64_t most_rows = 1024;
    if (tensor.shape.size() != 2 || tensor.shape[0] > most_rows ||
        (tensor.shape[0] > tensor.shape[1] && !is_head_norm)) {
      norm.not_analysed = "stack of norms along an axis that is not known";
      return norm;
    }
    norm.rows = tensor.shape[0];
  }
  if (axes == 0 && gain.ending.gain == "alpha") return {};
  if (axes == 0 && norm.bias == nullptr) {
    // The scale of a quantized gain stands beside it.
    if (is_bare || gain.separator == "_") return {};
    for (const char* whole : {".weight", ".gamma"}) {
      if (fmt::format("{}{}", gain.separator, gain.ending.gain) != whole &&
          checkpoint.find(fmt::format("{}{}{}", gain.stem, whole, gain.output)) != nullptr)
        return {};
    }
    norm.one_gain = true;
  }
  norm.alpha = gain.ending.gain == "alpha" ? nullptr : scalar_at(checkpoint, gain.stem + ".alpha");
  if (norm.alpha != nullptr) norm.shift = scalar_at(checkpoint, gain.stem + ".shift");
  return norm;
}

}  // namespace

bool is_convolution(const Tensor& tensor) {
  return is_floating(tensor.dtype) && tensor.name.ends_with("weight") && tensor.shape.size() >= 3 &&
         tensor.shape.size() <= 5 && tensor.shape[0] > 1;
}

bool may_be_a_gain(const Tensor& tensor) {
  const std::string_view name = without_output(tensor.name);
  const std::string last = lower(last_component(name));
  for (const char* word :
       {"bias", "beta", "offset", "mean", "var", "variance", "b", "b_2", "running_mean", "running_var"}) {
    if (last == word) return false;
  }
  return is_floating(tensor.dtype) && tensor.shape.size() == 1 && tensor.elements() > 1 &&
         tensor.elements() <= widest_norm && !is_beside_a_gain(name) && !is_of_optimizer(name);
}

std::optional<NamedNorm> norm_at(const Checkpoint& checkpoint, const Tensor& tensor, bool has_convolutions) {
  const std::uint64_t elements = tensor.elements();
  if (elements == 0 || elements > widest_norm || long_axes(tensor).size() > most_axes) return {};
  if (is_of_optimizer(tensor.name)) return {};
  const std::string_view name = without_output(tensor.name);
  const std::string_view output = tensor.name.substr(name.size());
  if (std::optional<NamedNorm> found = batch_norm_without_gain(checkpoint, name, output)) return found;
  const auto at = [&](std::string_view separator, const Ending& ending) {
    const std::size_t size = separator.size() + ending.gain.size();
    return norm_of(checkpoint,
                   {tensor, std::string(name.substr(0, name.size() - size)), separator, ending, output},
                   has_convolutions);
  };
  for (const std::string_view separator : separators) {
    const bool is_underscore = separator == "_";
    for (const Ending& ending : endings) {
      if (is_underscore && &ending == endings + endings_after_underscore) break;
      if (!name.ends_with(ending.gain) ||
          !name.substr(0, name.size() - ending.gain.size()).ends_with(separator)) {
        continue;
      }
      std::optional<NamedNorm> norm = at(separator, ending);
      if (norm || !is_underscore) return norm;
    }
  }
  // An integer under a norm's bare name is a constant; one named as its gain is kept, and refused when read.
  if (!is_floating(tensor.dtype) || is_beside_a_gain(name)) return {};
  return at("", bare);
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

}  // namespace normscope::models
