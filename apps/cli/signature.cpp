#include "signature.hpp"

#include <normscope/core/dtype.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/signature/verify.hpp>

namespace normscope::cli {
namespace {

const std::map<std::string, Dtype> precisions = {
    {"float64", Dtype::F64}, {"float32", Dtype::F32}, {"float16", Dtype::F16}, {"bfloat16", Dtype::BF16}};

}  // namespace

void OutputsOptions::declare(CLI::App& command) {
  command
      .add_option("OUTPUTS", values,
                  "Rows of logits or log-probabilities, a number for each token: X.npy, X.npz:NAME or "
                  "X.safetensors:TENSOR")
      ->required();
  command.add_option("--temperature", temperature, "Number that the logits were divided by (default 1)")
      ->type_name("T")
      ->check(numbers(1e-6, 1e6));
  command
      .add_option("--precision", precision,
                  "Type in which the model computed the logits (default: the smallest that holds the first "
                  "rows)")
      ->check(CLI::IsMember({"float64", "float32", "float16", "bfloat16"}));
}

signature::Outputs OutputsOptions::open(Inputs& inputs, std::size_t vocabulary, double soft_cap) const {
  signature::OutputOptions options{
      .temperature = temperature, .soft_cap = soft_cap, .vocabulary = vocabulary};
  if (!precision.empty()) options.precision = precisions.at(precision);
  return {inputs.array(values), inputs.optional_array(ids), options};
}

SignatureHead read_signature_head(Inputs& inputs, const ModelName& model) {
  const files::Checkpoint& checkpoint = inputs.checkpoint(model.path);
  const models::Model& described = inputs.model_of(checkpoint, model.stated);
  return {signature::head_of(selectability::vocabulary_head(checkpoint, described)), described.notes};
}

void add_signature(CLI::App& root, Session& session) {
  CLI::App* group = root.add_subcommand(
      "signature",
      "Identify the model that outputs come from, by the ellipse on which its final norm puts logits");
  group->require_subcommand(1);
  add_signature_verify(*group, session);
  add_signature_extract(*group, session);
  add_signature_kind(*group, session);
  add_signature_compare(*group, session);
  add_examples(*group, {"normscope signature compare models/wordlist_gpt models/wordlist_gpt",
                        "normscope signature verify --help"});
}

}  // namespace normscope::cli
