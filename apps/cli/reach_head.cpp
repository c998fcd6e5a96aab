#include "reach_head.hpp"

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/verify/verify.hpp>

#include "inputs.hpp"
#include "matrix_input.hpp"
#include "result_inputs.hpp"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

void read_from_model(const HeadOptions& options, const std::vector<std::string>& outputs, bool describe,
                     unsigned threads, ReachHead& head) {
  Inputs inputs;
  const files::Checkpoint& checkpoint = inputs.checkpoint(options.model.path);
  const fs::path folder = checkpoint.files().front().parent_path();
  const std::optional<fs::path> names =
      options.names.empty() ? models::find_token_names(folder) : std::optional<fs::path>(options.names);
  if (names) inputs.add_file(*names);
  inputs.keep_apart(outputs);
  const models::Model& described = inputs.model_of(checkpoint, options.model.stated);
  static_cast<selectability::VocabularyHead&>(head) = selectability::vocabulary_head(checkpoint, described);
  head.notes = described.notes;
  if (describe) {
    head.inputs.arguments.push_back({"model", options.model.path});
    head.inputs.stated = options.model.stated;
    head.inputs.arrays = verify::read_model_head(checkpoint, described).arrays(threads);
  }
  if (names) head.names = models::read_token_names(*names, head.logits.tokens);
}

void read_from_arrays(const HeadOptions& options, const std::vector<std::string>& outputs, bool describe,
                      unsigned threads, ReachHead& head) {
  Inputs inputs;
  const files::OpenedArray unembedding = inputs.array(options.unembedding);
  const std::optional<files::OpenedArray> unembedding_bias = inputs.optional_array(options.unembedding_bias);
  const NormInput norm_input = options.norm.open(inputs);
  if (!options.names.empty()) inputs.add_file(options.names);
  inputs.keep_apart(outputs);
  const MatrixInput weights = read_matrix(unembedding);
  std::vector<double> bias;
  if (unembedding_bias) bias = unembedding_bias->row();
  const GivenNorm norm = norm_input.of_width(weights.width);
  head.norm = norm;
  if (norm.model) head.norm_name = norm.model->name;
  head.has_bias = !bias.empty();
  if (describe) {
    add_array(head.inputs, "unembedding", options.unembedding, weights, threads);
    if (!bias.empty()) {
      head.inputs.arguments.push_back({"unembedding bias", options.unembedding_bias});
      head.inputs.arrays.push_back(verify::describe_array("unembedding bias", {bias.size()}, bias));
    }
    add_norm(head.inputs, options.norm, head.norm);
  }
  head.logits = selectability::fold(head.norm, weights.view(), bias);
  if (!options.names.empty()) head.names = models::read_token_names(options.names, head.logits.tokens);
}

}  // namespace

std::string ReachHead::shown(std::size_t token) const {
  return printable(selectability::token_name(names, token));
}

ReachHead read_head(const HeadOptions& options, const std::vector<std::string>& outputs, bool describe,
                    unsigned threads) {
  if (options.model.path.empty() == options.unembedding.empty()) {
    throw CLI::ValidationError("MODEL or --unembedding", "exactly one of them is needed");
  }
  ReachHead head;
  head.source = options.model.path.empty() ? options.unembedding : options.model.path;
  if (options.model.path.empty()) {
    read_from_arrays(options, outputs, describe, threads, head);
  } else {
    read_from_model(options, outputs, describe, threads, head);
  }
  return head;
}

}  // namespace normscope::cli
