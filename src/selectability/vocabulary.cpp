#include <normscope/selectability/vocabulary.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/models/token_names.hpp>

namespace normscope::selectability {
namespace {

void scale(Logits& logits, double factor) {
  if (factor == 1.0) return;
  for (double& entry : logits.rows) entry *= factor;
  for (double& offset : logits.offsets) offset *= factor;
  // One more rounding per entry.
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    Logits::Own& own = logits.own[token];
    const double size = euclidean_norm(logits.view().row(token)) + std::abs(logits.offsets[token]);
    own.size *= factor;
    own.rounding = factor * own.rounding + 2.0 * 0x1p-53 * size;
    own.rounding_error = factor * own.rounding_error + 2.0 * 0x1p-53 * own.size;
  }
  logits.rounding = factor * (logits.rounding + 2.0 * 0x1p-53 * logits.scale);
  logits.scale *= factor;
  logits.terms *= factor;
  expect_accepted_logits("reach", logits.scale);
}

/// The mean over all tokens that `fold` subtracts, as the difference between the logit of a token with mean
/// weights and that of a token with zero weights.
void find_common(MatrixView<const double> unembedding, const std::vector<double>& bias,
                 VocabularyHead& head) {
  const std::size_t width = unembedding.width();
  const double count = static_cast<double>(unembedding.rows());
  std::vector<CompensatedSum> sums(width + 1);
  for (std::size_t token = 0; token < unembedding.rows(); ++token) {
    const std::span<const double> row = unembedding.row(token);
    for (std::size_t i = 0; i < width; ++i) sums[i].add(row[i]);
    if (!bias.empty()) sums[width].add(bias[token]);
  }
  std::vector<double> both(2 * width);
  std::transform(sums.begin(), sums.end() - 1, both.begin(),
                 [&](const CompensatedSum& sum) { return sum.value() / count; });
  const std::vector<double> offsets = {sums[width].value() / count, 0.0};
  Logits pair = fold(head.norm, MatrixView<const double>(both.data(), 2, width), offsets);
  scale(pair, head.logit_scale);
  head.common.resize(width);
  for (std::size_t i = 0; i < width; ++i) head.common[i] = pair.rows[i] - pair.rows[width + i];
  head.common_offset = pair.offsets[0] - pair.offsets[1];
}

/// `VocabularyHead::sizes`, rounded up.
std::vector<double> sizes_of(const NormSpec& norm, MatrixView<const double> unembedding,
                             const std::vector<double>& bias, double logit_scale) {
  std::vector<double> sizes(unembedding.rows());
  std::vector<double> stretched(unembedding.width());
  for (std::size_t token = 0; token < sizes.size(); ++token) {
    const std::span<const double> row = unembedding.row(token);
    double shifts = bias.empty() ? 0.0 : std::abs(bias[token]);
    for (std::size_t i = 0; i < row.size(); ++i) {
      stretched[i] = norm.gain_at(i) * row[i];
      shifts += std::abs(norm.bias_at(i) * row[i]);
    }
    sizes[token] = logit_scale * (norm.radius() * euclidean_norm(stretched) + shifts) *
                   (1.0 + rounding(static_cast<std::ptrdiff_t>(row.size())));
  }
  return sizes;
}

}  // namespace

VocabularyHead vocabulary_head(NormSpec norm, MatrixView<const double> unembedding,
                               const std::vector<double>& bias, double logit_scale, double soft_cap) {
  VocabularyHead head{
      .norm = std::move(norm), .has_bias = !bias.empty(), .logit_scale = logit_scale, .soft_cap = soft_cap};
  head.logits = fold(head.norm, unembedding, bias);
  scale(head.logits, head.logit_scale);
  head.sizes = sizes_of(head.norm, unembedding, bias, head.logit_scale);
  if (head.soft_cap > 0.0) find_common(unembedding, bias, head);
  return head;
}

VocabularyHead vocabulary_head(const files::Checkpoint& checkpoint, const models::Model& model) {
  const auto unsupported = [&](std::string_view what) {
    return Error(ErrorCode::Unsupported, fmt::format("{}: {}", checkpoint.path().string(), what));
  };
  if (const std::string why = models::why_no_logits(model); !why.empty()) throw unsupported(why);
  const models::Norm* const norm = models::find_norm(model, model.vocabulary->final_norm);
  if (norm->effect() != NormEffect::normalizes) throw unsupported(not_normalizing(*norm));
  if (!(model.vocabulary->logit_scale > 0.0)) {
    throw unsupported(fmt::format("not modelled: logits times {}", model.vocabulary->logit_scale));
  }
  const models::Linear& map = *model.vocabulary->unembedding;
  const std::vector<double> weights = models::read_weight(checkpoint, map, 0, map.out);
  const std::vector<double> bias = models::read_bias(checkpoint, map);
  VocabularyHead head = vocabulary_head(models::read_norm(checkpoint, *norm),
                                        MatrixView<const double>(weights.data(), map.out, map.in), bias,
                                        model.vocabulary->logit_scale, model.vocabulary->soft_cap);
  head.norm_name = norm->name;
  head.tied = model.vocabulary->tied;
  return head;
}

VocabularyReach reach_of_vocabulary(const files::Checkpoint& checkpoint, const models::Model& model,
                                    const VocabularyOptions& options, unsigned threads,
                                    const Progress& progress) {
  VocabularyReach result;
  if (options.skip) {
    result.refused = "it was left out on request";
    return result;
  }
  result.refused = models::why_no_logits(model);
  if (!result.refused.empty()) return result;
  const models::Linear& map = *model.vocabulary->unembedding;
  const double tokens = static_cast<double>(map.out);
  if (tokens * tokens * static_cast<double>(map.in) > options.most_work) {
    result.refused =
        fmt::format("a vocabulary of {} x {} takes more work than the limit allows", map.out, map.in);
    result.left_out = true;
    return result;
  }
  try {
    const std::string& norm = model.vocabulary->final_norm;
    const NormSpec spec = models::read_norm(checkpoint, *models::find_norm(model, norm));
    const auto finite = [](double value) { return std::isfinite(value); };
    if (!std::all_of(spec.gain.begin(), spec.gain.end(), finite) ||
        !std::all_of(spec.bias.begin(), spec.bias.end(), finite)) {
      result.refused = "the gain or bias of " + norm + " is not finite";
      return result;
    }
    const VocabularyHead head = vocabulary_head(checkpoint, model);
    const ReachOptions limits{.threads = threads, .progress = progress, .work = options.budget};
    Survey survey;
    decide(head.logits, survey.tokens, limits);
    finish_survey(head.logits, survey, {}, limits);
    if (head.soft_cap > 0.0) cap_probabilities(head, survey, threads);
    result.survey = std::move(survey);
    result.ties = head.logits.ties();
  } catch (const Error& error) {
    // A head of an unsupported kind, or weights that are not finite: the rest of the file is still analysed.
    if (error.code() != ErrorCode::Unsupported && error.code() != ErrorCode::Argument) throw;
    result.refused = error.what();
    return result;
  }
  const auto file = models::find_token_names(checkpoint.files().front().parent_path(), map.out);
  if (file) result.names = models::token_texts(models::read_token_names(*file, map.out));
  return result;
}

std::vector<std::size_t> without_ties(std::vector<std::size_t> tokens,
                                      const std::vector<std::vector<std::size_t>>& ties) {
  std::set<std::size_t> tied;
  for (const std::vector<std::size_t>& group : ties) tied.insert(group.begin(), group.end());
  std::erase_if(tokens, [&](std::size_t token) { return tied.contains(token); });
  return tokens;
}

std::string token_name(const std::vector<std::string>& names, std::size_t token) {
  if (token >= names.size() || names[token].empty()) return fmt::format("token {}", token);
  return fmt::format("token {} \"{}\"", token, names[token]);
}

}  // namespace normscope::selectability
