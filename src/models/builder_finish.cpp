#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "builder.hpp"

namespace normscope::models {

void Builder::other(std::string_view name) {
  if (const files::Tensor* tensor = checkpoint_.find(full(name))) used_.insert(tensor);
}

void Builder::buffer(std::string_view name) {
  if (const files::Tensor* tensor = checkpoint_.find(full(name))) {
    if (used_.insert(tensor).second) buffered_ += tensor->elements();
  }
}

bool Builder::causal_mask(std::string_view name) {
  buffer(name);
  const files::Tensor* const mask = checkpoint_.find(full(name));
  if (mask == nullptr || mask->shape.empty() || mask->dtype != Dtype::BOOL) return false;
  std::vector<std::byte> buffer;
  const std::span<const std::byte> values = mask->bytes.fetch(buffer);
  const std::uint64_t last = mask->shape.back();
  return last != 0 && last <= values.size() &&
         std::all_of(values.end() - static_cast<std::ptrdiff_t>(last), values.end(),
                     [](std::byte visible) { return visible != std::byte{0}; });
}

// The prefix of the described layer that contains a tensor; empty if there is none.
std::string Builder::layer_of(std::string_view tensor) const {
  auto after = layer_prefixes_.upper_bound(tensor);
  if (after == layer_prefixes_.begin()) return {};
  --after;
  return tensor.starts_with(*after) ? *after : std::string();
}

// An unknown matrix may read a norm or write to the stream: connections of the norms in its layer, or of
// those outside the layers, are then marked incomplete.
void Builder::flag_leftovers() {
  std::vector<std::string> names;
  std::size_t count = 0;
  std::set<std::string> places;
  for (const files::Tensor& tensor : checkpoint_.tensors()) {
    if (used(tensor) || tensor.shape.size() < 2) continue;
    if (++count <= 3) names.push_back(fmt::format("\"{}\"", tensor.name));
    places.insert(layer_of(tensor.name));
  }
  if (count == 0) return;
  note(
      fmt::format("{} tensors are not part of the known architecture, {} {}: norms near them may have more "
                  "readers or writers",
                  count, count <= 3 ? "namely" : "such as", fmt::join(names, ", ")));
  for (Norm& norm : model_.norms) {
    if (places.contains(layer_of(norm.name))) norm.connections_known = norm.readers_known = false;
  }
}

void Builder::finish(std::span<const std::string_view> harmless) {
  for (const auto& [name, use] : biases_) {
    if (!use.present) continue;
    for (const std::string& tensor : use.absent) miss(tensor);
  }
  // If all heads are in one stack, its name would carry no information.
  const bool one_stack = std::all_of(model_.heads.begin(), model_.heads.end(), [&](const Head& head) {
    return head.stack == model_.heads.front().stack;
  });
  if (one_stack) {
    for (Head& head : model_.heads) head.stack.clear();
  }
  flag_leftovers();
  flag_attention_leftovers();
  flag_biased_norms();
  flag_fields(harmless);
  flag_tensors_beside();
  gather_not_modelled();
  for (const files::Tensor& tensor : checkpoint_.tensors()) model_.parameters += tensor.elements();
  model_.parameters -= buffered_;
  model_.fields_read = config_.read();
  model_.width = width_;
  if (model_.decoder && embedding_times_root_) {
    model_.decoder->embedding_scale *= std::sqrt(static_cast<double>(width_));
  }
  if (unlisted_ != 0) note(fmt::format("{} more tensors are missing than are listed", unlisted_));
  if (attends_ && counts_.heads == 0) {
    note(
        "the number of heads is not known: neither configuration nor shapes determine it; --heads N states "
        "it");
  }
}

}  // namespace normscope::models
