#include <normscope/certificates/model_head.hpp>

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
  if (const std::string why = model::why_no_logits(model); !why.empty()) throw unsupported(why);
  const model::Vocabulary& vocabulary = *model.vocabulary;
  const model::Norm* const norm = model::find_norm(model, vocabulary.final_norm);
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
