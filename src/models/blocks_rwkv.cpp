#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models {

void rwkv_notes(Builder& b) {
  b.note(
      "keys, values, receptances and gates read a mix of this token's norm and the previous token's, feature "
      "by feature, so they are not listed as readers");
  if (!b.config().has({"rescale_every", "rescale_every_n_layers"})) return;
  b.note(b.config().has({"rescale_every"})
             ? "rescale_every: for inference the code divides the stored writers of later layers and the "
               "stream by the same power of two; the norms' outputs stay those of these tensors but for eps"
             : "rescale_every_n_layers: the stored writers of later layers are divided by a power of two, by "
               "which llama.cpp divides the stream too");
}

namespace {

void describe_part(Builder& b, const RwkvPart& part) {
  const std::string name(part.name);
  if (part.not_first && b.layer() == 0) {
    // Some files hold numbers that nothing uses.
    for (const char* ending : {"", ".weight"}) b.buffer(name + ending);
    return;
  }
  const auto describe = [&] {
    b.parameter(part.role, name, part.form == RwkvForm::row ? ParameterForm::row : ParameterForm::matrix);
  };
  const bool transposed = part.form == RwkvForm::transposed || part.form == RwkvForm::transposed_stack;
  b.layout(transposed ? Layout::in_out : Layout::out_in);
  if (part.form == RwkvForm::stack || part.form == RwkvForm::transposed_stack) {
    const std::string ending = b.shape(name).empty() ? ".weight" : "";
    b.each_expert(name + ending, describe);
  } else {
    describe();
  }
  b.layout(Layout::out_in);
}

/// From the parameter that has a row for each head, or from their size; 0 if neither is stated.
std::uint64_t number_of_heads(const Builder& b, std::span<const RwkvPart> parts, std::uint64_t width) {
  const std::uint64_t size = b.config().count({"head_size", "head_dim", "wkv.head_size"}).value_or(0);
  for (const RwkvPart& part : parts) {
    if (part.role != "bonus") continue;
    for (const char* ending : {"", ".weight"}) {
      const std::vector<std::uint64_t> shape = b.shape(std::string(part.name) + ending);
      if (shape.size() == 2) return shape[0];
    }
  }
  return size == 0 ? 0 : width / size;
}

}  // namespace

void rwkv_time_mix(Builder& b, std::span<const RwkvPart> parts, std::string_view norm, std::string_view out) {
  for (const RwkvPart& part : parts) describe_part(b, part);
  b.reads_are_indirect();
  const std::vector<std::uint64_t> gain = b.shape(fmt::format("{}.weight", norm));
  const std::uint64_t width = gain.empty() ? b.width() : gain[0];
  const std::uint64_t heads = number_of_heads(b, parts, width);
  const bool divides = heads != 0 && width % heads == 0;
  if (!divides)
    b.note("the number of heads, and so of the groups of the norm of their outputs, is not known");
  b.norm_inside(norm, "attention heads", width, divides ? heads : 1);
  // The published code's eps is 64e-5; flash-linear-attention multiplies that of the other norms by the width
  // of a head.
  const double eps = b.config().number({"norm_eps"}).value_or(0.0);
  b.last_eps(eps == 0.0 || !divides ? 64e-5 : eps * static_cast<double>(width / heads), {});
  b.writes("attention out", out, width);
}

void rwkv_channel_mix(Builder& b, std::span<const RwkvPart> parts, std::string_view out) {
  bool is_gated = false;
  for (const RwkvPart& part : parts) {
    describe_part(b, part);
    is_gated = is_gated || part.role == "mlp receptance";
  }
  b.reads_are_indirect();
  b.writes("mlp out", out);
  if (is_gated) b.writes_are_indirect();  // the receptance scales it
}

void rwkv_stacked_mixes(Builder& b, std::string_view name, std::span<const char* const> roles) {
  std::size_t next = 0;
  b.each_expert(name, [&] {
    if (next < roles.size()) b.parameter(roles[next++], name, ParameterForm::row);
  });
}

}  // namespace normscope::models
