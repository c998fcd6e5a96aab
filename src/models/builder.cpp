#include "builder.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <normscope/core/error.hpp>

namespace normscope::models {
namespace {

struct NamedActivation {
  std::string_view name;
  Activation activation;
};

// Hugging Face's names. "gelu_new" and "gelu_pytorch_tanh" are the same function.
constexpr NamedActivation kActivations[] = {
    {"gelu", Activation::gelu},          {"gelu_python", Activation::gelu},
    {"gelu_new", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"silu", Activation::silu},          {"swish", Activation::silu},
    {"relu", Activation::relu},          {"relu2", Activation::squared_relu},
};

}  // namespace

void Builder::other(std::string_view name) {
  if (const files::Tensor* tensor = checkpoint_.find(full(name))) used_.insert(tensor);
}

void Builder::parameter(std::string_view role, std::string_view name, ParameterForm form) {
  const std::optional<Parameter> found = find(name, {".weight", ""});
  if (!found) return miss(full(name));
  const std::span<const std::uint64_t> shape = found->shape;
  const bool is_matrix = form == ParameterForm::matrix;
  if (found->slice.count == 0 || (is_matrix && shape.size() != 2)) reject(*found, "[any, any]");
  const bool transposed = is_matrix && layout_of(*found) == Layout::in_out;
  Linear map;
  map.role = role;
  map.weight = found->slice;
  map.layout = transposed ? Layout::in_out : Layout::out_in;
  map.out = map.stored_out = is_matrix                    ? shape[transposed ? 1 : 0]
                             : form == ParameterForm::row ? 1
                                                          : found->slice.count;
  map.in = found->slice.count / map.out;
  model_.others.push_back(std::move(map));
}

void Builder::buffer(std::string_view name) {
  if (const files::Tensor* tensor = checkpoint_.find(full(name))) {
    model_.buffers.insert(std::string(tensor->name));
    if (used_.insert(tensor).second) buffered_ += tensor->elements();
  }
}

bool Builder::causal_mask(std::string_view name) {
  buffer(name);
  const files::Tensor* const mask = checkpoint_.find(full(name));
  if (mask == nullptr || mask->shape.empty() || mask->dtype != Dtype::BOOL) return false;
  std::vector<std::byte> buffer;
  const std::span<const std::byte> values = mask->bytes.fetch(buffer);
  const std::uint64_t last = mask->shape.back();
  return last != 0 && last <= values.size() &&
         std::all_of(values.end() - static_cast<std::ptrdiff_t>(last), values.end(),
                     [](std::byte visible) { return visible != std::byte{0}; });
}

bool Builder::buffer_of_zeros(std::string_view name) {
  buffer(name);
  return holds_zeros(full(name));
}

bool Builder::holds_zeros(const std::string& name) const {
  const files::Tensor* const tensor = checkpoint_.find(name);
  if (tensor == nullptr) return false;
  std::vector<std::byte> buffer;
  const std::span<const std::byte> values = tensor->bytes.fetch(buffer);
  return std::all_of(values.begin(), values.end(), [](std::byte value) { return value == std::byte{0}; });
}

std::span<Head> Builder::last_heads() {
  std::size_t first = model_.heads.size();
  while (first > 0 && model_.heads[first - 1].layer == scope_.layer) --first;
  return std::span(model_.heads).subspan(first);
}

void Builder::mask_of_heads(std::string_view name) {
  buffer(name);
  const files::Tensor* const mask = checkpoint_.find(full(name));
  if (mask == nullptr || model_.heads.empty()) return;
  const std::optional<std::size_t> window = model_.heads.back().window;
  bool agrees = mask->dtype == Dtype::BOOL && !mask->shape.empty();
  if (agrees) {
    std::vector<std::byte> buffer;
    const std::span<const std::byte> values = mask->bytes.fetch(buffer);
    const std::uint64_t columns = mask->shape.back();
    for (std::uint64_t at = 0; at < values.size() && agrees; ++at) {
      const std::uint64_t row = at / columns;
      const std::uint64_t column = at % columns;
      const bool sees = column <= row && (!window || row - column < *window);
      agrees = sees == (values[at] != std::byte{0});
    }
  }
  if (agrees) return;
  for (Head& head : last_heads()) {
    add_not_modelled(head.not_modelled, fmt::format("the positions that tensor \"{}\" hides", mask->name));
  }
}

void Builder::score_of_hidden(std::string_view name) {
  buffer(name);
  const files::Tensor* const score = checkpoint_.find(full(name));
  if (score == nullptr || model_.heads.empty()) return;
  constexpr double lowest = -1e4;  // of float16: other scores are further above than exp can tell from zero
  if (score->elements() == 1 && score->is_decodable() && files::read(*score)[0] <= lowest) return;
  for (Head& head : last_heads()) {
    add_not_modelled(head.not_modelled,
                     fmt::format("the score of hidden positions, tensor \"{}\"", score->name));
  }
}

// The prefix of the described layer that contains a tensor; empty if there is none.
std::string Builder::layer_of(std::string_view tensor) const {
  auto after = layer_prefixes_.upper_bound(tensor);
  if (after == layer_prefixes_.begin()) return {};
  --after;
  return tensor.starts_with(*after) ? *after : std::string();
}

// An unknown matrix may read a norm or write to the stream: connections of the norms in its layer, or of
// those outside the layers, are then marked incomplete.
void Builder::flag_leftovers() {
  std::vector<std::string> names;
  std::size_t count = 0;
  std::set<std::string> places, described;
  for (const Norm& norm : model_.norms) described.insert(layer_of(norm.name));
  described.erase("");
  bool runs = model_.decoder.has_value();
  for (const files::Tensor& tensor : checkpoint_.tensors()) {
    if (used(tensor)) continue;
    // A layer may do something with it, as routers do with a correction.
    if (runs && described.contains(layer_of(tensor.name))) {
      add_not_modelled(model_.decoder->not_modelled, fmt::format("tensor \"{}\"", tensor.name));
      runs = false;
    }
    if (tensor.shape.size() < 2) continue;
    if (++count <= 3) names.push_back(fmt::format("\"{}\"", tensor.name));
    places.insert(layer_of(tensor.name));
  }
  if (count == 0) return;
  note(
      fmt::format("{} tensors are not part of the known architecture, {} {}: norms near them may have more "
                  "readers or writers",
                  count, count <= 3 ? "namely" : "such as", fmt::join(names, ", ")));
  for (Norm& norm : model_.norms) {
    if (places.contains(layer_of(norm.name))) norm.connections_known = norm.readers_known = false;
  }
}

void Builder::finish(std::span<const std::string_view> harmless) {
  for (const auto& [name, use] : biases_) {
    if (!use.present) continue;
    for (const std::string& tensor : use.absent) miss(tensor);
  }
  // If all heads are in one stack, its name would carry no information.
  const bool one_stack = std::all_of(model_.heads.begin(), model_.heads.end(), [&](const Head& head) {
    return head.stack == model_.heads.front().stack;
  });
  if (one_stack) {
    for (Head& head : model_.heads) head.stack.clear();
  }
  if (!checkpoint_.quantization().empty()) {
    const std::optional<Config> stored = config_.inside({"quantization_config"});
    const std::optional<std::string> rounding = stored ? stored->text({"input_rounding"}) : std::nullopt;
    if (rounding) {
      note(fmt::format(
          "the inputs of quantized matrices are rounded too when it runs ({}); numbers are for inputs "
          "that are not",
          *rounding));
    }
  }
  flag_leftovers();
  flag_attention_leftovers();
  flag_biased_norms();
  flag_biases();
  flag_fields(harmless);
  flag_tensors_beside();
  if (has_further_layers_ && model_.decoder) {
    add_not_modelled(model_.decoder->not_modelled, "more layers than the configuration states");
  }
  gather_not_modelled();
  for (const files::Tensor& tensor : checkpoint_.tensors()) model_.parameters += tensor.elements();
  model_.parameters -= buffered_;
  model_.fields_read = config_.read();
  model_.width = width_;
  if (model_.decoder && embedding_times_root_) {
    model_.decoder->embedding_scale *= std::sqrt(static_cast<double>(width_));
  }
  if (unlisted_ != 0) note(fmt::format("{} more tensors are missing than are listed", unlisted_));
  if (attends_ && counts_.heads == 0) {
    note("the number of heads is not known: neither configuration nor shapes determine it; state it");
  }
}

namespace {

constexpr std::size_t kListed = 100;
constexpr std::uint64_t kStackedLayers = 10'000;

}  // namespace

Builder::Builder(const files::Checkpoint& checkpoint, const Config& config, const Inventory& inventory,
                 std::string prefix, Model& model)
    : checkpoint_(checkpoint), config_(config), inventory_(inventory), model_(model) {
  scope_.prefix = std::move(prefix);
  read_sizes();
}

void Builder::read_sizes() {
  const Config& config = config_;
  width_ = config.count({"hidden_size", "n_embd", "d_model"}).value_or(0);
  // A list has a number for each stage, which only an architecture with stages can assign.
  const auto heads = config.counts(Config::heads_keys);
  counts_.heads = heads && heads->size() == 1 ? heads->front() : 0;
  counts_.key_value_heads = config.count({"num_key_value_heads"}).value_or(0);
  counts_.head_dim = config.count({"head_dim"}).value_or(0);
  if (grouped_) grouped_queries();
}

void Builder::grouped_queries() {
  grouped_ = true;
  if (counts_.heads > 0 && counts_.key_value_heads > 0 && counts_.heads % counts_.key_value_heads != 0) {
    throw Error(ErrorCode::Format,
                fmt::format("model: {}: \"num_key_value_heads\" is {}, expected a divisor of the {} heads",
                            config_.where(), counts_.key_value_heads, counts_.heads));
  }
}

void Builder::tower(Tower tower) {
  earlier_towers_.push_back(config_);
  config_ = config_.of(tower);
  read_sizes();
}

void Builder::section(const char* key) {
  earlier_towers_.push_back(config_);
  if (const std::optional<Config> inner = earlier_towers_.front().inside({key})) config_ = *inner;
  read_sizes();
}

bool Builder::packs_outputs_first() const {
  return checkpoint_.quantization() == "gptq" || checkpoint_.quantization() == "awq";
}

std::string Builder::model_type() const {
  const std::vector<std::string> types = config_.model_types();
  return types.empty() ? std::string() : types.back();
}

bool Builder::has(std::string_view name) const { return !inventory_.starting_with(full(name)).empty(); }

std::vector<std::uint64_t> Builder::shape(std::string_view name) const {
  const files::Tensor* tensor = checkpoint_.find(full(name));
  return tensor == nullptr ? std::vector<std::uint64_t>{}
                           : std::vector<std::uint64_t>(tensor->shape.begin(), tensor->shape.end());
}

bool Builder::predicts_further() const {
  const std::optional<std::uint64_t> layers = config_.count({"num_hidden_layers"});
  return layers && static_cast<std::uint64_t>(scope_.layer.value_or(0)) >= *layers;
}

void Builder::note(std::string text) {
  if (std::find(model_.notes.begin(), model_.notes.end(), text) == model_.notes.end()) {
    model_.notes.push_back(std::move(text));
  }
}

std::optional<double> Builder::stated_number(const char* key, double published) {
  const std::optional<double> value = config_.number_or_false({key});
  if (value && *value > 0.0) return value;
  if (value || config_.states({key}) || published == 0.0) return {};
  note(fmt::format("{} {} is assumed, the published default: no configuration states it", key, published));
  return published;
}

// A class reads one field; those of other names are written by other tools and change nothing.
std::optional<Config::Eps> Builder::stated_eps(const char* key) {
  if (key == nullptr || config_.model_types().empty()) return config_.eps();
  std::optional<Config::Eps> stated;
  if (*key != '\0' && config_.has({key})) stated = Config::Eps{*config_.number({key}), config_.source()};
  for (const char* const other : Config::eps_keys) {
    const std::optional<double> unread =
        other == std::string_view(key) ? std::nullopt : config_.number({other});
    if (unread && (!stated || *unread != stated->value)) {
      note(fmt::format("{}: {} changes nothing: the code of a {} does not read it", other, *unread,
                       model_type()));
    }
  }
  return stated;
}

void Builder::norms(const NormStyle& style) {
  style_ = style;
  const std::optional<Config::Eps> stated = stated_eps(style.eps_key);
  eps_ = stated ? stated->value : style.eps;
  eps_source_ = stated ? stated->source : Source::assumed;
  if (!stated) {
    note(fmt::format("eps {} is assumed, the published default: neither configuration nor metadata state it",
                     style.eps));
  }
}

void Builder::in_scope(Scope scope, const std::function<void()>& body) {
  std::swap(scope, scope_);
  body();
  scope_ = std::move(scope);
}

void Builder::within(std::string_view prefix, const std::function<void()>& body) {
  Scope inner = scope_;
  inner.prefix += prefix;
  in_scope(std::move(inner), body);
}

void Builder::where(std::string_view prefix, const std::function<void()>& body) {
  Scope outer = scope_;
  while (inventory_.starting_with(outer.prefix + std::string(prefix)).empty()) {
    if (outer.prefix.empty()) return;
    const std::size_t dot = outer.prefix.rfind('.', outer.prefix.size() - 2);
    outer.prefix.resize(dot == std::string::npos ? 0 : dot + 1);
  }
  outer.prefix += prefix;
  in_scope(std::move(outer), body);
}

void Builder::each_layer(std::string_view pattern, const std::function<void()>& body,
                         Config::Keys count_keys) {
  const std::optional<std::uint64_t> usual =
      config_.count({"num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth"});
  const std::optional<std::uint64_t> own = config_.count(count_keys);
  each_of(pattern, body, (own ? own : usual).value_or(0));
}

void Builder::each_layer_of_stage(std::string_view pattern, std::size_t stage,
                                  const std::function<void()>& body) {
  const std::optional<std::vector<std::uint64_t>> depths = config_.counts({"depths"});
  each_of(pattern, body, depths && stage < depths->size() ? (*depths)[stage] : 0);
}

void Builder::each_part(std::string_view pattern, const std::function<void()>& body) {
  const std::size_t hole = pattern.find("{}");
  const std::string head = full(pattern.substr(0, hole));
  for (const int number : inventory_.numbers_after(head)) {
    in_scope({fmt::format("{}{}{}", head, number, pattern.substr(hole + 2)), number}, body);
  }
}

void Builder::each_stage(std::string_view pattern, const std::function<void(std::size_t stage)>& body) {
  each_part(pattern, [&] {
    const int number = scope_.layer.value_or(0);
    stack_ = fmt::format("stage {}", number);
    body(static_cast<std::size_t>(number));
  });
}

void Builder::each_of(std::string_view pattern, const std::function<void()>& body, std::uint64_t configured) {
  const std::size_t hole = pattern.find("{}");
  const std::string head = full(pattern.substr(0, hole));
  const std::string_view tail = pattern.substr(hole + 2);
  const std::vector<int> numbers = inventory_.numbers_after(head);
  const int found = numbers.empty() ? 0 : numbers.back() + 1;
  const int stated = applications_ == 1 ? static_cast<int>(configured) : 0;
  if (stated != 0 && stated < found) {
    note(fmt::format("the configuration states {} layers, the tensors have {}", stated, found));
  }
  const auto miss_layers = [&](int from, int to) {
    if (from < to) writers_known_ = false;
    for (int layer = from; layer < to; ++layer) {
      if (model_.missing.size() == kListed) {
        unlisted_ += static_cast<std::uint64_t>(to - layer);
        break;
      }
      miss(fmt::format("{}{}{}*", head, layer, tail));
    }
  };
  int expected = 0;
  for (const int number : numbers) {
    miss_layers(expected, number);
    expected = number + 1;
    std::string prefix = fmt::format("{}{}{}", head, number, tail);
    layer_prefixes_.insert(prefix);
    const std::size_t before = model_.norms.size();
    in_scope({std::move(prefix), number}, body);
    has_further_layers_ |= stated != 0 && number >= stated && model_.norms.size() > before;
  }
  miss_layers(expected, stated);
  add_layers(std::int64_t{std::max(found, stated)} * applications_);
}

void Builder::add_layers(std::int64_t count) {
  model_.layers =
      static_cast<int>(std::min<std::int64_t>(model_.layers + count, std::numeric_limits<int>::max()));
}

void Builder::each_stacked(std::string_view name, const std::function<void()>& body) {
  const files::Tensor* tensor = checkpoint_.find(full(name));
  if (tensor == nullptr) return miss(full(name));
  if (tensor->shape.size() < 2 || tensor->elements() == 0 || tensor->shape[0] > kStackedLayers) {
    reject({tensor, tensor->shape, {}}, fmt::format("a stack of 1 to {} layers", kStackedLayers));
  }
  const std::uint64_t count = tensor->shape[0];
  for (std::uint64_t layer = 0; layer < count; ++layer) {
    in_scope({scope_.prefix, static_cast<int>(layer), count, layer}, body);
  }
  add_layers(static_cast<std::int64_t>(count));
}

void Builder::each_expert(std::string_view name, const std::function<void()>& body) {
  if (const files::Tensor* stack = checkpoint_.find(full(name))) {
    const std::uint64_t count = stack->shape.empty() ? 0 : stack->shape[0];
    if (stack->elements() == 0 || count > kStackedLayers) {
      reject({stack, stack->shape, {}}, fmt::format("a stack of 1 to {} experts", kStackedLayers));
    }
    for (std::uint64_t expert = 0; expert < count; ++expert) {
      in_scope({scope_.prefix, scope_.layer, count, expert, true}, body);
    }
    return;
  }
  const std::string head = full(name) + ".";
  const std::vector<int> numbers = inventory_.numbers_after(head);
  if (numbers.empty()) miss_reader(name);
  for (const int number : numbers) {
    in_scope({fmt::format("{}{}.", head, number), scope_.layer, 0, 0, true}, body);
  }
}

std::optional<Builder::Parameter> Builder::find(std::string_view name,
                                                std::initializer_list<std::string_view> endings) {
  for (const std::string_view ending : endings) {
    const files::Tensor* tensor = checkpoint_.find(full(name).append(ending));
    if (tensor == nullptr) continue;
    used_.insert(tensor);
    Parameter parameter{tensor, tensor->shape, {std::string(tensor->name), 0, tensor->elements()}};
    if (scope_.stacked == 0) return parameter;
    if (parameter.shape.empty() || parameter.shape[0] != scope_.stacked) {
      reject(parameter, fmt::format("{} layers on its first axis", scope_.stacked));
    }
    parameter.shape = parameter.shape.subspan(1);
    parameter.slice.count /= scope_.stacked;
    parameter.slice.index = scope_.entry;
    parameter.slice.offset = parameter.slice.count * *parameter.slice.index;
    return parameter;
  }
  return {};
}

std::string Builder::wanted(std::string_view name) const {
  return full(name) + (scope_.stacked != 0 || name.ends_with("weight") ? "" : ".weight");
}

void Builder::miss(const std::string& tensor) {
  if (model_.missing.size() < kListed) {
    // A layer that is described twice, as shared ones are, reports a missing tensor once.
    if (std::find(model_.missing.begin(), model_.missing.end(), tensor) == model_.missing.end()) {
      model_.missing.push_back(tensor);
    }
  } else {
    ++unlisted_;
  }
}

void Builder::reject(const Parameter& parameter, const std::string& expected) const {
  throw Error(ErrorCode::Shape,
              fmt::format("model: {}: tensor \"{}\" has shape [{}], expected {}",
                          checkpoint_.file_of(*parameter.tensor).string(), parameter.tensor->name,
                          fmt::join(parameter.tensor->shape, ", "), expected));
}

void Builder::decoder(const DecoderStyle& style) {
  Decoder decoder{.head_activation = style.head_activation,
                  .clamped_gate = style.clamped_gate,
                  .embedding_scale = style.embedding_scale,
                  .branch_scale = style.branch_scale,
                  .first_position = style.first_position,
                  .routing = style.routing,
                  .encodes = style.encodes,
                  .padding = style.padding};
  const bool is_sure = style.fixed_activation || !config_.model_types().empty();
  std::string name(is_sure ? style.activation : std::string_view());
  std::string field = "activation";
  std::string another;
  for (const char* key : {"hidden_activation", "hidden_act", "activation_function", "activation"}) {
    if (!style.reads_activation ||
        (style.activation_key != nullptr && key != std::string_view(style.activation_key))) {
      continue;
    }
    const std::optional<std::string> stated = config_.text({key});
    if (!stated) continue;
    if (field == "activation") {
      name = *stated;
      field = key;
    } else if (*stated != name) {
      another = fmt::format("{}: {} beside {}: {}", field, name, key, *stated);
    }
  }
  const auto* const known = std::find_if(std::begin(kActivations), std::end(kActivations),
                                         [&](const NamedActivation& one) { return one.name == name; });
  if (known != std::end(kActivations)) {
    decoder.activation = known->activation;
  } else if (!name.empty()) {
    decoder.not_modelled = fmt::format("{}: {}", field, name);
  }
  if (!another.empty()) {  // one of which the class does not read
    decoder.activation.reset();
    decoder.not_modelled = another;
  }
  if (style.clamped_gate && !(style.clamped_gate->limit > 0.0)) {
    decoder.not_modelled = fmt::format("swiglu_limit: {}", style.clamped_gate->limit);
  }
  model_.decoder = std::move(decoder);
  embedding_times_root_ = style.embedding_times_root;
}

void Builder::tables_as_used() {
  embedding_times_root_ = false;
  model_.decoder->embedding_scale = 1.0;
  model_.decoder->first_position = 0;
}

const Norm* find_norm(const Model& model, const std::string& name) {
  const auto at = std::find_if(model.norms.begin(), model.norms.end(),
                               [&](const Norm& norm) { return norm.name == name; });
  return name.empty() || at == model.norms.end() ? nullptr : &*at;
}

const Norm* own_norm(const Model& model, const Linear& part) {
  const auto at = std::find_if(model.norms.begin(), model.norms.end(), [&](const Norm& norm) {
    return norm.placement == Placement::inside &&
           std::any_of(norm.writers.begin(), norm.writers.end(),
                       [&](const Linear& map) { return map.covers(part); });
  });
  return at == model.norms.end() ? nullptr : &*at;
}

void rotate(const Rotary& rotary, std::size_t position, std::span<double> part) {
  const std::size_t half = rotary.dims / 2;
  for (std::size_t pair = 0; pair < half; ++pair) {
    const double angle = static_cast<double>(position) * rotary.frequencies[pair];
    double& first = part[rotary.interleaved ? 2 * pair : pair];
    double& second = part[rotary.interleaved ? 2 * pair + 1 : pair + half];
    const double turned = first * std::cos(angle) - second * std::sin(angle);
    second = first * std::sin(angle) + second * std::cos(angle);
    first = turned;
  }
}

}  // namespace normscope::models
