#include <normscope/rewrite/compare.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

#include "compare_steps.hpp"
#include "matrix.hpp"
#include "planning.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using files::Tensor;
using models::Linear;
using models::Model;
using models::Norm;

/// A file, its description, and the uses of its tensors.
struct Side {
  Side(const Checkpoint& checkpoint, const Model& described)
      : file(checkpoint), model(described), uses(described) {}
  const Checkpoint& file;
  const Model& model;
  Uses uses;
  std::set<std::string, std::less<>> compared{};  ///< names of tensors
};

void note_map(Side& side, const Linear& map) {
  side.compared.insert(map.weight.tensor);
  if (map.bias) side.compared.insert(map.bias->tensor);
}

void note_norm(Side& side, const Norm& norm) {
  for (const auto* slice : {&norm.gain, &norm.bias, &norm.alpha, &norm.shift}) {
    if (*slice) side.compared.insert((*slice)->tensor);
  }
}

/// Whether only the composites with its readers count.
bool is_free(const Side& side, const Norm& norm) {
  return norm.readers_known && !norm.readers.empty() && !side.uses.enters_stream(norm.name);
}

/// Cosine between two gains; for zero gains 1 if they are equal, otherwise 0.
double cosine(const NormSpec& a, const NormSpec& b) {
  double product = 0.0;
  double a_length = 0.0;
  double b_length = 0.0;
  for (std::size_t j = 0; j < a.width; ++j) {
    product += a.gain_at(j) * b.gain_at(j);
    a_length += a.gain_at(j) * a.gain_at(j);
    b_length += b.gain_at(j) * b.gain_at(j);
  }
  const double lengths = std::sqrt(a_length * b_length);
  if (lengths > 0.0 && std::isfinite(lengths)) return std::clamp(product / lengths, -1.0, 1.0);
  return relative_change(gains_of(a, a.width), gains_of(b, b.width)) == 0.0 ? 1.0 : 0.0;
}

bool same_shape(const Linear& a, const Linear& b) { return a.in == b.in && a.out == b.out; }

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::Unsupported, "compare: " + why); }

/// A model whose wiring is that of a graph, so that names and places say nothing. Exporters name some tensors
/// otherwise, such as a table that is the head too: then the architecture is not described completely.
bool is_of_graph(const Side& side) {
  return side.file.graph() != nullptr && !(side.model.is_known() && side.model.missing.empty());
}

/// The readers of both norms in the order of their description. Where one file splits a matrix that the other
/// has whole, or lacks one, those with roles of unlike numbers are left.
ReaderPairs readers_in_order(const Norm& old_norm, const Norm& new_norm) {
  if (old_norm.width != new_norm.width) {
    refuse(fmt::format("{} has {} features, {} has {}", old_norm.name, old_norm.width, new_norm.name,
                       new_norm.width));
  }
  const auto with_role = [](const Norm& norm, const std::string& role) {
    std::vector<const Linear*> result;
    for (const Linear& reader : norm.readers) {
      if (reader.role == role) result.push_back(&reader);
    }
    return result;
  };
  const bool alike = old_norm.readers.size() == new_norm.readers.size();
  ReaderPairs result;
  for (std::size_t r = 0; r < old_norm.readers.size(); ++r) {
    const Linear& old_map = old_norm.readers[r];
    const Linear* new_map = alike ? &new_norm.readers[r] : nullptr;
    if (!alike) {
      const std::vector<const Linear*> of_old = with_role(old_norm, old_map.role);
      const std::vector<const Linear*> of_new = with_role(new_norm, old_map.role);
      if (of_old.size() != of_new.size()) {
        result.left.push_back(old_map);
        continue;
      }
      new_map = of_new[static_cast<std::size_t>(std::find(of_old.begin(), of_old.end(), &old_map) -
                                                of_old.begin())];
    }
    if (!same_shape(old_map, *new_map)) {
      refuse(
          fmt::format("{} and {} have other shapes", old_map.weight.selector(), new_map->weight.selector()));
    }
    result.pairs.emplace_back(old_map, *new_map);
  }
  for (const Linear& reader : new_norm.readers) {
    if (!alike && with_role(old_norm, reader.role).size() != with_role(new_norm, reader.role).size())
      result.new_left.push_back(reader);
  }
  return result;
}

/// Whether the difference of two maps' weights counts as rounding because a block format explains it.
bool is_quantization(const MapOfFile& before, const MapOfFile& after, Comparison& whole) {
  // Blocks are of stored rows, which a turned stream mixes.
  if (after.turn != nullptr) return false;
  std::optional<Quantization> found = explain_quantization(before, after);
  if (!found) return false;
  whole.quantizations.push_back(std::move(*found));
  return whole.is_quantization(after.map.weight.selector());
}

bool same_bias(const MapOfFile& before, const MapOfFile& after, double tolerance) {
  return relative_change(read_bias(before.file, before.map), read_bias(after.file, after.map)) <= tolerance;
}

/// Whether both maps give the logits themselves, without a cap.
bool are_unembeddings(const Side& before, const Linear& old_map, const Side& after, const Linear& new_map) {
  const auto is_one = [](const Side& side, const Linear& map) {
    const auto& vocabulary = side.model.vocabulary;
    return vocabulary && vocabulary->unembedding && vocabulary->soft_cap == 0.0 &&
           vocabulary->unembedding->role == map.role &&
           place_of(vocabulary->unembedding->weight) == place_of(map.weight) && map.out == vocabulary->size;
  };
  return is_one(before, old_map) && is_one(after, new_map);
}

/// What of NEW is compared with OLD in place of itself.
struct View {
  Turns turns{};
  Relabelling relabelling{};

  [[nodiscard]] bool is_itself() const { return turns.empty() && relabelling.empty(); }
};

/// Values in another order; none if there are none.
std::vector<double> in_order(const std::vector<double>& values, const std::vector<std::size_t>& order) {
  if (values.size() != order.size()) return values;
  std::vector<double> result;
  for (const std::size_t k : order) result.push_back(values[k]);
  return result;
}

NormComparison compare_norms(Side& before, Side& after, const Norm& old_norm, const Norm& new_norm,
                             const View& view, Comparison& whole) {
  note_norm(before, old_norm);
  note_norm(after, new_norm);
  const NormSpec old_spec = read_norm(before.file, old_norm);
  NormSpec new_spec = read_norm(after.file, new_norm);
  if (const auto moved = view.relabelling.features.find(old_norm.name);
      moved != view.relabelling.features.end()) {
    new_spec.gain = in_order(new_spec.gain, moved->second);
    new_spec.bias = in_order(new_spec.bias, moved->second);
  }
  const bool by_values = is_of_graph(before) || is_of_graph(after);
  const ReaderPairs readers =
      by_values ? readers_by_values(before.file, old_norm, old_spec, after.file, new_norm, new_spec)
                : readers_in_order(old_norm, new_norm);
  const Rotation* const turn = turn_of(view.turns, old_norm);
  NormComparison result{old_norm.name, new_norm.name};
  result.old_kind = old_norm.kind;
  result.new_kind = new_norm.kind;
  result.old_eps = old_norm.eps;
  result.new_eps = new_norm.eps;
  result.gain_change =
      relative_change(gains_of(old_spec, old_spec.width), gains_of(new_spec, new_spec.width));
  result.gain_cosine = cosine(old_spec, new_spec);
  result.bias_change = relative_change(old_spec.bias, new_spec.bias);
  bool exact = result.gain_change == 0.0 && result.bias_change == 0.0 && turn == nullptr;
  result.eps_known =
      old_norm.eps_source != models::Source::assumed && new_norm.eps_source != models::Source::assumed;
  const bool eps_decides = result.eps_known || result.same_eps();
  bool agrees = old_norm.kind == new_norm.kind && (result.same_eps() || !result.eps_known) &&
                old_spec.alpha == new_spec.alpha && old_spec.shift == new_spec.shift &&
                old_spec.groups == new_spec.groups;
  const bool free = by_values
                        ? readers.left.empty() && (is_free(before, old_norm) || is_free(after, new_norm))
                        : is_free(before, old_norm) && is_free(after, new_norm);
  if (!by_values) {
    for (const Linear& left : readers.left) note_map(before, left);
    for (const Linear& left : readers.new_left) note_map(after, left);
    const auto& named = readers.left.empty() ? readers.new_left : readers.left;
    if (!named.empty()) {
      whole.not_compared.push_back(fmt::format("{}, {}: {} has other matrices in its place",
                                               named.front().weight.selector(), named.front().role,
                                               readers.left.empty() ? "OLD" : "NEW"));
    }
  }
  if (!free)
    agrees = agrees && result.gain_change <= whole.tolerance && result.bias_change <= whole.tolerance;
  result.agrees_itself = agrees;
  bool quantized = false;
  for (std::size_t r = 0; r < readers.pairs.size(); ++r) {
    const Linear& old_map = readers.pairs[r].first;
    const auto entry = readers.pairs.size() != old_norm.readers.size() || by_values
                           ? view.relabelling.readers.end()
                           : view.relabelling.readers.find(&old_norm.readers[r]);
    const Relabelled* const relabelled = entry == view.relabelling.readers.end() ? nullptr : &entry->second;
    const Linear& new_map = relabelled == nullptr ? readers.pairs[r].second : relabelled->map;
    note_map(before, old_map);
    note_map(after, new_map);
    const MapOfFile old_reader{before.file, old_map, old_spec};
    const MapOfFile new_reader{after.file, new_map, new_spec, turn,
                               relabelled == nullptr ? nullptr : &relabelled->blocks};
    ReaderComparison reader = compare_readers(old_reader, new_reader);
    exact = exact && relabelled == nullptr;
    const bool by_blocks = !(reader.composite <= whole.tolerance) && relabelled == nullptr &&
                           is_quantization(old_reader, new_reader, whole);
    const bool is_explained = std::any_of(
        whole.quantizations.begin(), whole.quantizations.end(), [&new_map](const Quantization& found) {
          return found.explained && found.new_weight == new_map.weight.selector();
        });
    const auto is_within = [&](const ReaderComparison& found) {
      return found.composite <= whole.tolerance && found.bias <= whole.tolerance;
    };
    if (!is_explained && !is_within(reader) && are_unembeddings(before, old_map, after, new_map)) {
      const ReaderComparison shifted = compare_unembeddings(old_reader, new_reader);
      if (is_within(shifted)) {
        reader = shifted;
        exact = false;
        whole.findings.push_back(
            {"shifted_logits",
             new_map.weight.selector() +
                 " shifts all logits of a position by the same amount, which leaves their softmax as it is"});
      }
    }
    exact = exact && reader.raw == 0.0 && reader.bias == 0.0;
    if (by_blocks) {
      // What a norm's bias adds through a quantized weight differs as the weight does.
      quantized = true;
      agrees = agrees && same_bias(old_reader, new_reader, whole.tolerance) &&
               result.bias_change <= whole.tolerance;
    } else {
      agrees = agrees && reader.composite <= whole.tolerance && reader.bias <= whole.tolerance;
    }
    result.readers.push_back(reader);
  }
  result.agreement = !agrees        ? Agreement::different
                     : !eps_decides ? Agreement::undecided
                     : quantized    ? Agreement::quantized
                     : exact        ? Agreement::same
                                    : Agreement::equivalent;
  if (!eps_decides) whole.not_compared.push_back("the eps of " + new_norm.name + ", which is assumed");
  return result;
}

/// Whether every norm that reads the stream of this stack is a LayerNorm before a branch.
bool only_layer_norms(const Model& model, const std::string& stack) {
  return std::all_of(model.norms.begin(), model.norms.end(), [&](const Norm& norm) {
    if (norm.stack != stack || norm.placement == models::Placement::inside) return true;
    return norm.kind == NormKind::layer && norm.placement == models::Placement::pre &&
           norm.writing_norms.empty();
  });
}

/// Whether a norm's output enters the map: then its outputs are compared with that norm's gain and bias in
/// them. A table that is the head too is looked up instead, in the other layout.
bool reads_a_norm(const Model& model, const Linear& map) {
  return std::any_of(model.norms.begin(), model.norms.end(), [&](const Norm& norm) {
    return std::any_of(norm.readers.begin(), norm.readers.end(), [&](const Linear& reader) {
      return place_of(reader.weight) == place_of(map.weight) && reader.layout == map.layout &&
             same_shape(reader, map);
    });
  });
}

void compare_all_writers(Side& before, Side& after, const View& view, Comparison& result) {
  std::set<Place> done;
  const NormSpec none;
  for (std::size_t index = 0; index < before.model.norms.size(); ++index) {
    const Norm& old_norm = before.model.norms[index];
    const Norm& new_norm = after.model.norms[index];
    if (old_norm.placement == models::Placement::inside && !before.uses.enters_stream(old_norm.name))
      continue;
    if (old_norm.writers.size() != new_norm.writers.size()) {
      refuse(fmt::format("{} has {} writers, {} has {}", old_norm.name, old_norm.writers.size(),
                         new_norm.name, new_norm.writers.size()));
    }
    for (std::size_t w = 0; w < old_norm.writers.size(); ++w) {
      const Linear& old_map = old_norm.writers[w];
      const auto entry = view.relabelling.writers.find(place_of(old_map.weight));
      const Relabelled* const relabelled = entry == view.relabelling.writers.end() ? nullptr : &entry->second;
      const Linear& new_map = relabelled == nullptr ? new_norm.writers[w] : relabelled->map;
      note_map(before, old_map);
      note_map(after, new_map);
      if (!done.insert(place_of(old_map.weight)).second) continue;
      if (reads_a_norm(before.model, old_map) && reads_a_norm(after.model, new_map)) continue;
      if (!same_shape(old_map, new_map)) {
        refuse(
            fmt::format("{} and {} have other shapes", old_map.weight.selector(), new_map.weight.selector()));
      }
      const MapOfFile of_old{before.file, old_map, none};
      const MapOfFile of_new{after.file, new_map, none, turn_of(view.turns, old_norm),
                             relabelled == nullptr ? nullptr : &relabelled->blocks};
      const bool changed = of_new.turn != nullptr || relabelled != nullptr;
      WriterComparison writer =
          changed
              ? compare_changed_writers(
                    of_old, of_new, relabelled == nullptr ? std::vector<std::uint64_t>() : relabelled->inputs)
              : compare_writers(of_old, of_new);
      // One of both files may be of another form of the same architecture.
      writer.only_layer_norms = (before.model.centres_exactly || after.model.centres_exactly) &&
                                only_layer_norms(before.model, old_norm.stack) &&
                                only_layer_norms(after.model, new_norm.stack);
      if (!(writer.raw <= result.tolerance) && relabelled == nullptr &&
          same_bias(of_old, of_new, result.tolerance)) {
        is_quantization(of_old, of_new, result);
      }
      result.writers.push_back(std::move(writer));
    }
  }
}

/// Compares maps that read the stream itself, in their order.
void compare_stream_readers(Side& before, Side& after, const View& view, Comparison& result) {
  const std::vector<Linear>& of_old = before.model.stream_readers;
  const std::vector<Linear>& of_new = after.model.stream_readers;
  const bool fit =
      std::equal(of_old.begin(), of_old.end(), of_new.begin(), of_new.end(),
                 [](const Linear& a, const Linear& b) { return a.role == b.role && same_shape(a, b); });
  if (!fit) {
    result.not_compared.push_back(
        fmt::format("the {} maps that read the stream itself, {} in NEW", of_old.size(), of_new.size()));
    return;
  }
  const NormSpec none;
  for (std::size_t r = 0; r < of_old.size(); ++r) {
    const auto entry = view.relabelling.readers.find(&of_old[r]);
    const Relabelled* const relabelled = entry == view.relabelling.readers.end() ? nullptr : &entry->second;
    const MapOfFile old_map{before.file, of_old[r], none};
    const MapOfFile new_map{after.file, relabelled == nullptr ? of_new[r] : relabelled->map, none, nullptr,
                            relabelled == nullptr ? nullptr : &relabelled->blocks};
    note_map(before, old_map.map);
    note_map(after, new_map.map);
    const ReaderComparison found = compare_readers(old_map, new_map);
    const double change = std::max(found.composite, found.bias);
    const bool by_blocks = !(change <= result.tolerance) && relabelled == nullptr &&
                           is_quantization(old_map, new_map, result) &&
                           same_bias(old_map, new_map, result.tolerance);
    OtherComparison other{old_map.map.weight.selector()};
    if (new_map.map.weight.selector() != other.name) other.new_name = new_map.map.weight.selector();
    other.change = change;
    other.tolerance = by_blocks ? change : result.tolerance;
    result.others.push_back(std::move(other));
  }
}

/// Compares the sinks of heads, head by head.
void compare_sinks(Side& before, Side& after, const View& view, Comparison& result) {
  for (std::size_t h = 0; h < std::min(before.model.heads.size(), after.model.heads.size()); ++h) {
    const auto moved = view.relabelling.heads.find(h);
    const std::optional<models::Slice>& of_old = before.model.heads[h].sink;
    const std::optional<models::Slice>& of_new =
        after.model.heads[moved == view.relabelling.heads.end() ? h : moved->second].sink;
    if (!of_old || !of_new) continue;
    before.compared.insert(of_old->tensor);
    after.compared.insert(of_new->tensor);
    const double a = read_number(before.file, *of_old);
    const double b = read_number(after.file, *of_new);
    OtherComparison* const last = result.others.empty() ? nullptr : &result.others.back();
    if (last == nullptr || last->name != of_old->tensor) {
      result.others.push_back({of_old->tensor});
      if (of_new->tensor != of_old->tensor) result.others.back().new_name = of_new->tensor;
      result.others.back().tolerance = result.tolerance;
    }
    double& change = result.others.back().change;
    change = std::max(change, relative_change({a}, {b}));
  }
}

/// Tensors of `side` that may hold parameters and are neither compared yet nor in `taken`.
std::vector<const Tensor*> rest_of(const Side& side, const std::set<std::string, std::less<>>& taken) {
  std::vector<const Tensor*> result;
  for (const Tensor& tensor : side.file.tensors()) {
    if (has_parameters(tensor) && !side.model.buffers.contains(std::string(tensor.name)) &&
        !side.compared.contains(tensor.name) && !taken.contains(tensor.name)) {
      result.push_back(&tensor);
    }
  }
  return result;
}

/// What counts as rounding between two tensors: that of the coarser dtype.
double tolerance_between(const Tensor& before, const Tensor& after) {
  double coarsest = 0.0;
  for (const Tensor* tensor : {&before, &after}) {
    if (is_rewritable(tensor->dtype)) coarsest = std::max(coarsest, unit_roundoff(tensor->dtype));
  }
  return std::max(2.01 * coarsest, 1e-7);
}

constexpr std::uint64_t rows_read = std::uint64_t{1} << 18U;

/// The largest relative change of a row.
double change_of(const Tensor& before, const Tensor* after) {
  if (after != nullptr && after->elements() == before.elements() && before.is_decodable() &&
      after->is_decodable()) {
    const std::uint64_t length = before.shape.size() < 2 ? before.elements() : before.shape.back();
    const std::uint64_t rows = length == 0 ? 0 : before.elements() / length;
    const std::uint64_t step = std::max<std::uint64_t>(1, rows_read / std::max<std::uint64_t>(1, length));
    double most = 0.0;
    for (std::uint64_t first = 0; first < rows; first += step) {
      const std::uint64_t count = std::min(step, rows - first);
      const std::vector<double> a = read(before, first * length, count * length);
      const std::vector<double> b = read(*after, first * length, count * length);
      for (std::uint64_t k = 0; k < count; ++k) {
        const auto row = [&](const std::vector<double>& from) {
          const auto begin = from.begin() + static_cast<std::ptrdiff_t>(k * length);
          return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(length));
        };
        most = std::max(most, relative_change(row(a), row(b)));
      }
    }
    return most;
  }
  const bool is_read = before.bytes.size() != 0 || before.elements() == 0;
  const bool equal = is_read && after != nullptr && after->stored_type() == before.stored_type() &&
                     files::equal(after->bytes, before.bytes);
  return equal ? 0.0 : 1.0;
}

void compare_others(const Side& before, const Side& after, Comparison& result) {
  for (const Tensor& tensor : before.file.tensors()) {
    if (before.compared.contains(tensor.name)) continue;
    OtherComparison other{std::string(tensor.name)};
    const Tensor* const found = after.file.find(tensor.name);
    other.in_new = found != nullptr;
    other.change = change_of(tensor, found);
    if (found != nullptr) other.tolerance = tolerance_between(tensor, *found);
    result.others.push_back(std::move(other));
  }
  for (const Tensor& tensor : after.file.tensors()) {
    if (after.compared.contains(tensor.name) || before.file.find(tensor.name) != nullptr) continue;
    result.others.push_back({std::string(tensor.name), {}, false, true, 1.0});
  }
}

/// Compares parameters that both descriptions list by their roles, whatever their names and layouts.
void compare_roles(Side& before, Side& after, Comparison& result) {
  const NormSpec none;
  const auto of_role = [](const Model& model, const std::string& role) {
    std::vector<const Linear*> found;
    for (const Linear& map : model.others) {
      if (map.role == role) found.push_back(&map);
    }
    return found;
  };
  std::set<std::string, std::less<>> roles;
  for (const Linear& map : before.model.others) roles.insert(map.role);
  for (const std::string& role : roles) {
    const std::vector<const Linear*> of_old = of_role(before.model, role);
    const std::vector<const Linear*> of_new = of_role(after.model, role);
    if (of_old.size() != of_new.size()) continue;
    for (std::size_t k = 0; k < of_old.size(); ++k) {
      if (!same_shape(*of_old[k], *of_new[k])) continue;
      note_map(before, *of_old[k]);
      note_map(after, *of_new[k]);
      const MapOfFile old_map{before.file, *of_old[k], none};
      const MapOfFile new_map{after.file, *of_new[k], none};
      OtherComparison other{of_old[k]->weight.selector(), of_new[k]->weight.selector()};
      other.change = compare_readers(old_map, new_map).raw;
      other.tolerance = result.tolerance;
      if (!(other.change <= other.tolerance) && is_quantization(old_map, new_map, result)) continue;
      result.others.push_back(std::move(other));
    }
  }
}

/// Compares the other tensors of a graph with names of its own: they are matched by name if it exists,
/// otherwise by values.
void compare_others_by_values(const Side& before, const Side& after, Comparison& result) {
  std::set<std::string, std::less<>> taken;
  const auto add = [&](const Tensor& tensor, const Tensor& found, double change) {
    OtherComparison other{std::string(tensor.name)};
    if (found.name != tensor.name) other.new_name = found.name;
    other.change = change;
    other.tolerance = tolerance_between(tensor, found);
    taken.insert(std::string(found.name));
    result.others.push_back(std::move(other));
  };
  for (const Tensor* const tensor : rest_of(before, {})) {
    const Tensor* const named = after.file.find(tensor->name);
    if (named != nullptr &&
        std::equal(named->shape.begin(), named->shape.end(), tensor->shape.begin(), tensor->shape.end())) {
      add(*tensor, *named, change_of(*tensor, named));
      continue;
    }
    const SameValues found =
        find_values(before.file, *tensor, after.file, rest_of(after, taken), result.tolerance);
    if (found.tensor != nullptr) {
      add(*tensor, *found.tensor, found.change);
    } else {
      result.not_compared.push_back(fmt::format("{}: no tensor of NEW has its values", tensor->name));
    }
  }
  std::vector<const Tensor*> all;
  for (const Tensor& tensor : before.file.tensors()) all.push_back(&tensor);
  for (const Tensor* const tensor : rest_of(after, taken)) {
    if (find_values(after.file, *tensor, before.file, all, result.tolerance).tensor != nullptr) continue;
    result.not_compared.push_back(fmt::format("{} of NEW: no tensor of OLD has its values", tensor->name));
  }
}

double tolerance_of(const Side& before, const Side& after) {
  double coarsest = 0.0;
  for (const Side* side : {&before, &after}) {
    for (const files::Tensor& tensor : side->file.tensors()) {
      if (tensor.shape.size() > 1 && is_rewritable(tensor.dtype)) {
        coarsest = std::max(coarsest, unit_roundoff(tensor.dtype));
      }
    }
  }
  return std::max(2.01 * coarsest, 1e-7);
}

}  // namespace

bool NormComparison::same_eps() const { return std::abs(new_eps - old_eps) <= 0x1p-23 * old_eps; }

const char* to_string(Agreement agreement) {
  switch (agreement) {
    case Agreement::same: return "same";
    case Agreement::equivalent: return "equivalent";
    case Agreement::quantized: return "equivalent up to quantization";
    case Agreement::different: return "different";
    case Agreement::undecided: return "undecided";
  }
  return "";
}

namespace {

/// For readers of NEW that differ from the corresponding ones of OLD, finds the reader of OLD with the same
/// weights.
void find_misplaced(const Side& before, const Side& after, const NormPairs& norms, Comparison& result) {
  const NormSpec none;
  for (std::size_t n = 0; n < norms.pairs.size(); ++n) {
    for (ReaderComparison& reader : result.norms[n].readers) {
      if (reader.composite <= result.tolerance || reader.raw <= result.tolerance) continue;
      const auto& of_new = after.model.norms[norms.pairs[n].second].readers;
      const auto now = std::find_if(of_new.begin(), of_new.end(), [&](const Linear& map) {
        return map.weight.selector() == reader.new_weight;
      });
      NORMSCOPE_ASSERT(now != of_new.end());
      for (const Norm& norm : before.model.norms) {
        for (const Linear& map : norm.readers) {
          if (!reader.taken_from.empty() || map.weight.selector() == reader.old_weight ||
              !has_same_values({before.file, map, none}, {after.file, *now, none}, result.tolerance)) {
            continue;
          }
          reader.taken_from = map.weight.selector();
          reader.taken_from_norm = norm.name;
        }
      }
    }
  }
}

/// Pairs the norms of two models of one architecture, or of a graph and any other model.
NormPairs paired_norms(const Side& before, const Side& after, Comparison& result) {
  if (is_of_graph(before) || is_of_graph(after)) {
    NormPairs norms = norms_by_gain(before.file, before.model, after.file, after.model, result.tolerance);
    for (const std::size_t i : norms.old_left) {
      result.not_compared.push_back(before.model.norms[i].name + ": no norm of NEW corresponds to it");
    }
    for (const std::size_t i : norms.new_left) {
      result.not_compared.push_back(after.model.norms[i].name + " of NEW: no norm of OLD corresponds to it");
    }
    return norms;
  }
  if (!before.model.is_known() || !models::is_same_family(before.model, after.model)) {
    refuse(fmt::format("{} is {}, {} is {}; expected one known architecture", before.file.path().string(),
                       before.model.title, after.file.path().string(), after.model.title));
  }
  if (before.model.norms.size() != after.model.norms.size()) {
    refuse(
        fmt::format("{} has {} norms, {} has {}{}", before.file.path().string(), before.model.norms.size(),
                    after.file.path().string(), after.model.norms.size(),
                    after.model.missing.empty() ? "" : ": " + after.model.missing.front() + " is missing"));
  }
  return norms_in_order(before.model);
}

Agreement agreement_of(const Comparison& result) {
  bool exact = true;
  bool agrees = true;
  for (const NormComparison& norm : result.norms) {
    exact = exact && norm.agreement == Agreement::same;
    agrees = agrees && norm.agreement != Agreement::different;
  }
  for (const WriterComparison& writer : result.writers) {
    exact = exact && writer.raw == 0.0;
    if (result.is_quantization(writer.new_weight)) continue;
    agrees = agrees && (writer.only_layer_norms ? writer.centered : writer.raw) <= result.tolerance;
  }
  for (const OtherComparison& other : result.others) {
    exact = exact && other.change == 0.0;
    agrees = agrees && other.change <= other.tolerance;
  }
  const auto has_effect = [&](FieldEffect effect) {
    return std::any_of(result.configuration.begin(), result.configuration.end(),
                       [&](const FieldComparison& field) { return field.effect == effect; });
  };
  if (!agrees || !result.computations.empty() || has_effect(FieldEffect::different))
    return Agreement::different;
  if (!result.not_compared.empty() || has_effect(FieldEffect::unknown)) return Agreement::undecided;
  if (std::any_of(result.quantizations.begin(), result.quantizations.end(),
                  [&](const Quantization& found) { return result.is_quantization(found.new_weight); })) {
    return Agreement::quantized;
  }
  return exact ? Agreement::same : Agreement::equivalent;
}

Comparison compare_models(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                          const Model& new_model, const View& view, const Progress& progress,
                          Tolerance tolerates) {
  Side before(old_file, old_model);
  Side after(new_file, new_model);
  Comparison result;
  result.tolerates = tolerates;
  result.tolerance = tolerance_of(before, after);
  const NormPairs norms = paired_norms(before, after, result);
  for (std::size_t i = 0; i < norms.pairs.size(); ++i) {
    progress("norms compared", i, norms.pairs.size());
    const auto& [old_index, new_index] = norms.pairs[i];
    const Norm& old_norm = old_model.norms[old_index];
    result.norms.push_back(compare_norms(before, after, old_norm, new_model.norms[new_index], view, result));
  }
  if (is_of_graph(before) || is_of_graph(after)) {
    compare_others_by_values(before, after, result);
    result.not_compared.emplace_back("the operations between norms and matrices, which the graph states");
  } else {
    compare_all_writers(before, after, view, result);
    compare_stream_readers(before, after, view, result);
    compare_sinks(before, after, view, result);
    compare_roles(before, after, result);
    if (old_file.graph() != nullptr || new_file.graph() != nullptr ||
        old_model.architecture != new_model.architecture) {
      compare_others_by_values(before, after, result);
    } else {
      compare_others(before, after, result);
    }
  }
  for (const Side* side : {&before, &after}) {
    const std::string table = other_rotary_table(side->file, side->model);
    if (!table.empty())
      result.not_compared.push_back(table + ", which is not that of the frequencies of the heads");
  }
  if (old_file.graph() == nullptr && new_file.graph() == nullptr) {
    compare_configurations(old_file, old_model, new_file, new_model, result);
  }
  result.agreement = agreement_of(result);
  if (result.agreement == Agreement::same && !view.is_itself()) result.agreement = Agreement::equivalent;
  if (result.agreement == Agreement::different) find_misplaced(before, after, norms, result);
  add_findings(old_file, old_model, new_file, new_model, norms, result);
  return result;
}

/// Compares tensors and fields, which is all that can be known of models that are not modelled.
Comparison compare_stored(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                          const Model& new_model, const std::string& obstacle) {
  Comparison result;
  const Side before(old_file, old_model);
  const Side after(new_file, new_model);
  result.tolerance = tolerance_of(before, after);
  compare_others(before, after, result);
  compare_configurations(old_file, old_model, new_file, new_model, result);
  const auto is_changed = [](const OtherComparison& other) { return other.change != 0.0; };
  if (std::any_of(result.others.begin(), result.others.end(), is_changed)) {
    result.not_compared.push_back("what the tensors that differ change: not modelled: " + obstacle);
  }
  add_findings(old_file, old_model, new_file, new_model, {}, result);
  // A difference between tensors, or of what is computed from them, may be made up for.
  const Agreement found = agreement_of(result);
  result.agreement = found == Agreement::different ? Agreement::undecided : found;
  return result;
}

}  // namespace

namespace {

/// Whether one model stores in one matrix what another stores in several.
bool has_other_parts(const Model& a, const Model& b) {
  return !std::equal(
      a.norms.begin(), a.norms.end(), b.norms.begin(), b.norms.end(),
      [](const Norm& one, const Norm& other) { return one.readers.size() == other.readers.size(); });
}

/// The number of maps that differ, which a symmetry may explain; those that read the stream itself are among
/// the other tensors.
std::size_t differing_maps(const Comparison& result) {
  std::size_t count = 0;
  for (const NormComparison& norm : result.norms) {
    for (const ReaderComparison& reader : norm.readers) {
      if (!(reader.composite <= result.tolerance && reader.bias <= result.tolerance)) ++count;
    }
  }
  for (const WriterComparison& writer : result.writers) {
    if (!((writer.only_layer_norms ? writer.centered : writer.raw) <= result.tolerance)) ++count;
  }
  for (const OtherComparison& other : result.others) {
    if (!(other.change <= other.tolerance)) ++count;
  }
  return count;
}

/// Adds what a view says of NEW.
void add_view(const View& view, Comparison& result) {
  for (const auto& [stack, rotation] : view.turns) {
    result.findings.push_back(
        {"rotated", fmt::format("the residual stream{} is turned by an orthogonal matrix of {} features",
                                stack.empty() ? "" : " of the " + stack, rotation->width())});
  }
  result.findings.insert(result.findings.end(), view.relabelling.findings.begin(),
                         view.relabelling.findings.end());
}

/// Compares as NEW would be without symmetries: with heads, neurons and experts as OLD numbers and scales
/// them, and with its stream turned back. The first view in which the models do not differ decides, otherwise
/// that in which the fewest maps do.
void try_symmetries(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                    const Model& new_model, Tolerance tolerates, Comparison& result,
                    const Progress& progress) {
  if (result.agreement == Agreement::quantized || result.agreement == Agreement::same ||
      result.agreement == Agreement::equivalent || differing_maps(result) == 0)
    return;
  const double tolerance = result.tolerance;
  const auto decides = [&](const View& view) {
    if (view.is_itself()) return false;
    Comparison seen = compare_models(old_file, old_model, new_file, new_model, view, progress, tolerates);
    const bool agrees = seen.agreement != Agreement::different;
    if (agrees || differing_maps(seen) < differing_maps(result)) {
      add_view(view, seen);
      result = std::move(seen);
    }
    return agrees;
  };
  const auto relabelled = [&](Turns turns) {
    Relabelling found = find_relabelling(old_file, old_model, new_file, new_model, turns, tolerance);
    return View{std::move(turns), std::move(found)};
  };
  const auto turns = [&](TurnedBy by) {
    return find_turns(old_file, old_model, new_file, new_model, tolerance, by);
  };
  if (decides(relabelled({}))) return;
  if (decides({turns(TurnedBy::all), {}})) return;
  const Turns by_tables = turns(TurnedBy::tables);
  if (!by_tables.empty()) decides(relabelled(by_tables));
}

Comparison compare_parts(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                         const Model& new_model, const Progress& progress, Tolerance tolerates) {
  const bool has_graph = old_file.graph() != nullptr || new_file.graph() != nullptr;
  const std::string of_old = obstacle_of(old_model);
  const std::string obstacle = of_old.empty() ? obstacle_of(new_model) : of_old;
  if (!has_graph && !obstacle.empty() &&
      (contains_tensors(old_file, new_file) || contains_tensors(new_file, old_file))) {
    return compare_stored(old_file, old_model, new_file, new_model, obstacle);
  }
  Model before = with_stored_maps(old_model);
  Model after = with_stored_maps(new_model);
  if (old_model.is_known() && old_model.architecture != new_model.architecture &&
      models::is_same_family(old_model, new_model)) {
    const bool old_states = models::has_configuration(old_file);
    if (old_states != models::has_configuration(new_file)) {
      if (old_states) after = with_configuration_of(std::move(after), before);
      if (!old_states) before = with_configuration_of(std::move(before), after);
    }
    if (has_other_parts(before, after)) {
      before = with_head_parts(std::move(before));
      after = with_head_parts(std::move(after));
    }
    before = with_split_pairs(std::move(before));
    after = with_split_pairs(std::move(after));
  }
  Comparison result = compare_models(old_file, before, new_file, after, {}, progress, tolerates);
  if (!has_graph) try_symmetries(old_file, before, new_file, after, tolerates, result, progress);
  return result;
}

}  // namespace

Comparison compare(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                   const Model& new_model, const Progress& progress, Tolerance tolerates) {
  Comparison result = compare_parts(old_file, old_model, new_file, new_model, progress, tolerates);
  decide_by_running(old_file, old_model, new_file, new_model, result, progress);
  return result;
}

}  // namespace normscope::rewrite
