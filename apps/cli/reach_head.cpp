#include "reach_head.hpp"

#include <algorithm>

#include <fmt/core.h>

#include <normscope/checkpoint/array.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>
#include <normscope/model/model.hpp>
#include <normscope/model/token_names.hpp>

#include "matrix_input.hpp"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void unsupported(const std::string& source, const char* what) {
  throw Error(ErrorCode::Unsupported, fmt::format("{}: {}", printable(source), what));
}

void read_from_model(const HeadOptions& options, const std::vector<std::string>& outputs, ReachHead& head) {
  const checkpoint::Checkpoint checkpoint(options.model);
  const fs::path folder = checkpoint.files().front().parent_path();
  const std::optional<fs::path> names =
      options.names.empty() ? model::find_token_names(folder) : std::optional<fs::path>(options.names);
  std::vector<fs::path> inputs = files_of(checkpoint);
  if (names) inputs.push_back(*names);
  keep_apart(inputs, outputs);
  const model::Model described = model::describe(checkpoint);
  if (!described.vocabulary || !described.vocabulary->unembedding) {
    unsupported(options.model, "has no map to a vocabulary, expected a language model's head");
  }
  const model::Vocabulary& vocabulary = *described.vocabulary;
  const auto norm = std::find_if(described.norms.begin(), described.norms.end(),
                                 [&](const model::Norm& n) { return n.name == vocabulary.final_norm; });
  if (norm == described.norms.end()) {
    unsupported(options.model, "its head reads no norm directly, expected one behind a final norm");
  }
  head.norm_name = norm->name;
  head.norm = model::read_norm(checkpoint, *norm);
  head.tied = vocabulary.tied;
  const model::Linear& map = *vocabulary.unembedding;
  const std::vector<double> weights = model::read_weight(checkpoint, map, 0, map.out);
  const std::vector<double> bias = model::read_bias(checkpoint, map);
  head.has_bias = !bias.empty();
  head.logits = selectability::fold(head.norm, {weights.data(), map.out, map.in}, bias);
  if (names) head.names = model::read_token_names(*names, head.logits.tokens);
}

void read_from_arrays(const HeadOptions& options, const std::vector<std::string>& outputs, ReachHead& head) {
  std::vector<fs::path> inputs =
      files_of_arrays({options.unembedding, options.unembedding_bias, options.norm.gain, options.norm.bias});
  if (!options.names.empty()) inputs.emplace_back(options.names);
  keep_apart(inputs, outputs);
  const MatrixInput weights = read_matrix(options.unembedding);
  std::vector<double> bias;
  if (!options.unembedding_bias.empty()) bias = checkpoint::read_row(options.unembedding_bias);
  head.norm = options.norm.read(weights.width);
  head.has_bias = !bias.empty();
  head.logits = selectability::fold(head.norm, weights.view(), bias);
  if (!options.names.empty()) head.names = model::read_token_names(options.names, head.logits.tokens);
}

}  // namespace

std::string ReachHead::shown(std::size_t token) const {
  if (token >= names.size() || names[token].empty()) return fmt::format("token {}", token);
  return fmt::format("token {} \"{}\"", token, printable(names[token]));
}

ReachHead read_head(const HeadOptions& options, const std::vector<std::string>& outputs) {
  if (options.model.empty() == options.unembedding.empty()) {
    throw CLI::ValidationError("MODEL or --unembedding", "exactly one of them is needed");
  }
  ReachHead head;
  head.source = options.model.empty() ? options.unembedding : options.model;
  if (options.model.empty()) {
    read_from_arrays(options, outputs, head);
  } else {
    read_from_model(options, outputs, head);
  }
  return head;
}

}  // namespace normscope::cli
