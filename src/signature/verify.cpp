#include <normscope/signature/verify.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/selectability/logits.hpp>

#include "subspace.hpp"

namespace normscope::signature {
namespace {

/// `w` as multiples of one power of two whose sum is exactly zero.
std::vector<double> balanced(std::span<const double> w) {
  std::vector<double> result(w.size(), 0.0);
  double largest = 0.0;
  for (const double value : w) largest = std::max(largest, std::abs(value));
  if (!(largest > 0.0) || !std::isfinite(largest)) return result;
  // Integers whose sum stays below 2^52.
  const int digits = 50 - (std::ilogb(static_cast<double>(w.size())) + 1);
  const int exponent = digits - 1 - std::ilogb(largest);
  std::int64_t sum = 0;
  std::vector<std::int64_t> whole;
  for (const double value : w) {
    whole.push_back(std::llrint(std::scalbn(value, exponent)));
    sum += whole.back();
  }
  // Each entry was rounded by at most one half, so changing entries by one corrects the sum, unless the sum
  // of w itself is not zero.
  for (std::size_t i = 0; sum != 0; i = (i + 1) % whole.size()) {
    const std::int64_t rest = static_cast<std::int64_t>(whole.size());
    const std::int64_t step = std::abs(sum) > rest ? sum / rest : (sum > 0 ? 1 : -1);
    whole[i] -= step;
    sum -= step;
  }
  for (std::size_t i = 0; i < w.size(); ++i)
    result[i] = std::scalbn(static_cast<double>(whole[i]), -exponent);
  return result;
}

/// The logits that a proof is about: those of `tokens`, or of all tokens in order if it is empty, each within
/// its slack.
struct GivenRow {
  std::span<const std::size_t> tokens{};
  std::span<const double> logits{};
  std::span<const double> slack{};
};

/// (w·(ℓ − a₀) − |Aᵀw| − Σ |w_i| slack_i) / Σ |w_i| slack_i, rounded down. If it is positive, no point of the
/// unit ball has these logits. −1 if w is zero.
///
/// Requires  w is balanced
///
/// Accuracy  proved (test: Verify.OtherModelsAreRefutedWithCertificatesThatHoldInLongDouble)
double margin(const selectability::Logits& logits, const GivenRow& given, std::span<const double> w) {
  const std::size_t count = w.size();
  CompensatedSum lead;
  double terms = 0.0;
  double slack = 0.0;
  double lengths = 0.0;
  std::vector<double> gradient(logits.width, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (w[i] == 0.0) continue;
    const std::size_t token = given.tokens.empty() ? i : given.tokens[i];
    const std::span<const double> row = logits.view().row(token);
    const double offset = logits.offsets[token];
    lead.add(w[i] * given.logits[i]);
    lead.add(-w[i] * offset);
    terms += std::abs(w[i]) * (std::abs(given.logits[i]) + std::abs(offset));
    slack += std::abs(w[i]) * given.slack[i];
    lengths += std::abs(w[i]) * euclidean_norm(row);
    for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] += w[i] * row[j];
  }
  if (!(slack > 0.0)) return -1.0;
  const double rounds = rounding(static_cast<std::ptrdiff_t>(count));
  const double reach = euclidean_norm(gradient) * (1.0 + 16.0 * unit_roundoff) + rounds * lengths;
  const double bound = slack * (1.0 + rounds);
  const double gap = lead.value() - rounds * terms - reach - bound;
  return (gap - 8.0 * unit_roundoff * (std::abs(lead.value()) + reach + bound)) / bound *
         (gap > 0.0 ? 1.0 - 0x1p-50 : 1.0);
}

/// Largest distance, in units of the expected noise, at which a row counts as consistent.
constexpr double usual = 8.0;
/// Distance in these units from which a row is not of an ellipse that was estimated from outputs.
constexpr double beyond_doubt = 32.0;
/// Amount by which |u| must be below 1 to exclude eps, if it is unknown, as the reason.
constexpr double never_by_eps = 0.01;
/// Mean square of the norm's input, in units of eps, from which an input counts as ordinary.
constexpr double ordinary_input = 100.0;
constexpr std::size_t rows_at_a_time = 64;
/// Contribution of our own arithmetic to a unit of noise: sums over tokens and width in float64.
constexpr double own_unit = 16.0 * unit_roundoff;

double squared(double value) { return value * value; }

/// Standard deviations of each logit and of the quantities measured for a row.
struct Noise {
  double off = 0.0;
  double length = 0.0;
};

Noise noise_of(const Basis& basis, const Fit& fit, const OutputRow& row, double unit) {
  const std::vector<double> measure = measure_of_length(basis, fit);
  double all = 0.0;
  double along = 0.0;
  for (std::size_t i = 0; i < basis.count; ++i) {
    // The number given and the model's arithmetic both vary.
    const double variance = squared(row.noise[i]) + squared(unit * basis.lengths[i]) / 3.0;
    all += variance;
    along += squared(measure[i]) * variance;
  }
  const double count = static_cast<double>(basis.count);
  const double left = std::max(0.0, count - 1.0 - static_cast<double>(basis.rank));
  return {std::sqrt(all * left / count), std::sqrt(along)};
}

/// The distances of a row in units of noise; the verdict is decided later.
RowResult measured(const Fit& fit, const Noise& noise, double eps) {
  RowResult result;
  result.values = fit.off.size();
  result.off = fit.off_size;
  result.off_units = noise.off > 0.0 ? fit.off_size / noise.off : 0.0;
  result.length = fit.length;
  result.length_units = noise.length > 0.0 ? (fit.length - 1.0) / noise.length : 0.0;
  const double short_of_one = 1.0 - squared(fit.length);
  result.mean_square = short_of_one > 0.0 ? eps * squared(fit.length) / short_of_one : infinity;
  return result;
}

void forget_certificate(RowResult& row) {
  for (std::vector<double>* numbers : {&row.weights, &row.logits, &row.slack})
    std::vector<double>().swap(*numbers);
  std::vector<std::size_t>().swap(row.tokens);
}

/// Reads rows, and passes on those that follow each other with the same tokens.
template <typename Judge>
std::vector<RowResult> judged(const BasisMaker& maker, const Outputs& outputs, const VerifyOptions& options,
                              const Judge& judge) {
  std::vector<RowResult> results(outputs.rows());
  std::size_t certificates = 0;
  std::vector<std::size_t> tokens;
  std::optional<Basis> basis;
  std::optional<Basis> whole;
  for (std::size_t first = 0; first < outputs.rows(); first += rows_at_a_time) {
    options.progress("rows", first, outputs.rows());
    const std::size_t count = std::min(rows_at_a_time, outputs.rows() - first);
    std::vector<OutputRow> rows(count);
    parallel_for(count, 4, options.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) rows[k] = outputs.row(first + k);
    });
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin + 1;
      while (end < count && rows[end].tokens == rows[begin].tokens) ++end;
      if (rows[begin].tokens.empty()) {
        if (!whole) whole = maker.of({});
      } else if (!basis || rows[begin].tokens != tokens) {
        tokens = rows[begin].tokens;
        basis = maker.of(tokens);
      }
      const Basis& used = rows[begin].tokens.empty() ? *whole : *basis;
      std::vector<const std::vector<double>*> logits;
      for (std::size_t k = begin; k < end; ++k) logits.push_back(&rows[k].logits);
      const std::vector<Fit> fits = fit(used, logits, options.threads);
      parallel_for(fits.size(), 2, options.threads, [&](std::size_t from, std::size_t to) {
        for (std::size_t k = from; k < to; ++k) {
          results[first + begin + k] = judge(used, fits[k], rows[begin + k]);
        }
      });
      begin = end;
    }
    for (std::size_t row = first; row < first + count; ++row) {
      if (results[row].proved && ++certificates > kept_certificates) forget_certificate(results[row]);
    }
  }
  options.progress("rows", outputs.rows(), outputs.rows());
  return results;
}

/// Verifies rows against a model, with proofs.
class HeadJudge {
 public:
  HeadJudge(const Head& head, const Precision& precision, const VerifyOptions& options)
      : head_(head), options_(options), unit_(precision.unit + own_unit) {
    const double sums = std::max(0x1p-53, std::min(precision.unit, 0x1p-24));
    of_size_ = 4.0 * precision.unit + (static_cast<double>(head.logits.width) + 16.0) * sums;
  }

  RowResult operator()(const Basis& basis, const Fit& fit, const OutputRow& row) const {
    const Noise noise = noise_of(basis, fit, row, unit_);
    RowResult result = measured(fit, noise, head_.eps);
    if (result.off_units > usual || result.length_units > usual) {
      prove(basis, fit, row, result);
      if (!result.proved) result.reason = Reason::beyond_noise;
      return result;
    }
    if (basis.rank < head_.logits.dimension()) {
      result.reason = basis.count <= head_.logits.dimension() && basis.count < head_.logits.tokens
                          ? Reason::few_values
                          : Reason::filled;
      return result;
    }
    judge_length(fit.length + usual * noise.length, result);
    return result;
  }

 private:
  /// Whether |u| <= `most` is too short.
  void judge_length(double most, RowResult& result) const {
    const bool stated = options_.least_mean_square > 0.0;
    const double input = stated ? options_.least_mean_square : ordinary_input * head_.eps;
    const double least = head_.eps == 0.0 ? 1.0 : std::sqrt(input / (input + head_.eps));
    if (most >= least) {
      result.verdict = Verdict::consistent;
      result.reason = Reason::on_surface;
      return;
    }
    result.reason = Reason::inside;
    if (stated || head_.eps == 0.0) result.verdict = Verdict::not_this_model;
  }

  void prove(const Basis& basis, const Fit& fit, const OutputRow& row, RowResult& result) const {
    std::vector<double> slack = row.slack;
    for (std::size_t i = 0; i < slack.size(); ++i) {
      const std::size_t token = row.tokens.empty() ? i : row.tokens[i];
      slack[i] += of_size_ * head_.sizes[token] + head_.logits.own[token].rounding;
      slack[i] *= 1.0 + 0x1p-48;
    }
    const GivenRow given{row.tokens, row.logits, slack};
    const std::array<std::vector<double>, 3> candidates{balanced(fit.off),
                                                        balanced(step_from_ellipsoid(basis, fit)),
                                                        balanced(measure_of_length(basis, fit))};
    std::size_t best = 0;
    std::array<double, 3> margins{};
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      margins[k] = margin(head_.logits, given, candidates[k]);
      if (margins[k] > margins[best]) best = k;
    }
    result.margin = margins[best];
    if (!(result.margin > 0.0)) return;
    result.proved = true;
    result.verdict = Verdict::not_this_model;
    result.reason = margins[0] > 0.0 ? Reason::off_subspace : Reason::outside;
    result.weights = candidates[best];
    result.tokens = row.tokens;
    result.logits = row.logits;
    result.slack = std::move(slack);
  }

  const Head& head_;
  const VerifyOptions& options_;
  double unit_;
  double of_size_;
};

/// Verifies rows against an ellipse that was estimated from outputs.
class EllipseJudge {
 public:
  EllipseJudge(const Ellipse& ellipse, double unit) : ellipse_(ellipse), unit_(unit) {}

  RowResult operator()(const Basis& basis, const Fit& fit, const OutputRow& row) const {
    Noise noise = noise_of(basis, fit, row, unit_);
    const double left = static_cast<double>(basis.count) - 1.0 - static_cast<double>(basis.rank);
    noise.off = std::hypot(noise.off, ellipse_.off * std::sqrt(std::max(0.0, left)));
    noise.length = std::hypot(noise.length, std::hypot(ellipse_.surface, error_of_length(basis, fit)));
    RowResult result = measured(fit, noise, 0.0);
    const bool is_off = result.off_units > usual;
    const bool is_outside = result.length_units > usual;
    const bool is_full = basis.rank == ellipse_.rank && !ellipse_.filled;
    if (result.off_units > beyond_doubt || result.length_units > beyond_doubt) {
      result.verdict = Verdict::not_this_model;
      result.reason = result.off_units > beyond_doubt ? Reason::off_subspace : Reason::outside;
    } else if (is_off || is_outside) {
      result.reason = Reason::beyond_noise;
    } else if (!is_full) {
      result.reason = basis.rank < ellipse_.rank ? Reason::few_values : Reason::filled;
    } else if (result.length_units < -usual) {
      result.reason = Reason::inside;
      if (result.length_units < -beyond_doubt && fit.length < 1.0 - never_by_eps) {
        result.verdict = Verdict::not_this_model;
      }
    } else {
      result.verdict = Verdict::consistent;
      result.reason = Reason::on_surface;
    }
    return result;
  }

 private:
  /// The uncertainty of |u| due to the axes' stated errors.
  double error_of_length(const Basis& basis, const Fit& fit) const {
    double sum = 0.0;
    double worst = 0.0;
    for (const double error : ellipse_.errors) worst = std::max(worst, error);
    for (std::size_t k = 0; k < basis.rank; ++k) {
      const double u = fit.inside[k] / basis.values[k];
      // A basis of fewer tokens mixes the axes.
      const double error = basis.count == ellipse_.tokens ? ellipse_.errors[k] : worst;
      sum += squared(u * u * error);
    }
    return std::sqrt(sum);
  }

  const Ellipse& ellipse_;
  double unit_;
};

void expect_tokens(const Outputs& outputs, std::size_t tokens) {
  if (outputs.vocabulary() == tokens) return;
  throw Error(ErrorCode::Shape,
              fmt::format("{}: has rows of {} numbers, expected one for each of {} tokens, or ids of them",
                          outputs.name(), outputs.vocabulary(), tokens));
}

Verification summed_up(std::vector<RowResult> rows) {
  Verification result;
  result.rows = std::move(rows);
  const bool refuted = result.with(Verdict::not_this_model) > 0;
  const bool all = result.with(Verdict::consistent) == result.rows.size();
  result.verdict = refuted ? Verdict::not_this_model : all ? Verdict::consistent : Verdict::undecided;
  std::array<std::size_t, 8> counts{};
  for (const RowResult& row : result.rows) {
    if (row.verdict == result.verdict) ++counts[static_cast<std::size_t>(row.reason)];
    result.proved = result.proved || row.proved;
  }
  result.reason = static_cast<Reason>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  return result;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  constexpr std::array<std::string_view, 3> names{"consistent", "not this model", "cannot tell"};
  return names[static_cast<std::size_t>(verdict)];
}

std::string_view to_string(Reason reason) {
  constexpr std::array<std::string_view, 8> names{"on_surface",   "off_subspace", "outside", "inside",
                                                  "beyond_noise", "few_values",   "filled",  "capped"};
  return names[static_cast<std::size_t>(reason)];
}

std::size_t Verification::with(Verdict asked) const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const RowResult& row) { return row.verdict == asked; }));
}

Verification verify(const Head& head, const Outputs& outputs, const VerifyOptions& options) {
  expect_tokens(outputs, head.logits.tokens);
  if (outputs.soft_cap() > 0.0 && outputs.are_log_probabilities()) {
    RowResult capped;
    capped.reason = Reason::capped;
    capped.values = outputs.width();
    return summed_up(std::vector<RowResult>(outputs.rows(), capped));
  }
  const BasisMaker maker(head.logits.view(), head.logits.offsets, options.threads);
  return summed_up(judged(maker, outputs, options, HeadJudge(head, outputs.precision(), options)));
}

Verification verify(const Ellipse& ellipse, const Outputs& outputs, const VerifyOptions& options) {
  expect_tokens(outputs, ellipse.tokens);
  std::vector<double> matrix = ellipse.axes;
  for (std::size_t k = 0; k < matrix.size(); ++k) matrix[k] *= ellipse.semi_axes[k % ellipse.rank];
  const BasisMaker maker(MatrixView<const double>(matrix.data(), ellipse.tokens, ellipse.rank),
                         ellipse.centre, options.threads);
  return summed_up(
      judged(maker, outputs, options, EllipseJudge(ellipse, outputs.precision().unit + own_unit)));
}

}  // namespace normscope::signature
