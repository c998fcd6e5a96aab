#include "network.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <normscope/core/assert.hpp>
#include <normscope/core/random.hpp>

namespace normscope::lab::majority {
namespace {

double dot(const double* a, const double* b) {
  double sum = 0.0;
  for (std::size_t f = 0; f < width; ++f) sum += a[f] * b[f];
  return sum;
}

/// y = W x for a matrix of `width` rows.
void apply(const double* matrix, const double* x, double* y) {
  for (std::size_t f = 0; f < width; ++f) y[f] = dot(matrix + f * width, x);
}

/// dx += Wᵀ dy, dW += dy xᵀ.
void apply_back(const double* matrix, const double* x, const double* dy, double* dx, double* dmatrix) {
  for (std::size_t f = 0; f < width; ++f) {
    for (std::size_t m = 0; m < width; ++m) {
      dx[m] += matrix[f * width + m] * dy[f];
      dmatrix[f * width + m] += dy[f] * x[m];
    }
  }
}

void project(double* x) {
  double mean = 0.0;
  for (std::size_t f = 0; f < width; ++f) mean += x[f] / static_cast<double>(width);
  for (std::size_t f = 0; f < width; ++f) x[f] -= mean;
}

/// The numerator of a norm's output, and the vector whose length is the denominator.
struct Fraction {
  double numerator[width];
  double measured[width];
};

Fraction fraction(const InputNorm& norm, const double* x) {
  Fraction result;
  std::copy_n(x, width, result.numerator);
  if (norm.projects) project(result.numerator);
  std::copy_n(result.numerator, width, result.measured);
  if (norm.by_deviation) project(result.measured);
  return result;
}

void normalize(const InputNorm& norm, const double* x, double* y) {
  const Fraction of = fraction(norm, x);
  const double factor =
      norm.squared_length == 0.0 ? 1.0 : std::sqrt(norm.squared_length / dot(of.measured, of.measured));
  for (std::size_t f = 0; f < width; ++f) y[f] = factor * of.numerator[f];
}

/// dx += Jᵀ dy.
void normalize_back(const InputNorm& norm, const double* x, const double* dy, double* dx) {
  double back[width];
  std::copy_n(dy, width, back);
  if (norm.squared_length != 0.0) {
    const Fraction of = fraction(norm, x);
    const double square = dot(of.measured, of.measured);
    const double along = dot(of.numerator, dy) / square;
    const double factor = std::sqrt(norm.squared_length / square);
    for (std::size_t f = 0; f < width; ++f) back[f] = factor * (dy[f] - of.measured[f] * along);
  }
  if (norm.projects) project(back);
  for (std::size_t f = 0; f < width; ++f) dx[f] += back[f];
}

/// The attention-relevant state of every class.
struct Classes {
  ClassRows input;
  ClassRows query;
  ClassRows key;
  ClassRows value;
};

Classes project_classes(const InputNorm& norm, const double* at) {
  Classes result;
  for (std::size_t i = 0; i < classes; ++i) {
    normalize(norm, at + layout::embedding + i * width, result.input[i]);
    apply(at + layout::query, result.input[i], result.query[i]);
    apply(at + layout::key, result.input[i], result.key[i]);
    apply(at + layout::value, result.input[i], result.value[i]);
  }
  return result;
}

const double score_scale = 1.0 / std::sqrt(static_cast<double>(width));

template <class Array>
void read(Array& to, const double* from) {
  std::memcpy(&to, from, sizeof(Array));
}

void fill(const Classes& known, const double* at, Tables& tables) {
  for (std::size_t i = 0; i < classes; ++i) {
    double* weight = tables.weight[i];
    for (std::size_t j = 0; j < classes; ++j) weight[j] = score_scale * dot(known.query[i], known.key[j]);
    const double largest = *std::max_element(weight, weight + classes);
    for (std::size_t j = 0; j < classes; ++j) weight[j] = std::exp(weight[j] - largest);
    apply(at + layout::out, known.value[i], tables.value[i]);
    for (std::size_t f = 0; f < width; ++f) {
      tables.residual[i][f] = at[layout::embedding + i * width + f] + at[layout::out_bias + f];
    }
  }
  read(tables.embedding, at + layout::embedding);
  read(tables.gain, at + layout::gain);
  read(tables.shift, at + layout::shift);
  read(tables.first, at + layout::first);
  read(tables.first_bias, at + layout::first_bias);
  read(tables.second, at + layout::second);
  read(tables.second_bias, at + layout::second_bias);
}

template <class Array>
void write(const Array& from, double* to) {
  std::memcpy(to, &from, sizeof(Array));
}

/// The gradient with respect to the parameters, from that with respect to the tables.
void pass_back(const InputNorm& norm, const Classes& known, const Tables& tables, const Tables& by,
               const double* at, double* gradient) {
  std::fill_n(gradient, parameter_count, 0.0);
  write(by.embedding, gradient + layout::embedding);
  write(by.gain, gradient + layout::gain);
  write(by.shift, gradient + layout::shift);
  write(by.first, gradient + layout::first);
  write(by.first_bias, gradient + layout::first_bias);
  write(by.second, gradient + layout::second);
  write(by.second_bias, gradient + layout::second_bias);
  Classes back{};
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t f = 0; f < width; ++f) {
      gradient[layout::embedding + i * width + f] += by.residual[i][f];
      gradient[layout::out_bias + f] += by.residual[i][f];
    }
    apply_back(at + layout::out, known.value[i], by.value[i], back.value[i], gradient + layout::out);
    for (std::size_t j = 0; j < classes; ++j) {
      const double by_score = score_scale * tables.weight[i][j] * by.weight[i][j];
      for (std::size_t f = 0; f < width; ++f) {
        back.query[i][f] += by_score * known.key[j][f];
        back.key[j][f] += by_score * known.query[i][f];
      }
    }
  }
  for (std::size_t i = 0; i < classes; ++i) {
    const double* input = known.input[i];
    double* by_input = back.input[i];
    apply_back(at + layout::query, input, back.query[i], by_input, gradient + layout::query);
    apply_back(at + layout::key, input, back.key[i], by_input, gradient + layout::key);
    apply_back(at + layout::value, input, back.value[i], by_input, gradient + layout::value);
    const std::size_t own = layout::embedding + i * width;
    normalize_back(norm, at + own, by_input, gradient + own);
  }
}

}  // namespace

std::vector<double> initial_parameters(std::uint64_t seed) {
  Random random(seed);
  std::vector<double> result(parameter_count, 0.0);
  const auto uniform = [&](std::size_t from, std::size_t count, double bound) {
    for (std::size_t i = from; i < from + count; ++i) result[i] = bound * (2.0 * random.uniform() - 1.0);
  };
  for (std::size_t i = 0; i < classes * width; ++i) result[layout::embedding + i] = random.normal();
  // In PyTorch the three maps are one matrix, whose size determines Xavier's bound.
  uniform(layout::query, 3 * width * width, std::sqrt(6.0 / static_cast<double>(4 * width)));
  const double bound = 1.0 / std::sqrt(static_cast<double>(width));
  uniform(layout::out, width * width, bound);
  uniform(layout::first, layout::gain - layout::first, bound);
  std::fill_n(result.begin() + layout::gain, width, 1.0);
  return result;
}

AttentionTables attention_tables(const InputNorm& norm, std::span<const double> parameters) {
  NORMSCOPE_ASSERT(parameters.size() == parameter_count);
  const Classes known = project_classes(norm, parameters.data());
  AttentionTables result{};
  std::memcpy(result.key, known.input, sizeof result.key);
  Square ignored{};
  for (std::size_t i = 0; i < classes; ++i) {
    apply_back(parameters.data() + layout::key, known.input[i], known.query[i], result.query[i],
               &ignored[0][0]);
    for (double& entry : result.query[i]) entry *= score_scale;
    for (std::size_t j = 0; j < classes; ++j) {
      result.score[i][j] = score_scale * dot(known.query[i], known.key[j]);
    }
  }
  return result;
}

template <class Real>
Outcome Network<Real>::evaluate(std::span<const double> parameters, const Examples& examples,
                                std::span<const std::uint32_t> rows, std::span<double> gradient) {
  NORMSCOPE_ASSERT(parameters.size() == parameter_count);
  NORMSCOPE_ASSERT(gradient.empty() || gradient.size() == parameter_count);
  const double* at = parameters.data();
  const Classes known = project_classes(norm_, at);
  Tables tables;
  fill(known, at, tables);
  if (gradient.empty()) return pairs_.evaluate(tables, examples, rows, nullptr);
  Tables by;
  const Outcome outcome = pairs_.evaluate(tables, examples, rows, &by);
  pass_back(norm_, known, tables, by, at, gradient.data());
  return outcome;
}

template class Network<float>;
template class Network<double>;

}  // namespace normscope::lab::majority
