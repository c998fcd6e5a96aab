#include <normscope/certificates/model_head.hpp>

#include <algorithm>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/model/token_names.hpp>

namespace normscope::certificates {

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

void ModelHead::read_names(const checkpoint::Checkpoint& checkpoint) {
  const auto file = model::find_token_names(checkpoint.files().front().parent_path());
  if (file) facts.names = model::read_token_names(*file, tokens);
}

ModelHead read_model_head(const checkpoint::Checkpoint& checkpoint, const model::Model& model) {
  const auto unsupported = [&](const std::string& what) {
    return Error(ErrorCode::Unsupported, fmt::format("{}: {}", checkpoint.path().string(), what));
  };
  if (!model.vocabulary || !model.vocabulary->unembedding) {
    throw unsupported(model::why_no_logits(model) + "; expected a model with a language head");
  }
  const model::Vocabulary& vocabulary = *model.vocabulary;
  const auto norm = std::find_if(model.norms.begin(), model.norms.end(),
                                 [&](const model::Norm& n) { return n.name == vocabulary.final_norm; });
  if (norm == model.norms.end()) {
    throw unsupported("its language head does not read a norm directly, expected a final norm before it");
  }
  if (!vocabulary.not_modelled.empty()) throw unsupported("not modelled: " + vocabulary.not_modelled);
  if (!(vocabulary.logit_scale > 0.0)) {
    throw unsupported(fmt::format("not modelled: logits times {}", vocabulary.logit_scale));
  }
  const model::Linear& map = *vocabulary.unembedding;
  return {.norm = model::read_norm(checkpoint, *norm),
          .unembedding = model::read_weight(checkpoint, map, 0, map.out),
          .bias = model::read_bias(checkpoint, map),
          .scale = vocabulary.logit_scale,
          .soft_cap = vocabulary.soft_cap,
          .tokens = static_cast<std::size_t>(map.out),
          .facts = {.norm_name = norm->name, .tied = vocabulary.tied, .notes = model.notes}};
}

}  // namespace normscope::certificates
