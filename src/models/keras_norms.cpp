#include "found_norms.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inventory.hpp"

namespace normscope::models {

namespace {

using files::Checkpoint;
using files::Tensor;
using Json = nlohmann::json;

// A model within a model adds four levels; deeper values are skipped.
constexpr int kKerasDepth = 64;

struct KerasLayer {
  std::string name;
  std::string type;  ///< its class
  const Json* config = nullptr;
  const Json* whole = nullptr;
};

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_at(const Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// Every object with a class and a name, in the order of the text.
void collect_layers(const Json& value, std::vector<KerasLayer>& layers) {
  if (value.is_object()) {
    const auto config = value.find("config");
    const std::string type = text_at(value, "class_name");
    if (!type.empty() && config != value.end() && config->is_object()) {
      if (std::string name = text_at(*config, "name"); !name.empty()) {
        layers.push_back({std::move(name), type, &*config, &value});
      }
    }
  }
  if (!value.is_structured()) return;
  for (const Json& child : value) collect_layers(child, layers);
}

// The weights of a file by layer.
class KerasWeights {
 public:
  explicit KerasWeights(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    constexpr std::string_view mark = "@name";
    for (const auto& [key, name] : checkpoint.metadata()) {
      if (key.ends_with(mark)) groups_.emplace(name, key.substr(0, key.size() - mark.size()));
    }
    for (const Tensor& tensor : checkpoint.tensors()) {
      std::string_view name = tensor.name;
      if (name.ends_with(":0")) name.remove_suffix(2);
      const std::size_t field = name.rfind('/');
      if (field == std::string_view::npos || field == 0) continue;
      const std::size_t layer = name.rfind('/', field - 1);
      fields_.emplace(name.substr(layer == std::string_view::npos ? 0 : layer + 1), &tensor);
    }
  }

  // The only weight of that field, or the only one at that index among the layer's own weights; null if there
  // is none.
  [[nodiscard]] const Tensor* find(const std::string& layer, const char* field, int place) const {
    const std::string name = layer + "/" + field;
    if (fields_.count(name) == 1) return fields_.find(name)->second;
    if (groups_.count(layer) != 1) return nullptr;
    return checkpoint_.find(fmt::format("{}/{}", groups_.find(layer)->second, place));
  }

 private:
  const Checkpoint& checkpoint_;
  std::multimap<std::string, std::string, std::less<>> groups_;    ///< paths of "vars" by layer
  std::multimap<std::string, const Tensor*, std::less<>> fields_;  ///< by "layer/field"
};

// The axes that a layer normalizes, and the shape of its input if the configuration states it.
struct KerasAxes {
  std::vector<std::int64_t> axes{};
  std::vector<std::uint64_t> input{};  ///< 0 for an extent that is not fixed

  explicit KerasAxes(const KerasLayer& layer) {
    const auto stated = layer.config->find("axis");
    if (stated != layer.config->end()) {
      for (const Json& axis : stated->is_array() ? *stated : Json::array({*stated})) {
        if (axis.is_number_integer()) axes.push_back(axis.get<std::int64_t>());
      }
    }
    if (axes.empty()) axes.push_back(-1);
    const auto build = layer.whole->find("build_config");
    if (build == layer.whole->end() || !build->is_object()) return;
    const auto shape = build->find("input_shape");
    if (shape == build->end() || !shape->is_array()) return;
    for (const Json& extent : *shape) {
      input.push_back(extent.is_number_unsigned() ? extent.get<std::uint64_t>() : 0);
    }
  }

  // An axis counted from the end; empty if the rank is needed and not known.
  [[nodiscard]] std::optional<std::int64_t> from_end(std::int64_t axis) const {
    if (axis < 0) return axis;
    if (input.empty()) return std::nullopt;
    return axis - static_cast<std::int64_t>(input.size());
  }

  // Product of the normalized extents, 0 if it is not known.
  [[nodiscard]] std::uint64_t width() const {
    std::uint64_t product = 1;
    for (const std::int64_t axis : axes) {
      const std::optional<std::int64_t> behind = from_end(axis);
      const auto rank = static_cast<std::int64_t>(input.size());
      if (!behind || *behind >= 0 || -*behind > rank) return 0;
      const std::uint64_t extent = input[static_cast<std::size_t>(rank + *behind)];
      if (__builtin_mul_overflow(product, extent, &product)) return 0;
    }
    return product;
  }

  // A note on the axes for the user; empty if they are the last ones.
  [[nodiscard]] std::string note(const std::string& name) const {
    std::vector<std::int64_t> behind;
    for (const std::int64_t axis : axes) {
      const std::optional<std::int64_t> known = from_end(axis);
      if (!known) {
        return fmt::format("{} normalizes axis {}; whether that is the last one, the file does not say", name,
                           axis);
      }
      behind.push_back(*known);
    }
    std::sort(behind.begin(), behind.end());
    const auto count = static_cast<std::int64_t>(behind.size());
    bool are_last = true;
    for (std::int64_t i = 0; i < count; ++i)
      are_last = are_last && behind[static_cast<std::size_t>(i)] == i - count;
    if (are_last) return "";
    return fmt::format(
        "{} normalizes axis {}, counted from the end: its gain indexes that axis, not the last", name,
        fmt::join(behind, ", "));
  }
};

Slice whole_of(const Tensor& tensor) { return {std::string(tensor.name), 0, tensor.elements(), {}}; }

// Turns layers into norms of a model.
class KerasNorms {
 public:
  KerasNorms(const Checkpoint& checkpoint, Model& model) : weights_(checkpoint), model_(model) {}

  void add(const KerasLayer& layer) {
    if (layer.type != "LayerNormalization" && layer.type != "RMSNormalization" &&
        layer.type != "GroupNormalization") {
      return;
    }
    const bool is_rms = layer.type == "RMSNormalization";
    const bool has_gain = is_rms || flag_at(*layer.config, "scale", true);
    const bool has_bias = !is_rms && flag_at(*layer.config, "center", true);
    const Tensor* gain = has_gain ? weights_.find(layer.name, is_rms ? "scale" : "gamma", 0) : nullptr;
    const Tensor* bias = has_bias ? weights_.find(layer.name, "beta", has_gain ? 1 : 0) : nullptr;
    for (const Tensor* tensor : {gain, bias}) {
      if (tensor != nullptr) tensors_.emplace(tensor->name);
    }
    const std::int64_t groups = groups_of(layer);
    if (flag_at(*layer.config, "rms_scaling", false)) return not_analysed(layer, "rms_scaling");
    if (groups < 1) return not_analysed(layer, "a group for each channel");
    if ((has_gain && gain == nullptr) || (has_bias && bias == nullptr))
      return leave_out(layer, "its weights");

    const KerasAxes axes(layer);
    Norm norm;
    norm.width = gain != nullptr ? gain->elements() : bias != nullptr ? bias->elements() : axes.width();
    if (norm.width == 0) return leave_out(layer, "its width");
    if (norm.width % static_cast<std::uint64_t>(groups) != 0)
      return leave_out(layer, "groups of equal width");
    norm.name = layer.name;
    norm.role = "unknown";
    norm.layer = first_number(layer.name);
    norm.kind = is_rms ? NormKind::rms : NormKind::layer;
    norm.groups = static_cast<std::size_t>(groups);
    const auto eps = layer.config->find("epsilon");
    const bool states_eps = eps != layer.config->end() && eps->is_number() && eps->get<double>() >= 0.0;
    norm.eps = states_eps ? eps->get<double>() : is_rms ? 1e-6 : 1e-3;
    norm.eps_source = states_eps ? Source::metadata : Source::assumed;
    if (gain != nullptr) norm.gain = whole_of(*gain);
    if (bias != nullptr) norm.bias = whole_of(*bias);
    if (const std::string note = axes.note(layer.name); !note.empty()) model_.notes.push_back(note);
    norm.spans_positions = layer.type == "GroupNormalization";
    if (norm.spans_positions) ++grouped_;
    model_.norms.push_back(std::move(norm));
    ++added_;
  }

  std::set<std::string, std::less<>> finish() {
    if (added_ != 0) {
      model_.notes.push_back(
          fmt::format("{} norms are those that the Keras configuration in the file states, in the order of "
                      "its layers; their "
                      "readers and writers are not known",
                      added_));
    }
    if (grouped_ != 0) {
      model_.notes.push_back(
          fmt::format("{} of them normalize groups of channels, over all positions together "
                      "(GroupNorm); their images are those for one position",
                      grouped_));
    }
    return std::move(tensors_);
  }

 private:
  static std::int64_t groups_of(const KerasLayer& layer) {
    if (layer.type != "GroupNormalization") return 1;
    const auto stated = layer.config->find("groups");
    return stated != layer.config->end() && stated->is_number_integer() ? stated->get<std::int64_t>() : 32;
  }

  void not_analysed(const KerasLayer& layer, const char* what) {
    model_.notes.push_back(
        fmt::format("{} is not analysed: it is a {} with {}", layer.name, layer.type, what));
  }

  void leave_out(const KerasLayer& layer, const char* what) {
    model_.notes.push_back(
        fmt::format("the configuration states the norm {}, but the file does not show {}", layer.name, what));
  }

  KerasWeights weights_;
  Model& model_;
  std::set<std::string, std::less<>> tensors_;
  std::size_t added_ = 0;
  std::size_t grouped_ = 0;
};

}  // namespace

std::set<std::string, std::less<>> append_keras_norms(const Checkpoint& checkpoint, Model& model) {
  const auto text = checkpoint.metadata().find("model_config");
  if (text == checkpoint.metadata().end()) {
    const auto is_numbered = [](const auto& entry) { return entry.first.ends_with("/vars@name"); };
    if (std::any_of(checkpoint.metadata().begin(), checkpoint.metadata().end(), is_numbered)) {
      model.notes.push_back(
          "Keras 3 numbers the weights of a layer: the only one of a norm is taken for its gain, and eps is "
          "not "
          "stated; the .keras archive of the model states both");
    }
    return {};
  }
  const auto keep = [](int depth, Json::parse_event_t, const Json&) { return depth <= kKerasDepth; };
  const Json config = Json::parse(text->second, keep, false);
  std::vector<KerasLayer> layers;
  collect_layers(config, layers);
  KerasNorms norms(checkpoint, model);
  std::set<std::string> named;
  for (const KerasLayer& layer : layers) {
    if (named.insert(layer.name).second) norms.add(layer);
  }
  return norms.finish();
}

}  // namespace normscope::models
