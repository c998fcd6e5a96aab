#include <algorithm>
#include <cmath>
#include <optional>

#include <normscope/core/error.hpp>
#include <normscope/forward/plan.hpp>

#include "compare_steps.hpp"

namespace normscope::rewrite {
namespace {

using forward::Branch;
using forward::Mlp;
using models::Linear;
using models::Norm;

std::optional<forward::Plan> plan_if_known(const models::Model& model) {
  try {
    return forward::plan_of(model, true);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Unsupported) throw;
    return {};
  }
}

/// What the matrix of a block is.
HeadMap kind_of(const Blocks& blocks, std::size_t block) {
  HeadMap kind = HeadMap::none;
  if (blocks.matrices.empty()) return kind;
  const double* const matrix = blocks.matrices.data() + block * blocks.size * blocks.size;
  for (std::size_t i = 0; i < blocks.size; ++i) {
    for (std::size_t j = 0; j < blocks.size; ++j) {
      const double entry = matrix[i * blocks.size + j];
      if (i != j && entry != 0.0) return HeadMap::matrix;
      if (i == j && entry != 1.0) kind = HeadMap::scales;
    }
  }
  return kind;
}

class Branches {
 public:
  Branches(const Side& before, const Relabelling& relabelling, double tolerance)
      : before_(before), relabelling_(relabelling), tolerance_(tolerance) {}

  [[nodiscard]] BranchComparison compare(const Branch& a, const Branch& b) const {
    const Norm& norm = a.norm ? before_.model.norms[*a.norm] : *a.after;
    BranchComparison result{norm.layer, norm.stack, norm.name};
    if (!a.heads.empty()) {
      for (std::size_t h = 0; h < a.heads.size(); ++h) result.heads.push_back(head(a, h));
    } else if (a.experts.router == nullptr) {
      result.mlps.push_back(mlp(a.mlp));
    } else {
      for (std::size_t e = 0; e < a.experts.mlps.size(); ++e) {
        result.mlps.push_back(mlp(a.experts.mlps[e]));
        result.mlps.back().old_expert = e;
        result.mlps.back().new_expert = expert_of(a.experts.mlps[e], b, e);
      }
      if (a.experts.shared) result.mlps.push_back(mlp(*a.experts.shared));
    }
    return result;
  }

 private:
  /// An error that counts, of a map whose format does not explain it.
  struct Worst {
    double largest = 0.0;
    bool agrees = true;
  };
  void take(const std::map<Place, std::vector<double>>& errors, const Linear& map, std::uint64_t feature,
            Worst& error) const {
    const auto found = errors.find(place_of(map.weight));
    if (found == errors.end() || feature >= found->second.size()) return;
    const double one = found->second[feature];
    error.largest = std::max(error.largest, one);
    error.agrees = error.agrees && (one <= tolerance_ || before_.explained.contains(place_of(map.weight)));
  }

  [[nodiscard]] HeadMatch head(const Branch& branch, std::size_t h) const {
    const models::Head& head = before_.model.heads[branch.heads[h]];
    const Linear& out = *branch.mlp.out;
    const std::uint64_t dim = out.in / branch.heads.size();
    HeadMatch result{h, h};
    if (const Relabelled* const writer = relabelling_.of_writer(out)) {
      if (!writer->inputs.empty()) result.new_head = static_cast<std::size_t>(writer->inputs[h * dim] / dim);
      result.values = kind_of(writer->blocks, h);
    }
    if (head.key) {
      result.keys = map_of_keys(
          branch.norm ? before_.model.norms[*branch.norm].readers : before_.model.stream_readers, *head.key);
    }
    Worst error;
    for (const auto* const part : {&head.query, &head.key, &head.value}) {
      for (std::uint64_t i = 0; *part && i < (*part)->out; ++i)
        take(before_.output_errors, **part, (*part)->stored_output(i), error);
    }
    for (std::uint64_t i = 0; i < dim; ++i) take(before_.input_errors, out, h * dim + i, error);
    result.error = error.largest;
    result.agrees = error.agrees;
    return result;
  }

  /// By what the reader that has these keys is multiplied there.
  [[nodiscard]] HeadMap map_of_keys(const std::vector<Linear>& readers, const Linear& keys) const {
    for (const Linear& reader : readers) {
      if (reader.role != "key" || place_of(reader.weight) != place_of(keys.weight)) continue;
      const Relabelled* const entry = relabelling_.of_reader(reader);
      if (entry == nullptr) continue;
      for (std::uint64_t i = 0; i < reader.out; ++i) {
        if (reader.stored_output(i) == keys.stored_output(0))
          return kind_of(entry->blocks, i / entry->blocks.size);
      }
    }
    return HeadMap::none;
  }

  [[nodiscard]] MlpMatch mlp(const Mlp& mlp) const {
    MlpMatch result;
    result.neurons = static_cast<std::size_t>(mlp.in->out);
    if (const Relabelled* const writer = relabelling_.of_writer(*mlp.out)) {
      for (std::size_t j = 0; j < writer->inputs.size(); ++j)
        result.moved += writer->inputs[j] == j ? 0U : 1U;
    }
    if (const Relabelled* const reader = relabelling_.of_reader(*mlp.in)) {
      for (const double factor : reader->blocks.matrices) {
        if (factor == 1.0) continue;
        ++result.scaled;
        // By which OLD's neuron is multiplied to be NEW's.
        const double scale = 1.0 / std::abs(factor);
        if (std::abs(std::log(scale)) > std::abs(std::log(result.largest_scale)))
          result.largest_scale = scale;
      }
    }
    for (std::uint64_t j = 0; j < mlp.in->out; ++j) {
      Worst error;
      for (const Linear* const map : {mlp.gate, mlp.in}) {
        if (map != nullptr) take(before_.output_errors, *map, map->stored_output(j), error);
      }
      take(before_.input_errors, *mlp.out, j, error);
      result.error = std::max(result.error, error.largest);
      result.different += error.agrees ? 0U : 1U;
    }
    return result;
  }

  /// The expert of NEW whose output map stands for that of OLD.
  [[nodiscard]] std::size_t expert_of(const Mlp& mlp, const Branch& branch, std::size_t otherwise) const {
    const Relabelled* const writer = relabelling_.of_writer(*mlp.out);
    if (writer == nullptr) return otherwise;
    const std::vector<Mlp>& mlps = branch.experts.mlps;
    const auto found = std::find_if(mlps.begin(), mlps.end(), [&](const Mlp& other) {
      return place_of(other.out->weight) == place_of(writer->map.weight);
    });
    return found == mlps.end() ? otherwise : static_cast<std::size_t>(found - mlps.begin());
  }

  const Side& before_;
  const Relabelling& relabelling_;
  double tolerance_;
};

}  // namespace

const char* to_string(HeadMap map) {
  switch (map) {
    case HeadMap::none: return "none";
    case HeadMap::scales: return "scales";
    case HeadMap::matrix: return "matrix";
  }
  return "";
}

std::vector<BranchComparison> compare_branches(const Side& before, const Side& after,
                                               const Relabelling& relabelling, double tolerance) {
  const std::optional<forward::Plan> of_old = plan_if_known(before.model);
  const std::optional<forward::Plan> of_new = plan_if_known(after.model);
  if (!of_old || !of_new || of_old->steps.size() != of_new->steps.size()) return {};
  const Branches branches(before, relabelling, tolerance);
  std::vector<BranchComparison> result;
  for (std::size_t s = 0; s < of_old->steps.size(); ++s) {
    const std::vector<Branch>& a = of_old->steps[s].before;
    const std::vector<Branch>& b = of_new->steps[s].before;
    if (a.size() != b.size()) return {};
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (a[k].heads.size() != b[k].heads.size()) return {};
      result.push_back(branches.compare(a[k], b[k]));
    }
  }
  return result;
}

}  // namespace normscope::rewrite
