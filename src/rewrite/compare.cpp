#include <normscope/rewrite/compare.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

#include "compare_findings.hpp"
#include "compare_maps.hpp"
#include "matrix.hpp"
#include "reasons.hpp"

namespace normscope::rewrite {
namespace {

using checkpoint::Checkpoint;
using model::Linear;
using model::Model;
using model::Norm;

/// A file, its description and which tensors it uses where.
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
  return norm.connections_known && !norm.readers.empty() && !side.uses.enters_stream(norm.name);
}

double cosine(const NormSpec& a, const NormSpec& b) {
  double product = 0.0;
  double a_length = 0.0;
  double b_length = 0.0;
  for (std::size_t j = 0; j < a.width; ++j) {
    product += a.gain_at(j) * b.gain_at(j);
    a_length += a.gain_at(j) * a.gain_at(j);
    b_length += b.gain_at(j) * b.gain_at(j);
  }
  if (a_length == 0.0 || b_length == 0.0) return a_length == b_length ? 1.0 : 0.0;
  return std::clamp(product / std::sqrt(a_length * b_length), -1.0, 1.0);
}

std::vector<double> gains(const NormSpec& spec) {
  std::vector<double> result(spec.width);
  for (std::size_t j = 0; j < spec.width; ++j) result[j] = spec.gain_at(j);
  return result;
}

bool same_shape(const Linear& a, const Linear& b) { return a.in == b.in && a.out == b.out; }

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::Unsupported, "compare: " + why); }

NormComparison compare_norms(Side& before, Side& after, std::size_t index, double tolerance) {
  const Norm& old_norm = before.model.norms[index];
  const Norm& new_norm = after.model.norms[index];
  if (old_norm.width != new_norm.width || old_norm.readers.size() != new_norm.readers.size()) {
    refuse(fmt::format("{} has {} features and {} readers, {} has {} and {}", old_norm.name, old_norm.width,
                       old_norm.readers.size(), new_norm.name, new_norm.width, new_norm.readers.size()));
  }
  note_norm(before, old_norm);
  note_norm(after, new_norm);
  const NormSpec old_spec = read_norm(before.file, old_norm);
  const NormSpec new_spec = read_norm(after.file, new_norm);
  NormComparison result{old_norm.name, new_norm.name};
  result.old_kind = old_norm.kind;
  result.new_kind = new_norm.kind;
  result.old_eps = old_norm.eps;
  result.new_eps = new_norm.eps;
  result.gain_change = relative_change(gains(old_spec), gains(new_spec));
  result.gain_cosine = cosine(old_spec, new_spec);
  result.bias_change = relative_change(old_spec.bias, new_spec.bias);
  bool exact = result.gain_change == 0.0 && result.bias_change == 0.0;
  bool agrees = old_norm.kind == new_norm.kind && old_norm.eps == new_norm.eps &&
                old_spec.alpha == new_spec.alpha && old_spec.shift == new_spec.shift &&
                old_spec.groups == new_spec.groups;
  if (!is_free(before, old_norm) || !is_free(after, new_norm)) {
    agrees = agrees && result.gain_change <= tolerance && result.bias_change <= tolerance;
  }
  for (std::size_t r = 0; r < old_norm.readers.size(); ++r) {
    note_map(before, old_norm.readers[r]);
    note_map(after, new_norm.readers[r]);
    if (!same_shape(old_norm.readers[r], new_norm.readers[r])) {
      refuse(fmt::format("{} and {} have other shapes", old_norm.readers[r].weight.selector(),
                         new_norm.readers[r].weight.selector()));
    }
    const ReaderComparison reader = compare_readers({before.file, old_norm.readers[r], old_spec},
                                                    {after.file, new_norm.readers[r], new_spec});
    exact = exact && reader.raw == 0.0 && reader.bias == 0.0;
    agrees = agrees && reader.composite <= tolerance && reader.bias <= tolerance;
    result.readers.push_back(reader);
  }
  result.agreement = !agrees ? Agreement::different : exact ? Agreement::same : Agreement::equivalent;
  return result;
}

/// Whether every norm that reads the stream of this stack is a LayerNorm before a branch.
bool only_layer_norms(const Model& model, const std::string& stack) {
  return std::all_of(model.norms.begin(), model.norms.end(), [&](const Norm& norm) {
    if (norm.stack != stack || norm.placement == model::Placement::inside) return true;
    return norm.kind == NormKind::layer && norm.placement == model::Placement::pre &&
           norm.writing_norms.empty();
  });
}

void compare_all_writers(Side& before, Side& after, Comparison& result) {
  std::set<Place> done;
  const NormSpec none;
  for (std::size_t index = 0; index < before.model.norms.size(); ++index) {
    const Norm& old_norm = before.model.norms[index];
    const Norm& new_norm = after.model.norms[index];
    if (old_norm.placement == model::Placement::inside && !before.uses.enters_stream(old_norm.name)) continue;
    if (old_norm.writers.size() != new_norm.writers.size()) {
      refuse(fmt::format("{} has {} writers, {} has {}", old_norm.name, old_norm.writers.size(),
                         new_norm.name, new_norm.writers.size()));
    }
    for (std::size_t w = 0; w < old_norm.writers.size(); ++w) {
      const Linear& old_map = old_norm.writers[w];
      const Linear& new_map = new_norm.writers[w];
      note_map(before, old_map);
      note_map(after, new_map);
      if (!done.insert(place_of(old_map.weight)).second) continue;
      if (!same_shape(old_map, new_map)) {
        refuse(
            fmt::format("{} and {} have other shapes", old_map.weight.selector(), new_map.weight.selector()));
      }
      WriterComparison writer = compare_writers({before.file, old_map, none}, {after.file, new_map, none});
      writer.only_layer_norms =
          only_layer_norms(before.model, old_norm.stack) && only_layer_norms(after.model, new_norm.stack);
      result.writers.push_back(std::move(writer));
    }
  }
}

void compare_others(const Side& before, const Side& after, Comparison& result) {
  for (const checkpoint::Tensor& tensor : before.file.tensors()) {
    if (before.compared.contains(tensor.name)) continue;
    OtherComparison other{std::string(tensor.name)};
    const checkpoint::Tensor* const found = after.file.find(tensor.name);
    other.in_new = found != nullptr;
    if (found == nullptr || found->elements() != tensor.elements() || !tensor.is_decodable() ||
        !found->is_decodable()) {
      const bool equal = found != nullptr && found->stored_type() == tensor.stored_type() &&
                         bytes::equal(found->bytes, tensor.bytes);
      other.change = equal ? 0.0 : 1.0;
    } else {
      other.change = relative_change(read(tensor), read(*found));
    }
    result.others.push_back(std::move(other));
  }
  for (const checkpoint::Tensor& tensor : after.file.tensors()) {
    if (after.compared.contains(tensor.name) || before.file.find(tensor.name) != nullptr) continue;
    result.others.push_back({std::string(tensor.name), false, true, 1.0});
  }
}

double tolerance_of(const Side& before, const Side& after) {
  double coarsest = 0.0;
  for (const Side* side : {&before, &after}) {
    for (const checkpoint::Tensor& tensor : side->file.tensors()) {
      if (tensor.shape.size() > 1 && is_rewritable(tensor.dtype)) {
        coarsest = std::max(coarsest, unit_roundoff(tensor.dtype));
      }
    }
  }
  return std::max(2.01 * coarsest, 1e-7);
}

}  // namespace

const char* to_string(Agreement agreement) {
  switch (agreement) {
    case Agreement::same: return "same";
    case Agreement::equivalent: return "equivalent";
    case Agreement::different: return "different";
  }
  return "";
}

Comparison compare(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                   const Model& new_model, const Progress& progress) {
  if (!old_model.is_known() || old_model.architecture != new_model.architecture) {
    refuse(fmt::format("{} is {}, {} is {}; expected one known architecture", old_file.path().string(),
                       old_model.title, new_file.path().string(), new_model.title));
  }
  if (old_model.norms.size() != new_model.norms.size()) {
    refuse(fmt::format("{} has {} norms, {} has {}{}", old_file.path().string(), old_model.norms.size(),
                       new_file.path().string(), new_model.norms.size(),
                       new_model.missing.empty() ? "" : ": " + new_model.missing.front() + " is missing"));
  }
  Side before(old_file, old_model);
  Side after(new_file, new_model);
  Comparison result;
  result.tolerance = tolerance_of(before, after);
  for (std::size_t index = 0; index < old_model.norms.size(); ++index) {
    progress("norms compared", index, old_model.norms.size());
    result.norms.push_back(compare_norms(before, after, index, result.tolerance));
  }
  compare_all_writers(before, after, result);
  compare_others(before, after, result);
  bool exact = true;
  bool agrees = true;
  for (const NormComparison& norm : result.norms) {
    exact = exact && norm.agreement == Agreement::same;
    agrees = agrees && norm.agreement != Agreement::different;
  }
  for (const WriterComparison& writer : result.writers) {
    exact = exact && writer.raw == 0.0;
    agrees = agrees && (writer.only_layer_norms ? writer.centered : writer.raw) <= result.tolerance;
  }
  for (const OtherComparison& other : result.others) {
    exact = exact && other.change == 0.0;
    agrees = agrees && other.change <= result.tolerance;
  }
  result.agreement = !agrees ? Agreement::different : exact ? Agreement::same : Agreement::equivalent;
  add_findings(old_file, old_model, new_file, new_model, result);
  return result;
}

}  // namespace normscope::rewrite
