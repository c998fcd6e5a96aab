#include "found_norms.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "inventory.hpp"

namespace normscope::models {

namespace {

using files::Checkpoint;
using files::Tensor;

bool named_rms(const NamedNorm& found) { return lower(found.stem).find("rms") != std::string::npos; }

bool named_layer_norm(const NamedNorm& found) {
  const std::string name = lower(found.stem.substr(found.stem.find_last_of("./") + 1));
  return name.find("layernorm") != std::string::npos || name.find("layer_norm") != std::string::npos ||
         name.starts_with("ln") || name.ends_with("_ln");
}

NormKind kind_of(const NamedNorm& found, bool any_bias) {
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

// Whether the model is a diffusion model, whose configuration states the groups of its GroupNorms.
std::optional<std::uint64_t> diffusion_groups(const Config& config) {
  return config.count({"norm_num_groups"});
}

// Whether the norm is a LayerNorm of tokens between the convolutions of a diffusion model.
bool is_of_tokens(std::string_view stem) {
  return stem.find("transformer_blocks.") != std::string_view::npos;
}

// The groups of a GroupNorm, 1 for other norms; empty for a GroupNorm if nothing states them.
std::optional<std::uint64_t> groups_of(const Config& config, const NamedNorm& found) {
  const std::optional<std::uint64_t> groups = diffusion_groups(config);
  if (!found.is_group && (!groups || is_of_tokens(found.stem))) return 1;
  return groups ? groups : config.count({"num_groups"});
}

// What diffusers sets in code: the tokens' norms have 1e-5 and those before tokens 1e-6 whatever the
// configuration says, and autoencoders, which state none, 1e-6.
std::optional<Config::Eps> diffusion_eps(const Config& config, std::string_view stem) {
  if (is_of_tokens(stem)) return Config::Eps{1e-5, Source::assumed};
  const bool before_tokens = stem.find("attentions.") != std::string_view::npos && stem.ends_with(".norm");
  const std::optional<Config::Eps> stated = config.eps();
  return before_tokens || !stated ? Config::Eps{1e-6, Source::assumed} : stated;
}

// The eps of a norm found by name; in a model of several towers, from the section of its own tower.
std::optional<Config::Eps> eps_of(const Config& config, std::string_view name) {
  if (diffusion_groups(config)) return diffusion_eps(config, name);
  if (!config.has_section(Tower::vision)) return config.eps();
  const std::optional<Tower> tower = tower_of(name);
  if (!tower) return {};
  return config.of(*tower).eps();
}

// Whether the file is of a vision tower that has SigLIP's default eps, 1e-6.
bool is_of_siglip(const Config& config, std::string_view name) {
  if (tower_of(name) != Tower::vision) return false;
  const std::vector<std::string> types = config.of(Tower::vision).model_types();
  return !types.empty() && types.back().starts_with("siglip");
}

Slice whole(const Tensor& tensor) { return {std::string(tensor.name), 0, tensor.elements(), {}}; }

// The features of the norms that have one gain for all, if there are such norms: those of the model, or those
// of most other norms. 0 if unknown.
std::uint64_t width_of_rows(const Config& config, const Model& model, const std::vector<NamedNorm>& norms) {
  if (std::none_of(norms.begin(), norms.end(), [](const NamedNorm& norm) { return norm.one_gain; })) return 0;
  if (model.width != 0) return model.width;
  const auto stated = config.counts({"hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim"});
  if (stated && stated->size() == 1) return stated->front();
  std::map<std::uint64_t, std::size_t> widths;
  for (const NamedNorm& norm : norms) {
    if (!norm.one_gain) ++widths[norm.gain->elements() / norm.rows];
  }
  const auto most = std::max_element(widths.begin(), widths.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == widths.end() ? 0 : most->first;
}

// Norms found by name and shape, in the order of their names; those that are not analysed are counted.
class FoundNorms {
 public:
  FoundNorms(const Checkpoint& checkpoint, const Config& config,
             const std::function<bool(const Tensor&)>& described)
      : config_(config), has_graph_(checkpoint.graph() != nullptr) {
    const auto tensors = checkpoint.tensors();
    has_convolutions_ = std::any_of(tensors.begin(), tensors.end(), is_convolution);
    for (const Tensor& tensor : tensors) {
      if (described(tensor)) continue;
      if (std::optional<NamedNorm> found = norm_at(checkpoint, tensor, has_convolutions_)) {
        take(std::move(*found));
      } else if (may_be_a_gain(tensor)) {
        other_vectors_.emplace_back(tensor.name);
      }
    }
    std::stable_sort(norms_.begin(), norms_.end(),
                     [](const NamedNorm& a, const NamedNorm& b) { return natural_less(a.stem, b.stem); });
  }

  void append_to(Model& model) {
    if (has_graph_) return note_named(model);
    const std::uint64_t rows = width_of_rows(config_, model, norms_);
    if (rows == 0) std::erase_if(norms_, [&](const NamedNorm& norm) { return leave_out(norm); });
    any_bias_ =
        std::any_of(norms_.begin(), norms_.end(), [](const NamedNorm& norm) { return norm.bias; }) ||
        std::any_of(model.norms.begin(), model.norms.end(), [](const Norm& norm) { return norm.bias; });
    for (const NamedNorm& found : norms_) {
      for (std::uint64_t row = 0; row < found.rows; ++row) model.norms.push_back(norm_of(found, rows, row));
      count_ += found.rows;
    }
    if (!norms_.empty()) add_notes(model);
    if (model.norms.empty() && others_.empty() && !other_vectors_.empty()) {
      model.notes.push_back(
          fmt::format("no norm was found by name; vectors that may be gains: {}", first_of(other_vectors_)));
    }
    for (const auto& [kind, stems] : others_) add_other_norms(model, kind, stems.size());
  }

 private:
  void take(NamedNorm found) {
    // A graph says itself which other norms it has.
    if (found.not_analysed.empty()) {
      const std::optional<std::uint64_t> groups = groups_of(config_, found);
      if (groups && found.gain->elements() % *groups == 0) return norms_.push_back(std::move(found));
      found.not_analysed = "GroupNorm";
    }
    if (!has_graph_) others_[found.not_analysed].insert(found.stem);
  }

  bool leave_out(const NamedNorm& norm) {
    if (norm.one_gain) others_["ScaleNorm"].insert(norm.stem);
    return norm.one_gain;
  }

  // The graph says what is computed: a name does not stand in for an operator that is not understood.
  void note_named(Model& model) const {
    std::vector<std::string> names;
    for (const NamedNorm& found : norms_) names.emplace_back(found.gain->name);
    if (names.empty()) return;
    model.notes.push_back(
        fmt::format("stated by no graph pattern, though the names of these tensors suggest norms: {}; "
                    "nothing is computed "
                    "of them",
                    first_of(names)));
  }

  Norm norm_of(const NamedNorm& found, std::uint64_t features, std::uint64_t row) {
    Norm norm;
    norm.name = found.rows == 1 ? found.stem : fmt::format("{}[{}]", found.stem, row);
    norm.role = "unknown";
    norm.order_known = false;
    norm.kind_is_assumed = true;
    norm.layer = first_number(found.stem);
    norm.kind = kind_of(found, any_bias_);
    norm.width = found.one_gain ? features : found.gain->elements() / found.rows;
    norm.groups = *groups_of(config_, found);
    const std::optional<Config::Eps> stated = eps_of(config_, found.stem);
    norm.eps = stated ? stated->value : is_of_siglip(config_, found.stem) ? 1e-6 : found.eps;
    norm.eps_source = stated ? stated->source : Source::assumed;
    const auto part = [&](const Tensor& tensor) {
      return found.rows == 1 ? whole(tensor)
                             : Slice{std::string(tensor.name), row * norm.width, norm.width, row};
    };
    norm.gain = part(*found.gain);
    if (found.bias != nullptr) norm.bias = part(*found.bias);
    if (found.alpha != nullptr) norm.alpha = whole(*found.alpha);
    if (found.shift != nullptr) norm.shift = whole(*found.shift);
    if (found.one_gain) {
      norm.kind = found.gain->name.ends_with("g") ? NormKind::rms : NormKind::spherical;
      ++scales_;
    }
    if (norm.groups > 1) ++grouped_;
    norm.spans_positions = found.is_group || norm.groups > 1 || found.may_span_positions ||
                           (may_be_a_group_norm(found, norm) && !is_of_tokens(found.stem));
    assumed_[assumptions(found, norm)].push_back(norm.name);
    return norm;
  }

  [[nodiscard]] bool may_be_a_group_norm(const NamedNorm& found, const Norm& norm) const {
    return has_convolutions_ && norm.groups == 1 && !named_rms(found) && !named_layer_norm(found);
  }

  // What a name and a shape leave open, and why it was decided so.
  [[nodiscard]] std::string assumptions(const NamedNorm& found, const Norm& norm) const {
    std::string text = fmt::format(
        "{}, {}", facts(norm.kind).title,
        found.alpha != nullptr  ? "since an alpha stands beside the gain"
        : found.one_gain        ? "since it has one gain for all features"
        : found.bias != nullptr ? "since it has a bias"
        : named_rms(found)      ? "by its name"
        : any_bias_             ? "without a bias, though others have one; it may be an RMSNorm"
                    : "since no norm that was found has a bias; it may be a LayerNorm without one");
    if (!found.doubt.empty()) text += fmt::format(" ({})", found.doubt);
    if (found.rows > 1) text += "; a row of the gain for each layer or head";
    if (found.alpha == nullptr && norm.eps_source == Source::assumed) {
      text += fmt::format("; eps {:g}, the default of {}", norm.eps,
                          norm.eps == found.eps ? found.eps_of : "this kind of model");
    }
    text += "; the gain as stored, nothing added";
    if (may_be_a_group_norm(found, norm)) text += "; beside convolutions it may be a GroupNorm";
    return text;
  }

  void add_notes(Model& model) const {
    const auto note = [&](std::size_t count, const char* text) {
      if (count == 0) return;
      model.notes.push_back(
          fmt::format(fmt::runtime(text), count == count_ ? "they" : fmt::format("{} of them", count)));
    };
    model.notes.push_back(fmt::format(
        "{} norms were found by name and shape alone, and stand in the order of their names: neither "
        "the order of the forward pass nor their readers and writers are known, nor "
        "whether each is one norm or several groups; ranges are the widest that they can have: of an RMSNorm "
        "without groups, with the gain as stored or 1 more",
        count_));
    for (const auto& [text, names] : assumed_) {
      model.notes.push_back(fmt::format("assumed for {}: {}", first_of(names), text));
    }
    note(
        scales_,
        "{} have one gain for all features: \"g\" is taken for that of an RMSNorm, as in x-transformers, any "
        "other name for the length of the output (ScaleNorm)");
    note(grouped_,
         "{} normalize groups of channels, over all positions together (GroupNorm); their images are those "
         "for "
         "one position");
  }

  const Config& config_;
  bool has_graph_;
  bool has_convolutions_ = false;
  std::vector<std::string> other_vectors_{};  ///< of tensors that are no norms by name
  std::vector<NamedNorm> norms_{};
  std::map<std::string, std::set<std::string>> others_{};  ///< stems by kind
  bool any_bias_ = false;
  std::uint64_t count_ = 0;
  std::map<std::string, std::vector<std::string>> assumed_{};  ///< names of norms by what is assumed for them
  std::size_t scales_ = 0, grouped_ = 0;
};

}  // namespace

void append_found_norms(const Checkpoint& checkpoint, const Config& config,
                        const std::function<bool(const Tensor&)>& described, Model& model) {
  FoundNorms(checkpoint, config, described).append_to(model);
  if (checkpoint.graph() == nullptr) return;
  for (const auto& [kind, count] : other_onnx_norms(*checkpoint.graph())) add_other_norms(model, kind, count);
}

}  // namespace normscope::models
