#include <normscope/rewrite/compare.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "compare_steps.hpp"
#include "matrix.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using files::Tensor;
using models::Linear;
using models::Model;
using models::Norm;

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

/// What counts as rounding of numbers that were rounded twice, each time by at most `roundoff`.
double tolerance_of(double roundoff) { return std::max(2.01 * roundoff, 1e-7); }

/// What counts as rounding between two tensors: that of the coarser dtype.
double tolerance_of(const Tensor& before, const Tensor& after) {
  double coarsest = 0.0;
  for (const Tensor* tensor : {&before, &after}) {
    if (is_rewritable(tensor->dtype)) coarsest = std::max(coarsest, unit_roundoff(tensor->dtype));
  }
  return tolerance_of(coarsest);
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

/// What stands before all names of a model in each file, such as "module." or "transformer.".
struct Prefixes {
  std::string before, after;

  Prefixes(const Model& old_model, const Model& new_model) {
    if (old_model.norms.empty() || new_model.norms.empty()) return;
    const std::string& a = old_model.norms.front().name;
    const std::string& b = new_model.norms.front().name;
    const auto ends = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
    before.assign(a.begin(), ends.first.base());
    after.assign(b.begin(), ends.second.base());
    const auto is_whole = [](const std::string& prefix) { return prefix.empty() || prefix.ends_with('.'); };
    if (!is_whole(before) || !is_whole(after)) before = after = {};
  }

  /// The tensor of NEW that a name of OLD stands for; null if there is none.
  [[nodiscard]] const Tensor* find(std::string_view name, const Checkpoint& file) const {
    const Tensor* const renamed =
        name.starts_with(before) ? file.find(after + std::string(name.substr(before.size()))) : nullptr;
    return renamed != nullptr ? renamed : file.find(name);
  }
};

void compare_others(const Side& before, const Side& after, Comparison& result) {
  const Prefixes prefixes(before.model, after.model);
  std::set<std::string_view> taken;
  for (const Tensor& tensor : before.file.tensors()) {
    const Tensor* const found = prefixes.find(tensor.name, after.file);
    if (found != nullptr) taken.insert(found->name);
    if (before.compared.contains(tensor.name)) continue;
    OtherComparison other{std::string(tensor.name)};
    if (found != nullptr && found->name != tensor.name) other.new_name = found->name;
    other.in_new = found != nullptr;
    other.change = change_of(tensor, found);
    if (found != nullptr) other.tolerance = tolerance_of(tensor, *found);
    result.others.push_back(std::move(other));
  }
  for (const Tensor& tensor : after.file.tensors()) {
    if (after.compared.contains(tensor.name) || taken.contains(tensor.name)) continue;
    result.others.push_back({std::string(tensor.name), {}, false, true, 1.0});
  }
}

/// Compares the other tensors of a file with names of its own: they are matched by name if it exists,
/// otherwise by values, with a tensor of the same layer unless a graph has lost the layers.
void compare_others_by_values(const Side& before, const Side& after, Comparison& result) {
  std::set<std::string, std::less<>> taken;
  const auto add = [&](const Tensor& tensor, const Tensor& found, double change) {
    OtherComparison other{std::string(tensor.name)};
    if (found.name != tensor.name) other.new_name = found.name;
    other.change = change;
    other.tolerance = tolerance_of(tensor, found);
    taken.insert(std::string(found.name));
    result.others.push_back(std::move(other));
  };
  const bool is_graph = before.file.graph() != nullptr || after.file.graph() != nullptr;
  const auto may_be_of_one_layer = [&](const Tensor& a, const Tensor& b) {
    return is_graph || models::first_number(a.name) == models::first_number(b.name);
  };
  for (const Tensor* const tensor : rest_of(before, {})) {
    const Tensor* const named = after.file.find(tensor->name);
    if (named != nullptr &&
        std::equal(named->shape.begin(), named->shape.end(), tensor->shape.begin(), tensor->shape.end())) {
      add(*tensor, *named, change_of(*tensor, named));
      continue;
    }
    std::vector<const Tensor*> candidates = rest_of(after, taken);
    std::erase_if(candidates,
                  [&](const Tensor* candidate) { return !may_be_of_one_layer(*tensor, *candidate); });
    const SameValues found = find_values(before.file, *tensor, after.file, candidates, result.tolerance);
    if (found.tensor != nullptr) {
      add(*tensor, *found.tensor, found.change);
    } else {
      result.not_compared.push_back(fmt::format("{}: no tensor of NEW has its values", tensor->name));
    }
  }
  for (const Tensor* const tensor : rest_of(after, taken)) {
    std::vector<const Tensor*> all;
    for (const Tensor& other : before.file.tensors()) {
      if (may_be_of_one_layer(other, *tensor)) all.push_back(&other);
    }
    if (find_values(after.file, *tensor, before.file, all, result.tolerance).tensor != nullptr) continue;
    result.not_compared.push_back(fmt::format("{} of NEW: no tensor of OLD has its values", tensor->name));
  }
}

/// That of the coarsest matrix, or of the coarsest vector of files without matrices.
double tolerance_of(const Side& before, const Side& after) {
  double coarsest = 0.0;
  double of_vectors = 0.0;
  for (const Side* side : {&before, &after}) {
    for (const files::Tensor& tensor : side->file.tensors()) {
      if (!is_rewritable(tensor.dtype)) continue;
      double& of_kind = tensor.shape.size() > 1 ? coarsest : of_vectors;
      of_kind = std::max(of_kind, unit_roundoff(tensor.dtype));
    }
  }
  return tolerance_of(coarsest > 0.0 ? coarsest : of_vectors);
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
  if (before.is_of_graph() || after.is_of_graph()) {
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
    refuse_comparison(fmt::format("{} is {}, {} is {}; expected one known architecture",
                                  before.file.path().string(), before.model.title, after.file.path().string(),
                                  after.model.title));
  }
  if (before.model.norms.size() != after.model.norms.size()) {
    refuse_comparison(
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
    agrees = agrees && writer.agrees(result.tolerance);
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
  if (before.is_of_graph() || after.is_of_graph()) {
    compare_others_by_values(before, after, result);
    for (const Side* side : {&before, &after}) {
      for (const models::NearMiss& miss : side->model.near_misses) {
        result.not_compared.push_back(fmt::format("{}{}, which is like a norm, but none: {}", miss.node,
                                                  side == &after ? " of NEW" : "", miss.why));
      }
    }
    result.not_compared.emplace_back("the operations between norms and matrices, which the graph states");
  } else {
    compare_all_writers(before, after, view, result);
    compare_stream_readers(before, after, view, result);
    compare_sinks(before, after, view, result);
    compare_roles(before, after, view, result);
    if (old_file.graph() != nullptr || new_file.graph() != nullptr ||
        old_model.architecture != new_model.architecture) {
      compare_others_by_values(before, after, result);
    } else {
      compare_others(before, after, result);
    }
  }
  if (old_file.graph() == nullptr && new_file.graph() == nullptr) {
    result.branches = compare_branches(before, after, view.relabelling, result.tolerance);
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

/// Whether one model stores in one matrix what another stores in several.
bool has_other_parts(const Model& a, const Model& b) {
  return !std::equal(
      a.norms.begin(), a.norms.end(), b.norms.begin(), b.norms.end(),
      [](const Norm& one, const Norm& other) { return one.readers.size() == other.readers.size(); });
}

/// A model whose file has no configuration, with that of the other. Of TransformerLens' names, it tells the
/// family too.
Model configured_as(const Checkpoint& file, Model model, const Checkpoint& other_file, const Model& other) {
  if (models::has_lens_names(model)) {
    Model described = models::describe(file, {.configuration = &other_file});
    if (described.is_known()) return with_stored_maps(std::move(described));
  }
  return with_configuration_of(std::move(model), other);
}

/// The number of maps that differ, which a symmetry may explain; those that read the stream itself are among
/// the other tensors.
std::size_t differing_maps(const Comparison& result) {
  std::size_t count = 0;
  for (const NormComparison& norm : result.norms) {
    for (const ReaderComparison& reader : norm.readers) {
      if (!reader.agrees(result.tolerance)) ++count;
    }
  }
  for (const WriterComparison& writer : result.writers) {
    if (!writer.agrees(result.tolerance)) ++count;
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
  const bool is_one_form = old_model.architecture == new_model.architecture;
  if (old_model.is_known() && models::is_same_family(old_model, new_model)) {
    const bool old_states = models::has_configuration(old_file);
    // In TransformerLens' names the configuration tells the kind of norms too.
    if (old_states != models::has_configuration(new_file) &&
        (!is_one_form || models::has_lens_names(old_model))) {
      if (old_states) after = configured_as(new_file, std::move(after), old_file, before);
      if (!old_states) before = configured_as(old_file, std::move(before), new_file, after);
    }
  }
  if (old_model.is_known() && !is_one_form && models::is_same_family(old_model, new_model)) {
    if (before.norms.size() != after.norms.size()) {
      before = with_norms_beside(std::move(before));
      after = with_norms_beside(std::move(after));
    }
    if (has_other_parts(before, after)) {
      const bool repeats = before.key_value_heads != after.key_value_heads;
      before = with_head_parts(std::move(before), repeats);
      after = with_head_parts(std::move(after), repeats);
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
