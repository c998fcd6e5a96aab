#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/majority.hpp>

namespace normscope::nets::majority {
namespace {

constexpr std::size_t width = Eight::width;
constexpr std::size_t classes = Eight::classes;
using layout = Layout<Eight>;
constexpr std::size_t parameter_count = layout::count;

const Task small_task{.length = 50, .sequences = 300};
const std::vector<InputNorm> norms{{true, 8.0},  {false, 0.125}, {true, 0.0},
                                   {false, 0.0}, {false, 8.0},   {false, 8.0, true}};

std::vector<std::uint32_t> all_rows(const Examples& examples) {
  std::vector<std::uint32_t> rows(examples.size());
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

/// Away from the initial values, whose biases and norm are plain.
template <class Size>
std::vector<double> some_parameters(std::uint64_t seed) {
  std::vector<double> parameters = initial_parameters<Size>(seed);
  Random random(seed);
  for (double& parameter : parameters) parameter += 0.3 * random.normal();
  return parameters;
}

using Vector = std::vector<double>;

Vector product(const double* matrix, const Vector& x, std::size_t rows = width) {
  Vector y(rows, 0.0);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t f = 0; f < width; ++f) y[i] += matrix[i * width + f] * x[f];
  }
  return y;
}

Vector normalized(Vector x, const InputNorm& norm) {
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(width);
  double square = 0.0;
  for (double& entry : x) {
    const double centred = entry - mean;
    if (norm.projects) entry = centred;
    const double measured = norm.by_deviation ? centred : entry;
    square += measured * measured;
  }
  for (double& entry : x) entry *= norm.squared_length == 0.0 ? 1.0 : std::sqrt(norm.squared_length / square);
  return x;
}

/// The loss of one sequence, position by position with all of attention, as a transformer is written down.
double token_by_token(const InputNorm& norm, const double* at, const Counts& counts, std::size_t answer) {
  std::vector<Vector> tokens;
  for (std::size_t j = 0; j < classes; ++j) {
    const double* row = at + layout::embedding + j * width;
    tokens.insert(tokens.end(), counts[j], Vector(row, row + width));
  }
  std::vector<Vector> inputs;
  for (const Vector& token : tokens) inputs.push_back(normalized(token, norm));
  double loss = 0.0;
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    const Vector query = product(at + layout::query, inputs[position]);
    Vector mixed(width, 0.0);
    double sum = 0.0;
    for (const Vector& input : inputs) {
      const Vector key = product(at + layout::key, input);
      const double score = std::inner_product(key.begin(), key.end(), query.begin(), 0.0) / std::sqrt(8.0);
      const Vector value = product(at + layout::value, input);
      for (std::size_t f = 0; f < width; ++f) mixed[f] += std::exp(score) * value[f];
      sum += std::exp(score);
    }
    for (double& entry : mixed) entry /= sum;
    Vector x = product(at + layout::out, mixed);
    for (std::size_t f = 0; f < width; ++f) x[f] += tokens[position][f] + at[layout::out_bias + f];
    Vector hidden = normalized(x, {});
    for (std::size_t f = 0; f < width; ++f) {
      hidden[f] = hidden[f] * at[layout::gain + f] + at[layout::shift + f];
    }
    hidden = product(at + layout::first, hidden);
    for (std::size_t f = 0; f < width; ++f) hidden[f] = std::max(0.0, hidden[f] + at[layout::first_bias + f]);
    hidden = product(at + layout::second, hidden);
    for (std::size_t f = 0; f < width; ++f) x[f] += hidden[f] + at[layout::second_bias + f];
    const Vector logits = product(at + layout::embedding, x, classes);
    double partition = 0.0;
    for (const double logit : logits) partition += std::exp(logit);
    loss += (std::log(partition) - logits[answer]) / static_cast<double>(tokens.size());
  }
  return loss;
}

TEST(Majority, DataAreWhatTheTaskSays) {
  const Data data = make_data({}, 3);
  EXPECT_EQ(data.training.size(), 80008U);
  EXPECT_EQ(data.test.size(), 20002U);
  std::vector<double> share(classes, 0.0);
  for (const Examples* examples : {&data.training, &data.test}) {
    std::vector<double> majorities(classes, 0.0);
    for (std::size_t i = 0; i < examples->size(); ++i) {
      Counts counts = examples->counts[i];
      const std::size_t answer = examples->majority[i];
      majorities[answer] += 1.0 / static_cast<double>(examples->size());
      ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 50);
      const std::uint8_t most = counts[answer];
      counts[answer] = 0;
      const std::uint8_t next = *std::max_element(counts.begin(), counts.end());
      ASSERT_GT(next, 0);
      ASSERT_GE(most, next + 6);
    }
    for (std::size_t j = 0; j < classes; ++j) {
      EXPECT_NEAR(majorities[j], 0.05, 0.01);
      share[j] = majorities[j] - share[j];
    }
  }
  // The test has of every majority what the training has.
  for (const double difference : share) EXPECT_LT(std::abs(difference), 1e-4);
  EXPECT_NE(make_data(small_task, 1).training.counts, make_data(small_task, 2).training.counts);
  EXPECT_THROW(static_cast<void>(make_data({.length = 5}, 1)), Error);
}

TEST(Majority, LossIsThatOfEveryToken) {
  const Data data = make_data(small_task, 1);
  const std::vector<std::uint32_t> rows = all_rows(data.test);
  for (const InputNorm& norm : norms) {
    const std::vector<double> parameters = some_parameters<Eight>(2);
    double loss = 0.0;
    for (const std::uint32_t row : rows) {
      loss += token_by_token(norm, parameters.data(), data.test.counts[row], data.test.majority[row]);
    }
    loss /= static_cast<double>(rows.size());
    EXPECT_NEAR((Network<double, Eight>(norm).evaluate(parameters, data.test, rows).loss), loss,
                1e-12 * loss);
    EXPECT_NEAR((Network<float, Eight>(norm).evaluate(parameters, data.test, rows).loss), loss, 3e-6 * loss);
  }
}

/// The gradient against central differences, and in float32 against that in double.
template <class Size>
void expect_differences(const InputNorm& norm, std::vector<double> parameters, const Examples& examples,
                        double step) {
  const std::vector<std::uint32_t> rows = all_rows(examples);
  Network<double, Size> network(norm);
  std::vector<double> gradient(parameters.size());
  static_cast<void>(network.evaluate(parameters, examples, rows, gradient));
  std::vector<double> in_float(parameters.size());
  static_cast<void>(Network<float, Size>(norm).evaluate(parameters, examples, rows, in_float));
  double largest = 0.0;
  for (const double entry : gradient) largest = std::max(largest, std::abs(entry));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double kept = parameters[i];
    parameters[i] = kept + step;
    const double above = network.evaluate(parameters, examples, rows).loss;
    parameters[i] = kept - step;
    const double below = network.evaluate(parameters, examples, rows).loss;
    parameters[i] = kept;
    EXPECT_NEAR(gradient[i], (above - below) / (2.0 * step), 1e-6 * largest) << i;
    EXPECT_NEAR(gradient[i], in_float[i], 1e-5 * largest) << i;
  }
}

TEST(Majority, GradientIsThatOfDifferences) {
  const Data data = make_data(small_task, 4);
  for (const InputNorm& norm : norms)
    expect_differences<Eight>(norm, some_parameters<Eight>(5), data.test, 1e-5);
}

TEST(Majority, ThreeDimensionsHaveTheGradientOfDifferences) {
  const Data data = make_data({.classes = Three::classes, .length = 30, .sequences = 300}, 4);
  // The norm of three entries is more curved.
  expect_differences<Three>({.projects = true, .squared_length = 3.0}, some_parameters<Three>(5), data.test,
                            1e-6);
  EXPECT_THROW((Training<Three>({}, 1)), Error);
}

TEST(Majority, NothingLearnedNamesEachTokenItself) {
  const Data data = make_data(small_task, 1);
  double own = 0.0;
  for (std::size_t i = 0; i < data.test.size(); ++i) own += data.test.counts[i][data.test.majority[i]] / 50.0;
  std::vector<double> parameters(parameter_count, 0.0);
  Random random(1);
  for (std::size_t j = 0; j < classes; ++j) {
    Vector row(width);
    for (double& entry : row) entry = random.normal();
    row = normalized(row, {.projects = false, .squared_length = 1.0});
    std::copy(row.begin(), row.end(), parameters.begin() + static_cast<std::ptrdiff_t>(j * width));
  }
  const Outcome outcome = Network<double, Eight>({}).evaluate(parameters, data.test, all_rows(data.test));
  EXPECT_NEAR(outcome.right, own / static_cast<double>(data.test.size()), 1e-12);
}

TEST(Majority, ScoresAreThoseOfQueriesAndKeys) {
  for (const InputNorm& norm : norms) {
    const AttentionTables<Eight> tables = attention_tables<Eight>(norm, some_parameters<Eight>(6));
    for (std::size_t i = 0; i < classes; ++i) {
      for (std::size_t j = 0; j < classes; ++j) {
        const double score = std::inner_product(tables.query[i], tables.query[i] + width, tables.key[j], 0.0);
        EXPECT_NEAR(score, tables.score[i][j], 1e-12 * (1.0 + std::abs(score)));
      }
      const double square = std::inner_product(tables.key[i], tables.key[i] + width, tables.key[i], 0.0);
      if (norm.squared_length > 0.0 && !norm.by_deviation) {
        EXPECT_NEAR(square, norm.squared_length, 1e-12 * square);
      }
    }
  }
}

TEST(Majority, UniformAttentionCountsTheTokens) {
  const Data data = make_data(small_task, 1);
  const Counts& counts = data.test.counts[0];
  AttentionTables<Eight> tables = attention_tables<Eight>({}, some_parameters<Eight>(6));
  const std::array<double, classes> some = class_attention(tables, counts);
  EXPECT_NEAR(std::accumulate(some.begin(), some.end(), 0.0), 1.0, 1e-12);
  for (auto& row : tables.score) std::fill(row, row + classes, 3.0);
  const std::array<double, classes> uniform = class_attention(tables, counts);
  for (std::size_t j = 0; j < classes; ++j) EXPECT_NEAR(uniform[j], counts[j] / 50.0, 1e-12);
  EXPECT_NE(some, uniform);
}

const Recipe tiny{.task = {.sequences = 400}, .batch = 100, .read_sequences = 40};

TEST(Majority, LearnsAndMeasures) {
  Training<Eight> training(tiny, 1);
  EXPECT_EQ(training.steps_an_epoch(), 4U);
  const double before = training.tested().loss;
  for (int step = 0; step < 200; ++step) training.advance();
  EXPECT_LT(training.tested().loss, before - 1.0);
  EXPECT_LT(training.trained().loss, before - 1.0);
  const AttentionMeasures measures = training.attention();
  EXPECT_NEAR(measures.key_length, std::sqrt(8.0), 1e-12);
  EXPECT_LT(measures.key_spread, 1e-6);
  EXPECT_GT(measures.divergence, 0.0);
  EXPECT_GE(measures.angle, 0.0);
  EXPECT_LE(measures.angle, 90.0);
}

TEST(Majority, ResumesBitwise) {
  for (const std::size_t stop : {1U, 3U, 4U, 9U}) {
    Training<Eight> whole(tiny, 2);
    Training<Eight> part(tiny, 2);
    while (part.step() < stop) part.advance();
    Training<Eight> resumed(tiny, 2);
    resumed.restore(stop, part.progress());
    while (whole.step() < 14) whole.advance();
    while (resumed.step() < 14) resumed.advance();
    EXPECT_TRUE(
        std::equal(whole.parameters().begin(), whole.parameters().end(), resumed.parameters().begin()));
    EXPECT_EQ(whole.trained().loss, resumed.trained().loss);
    const std::vector<std::byte> bytes = part.progress();
    EXPECT_THROW(resumed.restore(stop, std::span(bytes).first(80)), Error);
  }
  Training<Eight> other(tiny, 3);
  Training<Eight> one(tiny, 2);
  EXPECT_NE(other.parameters()[0], one.parameters()[0]);
}

}  // namespace
}  // namespace normscope::nets::majority
