#include "share_ranges.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include <normscope/core/rounding.hpp>

#include "heads.hpp"
#include "quadratic_bound.hpp"

namespace normscope::verify {
namespace {

/// Extremes of an activation function between two inputs. All fall to their least value and rise from there.
std::pair<double, double> activated(models::Activation activation, double low, double high) {
  const double ends[] = {activate(activation, low), activate(activation, high)};
  double least = std::min(ends[0], ends[1]);
  double a = std::max(low, -4.0), b = std::min(high, 0.0);  // where the least value is, if anywhere
  for (int i = 0; i < 60 && a < b; ++i) {
    const double third = (b - a) / 3.0;
    if (activate(activation, a + third) > activate(activation, b - third)) {
      a += third;
    } else {
      b -= third;
    }
  }
  if (a <= b) least = std::min(least, activate(activation, 0.5 * (a + b)));
  return {least, std::max(ends[0], ends[1])};
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string selector_of(const std::optional<models::Slice>& slice) {
  return slice ? slice->selector() : std::string();
}

bool is_map(const Field& stated, const models::Linear* map) {
  if (map == nullptr || stated.is_null()) return (map == nullptr) == stated.is_null();
  std::vector<std::uint64_t> outputs;
  for (std::size_t i = 0; i < stated["outputs"].size(); ++i) {
    const Field run = stated["outputs"][i];
    const std::size_t first = run[std::size_t{0}].count(), count = run[std::size_t{1}].count();
    for (std::size_t j = 0; j < count && outputs.size() <= map->out; ++j) outputs.push_back(first + j);
  }
  bool same = outputs.size() == map->out;
  for (std::size_t j = 0; j < outputs.size() && same; ++j) same = outputs[j] == map->stored_output(j);
  return same && stated["weight"].text() == map->weight.selector() &&
         stated["layout"].text() == (map->layout == models::Layout::out_in ? "out_in" : "in_out") &&
         is_null_or(stated["bias"], selector_of(map->bias));
}

bool is_norm(const Field& stated, const models::Norm* norm) {
  if (norm == nullptr || stated.is_null()) return (norm == nullptr) == stated.is_null();
  return stated["kind"].text() == to_string(norm->kind) && stated["width"].count() == norm->width &&
         stated["groups"].count() == norm->groups && is_null_or(stated["gain"], selector_of(norm->gain)) &&
         stated["gain_offset"].number() == norm->gain_offset &&
         is_null_or(stated["bias"], selector_of(norm->bias));
}

ShareLimits scaled_by(const ShareLimits& limits, double factor) {
  const auto [lower, upper] = std::minmax({factor * limits.lower, factor * limits.upper});
  return {lower, upper, std::abs(factor) * limits.size};
}

constexpr const char* activation_names[] = {"gelu", "gelu_tanh", "silu", "relu", "squared_relu"};

/// What rows of a map read behind a norm with one divisor.
Reads reads_behind(const NormSpec& norm, const std::vector<double>& weight, const std::vector<double>& bias) {
  Reads reads{.width = norm.width, .rows = weight};
  for (std::size_t j = 0; j < weight.size() / norm.width; ++j) {
    double* const row = reads.rows.data() + j * norm.width;
    double centre = bias.empty() ? 0.0 : bias[j], middle = 0.0;
    for (std::size_t i = 0; i < norm.width; ++i) {
      centre += row[i] * norm.bias_at(i);
      row[i] *= norm.gain_at(i) * norm.radius();
      middle += row[i] / static_cast<double>(norm.width);
    }
    for (std::size_t i = 0; i < norm.width && norm.centers(); ++i) row[i] -= middle;
    reads.centres.push_back(centre);
  }
  return reads;
}

}  // namespace

/// What is known of a component, by the names of a result's `of`.
struct ShareRanges::Part {
  const char* of = "none";
  double scale = 1.0;
  const models::Linear* table = nullptr;
  std::string rows{};
  const models::Norm* norm = nullptr;
  const models::Linear *in = nullptr, *gate = nullptr, *out = nullptr;
  std::size_t first_input = 0;
};

ShareRanges::ShareRanges(const files::Checkpoint& checkpoint, const models::Model& model,
                         std::vector<double> direction)
    : checkpoint_(checkpoint),
      model_(model),
      direction_(std::move(direction)),
      attention_(branches(true)),
      mlps_(branches(false)) {}

/// The k-th norm that attention, or an MLP, reads belongs to the k-th group of maps that write its output.
std::vector<ShareRanges::Branch> ShareRanges::branches(bool attends) const {
  std::vector<Branch> found;
  std::set<std::string> known;
  std::size_t written = 0;
  const auto reads = [&](const models::Linear& reader) {
    return attends ? reader.role == "value" : reader.role == "mlp in" || reader.role == "router";
  };
  for (const models::Norm& norm : model_.norms) {
    if (norm.placement != models::Placement::pre ||
        std::none_of(norm.readers.begin(), norm.readers.end(), reads)) {
      continue;
    }
    const bool has_experts =
        std::any_of(norm.readers.begin(), norm.readers.end(),
                    [](const models::Linear& reader) { return reader.role == "router"; });
    found.push_back({.norm = &norm, .has_experts = has_experts && !attends});
  }
  for (const models::Norm& norm : model_.norms) {
    bool writes = false;
    for (const models::Linear& writer : norm.writers) {
      if (writer.role != (attends ? "attention out" : "mlp out")) continue;
      if (!known.insert(writer.weight.selector()).second || writes || written >= found.size()) continue;
      writes = true;
      found[written].out = &writer;
    }
    written += writes ? 1 : 0;
  }
  found.resize(std::min(found.size(), written));
  return found;
}

/// The norm of the output of a layer's attention or MLP, the map of that role; null if there is none.
const models::Norm* ShareRanges::norm_behind(std::string_view role, int layer) const {
  for (const models::Norm& norm : model_.norms) {
    if (norm.placement == models::Placement::inside && norm.layer == layer && norm.writers.size() == 1 &&
        norm.writers.front().role == role) {
      return &norm;
    }
  }
  return nullptr;
}

std::optional<ShareRanges::Part> ShareRanges::part_of(const std::string& component) const {
  if (component == "embedding" || component == "position") {
    const std::string role = component == "embedding" ? "token embedding" : "position embedding";
    for (const models::Norm& norm : model_.norms) {
      for (const models::Linear& writer : norm.writers) {
        if (writer.role != role) continue;
        if (norm.placement != models::Placement::pre) return std::nullopt;  // a norm of the embedding itself
        return Part{.of = "rows",
                    .scale = component == "embedding" ? model_.decoder->embedding_scale : 1.0,
                    .table = &writer,
                    .rows = writer.weight.selector()};
      }
    }
    return std::nullopt;
  }
  const std::size_t dot = component.find('.');
  const std::optional<int> layer = number_of(std::string_view(component).substr(0, dot));
  if (!layer || dot == std::string::npos) return std::nullopt;
  const std::string kind = component.substr(dot + 1);
  Part part{.scale = model_.decoder->branch_scale};
  const bool attends = number_of(kind).has_value() || kind == "attention_bias";
  const bool is_bias = kind == "attention_bias" || kind == "mlp_bias";
  if (const models::Norm* const after = norm_behind(attends ? "attention out" : "mlp out", *layer)) {
    const bool has_bias = after->writers.front().bias.has_value();
    if (has_bias || (!is_bias && (kind != "mlp" || after->bias))) return std::nullopt;
    part.of = is_bias ? "constant" : "norm";
    part.norm = after;
    if (is_bias) part.rows = selector_of(after->bias);
    return part;
  }
  const Branch* branch = nullptr;
  for (const Branch& one : attends ? attention_ : mlps_) {
    const bool fits = attends ? std::any_of(model_.heads.begin(), model_.heads.end(),
                                            [&](const models::Head& head) {
                                              return head.layer == *layer && head.norm == one.norm->name;
                                            })
                              : one.norm->layer == layer;
    if (fits) branch = &one;
  }
  if (branch == nullptr) return std::nullopt;
  if (is_bias) {
    part.of = "constant";
    part.out = branch->out;
    part.rows = selector_of(branch->out->bias);
    return part;
  }
  if (branch->has_experts) return std::nullopt;
  part.norm = branch->norm;
  part.out = branch->out;
  if (kind == "mlp") {
    part.of = "mlp";
    for (const models::Linear& reader : branch->norm->readers) {
      if (reader.role == "mlp in") part.in = &reader;
      if (reader.role == "mlp gate") part.gate = &reader;
    }
    return part.in == nullptr ? std::nullopt : std::optional(part);
  }
  part.of = "head";
  std::size_t before = 0;
  for (const models::Head& head : model_.heads) {
    if (head.norm != branch->norm->name || !head.value) continue;
    if (head.layer == *layer && head.head == number_of(kind)) {
      if (head.clip != 0.0 || head.sink) return std::nullopt;  // not an average of values that are read
      part.in = &*head.value;
      part.first_input = before * static_cast<std::size_t>(head.value->out);
    }
    ++before;
  }
  return part.in == nullptr ? std::nullopt : std::optional(part);
}

ShareLimits ShareRanges::of_rows(std::span<const double> rows) const {
  ShareLimits limits{infinity, -infinity, 0.0};
  for (std::size_t first = 0; first + direction_.size() <= rows.size(); first += direction_.size()) {
    const std::span<const double> row = rows.subspan(first, direction_.size());
    const double read = plain_dot(direction_, row);
    limits = {std::min(limits.lower, read), std::max(limits.upper, read),
              std::max(limits.size, euclidean_norm(direction_) * euclidean_norm(row))};
  }
  return limits;
}

ShareLimits ShareRanges::of_table(const models::Linear& table) const {
  ShareLimits limits{infinity, -infinity, 0.0};
  models::Linear rows = table;
  rows.layout = models::Layout::out_in;
  std::swap(rows.in, rows.out);
  rows.stored_out = rows.out;
  for (std::uint64_t first = 0; first < rows.out; first += 512) {
    const ShareLimits some = of_rows(
        models::read_weight(checkpoint_, rows, first, std::min<std::uint64_t>(512, rows.out - first)));
    limits = {std::min(limits.lower, some.lower), std::max(limits.upper, some.upper),
              std::max(limits.size, some.size)};
  }
  return limits;
}

ShareLimits ShareRanges::behind(const NormSpec& norm, std::span<const double> row, double constant) {
  double center = constant, size = std::abs(constant), reach = 0.0;
  const std::size_t block = norm.block_width();
  std::vector<double> scaled(block);
  for (std::size_t first = 0; first < norm.width; first += block) {
    for (std::size_t i = 0; i < block; ++i) {
      scaled[i] = row[first + i] * norm.gain_at(first + i);
      center += row[first + i] * norm.bias_at(first + i);
      size += std::abs(row[first + i] * norm.bias_at(first + i));
    }
    const double mean = norm.centers() ? sum(scaled) / static_cast<double>(block) : 0.0;
    for (double& value : scaled) {
      size += norm.radius() * std::abs(value);
      value -= mean;
    }
    reach += norm.radius() * euclidean_norm(scaled);
  }
  return {center - reach, center + reach, size};
}

std::vector<double> ShareRanges::read_through(const models::Linear& out, std::size_t first,
                                              std::size_t count) const {
  std::vector<double> reads(count);
  const auto in = static_cast<std::size_t>(out.in);
  const std::vector<double> weight = models::read_weight(checkpoint_, out, 0, out.out);
  for (std::size_t i = 0; i < direction_.size(); ++i) {
    for (std::size_t j = 0; j < count; ++j) reads[j] += direction_[i] * weight[i * in + first + j];
  }
  return reads;
}

ShareLimits ShareRanges::of_head(const Part& part) const {
  const auto count = static_cast<std::size_t>(part.in->out);
  const std::vector<double> reads = read_through(*part.out, part.first_input, count);
  const std::vector<double> weight = models::read_weight(checkpoint_, *part.in, 0, count);
  const std::vector<double> bias = models::read_bias(checkpoint_, *part.in);
  const NormSpec norm = models::read_norm(checkpoint_, *part.norm);
  std::vector<double> row(norm.width), sizes(norm.width);
  double constant = 0.0, size = 0.0;
  for (std::size_t j = 0; j < count; ++j) {
    if (!bias.empty()) constant += reads[j] * bias[j];
    for (std::size_t i = 0; i < norm.width; ++i) {
      const double term = reads[j] * weight[j * norm.width + i];
      row[i] += term;
      size += std::abs(term * norm.gain_at(i)) * norm.radius();
    }
  }
  ShareLimits limits = behind(norm, row, constant);
  limits.size += size;
  return limits;
}

/// How many times what an MLP can add the terms of a proof may be. What is accepted as rounding grows with
/// them, so terms of any size would prove any bound.
constexpr double largest_terms = 100.0;

ShareLimits ShareRanges::of_mlp(const Part& part, const Field& source) const {
  const auto count = static_cast<std::size_t>(part.in->out);
  const std::vector<double> reads = read_through(*part.out, 0, count);
  const NormSpec norm = models::read_norm(checkpoint_, *part.norm);
  const auto inputs = [&](const models::Linear& map) {
    const std::vector<double> weight = models::read_weight(checkpoint_, map, 0, count);
    const std::vector<double> bias = models::read_bias(checkpoint_, map);
    std::vector<ShareLimits> limits;
    for (std::size_t j = 0; j < count; ++j) {
      limits.push_back(
          behind(norm, {weight.data() + j * norm.width, norm.width}, bias.empty() ? 0.0 : bias[j]));
    }
    return limits;
  };
  const models::Activation activation = *model_.decoder->activation;
  const std::vector<ShareLimits> in = inputs(*part.in);
  const std::vector<ShareLimits> gate = part.gate != nullptr ? inputs(*part.gate) : in;
  ShareLimits total;
  for (std::size_t j = 0; j < count; ++j) {
    auto [least, most] = activated(activation, gate[j].lower, gate[j].upper);
    if (part.gate != nullptr) {
      const std::pair<double, double> ends =
          std::minmax({least * in[j].lower, least * in[j].upper, most * in[j].lower, most * in[j].upper});
      least = ends.first;
      most = ends.second;
    }
    const double one = reads[j] * least, other = reads[j] * most;
    total.lower += std::min(one, other);
    total.upper += std::max(one, other);
    total.size += std::max(std::abs(one), std::abs(other));
  }
  total = scaled_by(total, part.scale);
  const bool is_proved = !source["below"].is_null() || !source["above"].is_null();
  if (!is_proved || norm.elementwise() || norm.groups != 1) return total;
  const auto read_by = [&](const models::Linear& map) {
    return reads_behind(norm, models::read_weight(checkpoint_, map, 0, count),
                        models::read_bias(checkpoint_, map));
  };
  const double most_terms = largest_terms * total.size;
  const Reads inner = read_by(*part.in);
  const Reads z = part.gate != nullptr ? read_by(*part.gate) : inner;
  for (const double sign : {-1.0, 1.0}) {
    const Field proof = source[sign < 0.0 ? "below" : "above"];
    if (proof.is_null()) continue;
    std::vector<double> a;
    for (const double read : reads) a.push_back(sign * part.scale * read);
    const auto bound = quadratic_bound(activation, a, z, part.gate != nullptr ? inner : Reads(), proof);
    if (!bound || bound->size > most_terms) continue;
    if (sign < 0.0) total.lower = std::max(total.lower, -bound->value);
    if (sign > 0.0) total.upper = std::min(total.upper, bound->value);
    total.size = std::max(total.size, bound->size);
  }
  return total;
}

std::optional<ShareLimits> ShareRanges::limits(const std::string& component, const Field& source,
                                               bool& is_source) const {
  is_source = false;
  const std::optional<Part> part = part_of(component);
  if (!part || source.is_null()) return std::nullopt;
  const std::string_view of = part->of;
  const bool reads = of == "head" || of == "mlp";
  is_source = source["of"].text() == of && source["scale"].number() == part->scale &&
              is_null_or(source["rows"], part->rows) && source["first_input"].count() == part->first_input &&
              is_norm(source["norm"], of == "constant" ? nullptr : part->norm) &&
              is_map(source["in"], part->in) && is_map(source["gate"], part->gate) &&
              is_map(source["out"], reads ? part->out : nullptr) &&
              is_null_or(source["activation"],
                         of == "mlp" ? activation_names[static_cast<std::size_t>(*model_.decoder->activation)]
                                     : "") &&
              (of == "mlp" || (source["below"].is_null() && source["above"].is_null()));
  ShareLimits limits;
  if (of == "rows") limits = of_table(*part->table);
  if (of == "constant") {
    limits = of_rows(part->norm != nullptr ? models::read_norm(checkpoint_, *part->norm).bias
                                           : models::read_bias(checkpoint_, *part->out));
  }
  if (of == "norm") limits = behind(models::read_norm(checkpoint_, *part->norm), direction_, 0.0);
  if (of == "head") limits = of_head(*part);
  return of == "mlp" ? of_mlp(*part, source) : scaled_by(limits, part->scale);
}

}  // namespace normscope::verify
