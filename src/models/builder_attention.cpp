#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

#include "blocks.hpp"
#include "builder.hpp"
#include "config.hpp"

namespace normscope::models {

namespace {

bool same_part(const Linear& a, const Linear& b) {
  return a.weight.tensor == b.weight.tensor && a.weight.offset == b.weight.offset && a.role == b.role;
}

}  // namespace

void append_new(std::vector<Linear>& list, std::vector<Linear> more) {
  for (Linear& linear : more) {
    const auto same = [&](const Linear& other) { return same_part(linear, other); };
    if (std::none_of(list.begin(), list.end(), same)) list.push_back(std::move(linear));
  }
}

void append_names(std::vector<std::string>& list, std::vector<std::string> more) {
  for (std::string& name : more) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(std::move(name));
  }
}

void Builder::norm_of_branch(std::string_view name, std::string_view role) {
  const std::optional<std::size_t> index = add_norm(name, role, Placement::inside, width_, 1);
  const auto from = writers_.begin() + static_cast<std::ptrdiff_t>(std::min(branch_from_, writers_.size()));
  const auto norms_from = writing_norms_.begin() +
                          static_cast<std::ptrdiff_t>(std::min(branch_norms_from_, writing_norms_.size()));
  if (index) {
    Norm& norm = model_.norms[*index];
    append_new(norm.writers, std::vector<Linear>(from, writers_.end()));
    append_names(norm.writing_norms, std::vector<std::string>(norms_from, writing_norms_.end()));
    norm.connections_known = norm.connections_known && writers_known_;
  } else {
    writers_known_ = false;
  }
  writers_.erase(from, writers_.end());
  writing_norms_.erase(norms_from, writing_norms_.end());
  if (index) writing_norms_.push_back(model_.norms[*index].name);
  branch_from_ = branch_norms_from_ = 0;
}

void Builder::norm_is_added() {
  if (reading_) append_names(writing_norms_, {model_.norms[*reading_].name});
}

void Builder::norm_of_heads(std::string_view name, std::string_view role, std::string_view part) {
  const Linear* const map = attended_part(part);
  const std::vector<std::uint64_t> gain = shape(std::string(name) + ".weight");
  const bool all = map != nullptr && gain.size() == 1 && gain[0] == map->out;
  const std::optional<std::size_t> index =
      add_norm(name, role, Placement::inside, all ? map->out : counts_.head_dim, 1);
  if (!index) return lack_norm_of_heads(full(name));
  model_.norms[*index].connections_known = map != nullptr;
  if (map == nullptr) return;
  std::vector<Linear>& writers = model_.norms[*index].writers;
  const std::size_t before = writers.size();
  append_new(writers, {*map});
  // One norm of both queries and keys.
  if (before != 0 && writers.size() != before) ++model_.norms[*index].applications;
}

void Builder::norm_of_head(std::string_view name, std::string_view role, std::string_view part,
                           std::uint64_t head) {
  const std::optional<std::size_t> index = add_norm(name, role, Placement::inside, counts_.head_dim, 1);
  if (!index) return lack_norm_of_heads(full(name));
  if (attended_part(part) == nullptr) return;
  append_new(model_.norms[*index].writers, {part_of_head(part, head)});
}

void Builder::norm_of_map(std::string_view name, std::string_view role, std::string_view part,
                          std::uint64_t count, const std::function<void()>& body) {
  const std::optional<std::size_t> outer = reading_;
  reading_ = add_norm(name, role, Placement::inside, count, 1);
  if (reading_ && outer) {
    for (Linear map : std::vector<Linear>(model_.norms[*outer].readers)) {
      if (map.role != part) continue;
      map.out = std::min(map.out, count);
      append_new(model_.norms[*reading_].writers, {std::move(map)});
    }
  }
  body();
  reading_ = outer;
}

void Builder::norm_of_outputs(std::string_view name, std::string_view role, const Outputs& of) {
  std::optional<Linear> map = find_map_of_inputs(of.role, of.map, 0);
  if (map && of.count != 0) {
    if (of.first + of.count > map->out) {
      reject({checkpoint_.find(map->weight.tensor), {}, {}},
             fmt::format("at least {} outputs", of.first + of.count));
    }
    map->first_out = of.first;
    map->out = of.count;
  }
  if (map && of.each != 0 && map->out % of.each != 0) {
    reject({checkpoint_.find(map->weight.tensor), {}, {}}, fmt::format("a multiple of {} outputs", of.each));
  }
  reading_ = add_norm(name, role, Placement::inside, of.each != 0 ? of.each : map ? map->out : of.count, 1);
  if (!map) miss_reader(of.map);
  if (map && reading_) append_new(model_.norms[*reading_].writers, {*map});
}

void Builder::gains_as_stored(const std::function<void()>& body) {
  const double before = std::exchange(style_.gain_offset, 0.0);
  const bool shifted_before = std::exchange(style_.gain_was_shifted, false);
  body();
  style_.gain_offset = before;
  style_.gain_was_shifted = shifted_before;
}

void Builder::without_parameters(const std::function<void()>& body) {
  const bool before = std::exchange(style_.gainless, true);
  body();
  style_.gainless = before;
}

void Builder::norm_inside(std::string_view name, std::string_view role, std::uint64_t width,
                          std::uint64_t groups) {
  reading_ = add_norm(name, role, Placement::inside, width, groups);
  reads_are_indirect();
}

namespace {

// Far above every real model; bounds the work that a hostile file can cause with small matrices.
constexpr std::size_t kHeads = 200'000;

Linear part_of(const Linear& whole, const char* role, std::uint64_t first, std::uint64_t count) {
  Linear part = whole;
  part.role = role;
  part.first_out = first;
  part.out = count;
  part.out_indices.clear();
  return part;
}

constexpr std::array<const char*, 3> kParts = {"query", "key", "value"};

}  // namespace

void Builder::head_dim_from(std::string_view norm) {
  const std::vector<std::uint64_t> gain = shape(std::string(norm) + ".weight");
  if (counts_.head_dim == 0 && gain.size() == 1) counts_.head_dim = gain[0];
}

void Builder::resolve_heads(const Linear& query, const Linear* key) {
  const auto fail = [&](const Linear& linear, std::uint64_t divisor, std::string_view what) {
    throw Error(ErrorCode::Shape,
                fmt::format("model: {}: tensor \"{}\" has {} outputs, expected a multiple of {} {}",
                            checkpoint_.file_of(*checkpoint_.find(linear.weight.tensor)).string(),
                            linear.weight.tensor, linear.out, divisor, what));
  };
  if (counts_.heads != 0 && counts_.head_dim == 0) {
    if (query.out % counts_.heads != 0) fail(query, counts_.heads, "heads");
    counts_.head_dim = query.out / counts_.heads;
  } else if (counts_.heads == 0 && counts_.head_dim != 0) {
    if (query.out % counts_.head_dim != 0) fail(query, counts_.head_dim, "features a head");
    counts_.heads = query.out / counts_.head_dim;
  }
  if (counts_.heads == 0 || counts_.head_dim == 0) return;
  if (!grouped_) counts_.key_value_heads = counts_.heads;
  if (counts_.key_value_heads == 0 && key != nullptr && key->out != 0) {
    if (key->out % counts_.head_dim != 0) fail(*key, counts_.head_dim, "features a head");
    counts_.key_value_heads = key->out / counts_.head_dim;
    if (counts_.heads % counts_.key_value_heads != 0) {
      fail(query, counts_.key_value_heads * counts_.head_dim, "features of the key-value heads");
    }
  }
  model_.heads_per_layer = counts_.heads;
  model_.key_value_heads = counts_.key_value_heads;
}

// The queries of maps that also compute gates, as wide; empty if the width of a head is not known.
std::optional<Linear> Builder::queries_beside_gates(const Linear& both) {
  const std::uint64_t dim = counts_.head_dim;
  if (dim == 0) {
    add_reader(both);
    return {};
  }
  if (both.out % (2 * dim) != 0) {
    reject({checkpoint_.find(both.weight.tensor), {}, {}}, fmt::format("a multiple of {} outputs", 2 * dim));
  }
  Linear query = part_of(both, kParts[0], 0, both.out / 2);
  Linear gate = part_of(both, "attention gate", dim, both.out / 2);
  for (std::uint64_t feature = 0; feature < both.out; ++feature) {
    (feature / dim % 2 == 0 ? query : gate).out_indices.push_back(feature);
  }
  add_reader(gate);
  return query;
}

std::uint64_t Builder::attention_of_maps(const std::array<std::string_view, 3>& names, bool gated) {
  attends_ = true;
  std::array<std::optional<Linear>, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    if (names[i].empty()) continue;
    const std::uint64_t count = i == 0 ? counts_.heads : counts_.key_value_heads;
    std::uint64_t out = count * counts_.head_dim * (gated && i == 0 ? 2 : 1);
    if (!grouped_ && i > 0 && parts[0]) out = parts[0]->out;
    if (i == 2 && parts[1]) out = parts[1]->out;
    parts[i] = find_linear(kParts[i], names[i], read_width(), out);
    if (!parts[i]) {
      miss_reader(names[i]);
      continue;
    }
    if (i == 0 && gated) parts[0] = queries_beside_gates(*parts[0]);
    if (!parts[i]) continue;
    if (i == 0) resolve_heads(*parts[0], nullptr);
    if (i == 1 && parts[0]) resolve_heads(*parts[0], &*parts[1]);
    add_reader(*parts[i]);
  }
  add_heads({parts, [dim = counts_.head_dim, gated](std::size_t part, std::uint64_t head) {
               return head * dim * (gated && part == 0 ? 2 : 1);
             }});
  return parts[0] ? parts[0]->out : 0;
}

std::uint64_t Builder::cross_attention(std::string_view query, std::string_view key, std::string_view value) {
  attends_ = true;
  std::optional<Linear> queries =
      find_linear(kParts[0], query, read_width(), counts_.heads * counts_.head_dim);
  if (queries) {
    resolve_heads(*queries, nullptr);
    add_reader(*queries);
  } else {
    miss_reader(query);
  }
  std::swap(reading_, memory_);
  const std::uint64_t shared = counts_.key_value_heads * counts_.head_dim;
  const auto part = [&](std::size_t i, std::string_view name) {
    const std::uint64_t out = grouped_ ? shared : queries ? queries->out : 0;
    std::optional<Linear> map = find_linear(kParts[i], name, read_width(), out);
    if (map) {
      add_reader(*map);
    } else {
      miss_reader(name);
    }
    return map;
  };
  const std::optional<Linear> keys = part(1, key);
  const std::optional<Linear> values = part(2, value);
  std::swap(reading_, memory_);
  add_cross_heads({{queries, keys, values},
                   [dim = counts_.head_dim](std::size_t, std::uint64_t head) { return head * dim; }});
  return queries ? queries->out : 0;
}

std::uint64_t Builder::fused_cross_attention(std::string_view name) {
  attends_ = true;
  const std::optional<Linear> fused = find_linear(kParts[0], name, read_width(), 3 * width_);
  if (!fused) {
    miss_reader(name);
    return 0;
  }
  const std::uint64_t size = fused->out / 3;
  std::array<std::optional<Linear>, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) parts[i] = part_of(*fused, kParts[i], i * size, size);
  resolve_heads(*parts[0], nullptr);
  add_reader(*parts[0]);
  std::swap(reading_, memory_);
  add_reader(*parts[1]);
  add_reader(*parts[2]);
  std::swap(reading_, memory_);
  add_cross_heads({parts, [size, dim = counts_.head_dim](std::size_t part, std::uint64_t head) {
                     return part * size + head * dim;
                   }});
  return size;
}

std::uint64_t Builder::attention_of_stacks(std::string_view query, std::string_view key,
                                           std::string_view value) {
  attends_ = true;
  Attended attended;
  const std::array<std::string_view, 3> names = {query, key, value};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<std::uint64_t> stored = shape(names[i]);
    const std::uint64_t heads = stored.size() == 3 ? stored[0] : 0;
    if (heads == 0 || heads > kHeads) {
      miss_reader(names[i]);
      return 0;
    }
    for (std::uint64_t head = 0; head < heads; ++head) {
      in_scope({scope_.prefix, scope_.layer, heads, head}, [&] {
        std::optional<Linear> map = find_linear(kParts[i], names[i], read_width(), stored[2]);
        add_reader(*map);
        attended.stacks[i].push_back(std::move(*map));
      });
    }
    attended.parts[i] = attended.stacks[i].front();
  }
  const std::array<std::uint64_t, 2> found = {attended.stacks[0].size(), attended.stacks[1].size()};
  const bool divides = found[0] % found[1] == 0 && attended.stacks[2].size() == found[1];
  if (!divides || (counts_.heads != 0 && counts_.heads != found[0])) {
    reject({checkpoint_.find(full(query)), {}, {}},
           fmt::format("the heads of the configuration, a multiple of the {} keys", found[1]));
  }
  counts_ = {found[0], found[1], attended.parts[0]->out};
  model_.heads_per_layer = counts_.heads;
  model_.key_value_heads = counts_.key_value_heads;
  add_heads(std::move(attended));
  return counts_.heads * counts_.head_dim;
}

std::uint64_t Builder::queries(std::string_view name) {
  attends_ = true;
  const std::optional<Linear> query =
      find_linear(kParts[0], name, read_width(), counts_.heads * counts_.head_dim);
  if (!query) {
    miss_reader(name);
    return 0;
  }
  resolve_heads(*query, nullptr);
  add_reader(*query);
  add_heads(
      {{query, {}, {}}, [dim = counts_.head_dim](std::size_t, std::uint64_t head) { return head * dim; }});
  return query->out;
}

// The number of key-value heads in a fused matrix, from its outputs that are not queries.
void Builder::resolve_groups(const Linear& fused) {
  const std::uint64_t queries = counts_.heads * counts_.head_dim;
  const std::uint64_t two = 2 * counts_.head_dim;
  const std::uint64_t rest = fused.out > queries ? fused.out - queries : 0;
  const std::uint64_t found = rest % two == 0 ? rest / two : 0;
  if (counts_.key_value_heads == 0) counts_.key_value_heads = found;
  if (found == 0 || found != counts_.key_value_heads || counts_.heads % found != 0) {
    throw Error(
        ErrorCode::Shape,
        fmt::format(
            "model: {}: tensor \"{}\" has {} outputs, expected queries of {} heads, and keys and "
            "values of {}, of {} features each",
            checkpoint_.file_of(*checkpoint_.find(fused.weight.tensor)).string(), fused.weight.tensor,
            fused.out, counts_.heads,
            counts_.key_value_heads == 0 ? "a divisor of them" : fmt::format("{}", counts_.key_value_heads),
            counts_.head_dim));
  }
}

std::uint64_t Builder::fused_attention(std::string_view name, const FusedStyle& style) {
  attends_ = true;
  const std::uint64_t width = read_width();
  if (grouped_ && counts_.heads != 0 && counts_.head_dim == 0) counts_.head_dim = width / counts_.heads;
  const bool grouped = grouped_ && counts_.heads != 0 && counts_.head_dim != 0;
  const std::uint64_t stated = counts_.heads * counts_.head_dim;
  const std::uint64_t out = grouped_ ? 0 : 3 * (stated != 0 || style.any_width ? stated : width);
  const std::optional<Linear> fused = find_linear("query, key and value", name, width, out);
  if (!fused) {
    miss_reader(name);
    return 0;
  }
  if (fused->out == 0) {
    add_reader(*fused);
    return 0;
  }
  if (!grouped_ && fused->out % 3 != 0) {
    reject({checkpoint_.find(fused->weight.tensor), {}, {}}, "as many queries as keys and values");
  }
  if (grouped) resolve_groups(*fused);
  // Without the number of heads, it is unknown where grouped queries end.
  if (grouped_ && !grouped) {
    add_reader(*fused);
    return 0;
  }
  const std::uint64_t queries = grouped ? stated : fused->out / 3;
  resolve_heads(part_of(*fused, "query", 0, queries), nullptr);
  const std::uint64_t keys = (fused->out - queries) / 2;
  const std::uint64_t blocks = style.blocks != 0 ? style.blocks : counts_.key_value_heads;
  const bool splits = counts_.heads == 0 ? blocks == 1
                                         : blocks != 0 && counts_.heads % blocks == 0 &&
                                               counts_.key_value_heads % blocks == 0;
  if (!splits) {
    add_reader(*fused);
    return queries;
  }
  const std::uint64_t whole = fused->out / blocks;
  const std::array<std::uint64_t, 3> size = {queries / blocks, keys / blocks, keys / blocks};
  const std::array<std::uint64_t, 3> start = {0, size[0] + (style.values_first ? size[1] : 0),
                                              size[0] + (style.values_first ? 0 : size[1])};
  if (*std::min_element(size.begin(), size.end()) == 0) {
    reject({checkpoint_.find(fused->weight.tensor), {}, {}}, "queries, keys and values of every head");
  }
  std::array<std::optional<Linear>, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    parts[i] = part_of(*fused, kParts[i], start[i], size[i] * blocks);
    for (std::uint64_t feature = 0; blocks > 1 && feature < parts[i]->out; ++feature) {
      parts[i]->out_indices.push_back(feature / size[i] * whole + start[i] + feature % size[i]);
    }
    add_reader(*parts[i]);
  }
  add_heads({parts, [whole, size, start, dim = counts_.head_dim](std::size_t part, std::uint64_t head) {
               return head * dim / size[part] * whole + start[part] + head * dim % size[part];
             }});
  return queries;
}

const Linear* Builder::attended_part(std::string_view part) const {
  for (const std::optional<Linear>& map : attended_.parts) {
    if (map && map->role == part) return &*map;
  }
  return nullptr;
}

Linear Builder::part_of_head(std::string_view part, std::uint64_t head) const {
  const Linear& map = *attended_part(part);
  const auto index = static_cast<std::size_t>(std::find(kParts.begin(), kParts.end(), part) - kParts.begin());
  if (!attended_.stacks[index].empty()) return attended_.stacks[index][head];
  return part_of(map, kParts[index], attended_.first_out(index, head), counts_.head_dim);
}

void Builder::without_values() {
  attended_.parts[2].reset();
  for (Head& head : last_heads()) head.value.reset();
}

void Builder::sinks(std::string_view name) {
  const std::optional<Parameter> stored = find(name, {".weight", ""});
  if (!stored) return miss(full(name));
  if (counts_.heads != 0 && (stored->shape.size() != 1 || stored->shape[0] != counts_.heads)) {
    reject(*stored, fmt::format("[{}]", counts_.heads));
  }
  for (Head& head : last_heads()) {
    head.sink = Slice{stored->slice.tensor, static_cast<std::uint64_t>(head.head), 1};
  }
}

void Builder::keys_of(int layer) {
  std::vector<Head>& heads = model_.heads;
  const auto of = [&](int wanted) {
    return std::partition_point(heads.begin(), heads.end(),
                                [&](const Head& head) { return head.layer < wanted; });
  };
  auto earlier = of(layer);
  for (auto head = of(this->layer()); head != heads.end() && earlier->layer == layer; ++head, ++earlier) {
    head->key_value_head = earlier->key_value_head;
    head->key = earlier->key;
    head->value = earlier->value;
  }
}

void Builder::add_cross_heads(Attended attended) {
  const std::size_t first = model_.heads.size();
  add_heads(std::move(attended));
  for (std::size_t i = first; i < model_.heads.size(); ++i) {
    add_not_modelled(model_.heads[i].not_modelled, "cross-attention");
  }
}

void Builder::add_heads(Attended attended) {
  attended_ = std::move(attended);
  const std::optional<Linear>& query = attended_.parts[0];
  if (!query || counts_.heads == 0 || counts_.head_dim == 0) return;
  const bool led = !reading_ && led_;
  const std::string norm = reading_ || led ? model_.norms[reading_ ? *reading_ : led_->first].name : "";
  const auto [known, is_new] = head_indices_.emplace(query->weight.selector(), model_.heads.size());
  if (!is_new) {
    for (std::size_t i = known->second;
         i < std::min<std::uint64_t>(known->second + counts_.heads, model_.heads.size()); ++i) {
      Head& head = model_.heads[i];
      const bool is_known = norm == head.norm || std::find(head.later_norms.begin(), head.later_norms.end(),
                                                           norm) != head.later_norms.end();
      if (!is_known) head.later_norms.push_back(norm);
    }
    return;
  }
  if (model_.heads.size() + counts_.heads > kHeads) {
    return note(fmt::format("only the first {} heads are listed", model_.heads.size()));
  }
  const std::uint64_t dim = counts_.head_dim;
  const auto cut = [&](std::size_t part, std::uint64_t index) -> std::optional<Linear> {
    if (!attended_.parts[part]) return {};
    return part_of_head(kParts[part], index);
  };
  const std::uint64_t sharing = counts_.key_value_heads == 0 ? 1 : counts_.heads / counts_.key_value_heads;
  Head common;
  common.layer = scope_.layer.value_or(0);
  common.stack = stack_;
  common.head_dim = dim;
  common.norm = norm;
  if (led) common.between = led_->second;
  common.not_modelled = scores_beyond_;
  set_scale(common);
  set_window(common);
  set_rotary(common);
  for (std::uint64_t index = 0; index < counts_.heads; ++index) {
    Head head = common;
    head.head = static_cast<int>(index);
    head.key_value_head = static_cast<int>(index / sharing);
    head.query = cut(0, index);
    head.key = cut(1, index / sharing);
    head.value = cut(2, index / sharing);
    set_alibi(head);
    model_.heads.push_back(std::move(head));
  }
}

}  // namespace normscope::models
