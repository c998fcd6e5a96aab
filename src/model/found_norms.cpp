#include "found_norms.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "inventory.hpp"

namespace normscope::model {

namespace {

using checkpoint::Checkpoint;
using checkpoint::Tensor;

struct Found {
  std::string stem;
  const Tensor* gain = nullptr;
  const Tensor* bias = nullptr;
  const Tensor* alpha = nullptr;  ///< of an elementwise norm
  const Tensor* shift = nullptr;
};

/// The tensor of that name if it is one number.
const Tensor* scalar_at(const Checkpoint& checkpoint, const std::string& name) {
  const Tensor* const tensor = checkpoint.find(name);
  return tensor != nullptr && tensor->elements() == 1 ? tensor : nullptr;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

/// Longer vectors are not norms, whatever their name.
constexpr std::uint64_t widest_norm = std::uint64_t{1} << 20;

/// Whether the last component of `stem` names a norm.
bool names_a_norm(std::string_view stem) {
  const std::string last = lower(stem.substr(stem.find_last_of("./") + 1));
  return last.find("norm") != std::string::npos || last == "ln" || last.starts_with("ln_") ||
         (last.size() > 2 && last.starts_with("ln") && last[2] >= '0' && last[2] <= '9') ||
         last.starts_with("rms_") || last == "rms";
}

/// Whether a component of `name`, between '.' or '/', says that an optimizer keeps the tensor, as Flax
/// ("opt_state") and Keras ("optimizer", "adam") name them.
bool is_of_optimizer(std::string_view name) {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("./"), name.size());
    const std::string component = lower(name.substr(0, end));
    for (const char* word : {"opt_state", "optimizer", "optimizer_state", "adam", "adamw"}) {
      if (component == word) return true;
    }
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

/// By its name, or by running statistics beside its gain.
bool is_batch_norm(const Checkpoint& checkpoint, const std::string& stem) {
  const std::string last = lower(std::string_view(stem).substr(stem.find_last_of("./") + 1));
  if (last.starts_with("batchnorm") || last.starts_with("batch_norm")) return true;
  for (const char* mean : {".running_mean", ".moving_mean", "/moving_mean"}) {
    if (checkpoint.find(stem + mean) != nullptr) return true;
  }
  return false;
}

std::optional<Found> norm_at(const Checkpoint& checkpoint, const Tensor& tensor) {
  if (tensor.shape.size() != 1 || tensor.shape[0] == 0 || tensor.shape[0] > widest_norm) return {};
  if (is_of_optimizer(tensor.name)) return {};
  for (const std::string_view ending : {".weight", ".gamma", ".scale", ".g", "/gamma", "/scale", ""}) {
    if (!tensor.name.ends_with(ending)) continue;
    // An integer under a norm's bare name is a constant; one named as its gain is kept, and refused when
    // read.
    if (ending.empty() && !is_floating(tensor.dtype)) continue;
    const std::string stem(tensor.name.substr(0, tensor.name.size() - ending.size()));
    if (!names_a_norm(stem) || is_batch_norm(checkpoint, stem)) continue;
    Found found{stem, &tensor};
    for (const char* bias : {".bias", ".beta", ".b", "/beta", "/bias"}) {
      const Tensor* beside = checkpoint.find(stem + bias);
      if (found.bias == nullptr && beside != nullptr && beside->shape.size() == 1 &&
          beside->shape[0] == tensor.shape[0]) {
        found.bias = beside;
      }
    }
    found.alpha = scalar_at(checkpoint, stem + ".alpha");
    if (found.alpha != nullptr) found.shift = scalar_at(checkpoint, stem + ".shift");
    return found;
  }
  return {};
}

bool named_rms(const Found& found) { return lower(found.stem).find("rms") != std::string::npos; }

NormKind kind_of(const Found& found, bool any_bias) {
  if (found.alpha != nullptr) return found.shift != nullptr ? NormKind::derf : NormKind::dyt;
  return found.bias == nullptr && (named_rms(found) || !any_bias) ? NormKind::rms : NormKind::layer;
}

// Whether a component of the name says that the tensor belongs to a vision tower or to a text tower.
std::optional<Tower> tower_of(std::string_view name) {
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string component = lower(name.substr(0, dot));
    if (component.starts_with("vision") || component.starts_with("visual") || component == "image_encoder") {
      return Tower::vision;
    }
    if (component.starts_with("text_") || component == "language_model") return Tower::text;
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return {};
}

// The eps of a norm found by name; in a model of several towers, from the section of its own tower.
std::optional<Config::Eps> eps_of(const Config& config, std::string_view name) {
  if (!config.has_section(Tower::vision)) return config.eps();
  const std::optional<Tower> tower = tower_of(name);
  if (!tower) return {};
  return config.of(*tower).eps();
}

// The default if nothing states it: 1e-5, as in CLIP and most others, or 1e-6, as in SigLIP.
double published_eps(const Config& config, std::string_view name) {
  if (tower_of(name) != Tower::vision) return 1e-5;
  const std::vector<std::string> types = config.of(Tower::vision).model_types();
  return !types.empty() && types.back().starts_with("siglip") ? 1e-6 : 1e-5;
}

Slice whole(const Tensor& tensor) { return {std::string(tensor.name), 0, tensor.elements(), {}}; }

}  // namespace

void append_found_norms(const Checkpoint& checkpoint, const Config& config,
                        const std::function<bool(const Tensor&)>& described, Model& model) {
  std::vector<Found> norms;
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (described(tensor)) continue;
    if (std::optional<Found> found = norm_at(checkpoint, tensor)) norms.push_back(std::move(*found));
  }
  if (norms.empty()) return;
  std::size_t assumed_eps = 0;
  const bool any_bias =
      std::any_of(norms.begin(), norms.end(), [](const Found& norm) { return norm.bias; }) ||
      std::any_of(model.norms.begin(), model.norms.end(), [](const Norm& norm) { return norm.bias; });
  std::size_t assumed_rms = 0;
  std::size_t assumed_layer = 0;
  // Sorted by layer number, which differs from the order of names.
  std::stable_sort(norms.begin(), norms.end(), [](const Found& a, const Found& b) {
    return first_number(a.stem).value_or(-1) < first_number(b.stem).value_or(-1);
  });
  for (const Found& found : norms) {
    Norm norm;
    norm.name = found.stem;
    norm.role = "unknown";
    norm.layer = first_number(found.stem);
    norm.kind = kind_of(found, any_bias);
    norm.width = found.gain->shape[0];
    const std::optional<Config::Eps> told = eps_of(config, found.stem);
    if (!told && found.alpha == nullptr) ++assumed_eps;
    norm.eps = told ? told->value : published_eps(config, found.stem);
    norm.eps_source = told ? told->source : Source::assumed;
    norm.gain = whole(*found.gain);
    if (found.bias != nullptr) norm.bias = whole(*found.bias);
    if (found.alpha != nullptr) norm.alpha = whole(*found.alpha);
    if (found.shift != nullptr) norm.shift = whole(*found.shift);
    if (found.bias == nullptr && !named_rms(found) && found.alpha == nullptr)
      ++(any_bias ? assumed_layer : assumed_rms);
    model.norms.push_back(std::move(norm));
  }
  model.notes.push_back(
      fmt::format("{} norms were found by name and shape alone: their readers and writers are not known, nor "
                  "whether each is one norm or several groups",
                  norms.size()));
  if (assumed_eps != 0) {
    model.notes.push_back(fmt::format(
        "the published default of eps is assumed for {}: neither configuration nor metadata state it",
        assumed_eps == norms.size() ? "them" : fmt::format("{} of them", assumed_eps)));
  }
  if (assumed_rms != 0) {
    model.notes.push_back(
        fmt::format("{} of them are taken for RMSNorm because no norm has a bias; they may be "
                    "LayerNorm without bias",
                    assumed_rms));
  }
  if (assumed_layer != 0) {
    model.notes.push_back(
        fmt::format("{} of them have no bias where others do, and are taken for LayerNorm; they "
                    "may be RMSNorm",
                    assumed_layer));
  }
}

}  // namespace normscope::model
