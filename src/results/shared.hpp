#pragma once

#include <normscope/results/documents.hpp>

#include "fields.hpp"

/// Objects that several results have.
namespace normscope::results {

/// What a result was computed from.
struct InputsFields {
  const verify::Inputs& inputs = empty<verify::Inputs>();
  bool of_model = true;  ///< whether they may state a model's architecture and heads
};

template <class V>
void fields(V& v, const verify::Argument& argument) {
  v("role", argument.role, "\"keys\", \"model\", \"unembedding\", ...");
  v("name", argument.name, "as given on the command line");
}

template <class V>
void fields(V& v, const verify::InputArray& array) {
  v("role", array.role);
  v("shape", array.shape);
  v("sha256", matching("^[0-9a-f]{64}$", array.sha256),
    "SHA-256 of the concatenated SHA-256s of each 2^20 bytes of the values, as float64, little-endian, "
    "row by row");
}

template <class V>
void fields(V& v, const InputsFields& x) {
  v("arguments", x.inputs.arguments,
    "what the command line named; `normscope verify` takes its INPUTS in this order");
  v("arrays", x.inputs.arrays, "the input arrays, as used");
  v.maybe("gain_offset", x.inputs.gain_offset, "the value of --gain-offset; absent where it was not given");
  if (!x.of_model) return;
  const models::Stated& stated = x.inputs.stated;
  v.maybe(!stated.architecture.empty(), "architecture", stated.architecture,
          "the value of --arch; absent where it was not given");
  v.maybe(stated.heads != 0, "heads", positive(stated.heads),
          "the value of --heads; absent where it was not given");
}

/// Where the points of certificates are.
inline auto certificates(bool here, const std::string& folder) {
  const bool is_word = here || folder.empty();
  return either(is_word, one_of<"here", "nowhere">(here ? "here" : "nowhere"),
                object([&folder](auto& v) { v("folder", folder); }));
}

template <class V>
void fields(V& v, const NormSource& source) {
  v("norm", source.norm);
  v("model", source.model);
  v("taken", each(source.taken, [](const std::string& option) {
      return one_of<"norm", "eps", "alpha", "shift", "gain_offset", "groups", "bias">(option);
    }));
}

inline constexpr const char* about_source =
    "the model's norm that the gain belongs to, and the options whose values are taken from it; null "
    "where the options alone define the norm";

template <class V>
void fields(V& v, const KeyNorm& norm) {
  v("kind", norm.kind);
  v("steps",
    each(norm.steps,
         [](const std::string& step) { return one_of<"project", "scale", "stretch", "shift">(step); }),
    "in this order");
  v("groups", positive(norm.groups));
  v("eps", not_negative(norm.eps), "added to the mean square");
  v("source", norm.source, about_source);
}

inline constexpr const char* about_key_norm =
    "the norm applied to the keys first; null where they were used as given";

inline constexpr const char* about_effect =
    "what the norm does to rows: elementwise kinds have a box as image; off: eps exceeds the mean square "
    "of any row, and the norm is a linear map";
inline constexpr const char* about_rms_radius =
    "root mean square of the length of outputs before the bias, over evenly distributed directions and "
    "without eps; null beyond the range of float64";
inline constexpr const char* about_energy = "sum of the squared semi-axes; null beyond the range of float64";

inline constexpr const char* about_stored_gain = "tensor, or tensor[index]; null for ones";
inline constexpr const char* about_stored_bias = "tensor, or tensor[index]; null for zeros";
inline constexpr const char* about_gain_offset = "1 where the file stores gain - 1";
inline constexpr const char* about_layout = "of the stored matrix: rows are outputs, or inputs";

/// A kind of norm that divides by a size.
struct DividingKind {
  NormKind kind;

  [[nodiscard]] Json json() const { return std::string(to_string(kind)); }
  [[nodiscard]] Json schema(SchemaMaker& /*maker*/) const {
    Json names = Json::array();
    for (const NormKindFacts& row : norm_kinds) {
      if (row.divisor != Divisor::nothing) names.push_back(std::string(row.name));
    }
    return {{"enum", names}};
  }
};

/// What a token is called; null where no file names it.
inline auto name_or_null(const std::vector<std::string>& names, std::size_t token) {
  return text_or_null(token < names.size() ? names[token] : empty<std::string>());
}

inline auto layout_text(models::Layout layout) { return one_of<"out_in", "in_out">(layout); }

/// The name of a tensor or of a slice of one, or null.
inline auto slice_or_null(const std::optional<models::Slice>& slice) {
  return nullable(slice, [](const models::Slice& part) { return part.selector(); });
}
inline auto weight_or_null(const std::optional<models::Linear>& linear) {
  return nullable(linear, [](const models::Linear& part) { return part.weight.selector(); });
}

/// Runs of output features of the stored matrix: first and number of each.
inline std::vector<std::array<std::uint64_t, 2>> outputs_of(const models::Linear& map) {
  if (map.out_indices.empty()) return {{map.first_out, map.out}};
  std::vector<std::array<std::uint64_t, 2>> runs;
  std::uint64_t begin = 0;
  for (std::uint64_t j = 1; j <= map.out; ++j) {
    if (j < map.out && map.out_indices[j] == map.out_indices[j - 1] + 1) continue;
    runs.push_back({map.out_indices[begin], j - begin});
    begin = j;
  }
  return runs;
}

/// Where the numbers of a map are stored, for checkers.
template <class V>
void map_source(V& v, const models::Linear& map) {
  v("layout", layout_text(map.layout), about_layout);
  v("outputs", outputs_of(map), "runs of the stored matrix's outputs that are this map's: first and number");
  v("bias", slice_or_null(map.bias),
    "tensor with a number for each output of the stored matrix, null for zeros");
}

/// Where those of a norm are.
template <class V>
void norm_source(V& v, const models::Norm& norm) {
  v("kind", norm.kind);
  v("width", positive(norm.width));
  v("groups", positive(norm.groups));
  v("gain", slice_or_null(norm.gain), about_stored_gain);
  v("gain_offset", norm.gain_offset, about_gain_offset);
  v("bias", slice_or_null(norm.bias), about_stored_bias);
}

/// One head and its bounds, as in the report and in `normscope heads`.
struct HeadFields {
  const models::Head& head;
  const heads::HeadReach& reach;
  HeadDetails details{};

  [[nodiscard]] Json json() const;
  [[nodiscard]] Json schema(SchemaMaker& maker) const;
};

/// The head of an entry, or an empty one where the model has none.
inline const models::Head& head_of(const models::Model& model, const heads::HeadReach& reach) {
  return reach.head < model.heads.size() ? model.heads[reach.head] : empty<models::Head>();
}

/// Norms, readers and logits of a model, as the report has them.
struct RangesFields {
  const analysis::ModelRanges& found;

  [[nodiscard]] Json json() const;
  [[nodiscard]] Json schema(SchemaMaker& maker) const;
};

}  // namespace normscope::results
