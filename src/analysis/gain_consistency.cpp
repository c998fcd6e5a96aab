#include <normscope/analysis/gain_consistency.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/models/token_names.hpp>

namespace normscope::analysis {
namespace {

constexpr int passes = 4;

/// The norms whose gains a conversion may have shifted: those of a class that stores the gain minus 1, or
/// all.
std::vector<std::size_t> shifted_norms(const models::Model& model) {
  std::vector<std::size_t> of_class;
  std::vector<std::size_t> all;
  for (std::size_t n = 0; n < model.norms.size(); ++n) {
    const models::Norm& norm = model.norms[n];
    if (!norm.gain || norm.alpha) continue;
    all.push_back(n);
    if (norm.gain_offset == 1.0 || norm.gain_was_shifted) of_class.push_back(n);
  }
  return of_class.empty() ? all : of_class;
}

double root_mean_square(MatrixView<const double> rows) {
  double squares = 0.0;
  for (std::size_t t = 0; t < rows.rows(); ++t) {
    for (const double value : rows.row(t)) squares += value * value;
  }
  return std::sqrt(squares / static_cast<double>(rows.rows() * rows.width()));
}

/// The mean of -log p of each token but the first.
double loss_of(const forward::Decoder& decoder, std::span<const std::size_t> tokens,
               std::span<const double> hidden, const Progress& progress) {
  const std::size_t width = hidden.size() / tokens.size();
  std::vector<double> logits(decoder.outputs());
  double sum = 0.0;
  for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
    decoder.logits({hidden.data() + t * width, 1, width}, {logits.data(), 1, logits.size()}, progress);
    const double most = *std::max_element(logits.begin(), logits.end());
    double total = 0.0;
    for (const double logit : logits) total += std::exp(logit - most);
    sum += most + std::log(total) - logits[tokens[t + 1]];
  }
  return sum / static_cast<double>(tokens.size() - 1);
}

ShiftedGains run_shifted(const forward::Decoder& decoder, double shift, std::span<const std::size_t> tokens,
                         const Progress& progress) {
  ShiftedGains result{.shift = shift};
  double first = 0.0;
  const auto observe = [&](std::size_t norm, MatrixView<const double> rows) {
    if (norm == decoder.norms().front()) first = root_mean_square(rows);
    if (norm == decoder.norms().back()) result.growth = root_mean_square(rows) / first;
  };
  const std::vector<double> hidden = decoder.run(tokens, observe, progress);
  result.loss = loss_of(decoder, tokens, hidden, progress);
  return result;
}

/// These tokens in another order, but for the first, which may mark the beginning of a text.
std::vector<std::size_t> shuffled(std::span<const std::size_t> tokens) {
  std::vector<std::size_t> result(tokens.begin(), tokens.end());
  Random random(1);
  for (std::size_t i = result.size() - 1; i > 1; --i) std::swap(result[i], result[1 + random.below(i)]);
  return result;
}

/// Fills `shift` or `undecided`.
void decide(GainConsistency& result) {
  const auto number = static_cast<double>(result.tokens);
  const auto by_loss = [](const ShiftedGains& a, const ShiftedGains& b) { return a.loss < b.loss; };
  const auto best = std::min_element(result.gains.begin(), result.gains.end(), by_loss);
  const auto leads = [&](double other) { return number * (other - best->loss) >= telling_nats; };
  const bool beats_others = std::all_of(result.gains.begin(), result.gains.end(), [&](const auto& other) {
    return other.shift == best->shift || leads(other.loss);
  });
  if (!leads(result.uniform)) {
    result.undecided = "the text is hardly likelier than any other with its gains as described or off by 1";
  } else if (!beats_others) {
    result.undecided = "the text is about as likely with gains that are off by 1";
  } else if (!leads(result.shuffled)) {
    result.undecided = "the text is about as likely with its tokens in another order";
  } else {
    result.shift = static_cast<int>(best->shift);
  }
}

GainConsistency left_undecided(std::string why) {
  GainConsistency result;
  result.undecided = std::move(why);
  return result;
}

GainConsistency on_text(const files::Checkpoint& checkpoint, const models::Model& model,
                        const forward::Decoder& described, std::span<const std::size_t> tokens,
                        unsigned threads, const Progress& progress, double budget) {
  GainConsistency result;
  result.norms = shifted_norms(model);
  if (result.norms.empty()) return left_undecided("no norm has a gain");
  tokens = tokens.first(std::min(tokens.size(), described.positions()));
  if (tokens.size() < 3) return left_undecided("the text has fewer than 3 tokens");
  result.tokens = tokens.size() - 1;
  result.uniform = std::log(static_cast<double>(described.outputs()));
  result.work = passes * static_cast<double>(tokens.size()) * static_cast<double>(model.parameters);
  if (result.work > budget) {
    result.undecided = fmt::format(
        "it was not run, which takes {:.2g} multiplications, over the budget of {:.2g}", result.work, budget);
    return result;
  }
  const auto run = [&](double shift, std::span<const std::size_t> text) {
    if (shift == 0.0) return run_shifted(described, shift, text, progress);
    models::Model shifted = model;
    for (const std::size_t n : result.norms) shifted.norms[n].gain_offset += shift;
    return run_shifted(forward::Decoder(checkpoint, shifted, threads), shift, text, progress);
  };
  for (const double shift : {0.0, -1.0, 1.0}) {
    result.gains.push_back(run(shift, tokens));
    if (!std::isfinite(result.gains.back().loss)) result.gains.back().loss = HUGE_VAL;
  }
  const double best =
      std::min_element(result.gains.begin(), result.gains.end(), [](const auto& a, const auto& b) {
        return a.loss < b.loss;
      })->shift;
  result.shuffled = run(best, shuffled(tokens)).loss;
  decide(result);
  return result;
}

}  // namespace

std::string_view consistency_text() {
  return "The man went down to the river with his son, and when the sun had set they sat by the fire and "
         "spoke of the house that they would build.";
}

GainConsistency gain_consistency(const files::Checkpoint& checkpoint, const models::Model& model,
                                 std::span<const std::size_t> tokens, unsigned threads,
                                 const Progress& progress, double budget) {
  return on_text(checkpoint, model, forward::Decoder(checkpoint, model, threads), tokens, threads, progress,
                 budget);
}

GainConsistency gain_consistency(const files::Checkpoint& checkpoint, const models::Model& model,
                                 unsigned threads, const Progress& progress, double budget) {
  try {
    const forward::Decoder decoder(checkpoint, model, threads);
    const std::size_t vocabulary = decoder.vocabulary();
    const std::optional<std::filesystem::path> names =
        models::find_token_names(checkpoint.files().front().parent_path(), vocabulary);
    if (!names) return left_undecided("there is no tokenizer beside the file");
    const std::vector<std::size_t> tokens = forward::Tokenizer(*names, vocabulary).encode(consistency_text());
    return on_text(checkpoint, model, decoder, tokens, threads, progress, budget);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled) throw;
    return left_undecided(error.what());
  }
}

}  // namespace normscope::analysis
