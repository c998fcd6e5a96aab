#include "tagger.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "layer.hpp"

namespace normscope::lab::counting {
namespace {

constexpr std::size_t letters = 2;

std::size_t first_window(const TaggerShape& shape) { return shape.cell == TaggerCell::lstm ? 1 : 2; }

template <typename Real>
std::vector<Layer<Real>> layers_of(const TaggerShape& shape) {
  std::vector<Layer<Real>> layers;
  for (std::size_t k = 0; k < shape.layers; ++k) {
    layers.emplace_back(shape.cell, k == 0 ? letters : shape.width, k == 0 ? first_window(shape) : 1,
                        shape.width);
  }
  return layers;
}

}  // namespace

TaggerShape tagger(std::string_view name, std::size_t width) {
  struct Named {
    std::string_view name;
    TaggerShape shape;
  };
  const Named all[] = {{"lstm", {TaggerCell::lstm, 1, false, width}},
                       {"qrnn", {TaggerCell::ifo_qrnn, 1, false, width}},
                       {"qrnn_d2", {TaggerCell::ifo_qrnn, 1, true, width}},
                       {"two_qrnns", {TaggerCell::ifo_qrnn, 2, false, width}},
                       {"fo_qrnn", {TaggerCell::fo_qrnn, 1, false, width}},
                       {"fo_qrnn_d2", {TaggerCell::fo_qrnn, 1, true, width}},
                       {"two_fo_qrnns", {TaggerCell::fo_qrnn, 2, false, width}}};
  for (const Named& one : all) {
    if (one.name == name && width > 0) return one.shape;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("tagger \"{}\" of width {}, expected lstm, qrnn, qrnn_d2, two_qrnns, fo_qrnn, "
                          "fo_qrnn_d2 or two_fo_qrnns, of 1 or more",
                          name, width));
}

std::size_t parameters(const TaggerShape& shape) {
  std::size_t sum = (shape.hidden_decoder ? shape.width * (shape.width + 1) : 0) + shape.width + 1;
  for (const Layer<float>& layer : layers_of<float>(shape)) sum += layer.parameters();
  return sum;
}

template <typename Real>
struct TaggerPass<Real>::Work {
  explicit Work(const TaggerShape& s) : shape(s), layers(layers_of<Real>(s)), window(first_window(s)) {}

  /// Input of the first layer, preceded by zeros.
  [[nodiscard]] const Real* first_input() const { return input.data() + (window - 1) * letters * lanes; }
  [[nodiscard]] const Real* input_of(std::size_t layer) const {
    return layer == 0 ? first_input() : layers[layer - 1].hidden();
  }

  TaggerShape shape;
  std::vector<Layer<Real>> layers;
  std::size_t window;
  std::size_t steps = 0;
  std::vector<Real> input{};
  std::vector<Real> decoded{};  ///< σ(M h + m)
  std::vector<Real> logits{};
  std::vector<Real> d_logits{};
  std::vector<Real> d_hidden{};
  std::vector<Real> d_below{};
};

template <typename Real>
TaggerPass<Real>::TaggerPass(const TaggerShape& shape) : work_(std::make_unique<Work>(shape)) {}
template <typename Real>
TaggerPass<Real>::TaggerPass(TaggerPass&&) noexcept = default;
template <typename Real>
TaggerPass<Real>& TaggerPass<Real>::operator=(TaggerPass&&) noexcept = default;
template <typename Real>
TaggerPass<Real>::~TaggerPass() = default;

template <typename Real>
std::span<const Real> TaggerPass<Real>::logits() const {
  return work_->logits;
}

template <typename Real>
Judgement TaggerPass<Real>::forward(std::span<const Real> parameters, std::span<const Word> words,
                                    std::span<const std::vector<std::uint8_t>> labels) {
  NORMSCOPE_ASSERT(words.size() == lanes && labels.size() == lanes && !words[0].empty());
  NORMSCOPE_ASSERT(parameters.size() == counting::parameters(work_->shape));
  Work& work = *work_;
  const std::size_t n = work.shape.width;
  work.steps = words[0].size();
  work.input.assign((work.steps + work.window - 1) * letters * lanes, Real(0));
  for (std::size_t l = 0; l < lanes; ++l) {
    NORMSCOPE_ASSERT(words[l].size() == work.steps && labels[l].size() == work.steps);
    for (std::size_t t = 0; t < work.steps; ++t) {
      work.input[((t + work.window - 1) * letters + words[l][t]) * lanes + l] = Real(1);
    }
  }
  const Real* p = parameters.data();
  for (std::size_t k = 0; k < work.layers.size(); ++k) {
    work.layers[k].forward(work.steps, p, work.input_of(k));
    p += work.layers[k].parameters();
  }
  const Real* seen = work.layers.back().hidden();
  if (work.shape.hidden_decoder) {
    work.decoded.resize(work.steps * n * lanes);
    for (std::size_t t = 0; t < work.steps; ++t) {
      Real* const out = work.decoded.data() + t * n * lanes;
      for (std::size_t k = 0; k < n; ++k) std::fill_n(out + k * lanes, lanes, p[n * n + k]);
      multiply(n, n, p, seen + t * n * lanes, out);
      for (std::size_t at = 0; at < n * lanes; ++at) out[at] = logistic(out[at]);
    }
    p += n * (n + 1);
    seen = work.decoded.data();
  }
  work.logits.assign(work.steps * lanes, p[n]);
  work.d_logits.resize(work.steps * lanes);
  Judgement judged;
  const double share = 1.0 / static_cast<double>(work.steps * lanes);
  for (std::size_t t = 0; t < work.steps; ++t) {
    Real* const logit = work.logits.data() + t * lanes;
    multiply(1, n, p, seen + t * n * lanes, logit);
    for (std::size_t l = 0; l < lanes; ++l) {
      const bool yes = labels[l][t] != 0;
      const auto value = static_cast<double>(yes ? logit[l] : -logit[l]);
      judged.loss += share * (std::log1p(std::exp(-std::abs(value))) + std::max(0.0, -value));
      judged.right += (logit[l] > Real(0)) == yes ? 1 : 0;
      work.d_logits[t * lanes + l] = static_cast<Real>(share) * (logistic(logit[l]) - Real(yes ? 1 : 0));
    }
  }
  return judged;
}

template <typename Real>
void TaggerPass<Real>::backward(std::span<const Real> parameters, std::span<Real> gradient) {
  NORMSCOPE_ASSERT(gradient.size() == parameters.size());
  Work& work = *work_;
  const std::size_t n = work.shape.width;
  const std::size_t steps = work.steps;
  std::fill(gradient.begin(), gradient.end(), Real(0));
  const Real* p = parameters.data() + parameters.size() - (n + 1);
  Real* g = gradient.data() + gradient.size() - (n + 1);
  const Real* const hidden = work.layers.back().hidden();
  const Real* const seen = work.shape.hidden_decoder ? work.decoded.data() : hidden;
  outer<Real>(steps, 1, {work.d_logits.data(), 1}, n, {seen, n}, g);
  sum_up<Real>(steps, 1, {work.d_logits.data(), 1}, g + n);
  work.d_hidden.assign(steps * n * lanes, Real(0));
  for (std::size_t t = 0; t < steps; ++t) {
    multiply(n, 1, p, work.d_logits.data() + t * lanes, work.d_hidden.data() + t * n * lanes);
  }
  if (work.shape.hidden_decoder) {
    p -= n * (n + 1);
    g -= n * (n + 1);
    for (std::size_t at = 0; at < work.d_hidden.size(); ++at) {
      work.d_hidden[at] *= work.decoded[at] * (Real(1) - work.decoded[at]);
    }
    outer<Real>(steps, n, {work.d_hidden.data(), n}, n, {hidden, n}, g);
    sum_up<Real>(steps, n, {work.d_hidden.data(), n}, g + n * n);
    std::vector<Real> across(n * n);
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) across[j * n + k] = p[k * n + j];
    }
    work.d_below.assign(work.d_hidden.size(), Real(0));
    for (std::size_t t = 0; t < steps; ++t) {
      multiply(n, n, across.data(), work.d_hidden.data() + t * n * lanes,
               work.d_below.data() + t * n * lanes);
    }
    std::swap(work.d_hidden, work.d_below);
  }
  for (std::size_t k = work.layers.size(); k-- > 0;) {
    Layer<Real>& layer = work.layers[k];
    p -= layer.parameters();
    g -= layer.parameters();
    if (k > 0) work.d_below.assign(work.d_hidden.size(), Real(0));
    layer.backward(steps, p, work.input_of(k), work.d_hidden.data(), k > 0 ? work.d_below.data() : nullptr,
                   g);
    std::swap(work.d_hidden, work.d_below);
  }
}

template class TaggerPass<float>;
template class TaggerPass<double>;

}  // namespace normscope::lab::counting
