#include <normscope/certificates/model_heads.hpp>

#include <algorithm>

#include <fmt/core.h>

#include <normscope/core/parallel.hpp>

namespace normscope::certificates {
namespace {

bool is_among(const std::vector<model::Linear>& linears, const model::Linear& wanted) {
  return std::any_of(linears.begin(), linears.end(), [&](const model::Linear& linear) {
    return linear.role == wanted.role && linear.weight.selector() == wanted.weight.selector();
  });
}

}  // namespace

ModelHeads::ModelHeads(const checkpoint::Checkpoint& checkpoint, const model::Model& model)
    : checkpoint_(checkpoint), model_(model) {
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    const model::Head& head = model.heads[i];
    readings_.push_back({i, head.norm, head.later_norms.empty() ? "" : "first"});
    for (const std::string& norm : head.later_norms) readings_.push_back({i, norm, "later"});
  }
}

AttentionHead ModelHeads::read(std::size_t index) const {
  const Reading& reading = readings_[index];
  AttentionHead result{.head = model_.heads[reading.head], .norm_name = reading.norm, .pass = reading.pass};
  const model::Head& head = result.head;
  const auto refuse = [&](const char* why) {
    result.refused = why;
    return result;
  };
  if (!model::why_no_scores(head).empty()) return refuse("its scores are not modelled");
  const auto norm = std::find_if(model_.norms.begin(), model_.norms.end(),
                                 [&](const model::Norm& n) { return n.name == reading.norm; });
  if (reading.norm.empty() || norm == model_.norms.end()) return refuse("the norm it reads is not known");
  if (is_elementwise(norm->kind)) return refuse("its norm is elementwise");
  if (norm->groups != 1) return refuse("its norm has groups");
  const bool mapped = head.between && reading.norm == head.norm;
  const model::Linear& first = mapped ? *head.between : *head.key;
  if (!is_among(norm->readers, first)) return refuse("its keys do not read the norm");
  const std::uint64_t in = mapped ? head.between->out : norm->width;
  if (first.in != norm->width || head.query->in != in || head.key->in != in) {
    return refuse("it reads a part of its norm");
  }
  result.norm = model::read_norm(checkpoint_, *norm);
  const auto map_of = [&](const model::Linear& linear) {
    return HeadMap{.weight = model::read_weight(checkpoint_, linear, 0, linear.out),
                   .bias = model::read_bias(checkpoint_, linear)};
  };
  const auto scored_map_of = [&](const model::Linear& linear) {
    HeadMap map = map_of(linear);
    for (const model::Norm& own : model_.norms) {
      const bool is_own = std::any_of(own.writers.begin(), own.writers.end(),
                                      [&](const model::Linear& writer) { return writer.covers(linear); });
      if (own.placement != model::Placement::inside || !is_own) continue;
      if (own.width != head.head_dim || own.groups != 1)
        result.refused = "a norm within it is not one of each head";
      map.own = model::read_norm(checkpoint_, own);
      map.own_name = own.name;
      break;
    }
    return map;
  };
  result.query = scored_map_of(*head.query);
  result.key = scored_map_of(*head.key);
  if (mapped) result.between = map_of(*head.between);
  return result;
}

std::vector<InputArray> ModelHeads::arrays(unsigned threads) const {
  std::vector<std::vector<InputArray>> found(size());
  parallel_for(size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const AttentionHead head = read(i);
      if (!head.refused.empty()) continue;
      const auto add = [&](const char* role, const std::vector<double>& values, std::size_t rows) {
        if (values.empty()) return;
        std::vector<std::size_t> shape = {values.size() / rows};
        if (rows != 1) shape.insert(shape.begin(), rows);
        found[i].push_back(describe_array(fmt::format("heads[{}] {}", i, role), std::move(shape), values, 1));
      };
      const std::size_t dim = head.head.head_dim;
      add("norm gain", head.norm.gain, 1);
      add("norm bias", head.norm.bias, 1);
      if (head.between) {
        add("between", head.between->weight, head.between->weight.size() / head.norm.width);
        add("between bias", head.between->bias, 1);
      }
      add("query", head.query.weight, dim);
      add("query bias", head.query.bias, 1);
      add("key", head.key.weight, dim);
      add("key bias", head.key.bias, 1);
      if (head.query.own) {
        add("query norm gain", head.query.own->gain, 1);
        add("query norm bias", head.query.own->bias, 1);
      }
      if (head.key.own) {
        add("key norm gain", head.key.own->gain, 1);
        add("key norm bias", head.key.own->bias, 1);
      }
    }
  });
  std::vector<InputArray> result;
  for (std::vector<InputArray>& arrays : found) {
    for (InputArray& array : arrays) result.push_back(std::move(array));
  }
  return result;
}

}  // namespace normscope::certificates
