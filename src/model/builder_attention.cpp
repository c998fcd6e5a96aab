#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

#include "builder.hpp"
#include "not_modelled.hpp"

namespace normscope::model {

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
  if (counts_.heads == 0) return;
  if (!grouped_) counts_.key_value_heads = counts_.heads;
  if (counts_.key_value_heads == 0 && key != nullptr) {
    if (key->out % counts_.head_dim != 0) fail(*key, counts_.head_dim, "features a head");
    counts_.key_value_heads = key->out / counts_.head_dim;
    if (counts_.heads % counts_.key_value_heads != 0) {
      fail(query, counts_.key_value_heads * counts_.head_dim, "features of the key-value heads");
    }
  }
  model_.heads_per_layer = counts_.heads;
  model_.key_value_heads = counts_.key_value_heads;
}

std::uint64_t Builder::attention(std::string_view query, std::string_view key, std::string_view value) {
  attends_ = true;
  const std::array<std::string_view, 3> names = {query, key, value};
  std::array<std::optional<Linear>, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t count = i == 0 ? counts_.heads : counts_.key_value_heads;
    std::uint64_t out = count * counts_.head_dim;
    if (!grouped_ && i > 0 && parts[0]) out = parts[0]->out;
    if (i == 2 && parts[1]) out = parts[1]->out;
    parts[i] = find_linear(kParts[i], names[i], read_width(), out);
    if (!parts[i]) {
      miss_reader(names[i]);
      continue;
    }
    if (i == 0) resolve_heads(*parts[0], nullptr);
    if (i == 1 && parts[0]) resolve_heads(*parts[0], &*parts[1]);
    add_reader(*parts[i]);
  }
  add_heads(parts[0], parts[1], parts[2], counts_.head_dim);
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
  const auto part = [&](std::size_t i, std::string_view name) {
    std::optional<Linear> map = find_linear(kParts[i], name, read_width(), queries ? queries->out : 0);
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
  const std::size_t first = model_.heads.size();
  add_heads(queries, keys, values, counts_.head_dim);
  for (std::size_t i = first; i < model_.heads.size(); ++i) {
    add_not_modelled(model_.heads[i].not_modelled, "cross-attention");
  }
  return queries ? queries->out : 0;
}

std::optional<Linear> Builder::find_fused(std::string_view name) {
  attends_ = true;
  const std::uint64_t told = counts_.heads * counts_.head_dim;
  const std::uint64_t width = told != 0 ? told : read_width();
  std::optional<Linear> fused = find_linear("query, key and value", name, read_width(), 3 * width);
  if (!fused) miss_reader(name);
  return fused;
}

std::uint64_t Builder::fused_attention(std::string_view name) {
  const std::optional<Linear> fused = find_fused(name);
  if (!fused) return 0;
  const std::uint64_t third = fused->out / 3;
  std::array<std::optional<Linear>, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    parts[i] = part_of(*fused, kParts[i], i * third, third);
    add_reader(*parts[i]);
  }
  resolve_heads(*parts[0], nullptr);
  add_heads(parts[0], parts[1], parts[2], counts_.head_dim);
  return third;
}

std::uint64_t Builder::attention_fused_per_head(std::string_view name) {
  const std::optional<Linear> fused = find_fused(name);
  if (!fused) return 0;
  resolve_heads(part_of(*fused, "query", 0, fused->out / 3), nullptr);
  if (counts_.heads == 0) {
    add_reader(*fused);
    return fused->out / 3;
  }
  const std::uint64_t dim = counts_.head_dim;
  std::array<std::optional<Linear>, 3> first;
  for (std::size_t i = 0; i < 3; ++i) {
    first[i] = part_of(*fused, kParts[i], i * dim, dim);
    Linear all = part_of(*fused, kParts[i], i * dim, counts_.heads * dim);
    for (std::uint64_t head = 0; head < counts_.heads; ++head) {
      for (std::uint64_t feature = 0; feature < dim; ++feature) {
        all.out_indices.push_back((head * 3 + i) * dim + feature);
      }
    }
    add_reader(all);
  }
  add_heads(first[0], first[1], first[2], 3 * dim);
  return fused->out / 3;
}

void Builder::add_heads(const std::optional<Linear>& query, const std::optional<Linear>& key,
                        const std::optional<Linear>& value, std::uint64_t stride) {
  if (!query || counts_.heads == 0) return;
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
  const auto cut = [&](const std::optional<Linear>& part, std::uint64_t index) -> std::optional<Linear> {
    if (!part) return {};
    return part_of(*part, part->role.c_str(), part->first_out + index * stride, dim);
  };
  const std::uint64_t sharing = counts_.key_value_heads == 0 ? 1 : counts_.heads / counts_.key_value_heads;
  Head common;
  common.layer = scope_.layer.value_or(0);
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
    head.query = cut(query, index);
    head.key = cut(key, index / sharing);
    head.value = cut(value, index / sharing);
    model_.heads.push_back(std::move(head));
  }
}

}  // namespace normscope::model
