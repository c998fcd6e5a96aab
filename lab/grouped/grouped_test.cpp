#include <cmath>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>

#include "network.hpp"
#include "training.hpp"

namespace normscope::lab::grouped {
namespace {

constexpr std::size_t width = 16;

Shape tiny(Kind kind, std::size_t groups = 4) {
  return {.kind = kind,
          .width = width,
          .groups = groups,
          .layers = 1,
          .heads = 2,
          .length = 6,
          .side = 8,
          .patch = 4,
          .classes = 5};
}

Batch tiny_batch(Kind kind, std::uint64_t seed) {
  Random random(seed);
  Batch batch{.rows = 3};
  const std::size_t labels = kind == Kind::language ? 18 : 3;
  for (std::size_t i = 0; i < labels; ++i) {
    batch.tokens.push_back(static_cast<std::int64_t>(random.below(5)));
    batch.labels.push_back(static_cast<std::int64_t>(random.below(5)));
  }
  for (std::size_t i = 0; i < 3 * 3 * 64; ++i) batch.pixels.push_back(static_cast<float>(random.normal()));
  return batch;
}

/// Parameters with random gains, biases and weights.
std::vector<float> shaken(const Network& network) {
  std::vector<float> values = initial_values(network.parameters(), 3);
  Random random(11);
  for (float& value : values) value += static_cast<float>(0.2 * random.normal());
  return values;
}

TEST(Grouped, TheNormIsOurs) {
  Random random(5);
  for (const std::size_t groups : {1, 2, 4, 8, 16}) {
    NormSpec spec{.width = 48, .groups = groups};
    for (std::size_t i = 0; i < spec.width; ++i) {
      spec.gain.push_back(static_cast<float>(1.0 + 0.3 * random.normal()));
      spec.bias.push_back(static_cast<float>(random.normal()));
    }
    std::vector<float> x(20 * spec.width);
    for (float& value : x) value = static_cast<float>(3.0 + random.normal());
    std::vector<double> expected(x.begin(), x.end());
    norm::forward(spec, {expected.data(), 20, spec.width}, {expected.data(), 20, spec.width});
    const std::vector<float> y = grouped_norm(spec, x);
    ASSERT_EQ(y.size(), x.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], expected[i], 2e-6 * (4.0 + std::abs(expected[i]))) << groups << " groups";
  }
}

void expect_gradients(const Network& network) {
  std::vector<float> values = shaken(network);
  const Batch batch = tiny_batch(network.shape().kind, 4);
  std::vector<float> gradient(values.size());
  network.loss_and_gradient(values, batch, gradient);
  for (const Parameter& tensor : network.parameters()) {
    const std::size_t i = tensor.offset + tensor.count / 2;
    const float middle = values[i];
    const float step = 0.01F;
    values[i] = middle + step;
    const double above = network.score(values, batch).loss;
    values[i] = middle - step;
    const double below = network.score(values, batch).loss;
    values[i] = middle;
    EXPECT_NEAR(gradient[i], (above - below) / (2.0 * step), 2e-3) << tensor.name;
  }
}

TEST(Grouped, GradientsMatchFiniteDifferences) {
  for (const Kind kind : {Kind::language, Kind::vision, Kind::convolution})
    expect_gradients(Network(tiny(kind)));
}

TEST(Grouped, OtherNormsHaveTheirGradients) {
  for (const NormKind norm : {NormKind::rms, NormKind::dyt, NormKind::derf}) {
    SCOPED_TRACE(to_string(norm));
    for (const bool both : {false, true}) {
      Shape shape = tiny(Kind::language, 1);
      shape.norm = norm;
      shape.peri = shape.qk_norm = both;
      expect_gradients(Network(shape));
    }
  }
}

TEST(Grouped, TheScalarMultipliesTheEmbeddings) {
  const Shape plain = tiny(Kind::language, 1);
  Shape scaled = plain;
  scaled.embedding_scalar = 3.0;
  expect_gradients(Network(scaled));
  std::vector<float> values = initial_values(Network(plain).parameters(), 3);
  std::vector<float> with_scalar = values;
  const auto& places = Network(plain).parameters()[1];
  const std::size_t embeddings = places.offset + places.count;
  with_scalar.insert(with_scalar.begin() + static_cast<std::ptrdiff_t>(embeddings), 3.0F);
  for (std::size_t i = 0; i < embeddings; ++i) values[i] *= 3.0F;
  const Batch batch = tiny_batch(Kind::language, 4);
  EXPECT_NEAR(Network(scaled).score(with_scalar, batch).loss, Network(plain).score(values, batch).loss, 1e-6);
}

TEST(Grouped, AlphasBeginAsTheShapeSays) {
  Shape shape = tiny(Kind::language, 1);
  shape.norm = NormKind::dyt;
  shape.peri = true;
  shape.alpha_attention = 2.0;
  shape.alpha_other = 0.25;
  std::vector<std::pair<std::string, double>> alphas;
  const Network network(shape);
  for (const Parameter& tensor : network.parameters()) {
    if (tensor.name.ends_with(".alpha")) alphas.emplace_back(tensor.name, tensor.initial_mean);
  }
  EXPECT_EQ(alphas, (std::vector<std::pair<std::string, double>>{{"block0.norm1.alpha", 2.0},
                                                                 {"block0.norm1_out.alpha", 2.0},
                                                                 {"block0.norm2.alpha", 0.25},
                                                                 {"block0.norm2_out.alpha", 0.25},
                                                                 {"norm.alpha", 0.25}}));
}

TEST(Grouped, ObservedInputsAreThoseOfTheNorms) {
  Shape shape = tiny(Kind::language, 1);
  shape.peri = true;
  const Network network(shape);
  const std::vector<float> values = shaken(network);
  const Batch batch = tiny_batch(Kind::language, 4);
  const Observation found = network.observe(values, batch);
  std::vector<std::string> names;
  for (const NormInput& input : found.norms) names.push_back(input.norm);
  EXPECT_EQ(names, (std::vector<std::string>{"block0.norm1", "block0.norm1_out", "block0.norm2",
                                             "block0.norm2_out", "norm"}));
  EXPECT_GT(found.largest_score, 0.0);
  // The first norm reads embeddings.
  const auto& tokens = network.parameters()[0];
  const auto& places = network.parameters()[1];
  double cosine = 0.0;
  double mean_square = 0.0;
  double sigma = 0.0;
  const std::size_t rows = batch.tokens.size();
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < width; ++i) {
      const double x = values[tokens.offset + static_cast<std::size_t>(batch.tokens[row]) * width + i] +
                       values[places.offset + row % shape.length * width + i];
      sum += x / static_cast<double>(width);
      squares += x * x / static_cast<double>(width);
    }
    cosine += sum / std::sqrt(squares) / static_cast<double>(rows);
    mean_square += squares / static_cast<double>(rows);
    sigma += std::sqrt(squares - sum * sum + shape.eps) / static_cast<double>(rows);
  }
  EXPECT_NEAR(found.norms[0].cosine, cosine, 1e-6);
  EXPECT_NEAR(found.norms[0].mean_square, mean_square, 1e-6);
  EXPECT_NEAR(found.norms[0].sigma, sigma, 1e-6);
}

TEST(Grouped, ConstantDenominatorsMakeNormsAffine) {
  Shape shape = tiny(Kind::language, 1);
  shape.length = 1;
  const Network kept(shape);
  const std::vector<float> values = shaken(kept);
  // A batch of one token, whose denominators are their own means.
  const Batch batch{.rows = 1, .tokens = {2}, .labels = {1}};
  for (const NormInput& input : kept.observe(values, batch).norms) shape.frozen.push_back(input.sigma);
  EXPECT_NEAR(Network(shape).score(values, batch).loss, kept.score(values, batch).loss, 1e-5);
  shape.frozen[0] *= 2.0;
  EXPECT_GT(std::abs(Network(shape).score(values, batch).loss - kept.score(values, batch).loss), 1e-4);
}

TEST(Grouped, OnlyNormsSeeTheGroups) {
  for (const Kind kind : {Kind::language, Kind::vision, Kind::convolution}) {
    const Network one(tiny(kind, 1));
    const Network four(tiny(kind, 4));
    const std::vector<float> values = shaken(one);
    const Batch batch = tiny_batch(kind, 6);
    EXPECT_EQ(one.parameters().size(), four.parameters().size());
    EXPECT_GT(std::abs(one.score(values, batch).loss - four.score(values, batch).loss), 1e-3);
  }
}

TEST(Grouped, NormsAloneTakeTheScaleAway) {
  for (const Between between : {Between::norm, Between::relu, Between::nothing}) {
    Shape shape = tiny(Kind::convolution);
    shape.between = between;
    const Network network(shape);
    const auto loss = [&](float factor) {
      Batch batch = tiny_batch(Kind::convolution, 8);
      for (float& pixel : batch.pixels) pixel *= factor;
      return network.score(initial_values(network.parameters(), 3), batch).loss;
    };
    const double change = std::abs(loss(1.0F) - loss(8.0F));
    EXPECT_EQ(change < 1e-3, between == Between::norm) << change;
  }
}

TEST(Grouped, LaterTokensAreNotSeen) {
  const Network network(tiny(Kind::language));
  const std::vector<float> values = shaken(network);
  Batch batch = tiny_batch(Kind::language, 9);
  batch = {.rows = 1,
           .tokens = {batch.tokens.begin(), batch.tokens.begin() + 6},
           .labels = {batch.labels.begin(), batch.labels.begin() + 6}};
  std::vector<float> first(values.size()), second(values.size());
  // The gradients of the positions show which of them the loss of the first label depends on.
  batch.labels = {1, -100, -100, -100, -100, -100};
  network.loss_and_gradient(values, batch, first);
  batch.tokens[4] = (batch.tokens[4] + 1) % 5;
  network.loss_and_gradient(values, batch, second);
  EXPECT_EQ(first, second);
}

TEST(Grouped, SizesMustDivide) {
  EXPECT_THROW(Network(tiny(Kind::language, 3)), Error);
  Shape shape = tiny(Kind::vision);
  shape.patch = 3;
  EXPECT_THROW(Network{shape}, Error);
  shape = tiny(Kind::language, 4);
  shape.norm = NormKind::rms;
  EXPECT_THROW(Network{shape}, Error);
}

Json tiny_configuration() { return to_json({.steps = 24, .warmup = 4, .rate = 0.01, .measure_every = 5}); }

Text tiny_text() {
  std::string text;
  Random random(2);
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + static_cast<char>(random.below(3)));
  return text_data("abc", text, 6, 4, 8);
}

TEST(Grouped, InterruptedTrainingResumesBitwise) {
  const Text text = tiny_text();
  EXPECT_EQ(text.alphabet, 3U);
  const Network network(tiny(Kind::language));
  lab::Run whole(tiny_configuration(), 5);
  train(whole, network, text.data);
  EXPECT_EQ(whole.measured().size(), 15U);

  std::vector<Metric> pieces;
  lab::Run stopped(tiny_configuration(), 5,
                   Progress([](std::string_view, std::size_t done, std::size_t) { return done != 12; }));
  EXPECT_THROW(train(stopped, network, text.data), Error);
  EXPECT_EQ(stopped.step(), 12U);
  train(stopped, network, text.data);
  EXPECT_EQ(stopped.measured(), whole.measured());
}

TEST(Grouped, ARemovalIsResumedBitwise) {
  const Text text = tiny_text();
  const Network network(tiny(Kind::language, 1));
  Json configuration = tiny_configuration();
  configuration.update(Json{{"removed_at", 10}, {"observe", true}});
  lab::Run whole(configuration, 5);
  train(whole, network, text.data);
  lab::Run stopped(configuration, 5,
                   Progress([](std::string_view, std::size_t done, std::size_t) { return done != 12; }));
  EXPECT_THROW(train(stopped, network, text.data), Error);
  train(stopped, network, text.data);
  EXPECT_EQ(stopped.measured(), whole.measured());
}

TEST(Grouped, AShortTextIsRefused) {
  // Twenty characters for each of the ten parts: pieces of 18 fit with the one that follows and a place to
  // choose.
  const std::string text(200, 'a');
  EXPECT_NO_THROW(static_cast<void>(text_data("short", text, 18, 4, 8)));
  EXPECT_THROW(static_cast<void>(text_data("short", text, 19, 4, 8)), Error);
}

TEST(Grouped, BatchesFollowFromSeedAndStep) {
  const Text text = tiny_text();
  EXPECT_EQ(text.data.batch(1, 7).tokens, text.data.batch(1, 7).tokens);
  EXPECT_NE(text.data.batch(1, 7).tokens, text.data.batch(1, 8).tokens);
  EXPECT_NE(text.data.batch(1, 7).tokens, text.data.batch(2, 7).tokens);
  const Batch batch = text.data.batch(3, 0);
  EXPECT_EQ(std::vector(batch.tokens.begin() + 1, batch.tokens.begin() + 6),
            std::vector(batch.labels.begin(), batch.labels.begin() + 5));
}

}  // namespace
}  // namespace normscope::lab::grouped
