#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>
#include <normscope/ranges/ranges.hpp>

namespace normscope::documents {

/// What every norm of a model guarantees its readers, schema "normscope.ranges/1"
/// (docs/schemas/ranges.schema.json).
[[nodiscard]] nlohmann::ordered_json ranges(const checkpoint::Checkpoint& checkpoint,
                                            const model::Model& model, const ranges::ModelRanges& found);

/// The largest finite number of a type that activations are kept in.
struct NumberType {
  const char* name;
  double largest;
};

/// float16, bfloat16, FP8 E4M3 and FP8 E5M2.
inline constexpr NumberType number_types[] = {
    {"float16", 65504.0}, {"bfloat16", 0x1.fep+127}, {"float8_e4m3", 448.0}, {"float8_e5m2", 57344.0}};

}  // namespace normscope::documents
