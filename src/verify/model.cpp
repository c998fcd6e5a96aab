#include <algorithm>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/verify/verify.hpp>

#include "heads.hpp"

namespace normscope::verify {

std::vector<InputArray> ModelHead::arrays(unsigned threads) const {
  std::vector<InputArray> result = {
      describe_array("unembedding", {tokens, norm.width}, unembedding, threads)};
  const auto add = [&](const char* role, const std::vector<double>& values) {
    if (!values.empty()) result.push_back(describe_array(role, {values.size()}, values, threads));
  };
  add("unembedding bias", bias);
  add("gain", norm.gain);
  add("norm bias", norm.bias);
  return result;
}

void ModelHead::read_names(const files::Checkpoint& checkpoint) {
  const auto file = models::find_token_names(checkpoint.files().front().parent_path());
  if (file) facts.names = models::read_token_names(*file, tokens);
}

ModelHead read_model_head(const files::Checkpoint& checkpoint, const models::Model& model) {
  const auto unsupported = [&](const std::string& what) {
    return Error(ErrorCode::Unsupported, fmt::format("{}: {}", checkpoint.path().string(), what));
  };
  if (const std::string why = models::why_no_logits(model); !why.empty()) throw unsupported(why);
  const models::Vocabulary& vocabulary = *model.vocabulary;
  const models::Norm* const norm = models::find_norm(model, vocabulary.final_norm);
  if (!(vocabulary.logit_scale > 0.0)) {
    throw unsupported(fmt::format("not modelled: logits times {}", vocabulary.logit_scale));
  }
  const models::Linear& map = *vocabulary.unembedding;
  return {.norm = models::read_norm(checkpoint, *norm),
          .unembedding = models::read_weight(checkpoint, map, 0, map.out),
          .bias = models::read_bias(checkpoint, map),
          .scale = vocabulary.logit_scale,
          .soft_cap = vocabulary.soft_cap,
          .tokens = static_cast<std::size_t>(map.out),
          .facts = {.norm_name = norm->name, .tied = vocabulary.tied, .notes = model.notes}};
}

namespace {

bool is_among(const std::vector<models::Linear>& linears, const models::Linear& wanted) {
  return std::any_of(linears.begin(), linears.end(), [&](const models::Linear& linear) {
    return linear.role == wanted.role && linear.weight.selector() == wanted.weight.selector();
  });
}

}  // namespace

ModelHeads::ModelHeads(const files::Checkpoint& checkpoint, const models::Model& model)
    : checkpoint_(checkpoint), model_(model) {
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    const models::Head& head = model.heads[i];
    readings_.push_back({i, head.norm, head.later_norms.empty() ? "" : "first"});
    for (const std::string& norm : head.later_norms) readings_.push_back({i, norm, "later"});
  }
}

AttentionHead ModelHeads::read(std::size_t index) const {
  const Reading& reading = readings_[index];
  AttentionHead result{.head = model_.heads[reading.head], .norm_name = reading.norm, .pass = reading.pass};
  const models::Head& head = result.head;
  const auto refuse = [&](const char* why) {
    result.refused = why;
    return result;
  };
  if (!models::why_no_scores(head).empty()) return refuse("its scores are not modelled");
  const auto norm = std::find_if(model_.norms.begin(), model_.norms.end(),
                                 [&](const models::Norm& n) { return n.name == reading.norm; });
  if (reading.norm.empty() || norm == model_.norms.end()) return refuse("the norm it reads is not known");
  if (is_elementwise(norm->kind)) return refuse("its norm is elementwise");
  if (norm->groups != 1) return refuse("its norm has groups");
  const bool mapped = head.between && reading.norm == head.norm;
  const models::Linear& first = mapped ? *head.between : *head.key;
  if (!is_among(norm->readers, first)) return refuse("its keys do not read the norm");
  const std::uint64_t in = mapped ? head.between->out : norm->width;
  if (first.in != norm->width || head.query->in != in || head.key->in != in) {
    return refuse("it reads a part of its norm");
  }
  result.norm = models::read_norm(checkpoint_, *norm);
  const auto map_of = [&](const models::Linear& linear) {
    return HeadMap{.weight = models::read_weight(checkpoint_, linear, 0, linear.out),
                   .bias = models::read_bias(checkpoint_, linear)};
  };
  const auto scored_map_of = [&](const models::Linear& linear) {
    HeadMap map = map_of(linear);
    for (const models::Norm& own : model_.norms) {
      const bool is_own = std::any_of(own.writers.begin(), own.writers.end(),
                                      [&](const models::Linear& writer) { return writer.covers(linear); });
      if (own.placement != models::Placement::inside || !is_own) continue;
      if (own.width != head.head_dim || own.groups != 1)
        result.refused = "a norm within it is not one of each head";
      map.own = models::read_norm(checkpoint_, own);
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

namespace {

/// A list of names in a text.
class Names {
 public:
  void add_unless(bool holds, const char* name) {
    if (!holds) text_ += (text_.empty() ? "" : ", ") + std::string(name);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_{};
};

bool is_norm(const Field& field, const std::optional<NormSpec>& norm) {
  if (!norm) return field.is_null();
  return !field.is_null() && field["kind"].text() == to_string(norm->kind) &&
         field["eps"].number() == norm->eps;
}

bool is_rotation(const Field& rotation, const std::optional<models::Rotary>& rotary) {
  if (!rotary || rotation.is_null()) return rotation.is_null() != rotary.has_value();
  return rotation["dims"].count() == rotary->dims && rotation["interleaved"].flag() == rotary->interleaved &&
         rotation["score_factor"].number() == rotary->score_factor &&
         rotation["frequencies_known"].flag() == !rotary->frequencies.empty() &&
         (rotation["context"].is_null() ? 0 : rotation["context"].count()) == rotary->context;
}

}  // namespace

bool is_null_or(const Field& field, const std::string& text) {
  return text.empty() ? field.is_null() : field.is_text() && field.text() == text;
}

std::string differing_facts(const Field& entry, const AttentionHead& read) {
  const models::Head& head = read.head;
  const auto selector = [](const std::optional<models::Linear>& linear) {
    return linear ? linear->weight.selector() : std::string();
  };
  Names names;
  names.add_unless(entry["stack"].text() == head.stack, "stack");
  names.add_unless(entry["layer"].integer() == head.layer, "layer");
  names.add_unless(entry["head"].integer() == head.head, "head");
  names.add_unless(entry["key_value_head"].integer() == head.key_value_head, "key_value_head");
  names.add_unless(entry["head_dim"].count() == head.head_dim, "head_dim");
  names.add_unless(entry["scale"].number() == head.scale, "scale");
  names.add_unless(entry["norm"].text() == read.norm_name, "norm");
  names.add_unless(is_null_or(entry["pass"], read.pass), "pass");
  names.add_unless(is_null_or(entry["query"], selector(head.query)), "query");
  names.add_unless(is_null_or(entry["key"], selector(head.key)), "key");
  names.add_unless(is_null_or(entry["value"], selector(head.value)), "value");
  names.add_unless(entry["rotary"].flag() == head.rotary.has_value(), "rotary");
  names.add_unless(is_rotation(entry["rotation"], head.rotary), "rotation");
  names.add_unless(entry["soft_cap"].number_or(0.0) == head.soft_cap, "soft_cap");
  const Field window = entry["window"];
  names.add_unless(
      window.is_null() ? !head.window.has_value() : head.window && window.count() == *head.window, "window");
  // An entry of a norm without a map between may leave it out.
  const std::string between = head.between && read.norm_name == head.norm ? selector(head.between) : "";
  names.add_unless(entry.has("between") ? is_null_or(entry["between"], between) : between.empty(), "between");
  return names.text();
}

std::string differing_norms(const Field& certificates, const AttentionHead& head) {
  Names names;
  names.add_unless(certificates["norm"]["kind"].text() == to_string(head.norm.kind), "norm.kind");
  names.add_unless(is_norm(certificates["query_norm"], head.query.own), "query_norm kind or eps");
  names.add_unless(is_norm(certificates["key_norm"], head.key.own), "key_norm kind or eps");
  return names.text();
}

}  // namespace normscope::verify
