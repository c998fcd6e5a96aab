#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models {

namespace {

// An unembedding that shares the table of the token embedding.
Linear transposed(Linear embedding) {
  embedding.role = "unembedding";
  embedding.layout = Layout::out_in;
  std::swap(embedding.in, embedding.out);
  embedding.stored_out = embedding.out;
  return embedding;
}

// A model around a text model has a head of its own, and most leave out the scale or the cap of the text
// model's logits.
std::string head_of_another_class(const std::vector<std::string>& types) {
  if (types.size() < 2) return {};
  for (const Architecture* const row : all_architectures()) {
    const auto& kept = row->keeps_logits_within;
    if (std::find(kept.begin(), kept.end(), types.front()) != kept.end()) return {};
  }
  return fmt::format("model_type {}, whose head may not scale or cap logits as {} does", types.front(),
                     types.back());
}

}  // namespace

bool Builder::repeats_token_embedding(const Linear& map) const {
  if (!token_embedding_) return false;
  const files::Tensor* stored = checkpoint_.find(map.weight.tensor);
  const files::Tensor* table = checkpoint_.find(token_embedding_->weight.tensor);
  return stored->dtype == table->dtype && files::equal(stored->bytes, table->bytes);
}

void Builder::unembedding(std::initializer_list<std::string_view> names, bool tied, bool reads_norm,
                          std::string_view bias) {
  const std::optional<bool> configured = config_.flag({"tie_word_embeddings"});
  tied = configured.value_or(tied);
  std::optional<Linear> map;
  std::optional<Slice> apart;  // a bias stored without the map that it belongs to, or elsewhere
  for (const std::string_view name : names) {
    if (map) break;
    where(name, [&] {
      map = find_linear("unembedding", "", reads_norm ? read_width() : 0, 0);
      if (!map) apart = find_bias("", {".bias"}, 0);
    });
  }
  const bool stored = map.has_value();
  // A model around a text model ties the head that it has, whatever the text model's section says.
  if (!stored && !tied) tied = config_.any_flag("tie_word_embeddings");
  if (!stored && tied && token_embedding_) map = transposed(*token_embedding_);
  if (!map) {
    const bool headless = !tied && scope_.prefix.empty();
    if (headless) note("no unembedding is stored: the model has no language head");
    if (!headless && !tied) miss(std::string(*names.begin()) + ".weight");
    if (!headless && reads_norm) reads_are_indirect();
    return;
  }
  const bool same = !stored || repeats_token_embedding(*map);
  const bool contradicts = !same && configured.value_or(false) && !stores_head_;
  if (contradicts) {
    note(
        "the configuration ties the token embedding to the unembedding, but the file stores a different one");
  }
  if (!bias.empty()) {
    where(bias, [&] { apart = find_bias("", {""}, map->out); });
  }
  if (!map->bias && apart && apart->count == map->out) map->bias = apart;
  if (reads_norm) add_reader(*map);
  Vocabulary vocabulary;
  vocabulary.size = map->out;
  vocabulary.tied = same;
  vocabulary.logit_scale = logit_scale_;
  vocabulary.soft_cap = logit_cap_;
  if (contradicts) {
    vocabulary.not_modelled = "tie_word_embeddings: true, beside an unembedding that is not the embedding";
  }
  if ((logit_scale_ != 1.0 || logit_cap_ != 0.0) && vocabulary.not_modelled.empty()) {
    vocabulary.not_modelled = head_of_another_class(config_.model_types());
  }
  if (reads_norm && reading_) vocabulary.final_norm = model_.norms[*reading_].name;
  vocabulary.unembedding = std::move(map);
  model_.vocabulary = std::move(vocabulary);
}

namespace {

std::string size_text(std::uint64_t size) { return size == 0 ? "any" : fmt::format("{}", size); }

bool fits(std::uint64_t found, std::uint64_t expected) {
  return found != 0 && (expected == 0 || found == expected);
}

// The product of the extents of `shape`, except the one at `skipped`.
std::uint64_t product_without(std::span<const std::uint64_t> shape, std::size_t skipped) {
  std::uint64_t product = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) product *= axis == skipped ? 1 : shape[axis];
  return product;
}

/// Names that adapters, parametrizations and quantizers give to what is left of "NAME.weight".
const std::initializer_list<std::string_view> kStandIns = {
    ".base_layer.weight", ".original_module.weight", ".weight_v", ".parametrizations.weight.original1",
    ".qweight",           ".weight_packed"};

/// The outputs of a map whose values are packed, from the shapes that bitsandbytes (two values a byte), MLX
/// (rows of packed inputs), AWQ and GPTQ (packed outputs or inputs) give them; 0 if unknown.
std::uint64_t packed_outputs(const files::Tensor& tensor, std::uint64_t in) {
  if (tensor.shape.size() != 2) return 0;
  if (tensor.dtype == Dtype::U8) return in != 0 ? 2 * tensor.elements() / in : 0;
  if (tensor.dtype != Dtype::I32) return tensor.shape[0];
  return tensor.shape[0] == in ? 8 * tensor.shape[1] : tensor.shape[1];
}

}  // namespace

// Whether values of another type and shape stand for a matrix: packed integers with scales beside them.
bool Builder::is_packed(const Parameter& weight) const {
  return !is_floating(weight.tensor->dtype) && weight.tensor->dtype != Dtype::BOOL &&
         !beside_parameter(std::string(weight.tensor->name)).empty();
}

// A map that is not modelled; its sizes are those that its use requires, as far as they are known.
Linear Builder::packed_linear(std::string_view role, const Parameter& weight, std::uint64_t in,
                              std::uint64_t out) const {
  const files::Tensor& tensor = *weight.tensor;
  Linear linear;
  linear.role = role;
  linear.weight = weight.slice;
  linear.layout = layout_;
  const bool is_matrix = is_floating(tensor.dtype) && weight.shape.size() == 2;
  const std::size_t row_axis = layout_ == Layout::in_out ? 1 : 0;
  linear.in = in != 0 || !is_matrix ? in : weight.shape[1 - row_axis];
  linear.stored_out = out != 0 ? out : is_matrix ? weight.shape[row_axis] : packed_outputs(tensor, in);
  linear.out = linear.stored_out;
  linear.not_modelled = is_floating(tensor.dtype) ? fmt::format("tensor \"{}\"", tensor.name)
                                                  : fmt::format("quantized weights: \"{}\" holds packed {}",
                                                                tensor.name, to_string(tensor.dtype));
  return linear;
}

Layout Builder::layout_of(const Parameter& weight) const {
  return packs_outputs_first() && weight.tensor->quantized != nullptr ? Layout::out_in : layout_;
}

std::optional<Slice> Builder::find_bias(const std::string& name,
                                        std::initializer_list<std::string_view> endings,
                                        std::uint64_t width) {
  const std::optional<Parameter> bias = find(name, endings);
  // BART stores its [1, vocabulary].
  const bool fits_width = bias && !bias->shape.empty() && bias->shape.back() == width &&
                          product_without(bias->shape, bias->shape.size() - 1) == 1;
  if (bias && width != 0 && !fits_width) {
    reject(*bias, fmt::format("[{}]", width));
  }
  // A name that equals the prefix has no counterpart in other layers.
  if (name.empty()) return bias ? std::optional<Slice>(bias->slice) : std::nullopt;
  // Experts may have no biases where MLPs beside them have.
  BiasUse& use = biases_[scope_.is_expert ? "expert " + name : name];
  use.present = use.present || bias;
  if (!bias) use.absent.push_back(full(name).append(*endings.begin()));
  return bias ? std::optional<Slice>(bias->slice) : std::nullopt;
}

std::optional<Linear> Builder::find_linear(std::string_view role, std::string_view name, std::uint64_t in,
                                           std::uint64_t out) {
  std::optional<Parameter> weight = find(name, {".weight", ""});
  const bool named_whole = name.ends_with("weight");
  const std::string stem(named_whole ? name.substr(0, name.size() - 6) : name);
  if (!weight && !named_whole) {
    if (const std::optional<Parameter> left = find(name, kStandIns))
      return packed_linear(role, *left, in, out);
  }
  if (!weight) {
    find(stem, {named_whole ? "bias" : ".bias"});
    return {};
  }
  const Layout layout = layout_of(*weight);
  const bool transposed = layout == Layout::in_out;
  const std::uint64_t row_count = transposed ? in : out;
  const std::uint64_t column_count = transposed ? out : in;
  const bool is_matrix = weight->shape.size() == 2 || (folds_axes_ && weight->shape.size() == 3);
  std::uint64_t rows = is_matrix ? weight->shape[0] : 0;
  std::uint64_t columns = is_matrix ? product_without(weight->shape, 0) : 0;
  if (relabel_ && !fits(columns, column_count)) {
    std::swap(rows, columns);
    note(fmt::format(
        "\"{}\" is declared [{}] and read as [{}, {}] a layer, outputs by inputs: the order in which "
        "its format stores the bytes",
        weight->tensor->name, fmt::join(weight->tensor->shape, ", "), rows, columns));
  }
  if (!fits(rows, row_count) || !fits(columns, column_count)) {
    if (is_packed(*weight)) return packed_linear(role, *weight, in, out);
    reject(*weight, fmt::format("[{}{}, {}]", scope_.stacked != 0 ? fmt::format("{}, ", scope_.stacked) : "",
                                size_text(row_count), size_text(column_count)));
  }
  Linear linear;
  linear.role = role;
  linear.weight = weight->slice;
  linear.layout = layout;
  linear.in = transposed ? rows : columns;
  linear.stored_out = linear.out = transposed ? columns : rows;
  // TransformerLens names the bias of "W_Q" "b_Q".
  const std::size_t last = stem.rfind('.') + 1;
  const std::size_t shared = stem.compare(last, 3, "_W_") == 0 ? 1 : 0;  // "_W_K" of several heads
  const bool lens = stem.compare(last + shared, 2, "W_") == 0;
  const std::size_t behind = last + shared;
  // VideoMAE names those of "query" and "value" "q_bias" and "v_bias".
  const bool attends = role == "query" || role == "value";
  const std::string apart = attends ? fmt::format("{}{}_bias", stem.substr(0, last), role[0]) : "";
  linear.bias = attends && checkpoint_.find(full(apart)) != nullptr ? find_bias(apart, {""}, linear.out)
                : lens ? find_bias(stem.substr(0, behind) + "b_" + stem.substr(behind + 2), {""}, linear.out)
                       : find_bias(stem, {named_whole ? "bias" : ".bias", "_bias"}, linear.out);
  return linear;
}

void Builder::add_writer(std::optional<Linear> writer, std::string_view name, Need need) {
  if (!writers_.empty()) led_.reset();
  if (writer) {
    if (width_ == 0) width_ = writer->out;
    writers_.push_back(std::move(*writer));
  } else if (need == Need::required) {
    miss(wanted(name));
    writers_known_ = false;
  }
}

void Builder::writes(std::string_view role, std::string_view name, std::uint64_t in, Need need) {
  add_writer(find_linear(role, name, in, width_), name, need);
}

void Builder::writes_stack(std::string_view role, std::string_view name) {
  std::optional<Linear> writer;
  if (const std::optional<Parameter> stack = find(name, {""})) {
    if (stack->shape.size() != 3 || !fits(stack->shape[2], width_)) {
      reject(*stack, fmt::format("[any, any, {}]", size_text(width_)));
    }
    writer.emplace();
    writer->role = role;
    writer->weight = stack->slice;
    writer->layout = Layout::in_out;
    writer->in = stack->shape[0] * stack->shape[1];
    writer->stored_out = writer->out = stack->shape[2];
    writer->bias = find_bias("b_" + std::string(name.substr(2)), {""}, writer->out);
  }
  add_writer(std::move(writer), name, Need::required);
}

void Builder::embedding(std::string_view role, std::string_view name, Need need) {
  std::optional<Parameter> table = find(name, {".weight", ""});
  if (!table && role == "token embedding" && config_.flag({"tie_word_embeddings"}).value_or(false)) {
    // The table that a tied model shares may be stored under the name of its head alone.
    where("lm_head", [&] { table = find("", {".weight"}); });
  }
  std::optional<Linear> writer;
  if (!table) {
    if (const std::optional<Parameter> left = find(name, kStandIns)) {
      writer = packed_linear(role, *left, left->shape.empty() ? 0 : left->shape[0], width_);
      writer->layout = Layout::in_out;
      if (role == "token embedding") token_embedding_ = writer;
    }
  }
  if (table) {
    const std::size_t last = table->shape.size() - 1;
    const bool packed = is_packed(*table) && table->shape.size() == 2;
    if (packed && table->slice.count != 0) {
      writer = packed_linear(role, *table, table->shape[0], width_);
      writer->layout = Layout::in_out;
    } else if (table->shape.empty() || table->slice.count == 0 || !fits(table->shape[last], width_)) {
      reject(*table, fmt::format("[..., {}]", size_text(width_)));
    } else {
      writer = Linear{std::string(role),
                      table->slice,
                      {},
                      Layout::in_out,
                      product_without(table->shape, last),
                      table->shape[last],
                      0,
                      table->shape[last],
                      {}};
    }
    if (role == "token embedding") token_embedding_ = writer;
  }
  add_writer(std::move(writer), name, need);
}

std::optional<Linear> Builder::find_map_of_inputs(std::string_view role, std::string_view name,
                                                  std::uint64_t out) {
  const std::optional<Parameter> map = find(name, {".weight", ""});
  if (!map) return {};
  if (map->shape.size() < 2 || map->slice.count == 0 || !fits(map->shape[0], out)) {
    reject(*map, fmt::format("[{}, ...]", size_text(out)));
  }
  Linear linear{
      std::string(role), map->slice, {}, Layout::out_in, product_without(map->shape, 0), map->shape[0], 0,
      map->shape[0],     {}};
  linear.bias = find_bias(std::string(name), {".bias"}, linear.out);
  return linear;
}

void Builder::input_map(std::string_view role, std::string_view name, Need need) {
  add_writer(find_map_of_inputs(role, name, width_), name, need);
}

void Builder::partial_input(std::string_view name) {
  for (const files::Tensor& tensor : inventory_.starting_with(full(name))) {
    used_.insert(&tensor);
    writers_known_ = false;
    led_.reset();
  }
}

/// The parameters of an elementwise norm that an architecture has in place of its usual one.
std::optional<Builder::Parameter> Builder::find_scalar(const std::string& name) {
  if (!has(name)) return {};
  std::optional<Parameter> scalar = find(name, {""});
  if (scalar && scalar->slice.count != 1) reject(*scalar, "[1]");
  return scalar;
}

std::size_t Builder::new_norm(std::string name, std::string_view role, Placement placement,
                              std::uint64_t width, std::uint64_t groups) {
  const auto [known, is_new] = norm_indices_.emplace(name, model_.norms.size());
  if (!is_new) return known->second;
  Norm norm;
  norm.name = std::move(name);
  norm.role = role;
  norm.layer = scope_.layer;
  norm.stack = stack_;
  norm.kind = style_.kind;
  norm.width = width;
  norm.groups = groups;
  norm.eps = eps_;
  norm.eps_source = eps_source_;
  norm.placement = placement;
  norm.applications = applications_;
  norm.connections_known = true;
  norm.readers_known = true;
  model_.norms.push_back(std::move(norm));
  return model_.norms.size() - 1;
}

std::optional<std::size_t> Builder::add_norm(std::string_view name, std::string_view role,
                                             Placement placement, std::uint64_t width, std::uint64_t groups) {
  const std::string stem(name);
  if (style_.gainless) {
    if (width == 0) return {};
    return new_norm(full(name), role, placement, width, groups);
  }
  const std::optional<Parameter> gain = find(name, {".weight", ".gamma", ".scale", ".g", ".w", ""});
  if (!gain) {
    miss(wanted(name));
    find(name, {".bias", ".beta", ".b"});
    return {};
  }
  // A gain [heads, width] is that of one norm for every head.
  const bool one_number = style_.one_gain && gain->slice.count == 1 && width != 0;
  const bool of_each_head = placement == Placement::inside && gain->shape.size() == 2 && width != 0 &&
                            gain->shape[0] != 0 && gain->shape[1] == width;
  if (!of_each_head && !one_number && (gain->shape.size() != 1 || !fits(gain->shape[0], width))) {
    reject(*gain, fmt::format("[{}{}]", scope_.stacked != 0 ? fmt::format("{}, ", scope_.stacked) : "",
                              size_text(width)));
  }
  const std::string entry = gain->slice.index ? fmt::format("[{}]", *gain->slice.index) : "";
  const std::size_t count = model_.norms.size();
  const std::size_t index =
      new_norm(full(name) + entry, role, placement,
               of_each_head ? gain->shape[0] * width : (one_number ? width : gain->shape[0]),
               of_each_head ? gain->shape[0] : groups);
  if (model_.norms.size() == count) return index;
  Norm& norm = model_.norms[index];
  norm.gain = gain->slice;
  norm.bias = find_bias(stem, {".bias", ".beta", ".b"}, norm.width);
  norm.gain_offset = style_.gain_offset;
  norm.gain_was_shifted = style_.gain_was_shifted;
  if (const std::optional<Parameter> alpha = find_scalar(stem + ".alpha")) {
    norm.alpha = alpha->slice;
    norm.kind = NormKind::dyt;
    norm.gain_offset = 0.0;
    if (const std::optional<Parameter> shift = find_scalar(stem + ".shift")) {
      norm.shift = shift->slice;
      norm.kind = NormKind::derf;
    }
  }
  return index;
}

void Builder::give_writers(Norm& norm) {
  append_new(norm.writers, std::move(writers_));
  append_names(norm.writing_norms, std::move(writing_norms_));
  norm.connections_known = norm.connections_known && writers_known_;
  writers_.clear();
  writing_norms_.clear();
  writers_known_ = true;
  branch_from_ = branch_norms_from_ = 0;
}

void Builder::norm(std::string_view name, std::string_view role) { norm(name, role, style_.placement); }

void Builder::norm(std::string_view name, std::string_view role, Placement placement) {
  reading_ = add_norm(name, role, placement, width_, 1);
  if (!reading_) {
    writers_.clear();
    writing_norms_.clear();
    branch_from_ = branch_norms_from_ = 0;
    writers_known_ = placement != Placement::post;
    return;
  }
  Norm& norm = model_.norms[*reading_];
  width_ = norm.width;
  give_writers(norm);
  if (placement == Placement::post) writing_norms_.push_back(norm.name);
}

void Builder::norm_beside(std::string_view name, std::string_view role) {
  std::vector<Linear> later = std::move(writers_);
  std::vector<std::string> later_norms = std::move(writing_norms_);
  const bool later_known = writers_known_;
  writers_known_ = reading_ && model_.norms[*reading_].connections_known;
  if (reading_) {
    writers_ = model_.norms[*reading_].writers;
    writing_norms_ = model_.norms[*reading_].writing_norms;
  }
  norm(name, role);
  writers_ = std::move(later);
  writing_norms_ = std::move(later_norms);
  writers_known_ = later_known;
}

void Builder::last_eps(double eps, Config::Keys keys, const Config& from) {
  if (!reading_) return;
  const std::optional<double> configured = from.number(keys);
  model_.norms[*reading_].eps = configured.value_or(eps);
  model_.norms[*reading_].eps_source = configured ? from.source() : Source::assumed;
}

std::uint64_t Builder::read_width() const { return reading_ ? model_.norms[*reading_].width : width_; }

void Builder::reads_are_indirect() {
  if (!reading_) return;
  model_.norms[*reading_].connections_known = false;
  model_.norms[*reading_].readers_known = false;
}

void Builder::connections_are_assumed() {
  for (Norm& norm : model_.norms) norm.connections_known = norm.readers_known = false;
}

void Builder::miss_reader(std::string_view name) {
  miss(wanted(name));
  reads_are_indirect();
}

void Builder::add_reader(const Linear& reader) {
  Linear map = reader;
  add_not_modelled(map.not_modelled, scaled_);
  if (reading_) {
    append_new(model_.norms[*reading_].readers, {std::move(map)});
  } else if (model_.decoder) {
    append_new(model_.stream_readers, {std::move(map)});
  }
}

void Builder::reads_scaled(std::string what, const std::function<void()>& body) {
  std::swap(scaled_, what);
  body();
  scaled_ = std::move(what);
}

std::uint64_t Builder::reads(std::string_view role, std::string_view name, std::uint64_t out, Need need) {
  const std::optional<Linear> reader = find_linear(role, name, read_width(), out);
  if (reader) {
    add_reader(*reader);
    return reader->out;
  }
  if (need == Need::required) miss_reader(name);
  return 0;
}

void Builder::reads_with_bias(std::string_view role, std::string_view name, std::string_view bias) {
  std::optional<Linear> reader = find_linear(role, name, read_width(), 0);
  if (!reader) return miss_reader(name);
  reader->bias = find_bias(std::string(bias), {""}, reader->out);
  add_reader(*reader);
}

void Builder::reads_part(std::string_view role, std::string_view name, std::uint64_t first,
                         std::uint64_t count) {
  std::optional<Linear> reader = find_linear(role, name, read_width(), 0);
  if (!reader || first + count > reader->out) return miss_reader(name);
  reader->first_out = first;
  reader->out = count;
  add_reader(*reader);
}

void Builder::stream_has_other_readers() {
  for (const std::string& name : writing_norms_) model_.norms[norm_indices_.at(name)].readers_known = false;
}

void Builder::new_stream() {
  led_.reset();
  reading_.reset();
  writers_.clear();
  writing_norms_.clear();
  writers_known_ = true;
  branch_from_ = branch_norms_from_ = 0;
}

std::uint64_t Builder::reads_parts(std::initializer_list<std::string_view> roles, std::string_view name,
                                   bool in_turn) {
  const std::optional<Linear> whole = find_linear(*roles.begin(), name, read_width(), 0);
  if (!whole) {
    miss_reader(name);
    return 0;
  }
  Linear part = *whole;
  part.out = whole->out / roles.size();
  std::uint64_t number = 0;
  for (const std::string_view role : roles) {
    part.role = role;
    if (in_turn) {
      Indices& turns = turns_[{number, roles.size(), part.out}];
      for (std::uint64_t j = turns.size(); j < part.out; ++j) turns.push_back(number + j * roles.size());
      part.out_indices = turns;
    }
    part.first_out = in_turn ? 0 : number * part.out;
    add_reader(part);
    ++number;
  }
  return part.out;
}

void Builder::leads_over(std::string_view role, std::string_view name, std::uint64_t width) {
  const std::optional<Linear> map = find_linear(role, name, read_width(), width);
  if (map) {
    add_reader(*map);
  } else {
    reads_are_indirect();
  }
  const std::optional<std::size_t> from = reading_;
  new_stream();
  if (map && from) led_.emplace(*from, *map);
  width_ = width;
  add_writer(map, name, Need::required);
}

}  // namespace normscope::models
