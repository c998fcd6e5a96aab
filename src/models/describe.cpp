#include "architecture.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

#include "builder.hpp"
#include "config.hpp"
#include "found_norms.hpp"
#include "inventory.hpp"

namespace normscope::models {

namespace {

using files::Checkpoint;
using files::Tensor;

struct Match {
  const Architecture* architecture = nullptr;
  std::string evidence;
  std::string other_type{};  // the configuration's model_type, if only tensor names are the architecture's
  bool is_stated = false;
};

bool answers_to(const Architecture& architecture, const std::string& type) {
  return std::find(architecture.model_types.begin(), architecture.model_types.end(), type) !=
         architecture.model_types.end();
}

bool fits_names(const Architecture& architecture, const Inventory& inventory) {
  const auto there = [&](std::string_view pattern) { return inventory.prefix_of(pattern).has_value(); };
  return std::all_of(architecture.signature.begin(), architecture.signature.end(), there) &&
         std::none_of(architecture.without.begin(), architecture.without.end(), there);
}

std::string with_stars(std::string_view pattern) {
  std::string text(pattern);
  for (std::size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}"))
    text.replace(at, 2, "*");
  return text + (text.ends_with('.') ? "*" : "");
}

// The tower's own model_type decides; a model that wraps a text model may have any other.
const Architecture* named_by(const std::vector<const Architecture*>& architectures, const Config& config,
                             const Inventory& inventory, Tower tower, std::string& type) {
  const std::vector<std::string> types = config.of(tower).model_types();
  if (types.empty()) return nullptr;
  type = types.back();
  for (const Architecture* architecture : architectures) {
    if (architecture->tower == tower && answers_to(*architecture, type) &&
        inventory.prefix_of(architecture->signature.front())) {
      return architecture;
    }
  }
  return nullptr;
}

// Bounds then hold for a model of that architecture, whatever model_type the configuration names.
Match stated_match(const std::vector<const Architecture*>& architectures, const Checkpoint& checkpoint,
                   const Inventory& inventory, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Architecture* architecture : architectures) names.push_back(architecture->name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    std::sort(names.begin(), names.end());
    throw Error(ErrorCode::Argument,
                fmt::format("model: architecture \"{}\" is not known, expected one of {}", name,
                            fmt::join(names, ", ")));
  }
  const Architecture* architecture = architectures[static_cast<std::size_t>(found - names.begin())];
  if (!inventory.prefix_of(architecture->signature.front())) {
    throw Error(ErrorCode::Argument,
                fmt::format("model: {}: has no tensors {}, expected for the stated architecture {}",
                            checkpoint.path().string(), with_stars(architecture->signature.front()), name));
  }
  return {architecture, "stated: " + name, "", true};
}

// A graph says what is computed, which names of tensors do not stand in for.
void note_names_of_graph(const Match& match, Model& model) {
  model.notes.push_back(fmt::format(
      "the {} are those of {}, but what is computed is what the graph states: only its norms and the maps "
      "that read them are described; state the architecture as {} to describe a model of it",
      match.evidence.starts_with("tensor names") ? "tensor names" : "configuration and tensor names",
      match.architecture->title, match.architecture->name));
}

std::optional<Match> recognise(const std::vector<const Architecture*>& architectures, const Config& config,
                               const Inventory& inventory) {
  std::string type;
  for (const Tower tower : {Tower::text, Tower::vision, Tower::audio}) {
    if (const Architecture* named = named_by(architectures, config, inventory, tower, type)) {
      return Match{named, fmt::format("{} model_type {}", config.where(), type)};
    }
  }
  // The longest signature is the most specific.
  const Architecture* best = nullptr;
  for (const Architecture* architecture : architectures) {
    if (!architecture->by_model_type_only && fits_names(*architecture, inventory) &&
        (best == nullptr || architecture->signature.size() > best->signature.size())) {
      best = architecture;
    }
  }
  if (best == nullptr) return {};
  const std::vector<std::string> types = config.of(best->tower).model_types();
  return Match{best, fmt::format("tensor names {}", with_stars(best->signature.front())),
               types.empty() ? std::string() : types.back()};
}

std::set<std::string_view> parameters_of(std::span<const StatedNorm> norms) {
  std::set<std::string_view> names;
  for (const StatedNorm& norm : norms) names.insert({norm.gain, norm.bias});
  return names;
}

// The norms of a graph whose gains are not in the description; one without a gain counts as described.
std::vector<StatedNorm> not_described(std::span<const StatedNorm> stated_norms, const Model& described) {
  std::set<std::string_view> gains;
  for (const Norm& norm : described.norms) {
    if (norm.gain) gains.insert(norm.gain->tensor);
  }
  std::vector<StatedNorm> others;
  for (const StatedNorm& norm : stated_norms) {
    if (!norm.gain.empty() && !gains.contains(norm.gain)) others.push_back(norm);
  }
  return others;
}

std::string unknown_title(std::string_view type) {
  return type.empty() ? "unknown architecture" : fmt::format("unknown architecture (model_type {})", type);
}

// Tensor names say what a model of unknown type looks like: the names of its norms and a guess of their
// order. How they are connected, heads and logits may be those of any other model.
void keep_resemblance(const Match& match, const Config& config, Model& model) {
  const std::string looks_like = model.title;
  model.architecture = "unknown";
  model.title = unknown_title(match.other_type);
  model.centres_exactly = model.rotates_exactly = false;
  model.in_llama_cpp.clear();
  model.in_transformer_lens = false;
  model.evidence = fmt::format("{} look like those of {}", match.evidence, looks_like);
  model.heads.clear();
  model.heads_per_layer = model.key_value_heads = 0;
  model.vocabulary.reset();
  model.decoder.reset();
  model.missing.clear();
  model.notes.clear();
  const bool one_has_offset = std::any_of(model.norms.begin(), model.norms.end(),
                                          [](const Norm& norm) { return norm.gain_offset != 0.0; });
  for (Norm& norm : model.norms) {
    norm.readers.clear();
    norm.writers.clear();
    norm.writing_norms.clear();
    norm.connections_known = norm.readers_known = norm.order_known = false;
    norm.kind_is_assumed = true;
    norm.placement = Placement::unknown;
    norm.eps_source = Source::assumed;
  }
  model.notes.push_back(fmt::format(
      "{} model_type {} is not known. Its tensors are named as those of {}, so the names and the "
      "order of the "
      "norms are a guess, and their kinds, every eps and the offset of the gains, {}, are "
      "assumed; ranges are the widest that they can have. What reads "
      "and writes them, heads and logits are not described; state the architecture to describe them",
      config.where(), match.other_type, looks_like, one_has_offset ? "1" : "0"));
}

/// A tower beside the text model, as a model of its own.
struct TowerPart {
  const Architecture* architecture = nullptr;
  Model model{};
  std::optional<Builder> builder{};
};

// The towers that have a section of the configuration: those described, and a note for each.
std::vector<std::unique_ptr<TowerPart>> other_towers(const std::vector<const Architecture*>& architectures,
                                                     const Checkpoint& checkpoint, const Config& whole,
                                                     const Inventory& inventory, Model& text) {
  std::vector<std::unique_ptr<TowerPart>> parts;
  for (const auto& [tower, words] : {std::pair{Tower::vision, "vision"}, {Tower::audio, "audio"}}) {
    if (!whole.has_section(tower)) continue;
    const Config config = whole.of(tower);
    std::string type;
    auto part = std::make_unique<TowerPart>();
    part->architecture = named_by(architectures, whole, inventory, tower, type);
    std::string why = fmt::format("model_type {} is not known", type);
    if (part->architecture != nullptr) {
      const std::string prefix = *inventory.prefix_of(part->architecture->signature);
      part->builder.emplace(checkpoint, config, inventory, prefix, part->model);
      try {
        part->architecture->describe(*part->builder);
        text.notes.push_back(fmt::format("beside the text model: {}, {}", part->architecture->title,
                                         prefix.empty() ? "without a prefix" : with_stars(prefix)));
        parts.push_back(std::move(part));
        continue;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::Shape && error.code() != ErrorCode::Format) throw;
        why = error.what();
      }
    }
    text.notes.push_back(fmt::format("the {} tower is not modelled: {}", words, why));
  }
  return parts;
}

// Maps between towers read the end of one and write to the beginning of the other.
bool is_between_towers(std::string_view tensor) {
  for (const std::string_view word : {"projector.", "connector.", "merger.", "vision_adapter.", "aligner.",
                                      "embed_vision.", "embed_audio."}) {
    if (tensor.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// Each tower's maps are none of the other's, and neither are those between them.
void set_apart(const Checkpoint& checkpoint, std::span<Builder* const> builders) {
  for (Builder* const one : builders) {
    for (const Builder* const other : builders) {
      if (other != one) one->leaves(*other);
    }
    for (const Tensor& tensor : checkpoint.tensors()) {
      if (tensor.shape.size() >= 2 && is_between_towers(tensor.name)) one->leaves(tensor);
    }
  }
}

// Norms of towers stand before those of the text model, whose stream begins with what they give.
void join(const TowerPart& part, bool replaces_tokens, Model& text) {
  for (Norm& norm : text.norms) {
    const bool begins =
        replaces_tokens && std::any_of(norm.writers.begin(), norm.writers.end(),
                                       [](const Linear& writer) { return writer.role == "token embedding"; });
    if (begins) norm.connections_known = false;
  }
  const Model& tower = part.model;
  text.norms.insert(text.norms.begin(), tower.norms.begin(), tower.norms.end());
  text.heads.insert(text.heads.begin(), tower.heads.begin(), tower.heads.end());
  text.missing.insert(text.missing.end(), tower.missing.begin(), tower.missing.end());
  text.buffers.insert(tower.buffers.begin(), tower.buffers.end());
  text.layers += tower.layers;
  text.centres_exactly = text.rotates_exactly = false;
  for (const std::string& note : tower.notes) {
    if (std::find(text.notes.begin(), text.notes.end(), note) == text.notes.end()) text.notes.push_back(note);
  }
}

// An architecture is described completely, or not at all if it was only guessed and the shapes contradict it.
// A file that states its norms itself can omit the description: exporters keep names but transpose matrices.
bool describe_as(const std::vector<const Architecture*>& architectures, const Match& match,
                 const Checkpoint& checkpoint, const Config& whole, const Inventory& inventory,
                 std::span<const StatedNorm> stated_norms, Model& model) {
  Model described;
  described.architecture = match.architecture->name;
  described.title = match.architecture->title;
  described.centres_exactly = match.architecture->centres_exactly;
  described.rotates_exactly = match.architecture->rotates_exactly;
  const std::vector<std::string> types = whole.of(match.architecture->tower).model_types();
  described.in_transformer_lens =
      is_in_transformer_lens(*match.architecture, types.empty() ? std::string_view() : types.back());
  described.in_llama_cpp = match.architecture->in_llama_cpp;
  described.evidence = match.evidence;
  const Config config = whole.of(match.architecture->tower);
  std::optional<Builder> builder;
  try {
    builder.emplace(checkpoint, config, inventory, *inventory.prefix_of(match.architecture->signature),
                    described);
    match.architecture->describe(*builder);
  } catch (const Error& error) {
    const bool is_needed = match.other_type.empty() && stated_norms.empty();
    // Fields of an unknown type may mean something else, as its tensors may.
    const bool may_mean_another = error.code() == ErrorCode::Shape || error.code() == ErrorCode::Format;
    if (is_needed || !may_mean_another) throw;
    model.notes.push_back(
        fmt::format("not {}, though the tensor names fit: {}", match.architecture->title, error.what()));
    return false;
  }
  std::vector<std::unique_ptr<TowerPart>> towers;
  if (match.architecture->tower == Tower::text && match.other_type.empty() && !builder->has_towers()) {
    towers = other_towers(architectures, checkpoint, whole, inventory, described);
    std::vector<Builder*> builders = {&*builder};
    for (const auto& part : towers) builders.push_back(&*part->builder);
    if (!towers.empty()) set_apart(checkpoint, builders);
  }
  if (!match.is_stated) builder->flag_norms_in_doubt();
  builder->finish(match.architecture->harmless);
  for (const auto& part : towers) {
    part->builder->finish(part->architecture->harmless);
    join(*part, !match.architecture->attends_to_towers, described);
  }
  if (!match.other_type.empty()) keep_resemblance(match, whole, described);
  take_stated_eps(stated_norms, described);
  const std::vector<StatedNorm> others = not_described(stated_norms, described);
  if (!others.empty()) append_stated_norms(checkpoint, others, described);
  const std::set<std::string_view> stated = parameters_of(others);
  append_found_norms(
      checkpoint, whole,
      [&](const Tensor& tensor) { return builder->used(tensor) || stated.contains(tensor.name); }, described);
  model = std::move(described);
  return true;
}

void describe_unknown(const Checkpoint& checkpoint, const Config& config,
                      std::span<const StatedNorm> stated_norms, Model& model) {
  model.architecture = "unknown";
  const std::vector<std::string> types = config.model_types();
  model.title = unknown_title(types.empty() ? "" : types.back());
  const std::optional<std::string> type = config.text({"_class_name"});
  if (type && !config.has({"model_type"}))
    model.title = fmt::format("unknown architecture ({})", *type);  // diffusers
  const bool states_norms = checkpoint.graph() != nullptr;
  model.evidence = states_norms ? "ONNX graph" : "no known tensor names";
  const std::set<std::string_view> stated = parameters_of(stated_norms);
  for (const Tensor& tensor : checkpoint.tensors()) {
    // Integer tensors of a graph hold shapes and axes.
    if (!states_norms || is_floating(tensor.dtype)) model.parameters += tensor.elements();
  }
  if (!stated_norms.empty()) append_stated_norms(checkpoint, stated_norms, model);
  const std::set<std::string, std::less<>> of_keras = append_keras_norms(checkpoint, model);
  if (!of_keras.empty()) model.evidence = "Keras configuration";
  append_found_norms(
      checkpoint, config,
      [&](const Tensor& tensor) { return stated.contains(tensor.name) || of_keras.contains(tensor.name); },
      model);
  std::map<std::size_t, std::size_t> widths;
  for (const Norm& norm : model.norms) {
    if (++widths[norm.width] > widths[model.width]) model.width = norm.width;
  }
}

/// A snapshot of a live module states what each norm computes, by the tensor of its gain.
void take_norms_of_modules(const Config& modules, Model& model) {
  for (Norm& norm : model.norms) {
    if (!norm.gain) continue;
    const std::optional<Config> stated = modules.inside({norm.gain->tensor.c_str()});
    if (!stated) continue;
    if (const std::optional<double> eps = stated->number({"eps"})) {
      norm.eps = *eps;
      norm.eps_source = modules.source();
    }
    if (const std::optional<std::string> kind = stated->text({"kind"})) {
      norm.kind = norm_kind(*kind);
      norm.kind_is_assumed = false;
    }
    norm.gain_offset = stated->number({"gain_offset"}).value_or(norm.gain_offset);
  }
}

}  // namespace

std::string other_norms_text(const Model& model) {
  std::string text;
  for (std::size_t i = 0; i < model.other_norms.size(); ++i) {
    const OtherNorms& other = model.other_norms[i];
    const bool last = i + 1 == model.other_norms.size();
    text += fmt::format("{}{} {}", i == 0 ? "" : last ? " and " : ", ", other.count, other.kind);
  }
  return text;
}

std::string why_no_logits(const Model& model) {
  if (!model.is_known()) return "not modelled: " + model.title;
  if (!model.vocabulary || !model.vocabulary->unembedding) {
    return "the file holds no unembedding, expected a model with a language head";
  }
  if (!model.vocabulary->not_modelled.empty()) return "not modelled: " + model.vocabulary->not_modelled;
  if (find_norm(model, model.vocabulary->final_norm) == nullptr) {
    return "its language head does not read a norm directly, expected a final norm before it";
  }
  return {};
}

double Alibi::bias(std::size_t position) const {
  const auto at = static_cast<double>(position);
  if (factor_of_rounded == 0.0) return slope * at;
  const auto rounded = [](double x) { return static_cast<double>(decode_bfloat16(encode_bfloat16(x))); };
  return factor_of_rounded * rounded(rounded(slope) * rounded(at));
}

std::string beyond_bounds(const Head& head) {
  std::string text;
  if (head.clip != 0.0) add_not_modelled(text, fmt::format("clip_qkv: {}", head.clip));
  if (head.alibi) add_not_modelled(text, "biases of scores by position (ALiBi)");
  if (head.sink) add_not_modelled(text, fmt::format("attention sinks (tensor \"{}\")", head.sink->tensor));
  return text;
}

std::string why_no_scores(const Head& head) {
  if (!head.not_modelled.empty()) return "not modelled: " + head.not_modelled;
  if (const std::string beyond = beyond_bounds(head); !beyond.empty()) {
    return "no bound covers its scores: " + beyond;
  }
  if (!head.query || !head.key) return "its query or key weights are not in the file";
  return {};
}

std::string why_no_heads(const Model& model) {
  if (!model.is_known()) return "not modelled: " + model.title;
  if (model.heads.empty()) {
    const bool attends = std::any_of(model.norms.begin(), model.norms.end(), [](const Norm& norm) {
      return std::any_of(norm.readers.begin(), norm.readers.end(),
                         [](const Linear& reader) { return reader.role.starts_with("query"); });
    });
    return attends ? "the number of heads is not known: neither configuration nor shapes determine it; "
                     "state it"
                   : "no attention heads were recognized";
  }
  std::string first;
  for (const Head& head : model.heads) {
    std::string why = why_no_scores(head);
    if (why.empty()) return {};
    if (first.empty()) first = std::move(why);
  }
  return first;
}

bool has_lens_names(const Model& model) { return model.architecture == "transformer_lens"; }

bool is_same_family(const Model& a, const Model& b) {
  return a.architecture == b.architecture || a.in_llama_cpp == b.architecture ||
         b.in_llama_cpp == a.architecture || (a.in_transformer_lens && has_lens_names(b)) ||
         (b.in_transformer_lens && has_lens_names(a));
}

Model describe_as_one_of(const std::vector<const Architecture*>& architectures, const Checkpoint& checkpoint,
                         const Stated& stated) {
  const Checkpoint& configured = stated.configuration == nullptr ? checkpoint : *stated.configuration;
  const Config config(configured, stated.heads);
  const Inventory inventory(checkpoint);
  const StatedNorms graph = stated_norms(checkpoint);
  const std::vector<StatedNorm>& norms = graph.norms;
  const std::optional<Config> norms_of_modules = config.inside({"normscope_norms"});
  Model model;
  std::optional<Match> match = stated.architecture.empty()
                                   ? recognise(architectures, config, inventory)
                                   : stated_match(architectures, checkpoint, inventory, stated.architecture);
  if (match && stated.architecture.empty() && checkpoint.graph() != nullptr) {
    note_names_of_graph(*match, model);
    match.reset();
  }
  const bool is_described =
      match && describe_as(architectures, *match, checkpoint, config, inventory, norms, model);
  if (!is_described) describe_unknown(checkpoint, config, norms, model);
  note_not_understood(graph.not_understood, model);
  model.near_misses = graph.near_misses;
  if (norms_of_modules) take_norms_of_modules(*norms_of_modules, model);
  if (!model.other_norms.empty()) {
    model.notes.push_back("normalization that is not analysed: " + other_norms_text(model));
  }
  if (stated.heads != 0 && model.heads.empty()) {
    model.notes.push_back(fmt::format("the stated {} heads are not used: {} describes no attention",
                                      stated.heads, model.title));
  }
  return model;
}

Model describe(const Checkpoint& checkpoint, const Stated& stated) {
  return describe_as_one_of(all_architectures(), checkpoint, stated);
}

}  // namespace normscope::models
