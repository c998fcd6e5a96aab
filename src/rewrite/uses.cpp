#include <algorithm>

#include <normscope/core/dtype.hpp>

#include "planning.hpp"

namespace normscope::rewrite {

using models::Linear;
using models::Norm;
using models::Slice;

models::Linear whole(models::Linear map) {
  map.first_out = 0;
  map.out = map.stored_out;
  map.out_indices.clear();
  return map;
}

bool is_head_table(const models::Model& model, const Linear& map) {
  return model.vocabulary && model.vocabulary->tied &&
         place_of(model.vocabulary->unembedding->weight) == place_of(map.weight);
}

bool is_rewritable(Dtype dtype) {
  return dtype == Dtype::F64 || dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16;
}

Uses::Uses(const models::Model& model) : model_(model) {
  for (std::size_t index = 0; index < model.norms.size(); ++index) {
    const Norm& norm = model.norms[index];
    for (const Linear& reader : norm.readers) {
      readers_[place_of(reader.weight)].insert(index);
      if (reader.bias) biases_[place_of(*reader.bias)].insert(place_of(reader.weight));
    }
    // The input of a norm within a branch is not part of the stream.
    if (norm.placement != models::Placement::inside) {
      for (const Linear& writer : norm.writers) writers_[place_of(writer.weight)].insert(norm.stack);
    }
    for (const auto* parameter : {&norm.gain, &norm.bias}) {
      if (*parameter) ++parameters_[place_of(**parameter)];
    }
    streaming_.insert(norm.writing_norms.begin(), norm.writing_norms.end());
  }
}

const std::set<std::size_t>& Uses::readers_of(const Slice& weight) const {
  static const std::set<std::size_t> none;
  const auto found = readers_.find(place_of(weight));
  return found == readers_.end() ? none : found->second;
}

bool Uses::covered(std::size_t norm, const Linear& reader) const {
  std::vector<bool> outputs(reader.stored_out);
  for (const Linear& part : model_.norms[norm].readers) {
    if (place_of(part.weight) != place_of(reader.weight)) continue;
    for (std::uint64_t j = 0; j < part.out; ++j) {
      outputs[part.out_indices.empty() ? part.first_out + j : part.out_indices[j]] = true;
    }
  }
  return std::find(outputs.begin(), outputs.end(), false) == outputs.end();
}

std::size_t Uses::parameters_at(const Slice& slice) const { return parameters_.at(place_of(slice)); }

std::size_t Uses::biases_at(const Slice& slice) const { return biases_.at(place_of(slice)).size(); }

std::size_t Uses::stacks_written(const Slice& slice) const { return writers_.at(place_of(slice)).size(); }

}  // namespace normscope::rewrite
