#include "compare_steps.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "planning.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using files::Tensor;
using models::Layout;
using models::Linear;
using models::Model;
using models::Norm;

constexpr std::uint64_t sampled_rows = 4;

/// Relative difference of the composites on a few rows, spread evenly.
double sampled_difference(const MapOfFile& before, const MapOfFile& after) {
  double error = 0.0;
  double length = 0.0;
  const std::uint64_t rows = std::min(sampled_rows, before.map.out);
  for (std::uint64_t k = 0; k < rows; ++k) {
    const std::uint64_t row = k * before.map.out / rows;
    const std::vector<double> a = read_weight(before.file, before.map, row, 1);
    const std::vector<double> b = read_weight(after.file, after.map, row, 1);
    for (std::size_t j = 0; j < a.size(); ++j) {
      const double old_value = a[j] * before.norm.gain_at(j);
      const double change = b[j] * after.norm.gain_at(j) - old_value;
      error += change * change;
      length += old_value * old_value;
    }
  }
  return error == 0.0 ? 0.0 : std::sqrt(error / length);
}

std::vector<double> gain_values(const Checkpoint& file, const Norm& norm) {
  return gains_of(read_norm(file, norm), norm.width);
}

/// Pairs the norms between two matched pairs: all of them if both sides have as many, of the same widths.
void add_between(const Model& old_model, std::size_t old_begin, std::size_t old_end, const Model& new_model,
                 std::size_t new_begin, std::size_t new_end, NormPairs& result) {
  bool fits = old_end - old_begin == new_end - new_begin;
  for (std::size_t k = 0; fits && k < old_end - old_begin; ++k) {
    fits = old_model.norms[old_begin + k].width == new_model.norms[new_begin + k].width;
  }
  if (fits) {
    for (std::size_t k = 0; k < old_end - old_begin; ++k) {
      result.pairs.emplace_back(old_begin + k, new_begin + k);
    }
    return;
  }
  for (std::size_t i = old_begin; i < old_end; ++i) result.old_left.push_back(i);
  for (std::size_t i = new_begin; i < new_end; ++i) result.new_left.push_back(i);
}

/// The stored matrices that read a norm. The outputs of a matrix that is read as a whole keep their stored
/// order, which the architecture may permute.
std::vector<Linear> stored_readers(const Norm& norm) {
  std::vector<Linear> result;
  std::set<Place> seen;
  for (const Linear& reader : norm.readers) {
    if (!seen.insert(place_of(reader.weight)).second) continue;
    result.push_back(reader.out == reader.stored_out ? reader : whole(reader));
  }
  return result;
}

/// A tensor that has elements as a matrix of rows along its first axis.
Linear matrix_of(const Tensor& tensor) {
  Linear map;
  map.weight = {std::string(tensor.name), 0, tensor.elements(), {}};
  map.out = tensor.shape.size() > 1 ? tensor.shape[0] : 1;
  map.in = tensor.elements() / map.out;
  map.stored_out = map.out;
  return map;
}

/// The matrices that a tensor with as many elements as `wanted` may represent: itself and its transpose.
std::vector<Linear> readings_of(const Tensor& tensor, const Linear& wanted) {
  std::vector<Linear> result;
  Linear map = matrix_of(tensor);
  if (map.in == wanted.in) result.push_back(map);
  if (tensor.shape.size() == 2 && tensor.shape[0] == wanted.in) {
    map.layout = Layout::in_out;
    map.in = wanted.in;
    map.out = map.stored_out = wanted.out;
    result.push_back(std::move(map));
  }
  return result;
}

bool is_of_attention(const Linear& map) {
  return map.role == "query" || map.role == "key" || map.role == "value";
}

}  // namespace

Model with_split_pairs(Model model) {
  // For each stored matrix, which output stands where.
  std::map<Place, std::vector<std::uint64_t>> orders;
  for (const models::Head& head : model.heads) {
    if (!head.rotary || !head.rotary->interleaved) continue;
    for (const auto* part : {&head.query, &head.key}) {
      if (!*part || !(*part)->out_indices.empty() || head.rotary->dims > (*part)->out) continue;
      std::vector<std::uint64_t>& order = orders[place_of((*part)->weight)];
      if (order.empty()) {
        order.resize((*part)->stored_out);
        std::iota(order.begin(), order.end(), std::uint64_t{0});
      }
      const std::uint64_t half = head.rotary->dims / 2;
      for (std::uint64_t j = 0; j < half; ++j) {
        order[(*part)->first_out + j] = (*part)->first_out + 2 * j;
        order[(*part)->first_out + half + j] = (*part)->first_out + 2 * j + 1;
      }
    }
  }
  for (Norm& norm : model.norms) {
    for (Linear& reader : norm.readers) {
      const auto found = orders.find(place_of(reader.weight));
      if (found == orders.end() || !reader.out_indices.empty()) continue;
      const auto begin = found->second.begin() + static_cast<std::ptrdiff_t>(reader.first_out);
      reader.out_indices = std::vector<std::uint64_t>(begin, begin + static_cast<std::ptrdiff_t>(reader.out));
    }
  }
  return model;
}

Model with_norms_beside(Model model) {
  std::vector<Norm> norms;
  for (Norm& norm : model.norms) {
    const auto rest = std::stable_partition(norm.readers.begin(), norm.readers.end(), is_of_attention);
    const bool splits = norm.placement == models::Placement::pre && rest != norm.readers.begin() &&
                        rest != norm.readers.end();
    if (splits) {
      Norm other = norm;
      other.readers.assign(rest, norm.readers.end());
      norm.readers.erase(rest, norm.readers.end());
      norms.push_back(std::move(norm));
      norms.push_back(std::move(other));
    } else {
      norms.push_back(std::move(norm));
    }
  }
  model.norms = std::move(norms);
  return model;
}

bool has_other_tables(const Model& a, const Model& b) {
  return a.architecture != b.architecture && (models::has_lens_names(a) || models::has_lens_names(b));
}

Model with_head_parts(Model model, bool repeats) {
  if (repeats) {
    for (models::Head& head : model.heads) head.key_value_head = head.head;
    model.key_value_heads = model.heads_per_layer;
  }
  for (Norm& norm : model.norms) {
    // If two norms have one name, the other is that of the MLP.
    if (std::none_of(norm.readers.begin(), norm.readers.end(), is_of_attention)) continue;
    std::vector<Linear> parts;
    const auto add = [&](const std::optional<Linear>& part) {
      if (!part) return;
      const bool known = !repeats && std::any_of(parts.begin(), parts.end(), [&](const Linear& other) {
        return other.role == part->role && place_of(other.weight) == place_of(part->weight) &&
               other.first_out == part->first_out && other.out_indices == part->out_indices;
      });
      if (!known) parts.push_back(*part);
    };
    for (const auto member : {&models::Head::query, &models::Head::key, &models::Head::value}) {
      for (const models::Head& head : model.heads) {
        if (head.norm == norm.name) add(head.*member);
      }
    }
    for (const Linear& reader : norm.readers) {
      if (parts.empty() || !is_of_attention(reader)) parts.push_back(reader);
    }
    norm.readers = std::move(parts);
  }
  return model;
}

std::string obstacle_of(const Model& model) {
  if (!model.is_known()) return model.title;
  for (const Linear& map : model.stream_readers) {
    if (map.not_modelled != model.not_modelled) return map.not_modelled;
  }
  for (const Norm& norm : model.norms) {
    if (!norm.not_modelled.empty()) return norm.not_modelled;
    for (const std::vector<Linear>* maps : {&norm.readers, &norm.writers}) {
      for (const Linear& map : *maps) {
        if (map.not_modelled != model.not_modelled) return map.not_modelled;
      }
    }
  }
  return {};
}

Model with_stored_maps(Model model) {
  for (Norm& norm : model.norms) {
    for (std::vector<Linear>* maps : {&norm.readers, &norm.writers}) {
      for (Linear& map : *maps) {
        if (map.not_modelled == model.not_modelled) map.not_modelled.clear();
      }
    }
  }
  for (Linear& map : model.stream_readers) {
    if (map.not_modelled == model.not_modelled) map.not_modelled.clear();
  }
  return model;
}

bool contains_tensors(const Checkpoint& file, const Checkpoint& other) {
  return std::all_of(other.tensors().begin(), other.tensors().end(),
                     [&](const Tensor& tensor) { return file.find(tensor.name) != nullptr; });
}

bool has_parameters(const Tensor& tensor) {
  return is_floating(tensor.dtype) && tensor.is_decodable() && tensor.elements() > 1;
}

bool has_same_values(const MapOfFile& before, const MapOfFile& after, double tolerance) {
  return before.map.in == after.map.in && before.map.out == after.map.out &&
         sampled_difference(before, after) <= tolerance && compare_readers(before, after).raw <= tolerance;
}

NormPairs norms_in_order(const Model& old_model) {
  NormPairs result;
  for (std::size_t i = 0; i < old_model.norms.size(); ++i) result.pairs.emplace_back(i, i);
  return result;
}

NormPairs norms_by_gain(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                        const Model& new_model, double tolerance) {
  const std::size_t rows = old_model.norms.size();
  const std::size_t columns = new_model.norms.size();
  std::vector<std::vector<double>> old_gains;
  std::vector<std::vector<double>> new_gains;
  for (const Norm& norm : old_model.norms) old_gains.push_back(gain_values(old_file, norm));
  for (const Norm& norm : new_model.norms) new_gains.push_back(gain_values(new_file, norm));
  const auto equal = [&](std::size_t i, std::size_t k) {
    return old_gains[i].size() == new_gains[k].size() &&
           relative_change(old_gains[i], new_gains[k]) <= tolerance;
  };
  // Lengths of the longest common subsequences of the ends.
  std::vector<std::vector<std::size_t>> common(rows + 1, std::vector<std::size_t>(columns + 1));
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t k = columns; k-- > 0;) {
      common[i][k] = equal(i, k) ? common[i + 1][k + 1] + 1 : std::max(common[i + 1][k], common[i][k + 1]);
    }
  }
  NormPairs result;
  std::size_t old_begin = 0;
  std::size_t new_begin = 0;
  for (std::size_t i = 0, k = 0; i < rows && k < columns;) {
    if (equal(i, k)) {
      add_between(old_model, old_begin, i, new_model, new_begin, k, result);
      result.pairs.emplace_back(i, k);
      old_begin = ++i;
      new_begin = ++k;
    } else if (common[i + 1][k] >= common[i][k + 1]) {
      ++i;
    } else {
      ++k;
    }
  }
  add_between(old_model, old_begin, rows, new_model, new_begin, columns, result);
  return result;
}

ReaderPairs readers_by_values(const Checkpoint& old_file, const Norm& old_norm, const NormSpec& old_spec,
                              const Checkpoint& new_file, const Norm& new_norm, const NormSpec& new_spec) {
  const std::vector<Linear> before = stored_readers(old_norm);
  const std::vector<Linear> after = stored_readers(new_norm);
  std::vector<std::tuple<double, std::size_t, std::size_t>> distances;
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t k = 0; k < after.size(); ++k) {
      if (before[i].in != after[k].in || before[i].out != after[k].out) continue;
      distances.emplace_back(
          sampled_difference({old_file, before[i], old_spec}, {new_file, after[k], new_spec}), i, k);
    }
  }
  std::sort(distances.begin(), distances.end());
  std::vector<std::size_t> partner(before.size(), after.size());
  std::vector<bool> taken(after.size());
  for (const auto& [distance, i, k] : distances) {
    if (partner[i] != after.size() || taken[k]) continue;
    partner[i] = k;
    taken[k] = true;
  }
  ReaderPairs result;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (partner[i] == after.size()) {
      result.left.push_back(before[i]);
    } else {
      result.pairs.emplace_back(before[i], after[partner[i]]);
    }
  }
  return result;
}

SameValues find_values(const Checkpoint& of_wanted, const Tensor& wanted, const Checkpoint& file,
                       std::span<const Tensor* const> candidates, double tolerance) {
  const NormSpec none;
  const Linear map = matrix_of(wanted);
  for (const Tensor* const candidate : candidates) {
    if (candidate->elements() != wanted.elements() || !has_parameters(*candidate)) continue;
    for (const Linear& reading : readings_of(*candidate, map)) {
      const MapOfFile before{of_wanted, map, none};
      const MapOfFile after{file, reading, none};
      if (!(sampled_difference(before, after) <= tolerance)) continue;
      const double change = compare_readers(before, after).raw;
      if (change <= tolerance) return {candidate, change};
    }
  }
  return {};
}

}  // namespace normscope::rewrite
