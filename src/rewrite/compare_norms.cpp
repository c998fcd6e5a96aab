#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

#include "compare_steps.hpp"

namespace normscope::rewrite {
namespace {

using models::Linear;
using models::Model;
using models::Norm;

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

/// The readers of both norms in the order of their description. Where one file splits a matrix that the other
/// has whole, or lacks one, those with roles of unlike numbers are left.
ReaderPairs readers_in_order(const Norm& old_norm, const Norm& new_norm) {
  if (old_norm.width != new_norm.width) {
    refuse_comparison(fmt::format("{} has {} features, {} has {}", old_norm.name, old_norm.width,
                                  new_norm.name, new_norm.width));
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
      refuse_comparison(
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

/// Values in another order; none if there are none.
std::vector<double> sorted_by(const std::vector<double>& values, const std::vector<std::size_t>& order) {
  if (values.size() != order.size()) return values;
  std::vector<double> result;
  for (const std::size_t k : order) result.push_back(values[k]);
  return result;
}

void keep_errors(Side& before, const Linear& map, const std::vector<double>& errors) {
  if (errors.empty()) return;
  std::vector<double>& kept = before.output_errors[place_of(map.weight)];
  kept.resize(map.stored_out);
  for (std::uint64_t i = 0; i < errors.size(); ++i) kept[map.stored_output(i)] = errors[i];
}

}  // namespace

void refuse_comparison(const std::string& why) { throw Error(ErrorCode::Unsupported, "compare: " + why); }

NormComparison compare_norms(Side& before, Side& after, const Norm& old_norm, const Norm& new_norm,
                             const View& view, Comparison& whole) {
  note_norm(before, old_norm);
  note_norm(after, new_norm);
  const NormSpec old_spec = read_norm(before.file, old_norm);
  NormSpec new_spec = read_norm(after.file, new_norm);
  if (const auto moved = view.relabelling.features.find(old_norm.name);
      moved != view.relabelling.features.end()) {
    new_spec.gain = sorted_by(new_spec.gain, moved->second);
    new_spec.bias = sorted_by(new_spec.bias, moved->second);
  }
  const bool by_values = before.is_of_graph() || after.is_of_graph();
  const ReaderPairs readers =
      by_values ? readers_by_values(before.file, old_norm, old_spec, after.file, new_norm, new_spec)
                : readers_in_order(old_norm, new_norm);
  const Rotation* const turn = turn_of(view.turns, old_norm);
  NormComparison result{old_norm.name, new_norm.name};
  result.old_reasons = old_norm.reasons;
  result.new_reasons = new_norm.reasons;
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
    const bool in_order = readers.pairs.size() == old_norm.readers.size() && !by_values;
    const Relabelled* const relabelled = in_order ? view.relabelling.of_reader(old_norm.readers[r]) : nullptr;
    const Linear& new_map = relabelled == nullptr ? readers.pairs[r].second : relabelled->map;
    note_map(before, old_map);
    note_map(after, new_map);
    const MapOfFile old_reader{before.file, old_map, old_spec};
    const MapOfFile new_reader{after.file, new_map, new_spec, turn,
                               relabelled == nullptr ? nullptr : &relabelled->blocks};
    std::vector<double> errors;
    ReaderComparison reader = compare_readers(old_reader, new_reader, &errors);
    keep_errors(before, old_map, errors);
    exact = exact && relabelled == nullptr;
    const bool by_blocks = !(reader.composite <= whole.tolerance) && relabelled == nullptr &&
                           is_quantization(old_reader, new_reader, whole);
    const bool is_explained = std::any_of(
        whole.quantizations.begin(), whole.quantizations.end(), [&new_map](const Quantization& found) {
          return found.explained && found.new_weight == new_map.weight.selector();
        });
    if (!is_explained && !reader.agrees(whole.tolerance) &&
        are_unembeddings(before, old_map, after, new_map)) {
      const ReaderComparison shifted = compare_unembeddings(old_reader, new_reader);
      if (shifted.agrees(whole.tolerance)) {
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
      before.explained.insert(place_of(old_map.weight));
      // What a norm's bias adds through a quantized weight differs as the weight does.
      quantized = true;
      agrees = agrees && same_bias(old_reader, new_reader, whole.tolerance) &&
               result.bias_change <= whole.tolerance;
    } else {
      agrees = agrees && reader.agrees(whole.tolerance);
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

namespace {

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

/// The rows of a position embedding that are used: from that of the first position on.
Linear used_rows(const Model& model, Linear map) {
  if (map.role != "position embedding" || !model.decoder) return map;
  const std::uint64_t first = std::min(model.decoder->first_position, map.in);
  map.weight.offset += first * map.out;
  map.weight.count -= first * map.out;
  map.in -= first;
  return map;
}

/// What the rows of NEW's token embedding are multiplied by to be those of OLD.
Blocks scale_of_tables(const Model& before, const Model& after, const Linear& map) {
  if (map.role != "token embedding" || !before.decoder || !after.decoder) return {};
  const double factor = after.decoder->embedding_scale / before.decoder->embedding_scale;
  return {.size = 1, .matrices = std::vector<double>(factor == 1.0 ? 0 : map.in, factor)};
}

}  // namespace

void compare_all_writers(Side& before, Side& after, const View& view, Comparison& result) {
  std::set<Place> done;
  const NormSpec none;
  const bool other_tables = has_other_tables(before.model, after.model);
  for (std::size_t index = 0; index < before.model.norms.size(); ++index) {
    const Norm& old_norm = before.model.norms[index];
    const Norm& new_norm = after.model.norms[index];
    if (old_norm.placement == models::Placement::inside && !before.uses.enters_stream(old_norm.name))
      continue;
    if (old_norm.writers.size() != new_norm.writers.size()) {
      refuse_comparison(fmt::format("{} has {} writers, {} has {}", old_norm.name, old_norm.writers.size(),
                                    new_norm.name, new_norm.writers.size()));
    }
    for (std::size_t w = 0; w < old_norm.writers.size(); ++w) {
      const Linear& old_map = old_norm.writers[w];
      const Relabelled* const relabelled = view.relabelling.of_writer(old_map);
      const Linear& new_map = relabelled == nullptr ? new_norm.writers[w] : relabelled->map;
      note_map(before, old_map);
      note_map(after, new_map);
      if (!done.insert(place_of(old_map.weight)).second) continue;
      if (reads_a_norm(before.model, old_map) && reads_a_norm(after.model, new_map)) continue;
      const Linear old_used = other_tables ? used_rows(before.model, old_map) : old_map;
      const Linear new_used = other_tables ? used_rows(after.model, new_map) : new_map;
      const Blocks scale = other_tables ? scale_of_tables(before.model, after.model, old_map) : Blocks();
      if (!same_shape(old_used, new_used)) {
        refuse_comparison(
            fmt::format("{} and {} have other shapes", old_map.weight.selector(), new_map.weight.selector()));
      }
      const MapOfFile of_old{before.file, old_used, none};
      const MapOfFile of_new{after.file, new_used, none, turn_of(view.turns, old_norm),
                             relabelled != nullptr    ? &relabelled->blocks
                             : scale.matrices.empty() ? nullptr
                                                      : &scale};
      const bool changed = of_new.turn != nullptr || of_new.blocks != nullptr;
      // One of both files may be of another form of the same architecture.
      const bool centered = (before.model.centres_exactly || after.model.centres_exactly) &&
                            only_layer_norms(before.model, old_norm.stack) &&
                            only_layer_norms(after.model, new_norm.stack);
      std::vector<double>& errors = before.input_errors[place_of(old_map.weight)];
      WriterComparison writer =
          changed
              ? compare_changed_writers(
                    of_old, of_new, relabelled == nullptr ? std::vector<std::uint64_t>() : relabelled->inputs,
                    centered, &errors)
              : compare_writers(of_old, of_new, centered, &errors);
      writer.only_layer_norms = centered;
      writer.old_weight = old_map.weight.selector();
      writer.new_weight = new_map.weight.selector();
      if (!(writer.raw <= result.tolerance) && relabelled == nullptr &&
          same_bias(of_old, of_new, result.tolerance) && is_quantization(of_old, of_new, result)) {
        before.explained.insert(place_of(old_map.weight));
      }
      result.writers.push_back(std::move(writer));
    }
  }
}

namespace {

/// Compares maps that no norm's reader or writer is, and lists them with the other tensors.
void compare_map(Side& before, Side& after, const MapOfFile& old_map, const MapOfFile& new_map,
                 bool is_relabelled, Comparison& result) {
  note_map(before, old_map.map);
  note_map(after, new_map.map);
  std::vector<double> errors;
  const ReaderComparison found = compare_readers(old_map, new_map, &errors);
  keep_errors(before, old_map.map, errors);
  OtherComparison other{old_map.map.weight.selector()};
  if (new_map.map.weight.selector() != other.name) other.new_name = new_map.map.weight.selector();
  other.change = std::max(found.composite, found.bias);
  const bool by_blocks = !found.agrees(result.tolerance) && !is_relabelled &&
                         is_quantization(old_map, new_map, result) &&
                         same_bias(old_map, new_map, result.tolerance);
  if (by_blocks) before.explained.insert(place_of(old_map.map.weight));
  other.tolerance = by_blocks ? other.change : result.tolerance;
  result.others.push_back(std::move(other));
}

/// Likewise, as NEW numbers the outputs of OLD.
void compare_relabelled(Side& before, Side& after, const View& view, const Linear& of_old,
                        const Linear& of_new, Comparison& result) {
  const NormSpec none;
  const Relabelled* const relabelled = view.relabelling.of_reader(of_old);
  compare_map(before, after, {before.file, of_old, none},
              {after.file, relabelled == nullptr ? of_new : relabelled->map, none, nullptr,
               relabelled == nullptr ? nullptr : &relabelled->blocks},
              relabelled != nullptr, result);
}

}  // namespace

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
  for (std::size_t r = 0; r < of_old.size(); ++r) {
    compare_relabelled(before, after, view, of_old[r], of_new[r], result);
  }
}

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

void compare_roles(Side& before, Side& after, const View& view, Comparison& result) {
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
      compare_relabelled(before, after, view, *of_old[k], *of_new[k], result);
    }
  }
}

}  // namespace normscope::rewrite
