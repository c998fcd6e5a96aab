#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "append_new.hpp"
#include "builder.hpp"

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

void Builder::norm_of_branch(std::string_view name, std::string_view role) {
  const std::optional<std::size_t> index = add_norm(name, role, Placement::inside, width_, 1);
  const auto from = writers_.begin() + static_cast<std::ptrdiff_t>(std::min(branch_from_, writers_.size()));
  if (index) {
    Norm& norm = model_.norms[*index];
    append_new(norm.writers, std::vector<Linear>(from, writers_.end()));
    norm.connections_known = norm.connections_known && writers_known_;
    writing_norms_.push_back(norm.name);
  } else {
    writers_known_ = false;
  }
  writers_.erase(from, writers_.end());
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
  reading_ = add_norm(name, role, Placement::inside, map ? map->out : of.count, 1);
  if (!map) miss_reader(of.map);
  if (map && reading_) append_new(model_.norms[*reading_].writers, {*map});
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

}  // namespace normscope::models
