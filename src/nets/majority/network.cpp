#include <algorithm>
#include <cmath>
#include <cstring>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "pairs.hpp"

namespace normscope::nets::majority {
namespace {

template <class Size>
double dot(const double* a, const double* b) {
  constexpr std::size_t width = Size::width;
  double sum = 0.0;
  for (std::size_t f = 0; f < width; ++f) sum += a[f] * b[f];
  return sum;
}

/// y = W x for a matrix of `width` rows.
template <class Size>
void apply(const double* matrix, const double* x, double* y) {
  constexpr std::size_t width = Size::width;
  for (std::size_t f = 0; f < width; ++f) y[f] = dot<Size>(matrix + f * width, x);
}

/// dx += Wᵀ dy, dW += dy xᵀ.
template <class Size>
void apply_back(const double* matrix, const double* x, const double* dy, double* dx, double* dmatrix) {
  constexpr std::size_t width = Size::width;
  for (std::size_t f = 0; f < width; ++f) {
    for (std::size_t m = 0; m < width; ++m) {
      dx[m] += matrix[f * width + m] * dy[f];
      dmatrix[f * width + m] += dy[f] * x[m];
    }
  }
}

template <class Size>
void project(double* x) {
  constexpr std::size_t width = Size::width;
  double mean = 0.0;
  for (std::size_t f = 0; f < width; ++f) mean += x[f] / static_cast<double>(width);
  for (std::size_t f = 0; f < width; ++f) x[f] -= mean;
}

/// The numerator of a norm's output, and the vector whose length is the denominator.
template <class Size>
struct Fraction {
  Row<Size> numerator;
  Row<Size> measured;
};

template <class Size>
Fraction<Size> fraction(const InputNorm& norm, const double* x) {
  constexpr std::size_t width = Size::width;
  Fraction<Size> result;
  std::copy_n(x, width, result.numerator);
  if (norm.projects) project<Size>(result.numerator);
  std::copy_n(result.numerator, width, result.measured);
  if (norm.by_deviation) project<Size>(result.measured);
  return result;
}

template <class Size>
void normalize(const InputNorm& norm, const double* x, double* y) {
  constexpr std::size_t width = Size::width;
  const Fraction<Size> of = fraction<Size>(norm, x);
  const double factor =
      norm.squared_length == 0.0 ? 1.0 : std::sqrt(norm.squared_length / dot<Size>(of.measured, of.measured));
  for (std::size_t f = 0; f < width; ++f) y[f] = factor * of.numerator[f];
}

/// dx += Jᵀ dy.
template <class Size>
void normalize_back(const InputNorm& norm, const double* x, const double* dy, double* dx) {
  constexpr std::size_t width = Size::width;
  double back[width];
  std::copy_n(dy, width, back);
  if (norm.squared_length != 0.0) {
    const Fraction<Size> of = fraction<Size>(norm, x);
    const double square = dot<Size>(of.measured, of.measured);
    const double along = dot<Size>(of.numerator, dy) / square;
    const double factor = std::sqrt(norm.squared_length / square);
    for (std::size_t f = 0; f < width; ++f) back[f] = factor * (dy[f] - of.measured[f] * along);
  }
  if (norm.projects) project<Size>(back);
  for (std::size_t f = 0; f < width; ++f) dx[f] += back[f];
}

/// The attention-relevant state of every class.
template <class Size>
struct Classes {
  ClassRows<Size> input;
  ClassRows<Size> query;
  ClassRows<Size> key;
  ClassRows<Size> value;
};

template <class Size>
Classes<Size> project_classes(const InputNorm& norm, const double* at) {
  constexpr std::size_t width = Size::width;
  constexpr std::size_t classes = Size::classes;
  using At = Layout<Size>;
  Classes<Size> result;
  for (std::size_t i = 0; i < classes; ++i) {
    normalize<Size>(norm, at + At::embedding + i * width, result.input[i]);
    apply<Size>(at + At::query, result.input[i], result.query[i]);
    apply<Size>(at + At::key, result.input[i], result.key[i]);
    apply<Size>(at + At::value, result.input[i], result.value[i]);
  }
  return result;
}

template <class Size>
const double score_scale = 1.0 / std::sqrt(static_cast<double>(Size::width));

template <class Array>
void read(Array& to, const double* from) {
  std::memcpy(&to, from, sizeof(Array));
}

template <class Size>
void fill(const Classes<Size>& known, const double* at, Tables<Size>& tables) {
  constexpr std::size_t width = Size::width;
  constexpr std::size_t classes = Size::classes;
  using At = Layout<Size>;
  for (std::size_t i = 0; i < classes; ++i) {
    double* weight = tables.weight[i];
    for (std::size_t j = 0; j < classes; ++j)
      weight[j] = score_scale<Size> * dot<Size>(known.query[i], known.key[j]);
    const double largest = *std::max_element(weight, weight + classes);
    for (std::size_t j = 0; j < classes; ++j) weight[j] = std::exp(weight[j] - largest);
    apply<Size>(at + At::out, known.value[i], tables.value[i]);
    for (std::size_t f = 0; f < width; ++f) {
      tables.residual[i][f] = at[At::embedding + i * width + f] + at[At::out_bias + f];
    }
  }
  read(tables.embedding, at + At::embedding);
  read(tables.gain, at + At::gain);
  read(tables.shift, at + At::shift);
  read(tables.first, at + At::first);
  read(tables.first_bias, at + At::first_bias);
  read(tables.second, at + At::second);
  read(tables.second_bias, at + At::second_bias);
}

template <class Array>
void write(const Array& from, double* to) {
  std::memcpy(to, &from, sizeof(Array));
}

/// The gradient with respect to the parameters, from that with respect to the tables.
template <class Size>
void pass_back(const InputNorm& norm, const Classes<Size>& known, const Tables<Size>& tables,
               const Tables<Size>& by, const double* at, double* gradient) {
  constexpr std::size_t width = Size::width;
  constexpr std::size_t classes = Size::classes;
  using At = Layout<Size>;
  std::fill_n(gradient, At::count, 0.0);
  write(by.embedding, gradient + At::embedding);
  write(by.gain, gradient + At::gain);
  write(by.shift, gradient + At::shift);
  write(by.first, gradient + At::first);
  write(by.first_bias, gradient + At::first_bias);
  write(by.second, gradient + At::second);
  write(by.second_bias, gradient + At::second_bias);
  Classes<Size> back{};
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t f = 0; f < width; ++f) {
      gradient[At::embedding + i * width + f] += by.residual[i][f];
      gradient[At::out_bias + f] += by.residual[i][f];
    }
    apply_back<Size>(at + At::out, known.value[i], by.value[i], back.value[i], gradient + At::out);
    for (std::size_t j = 0; j < classes; ++j) {
      const double by_score = score_scale<Size> * tables.weight[i][j] * by.weight[i][j];
      for (std::size_t f = 0; f < width; ++f) {
        back.query[i][f] += by_score * known.key[j][f];
        back.key[j][f] += by_score * known.query[i][f];
      }
    }
  }
  for (std::size_t i = 0; i < classes; ++i) {
    const double* input = known.input[i];
    double* by_input = back.input[i];
    apply_back<Size>(at + At::query, input, back.query[i], by_input, gradient + At::query);
    apply_back<Size>(at + At::key, input, back.key[i], by_input, gradient + At::key);
    apply_back<Size>(at + At::value, input, back.value[i], by_input, gradient + At::value);
    const std::size_t own = At::embedding + i * width;
    normalize_back<Size>(norm, at + own, by_input, gradient + own);
  }
}

}  // namespace

template <class Size>
std::vector<double> initial_parameters(std::uint64_t seed) {
  constexpr std::size_t width = Size::width;
  constexpr std::size_t classes = Size::classes;
  using At = Layout<Size>;
  Random random(seed);
  std::vector<double> result(At::count, 0.0);
  const auto uniform = [&](std::size_t from, std::size_t count, double bound) {
    for (std::size_t i = from; i < from + count; ++i) result[i] = bound * (2.0 * random.uniform() - 1.0);
  };
  for (std::size_t i = 0; i < classes * width; ++i) result[At::embedding + i] = random.normal();
  // In PyTorch the three maps are one matrix, whose size determines Xavier's bound.
  uniform(At::query, 3 * width * width, std::sqrt(6.0 / static_cast<double>(4 * width)));
  const double bound = 1.0 / std::sqrt(static_cast<double>(width));
  uniform(At::out, width * width, bound);
  uniform(At::first, At::gain - At::first, bound);
  std::fill_n(result.begin() + At::gain, width, 1.0);
  return result;
}

template <class Size>
AttentionTables<Size> attention_tables(const InputNorm& norm, std::span<const double> parameters) {
  constexpr std::size_t classes = Size::classes;
  using At = Layout<Size>;
  NORMSCOPE_ASSERT(parameters.size() == At::count);
  const Classes<Size> known = project_classes<Size>(norm, parameters.data());
  AttentionTables<Size> result{};
  std::memcpy(result.key, known.input, sizeof result.key);
  Square<Size> ignored{};
  for (std::size_t i = 0; i < classes; ++i) {
    apply_back<Size>(parameters.data() + At::key, known.input[i], known.query[i], result.query[i],
                     &ignored[0][0]);
    for (double& entry : result.query[i]) entry *= score_scale<Size>;
    for (std::size_t j = 0; j < classes; ++j) {
      result.score[i][j] = score_scale<Size> * dot<Size>(known.query[i], known.key[j]);
    }
  }
  return result;
}

template <class Size>
std::array<double, Size::classes> class_attention(const AttentionTables<Size>& tables, const Counts& counts) {
  constexpr std::size_t classes = Size::classes;
  std::array<double, classes> result{};
  double tokens = 0.0;
  for (std::size_t i = 0; i < classes; ++i) {
    if (counts[i] == 0) continue;
    tokens += counts[i];
    const double* score = tables.score[i];
    const double largest = *std::max_element(score, score + classes);
    std::array<double, classes> weight{};
    double sum = 0.0;
    for (std::size_t j = 0; j < classes; ++j) {
      weight[j] = counts[j] * std::exp(score[j] - largest);
      sum += weight[j];
    }
    for (std::size_t j = 0; j < classes; ++j) result[j] += counts[i] * weight[j] / sum;
  }
  for (double& part : result) part /= tokens;
  return result;
}

template <class Real, class Size>
Network<Real, Size>::Network(const InputNorm& norm)
    : norm_(norm), pairs_(std::make_unique<Pairs<Real, Size>>()) {}
template <class Real, class Size>
Network<Real, Size>::Network(Network&&) noexcept = default;
template <class Real, class Size>
Network<Real, Size>& Network<Real, Size>::operator=(Network&&) noexcept = default;
template <class Real, class Size>
Network<Real, Size>::~Network() = default;

template <class Real, class Size>
Outcome Network<Real, Size>::evaluate(std::span<const double> parameters, const Examples& examples,
                                      std::span<const std::uint32_t> rows, std::span<double> gradient) {
  NORMSCOPE_ASSERT(parameters.size() == Layout<Size>::count);
  NORMSCOPE_ASSERT(gradient.empty() || gradient.size() == Layout<Size>::count);
  const double* at = parameters.data();
  const Classes<Size> known = project_classes<Size>(norm_, at);
  Tables<Size> tables;
  fill(known, at, tables);
  if (gradient.empty()) return pairs_->evaluate(tables, examples, rows, nullptr);
  Tables<Size> by;
  const Outcome outcome = pairs_->evaluate(tables, examples, rows, &by);
  pass_back(norm_, known, tables, by, at, gradient.data());
  return outcome;
}

template class Network<float, Eight>;
template class Network<double, Eight>;
template class Network<float, Three>;
template class Network<double, Three>;
template std::vector<double> initial_parameters<Eight>(std::uint64_t);
template std::vector<double> initial_parameters<Three>(std::uint64_t);
template std::array<double, Eight::classes> class_attention<Eight>(const AttentionTables<Eight>&,
                                                                   const Counts&);
template std::array<double, Three::classes> class_attention<Three>(const AttentionTables<Three>&,
                                                                   const Counts&);
template AttentionTables<Eight> attention_tables<Eight>(const InputNorm&, std::span<const double>);
template AttentionTables<Three> attention_tables<Three>(const InputNorm&, std::span<const double>);

}  // namespace normscope::nets::majority
