#include <normscope/signature/outputs.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::signature {
namespace {

/// Number of rows from which the type and kind of all rows are inferred.
constexpr std::size_t looked_at = 8;

[[noreturn]] void fail(ErrorCode code, const std::string& name, const std::string& what) {
  throw Error(code, fmt::format("{}: {}", name, what));
}

bool holds(Dtype dtype, double value) {
  std::byte bytes[8];
  const std::span<std::byte> stored(bytes, bits(dtype) / 8);
  double back = 0.0;
  encode(dtype, {&value, 1}, stored);
  decode(dtype, stored, {&back, 1});
  return back == value || std::isnan(value);
}

/// The distance from `value` to where C atanh(·/C) takes value ± error.
double uncapped_error(double value, double error, double cap) {
  const double ahead = (std::abs(value) + error) / cap;
  if (!(ahead < 1.0)) return infinity;
  return cap * (std::atanh(ahead) - std::atanh(std::abs(value) / cap)) * (1.0 + 0x1p-40);
}

}  // namespace

Precision precision_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return {dtype, 0x1p-53, 0x1p-1074};
    case Dtype::F32: return {dtype, 0x1p-24, 0x1p-150};
    case Dtype::F16: return {dtype, 0x1p-11, 0x1p-25};
    case Dtype::BF16: return {dtype, 0x1p-8, 0x1p-134};
    default:
      throw Error(ErrorCode::Unsupported,
                  fmt::format("outputs of type {}, expected F64, F32, F16 or BF16", to_string(dtype)));
  }
}

Outputs::Outputs(files::OpenedArray values, const std::optional<files::OpenedArray>& ids,
                 OutputOptions options)
    : values_(std::move(values)), options_(options) {
  if (!(options_.temperature > 0.0) || !std::isfinite(options_.temperature)) {
    fail(ErrorCode::Argument, name(),
         fmt::format("temperature {}, expected a positive number", options_.temperature));
  }
  if (values_.shape().empty() || values_.elements() == 0) {
    fail(ErrorCode::Shape, name(), "is empty, expected rows of logits");
  }
  width_ = static_cast<std::size_t>(values_.shape().back());
  rows_ = static_cast<std::size_t>(values_.elements() / width_);
  if (width_ < 2) fail(ErrorCode::Shape, name(), "has rows of one number, expected a logit for each token");
  try {
    precision_ = precision_of(values_.dtype());
  } catch (const Error& error) {
    fail(error.code(), name(), error.what());
  }
  bytes_ = values_.bytes(buffer_);
  if (ids) {
    read_ids(*ids);
  } else if (options_.vocabulary != 0 && options_.vocabulary != width_) {
    fail(ErrorCode::Shape, name(),
         fmt::format("has rows of {} numbers, expected one for each of {} tokens, or their ids", width_,
                     options_.vocabulary));
  } else {
    options_.vocabulary = width_;
  }
  find_precision();
  refuse_probabilities();
}

void Outputs::stored(std::size_t row, std::span<double> values) const {
  const std::size_t size = width_ * bits(values_.dtype()) / 8;
  decode(values_.dtype(), bytes_.subspan(row * size, size), values);
}

void Outputs::read_ids(const files::OpenedArray& ids) {
  const bool shared = ids.elements() == width_;
  if (!shared && ids.shape() != values_.shape()) {
    fail(ErrorCode::Shape, ids.name(),
         fmt::format("expected {} ids or as many rows of them as {} has", width_, name()));
  }
  std::vector<std::size_t> sorted(width_);
  for (const double id : ids.values()) {
    if (!(id >= 0.0 && id < 0x1p32 && id == std::floor(id)) ||
        (options_.vocabulary != 0 && !(id < static_cast<double>(options_.vocabulary)))) {
      fail(ErrorCode::Argument, ids.name(),
           fmt::format("has {}, expected ids of tokens{}", id,
                       options_.vocabulary == 0 ? "" : fmt::format(" below {}", options_.vocabulary)));
    }
    ids_.push_back(static_cast<std::size_t>(id));
  }
  for (std::size_t first = 0; first < ids_.size(); first += width_) {
    std::copy_n(ids_.begin() + static_cast<std::ptrdiff_t>(first), width_, sorted.begin());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end()) continue;
    fail(ErrorCode::Argument, ids.name(),
         fmt::format("row {} has token {} twice, expected each once", first / width_, *twice));
  }
}

void Outputs::find_precision() {
  if (options_.precision) {
    precision_ = precision_of(*options_.precision);
    return;
  }
  // Numbers that a smaller type represents were most likely computed in it.
  std::vector<double> values(width_);
  for (const Dtype candidate : {Dtype::BF16, Dtype::F16, Dtype::F32}) {
    if (bits(candidate) >= bits(values_.dtype())) continue;
    bool all = true;
    for (std::size_t i = 0; all && i < std::min(rows_, looked_at); ++i) {
      stored(i, values);
      all = std::all_of(values.begin(), values.end(), [&](double value) { return holds(candidate, value); });
    }
    if (all) {
      precision_ = precision_of(candidate);
      return;
    }
  }
}

void Outputs::refuse_probabilities() const {
  std::vector<double> values(width_);
  for (std::size_t i = 0; i < std::min(rows_, looked_at); ++i) {
    stored(i, values);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double total = sum(values);
    const double error = 1e-3 + 4.0 * precision_.unit * static_cast<double>(width_);
    if (!(*least >= 0.0 && *most <= 1.0 && total <= 1.0 + error) || *most == *least) return;
    if (whole() && total < 1.0 - error) return;
  }
  fail(ErrorCode::Argument, name(), "has probabilities, expected their logarithms, or logits");
}

bool Outputs::are_log_probabilities() const {
  if (!whole()) {
    std::vector<double> values(width_);
    stored(0, values);
    return *std::max_element(values.begin(), values.end()) <= 0.0;
  }
  std::vector<double> values(width_);
  for (std::size_t i = 0; i < std::min(rows_, looked_at); ++i) {
    stored(i, values);
    CompensatedSum total;
    for (const double value : values) total.add(std::exp(value));
    if (!(std::abs(total.value() - 1.0) < 1e-3 + 4.0 * precision_.unit * 32.0)) return false;
  }
  return true;
}

void Outputs::undo(double value, double& logit, double& slack, double& noise) const {
  const double scale = options_.temperature;
  double size = std::max(std::abs(value) * precision_.unit, precision_.smallest);
  value *= scale;
  size *= scale;
  // Four roundings: of the logit, of its conversion to a log-probability, of cap and of temperature.
  slack = 4.0 * size;
  noise = size / std::sqrt(3.0);
  logit = value;
  if (options_.soft_cap > 0.0) {
    const double cap = options_.soft_cap;
    slack = uncapped_error(value, slack, cap);
    if (std::isinf(slack)) return;
    logit = cap * std::atanh(value / cap);
    noise /= (1.0 - value / cap) * (1.0 + value / cap);
    slack += 8.0 * 0x1p-53 * std::abs(logit);
  }
}

OutputRow Outputs::row(std::size_t row) const {
  std::vector<double> values(width_);
  stored(row, values);
  OutputRow result;
  const std::size_t* const ids = whole() ? nullptr : ids_.data() + (ids_.size() == width_ ? 0 : row * width_);
  bool left_out = false;
  std::vector<std::size_t> tokens;
  double least = infinity;
  double most = -infinity;
  for (std::size_t i = 0; i < width_; ++i) {
    const double value = values[i];
    if (std::isnan(value) || value == infinity) {
      fail(ErrorCode::Argument, name(),
           fmt::format("row {} has {} in column {}, expected logits or log-probabilities", row,
                       std::isnan(value) ? "nan" : "inf", i));
    }
    double logit = 0.0;
    double slack = infinity;
    double noise = 0.0;
    if (std::isfinite(value)) {
      least = std::min(least, value);
      most = std::max(most, value);
      undo(value, logit, slack, noise);
    }
    if (std::isinf(slack)) {
      left_out = true;
      continue;
    }
    tokens.push_back(ids == nullptr ? i : ids[i]);
    result.logits.push_back(logit);
    result.slack.push_back(slack);
    result.noise.push_back(noise);
  }
  if (!(most > least)) {
    fail(ErrorCode::Argument, name(),
         fmt::format("row {} is constant, expected logits or log-probabilities", row));
  }
  result.spread = most - least;
  if (left_out || !whole()) result.tokens = std::move(tokens);
  return result;
}

void Outputs::whole_row(std::size_t row, std::span<double> logits) const {
  stored(row, logits);
  const auto [least, most] = std::minmax_element(logits.begin(), logits.end());
  for (std::size_t i = 0; i < width_; ++i) {
    if (std::isfinite(logits[i])) continue;
    fail(ErrorCode::Argument, name(),
         fmt::format("row {} has {} in column {}, expected finite logits or log-probabilities", row,
                     logits[i], i));
  }
  if (*least == *most) {
    fail(ErrorCode::Argument, name(),
         fmt::format("row {} is constant, expected logits or log-probabilities", row));
  }
  for (std::size_t i = 0; i < width_; ++i) {
    double slack = 0.0;
    double noise = 0.0;
    undo(logits[i], logits[i], slack, noise);
    if (std::isinf(slack)) {
      fail(ErrorCode::Argument, name(),
           fmt::format("row {} has a logit at the soft cap {}, which no number is certain to have given", row,
                       options_.soft_cap));
    }
  }
}

}  // namespace normscope::signature
