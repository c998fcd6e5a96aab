#include "tagger.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>

#include "kernels.hpp"

namespace normscope::lab::counting {
namespace {

constexpr std::string_view every[] = {"lstm",    "qrnn",       "qrnn_d2",     "two_qrnns",
                                      "fo_qrnn", "fo_qrnn_d2", "two_fo_qrnns"};

struct Sample {
  std::array<Word, lanes> words;
  std::array<std::vector<std::uint8_t>, lanes> labels;
};

Sample random_sample(std::size_t length, Random& random) {
  Sample sample;
  for (std::size_t l = 0; l < lanes; ++l) {
    sample.words[l] = draw(Tagging::near_balance, length, random);
    for (std::size_t t = 0; t < length; ++t) {
      sample.labels[l].push_back(static_cast<std::uint8_t>(random.below(2)));
    }
  }
  return sample;
}

template <typename Real>
std::vector<Real> random_parameters(const TaggerShape& shape, Random& random) {
  std::vector<Real> values(parameters(shape));
  for (Real& value : values) value = static_cast<Real>(2.0 * random.uniform() - 1.0);
  return values;
}

double sigma(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// Logits of one word by the formulas, number by number.
std::vector<double> textbook(const TaggerShape& shape, const std::vector<double>& parameters,
                             const Word& word) {
  const std::size_t n = shape.width;
  const bool lstm = shape.cell == TaggerCell::lstm;
  const std::size_t maps = shape.cell == TaggerCell::fo_qrnn ? 3 : 4;
  const double* p = parameters.data();
  std::vector<std::vector<double>> rows;
  for (const std::uint8_t letter : word) rows.push_back({letter == 0 ? 1.0 : 0.0, letter == 1 ? 1.0 : 0.0});
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const std::size_t inputs = rows[0].size();
    const std::size_t window = layer == 0 && !lstm ? 2 : 1;
    const double* const u = p + maps * n * window * inputs;
    const double* const b = u + (lstm ? maps * n * n : 0);
    std::vector<double> c(n, 0.0);
    std::vector<double> h(n, 0.0);
    std::vector<std::vector<double>> out;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const auto map = [&](std::size_t which, std::size_t k) {
        const std::size_t row = which * n + k;
        double sum = b[row];
        for (std::size_t back = 0; back < window && back <= t; ++back) {
          for (std::size_t j = 0; j < inputs; ++j) {
            sum += p[row * window * inputs + (window - 1 - back) * inputs + j] * rows[t - back][j];
          }
        }
        for (std::size_t j = 0; lstm && j < n; ++j) sum += u[row * n + j] * h[j];
        return sum;
      };
      std::vector<double> next_h(n);
      for (std::size_t k = 0; k < n; ++k) {
        const double f = sigma(map(1, k));
        const double i = maps == 4 ? sigma(map(3, k)) : 1.0 - f;
        c[k] = f * c[k] + i * std::tanh(map(0, k));
        next_h[k] = sigma(map(2, k)) * (lstm ? std::tanh(c[k]) : c[k]);
      }
      h = next_h;
      out.push_back(h);
    }
    p = b + maps * n;
    rows = out;
  }
  if (shape.hidden_decoder) {
    for (std::vector<double>& row : rows) {
      std::vector<double> out(n);
      for (std::size_t k = 0; k < n; ++k) {
        double sum = p[n * n + k];
        for (std::size_t j = 0; j < n; ++j) sum += p[k * n + j] * row[j];
        out[k] = sigma(sum);
      }
      row = out;
    }
    p += n * (n + 1);
  }
  std::vector<double> logits;
  for (const std::vector<double>& row : rows) {
    double sum = p[n];
    for (std::size_t k = 0; k < n; ++k) sum += p[k] * row[k];
    logits.push_back(sum);
  }
  return logits;
}

RC_GTEST_PROP(Tagger, FollowsItsFormulas, (std::uint64_t seed)) {
  Random random(seed);
  for (const std::string_view name : every) {
    const TaggerShape shape = tagger(name, 1 + random.below(5));
    const std::vector<double> p = random_parameters<double>(shape, random);
    const std::vector<float> single(p.begin(), p.end());
    const std::vector<double> rounded(single.begin(), single.end());
    const Sample sample = random_sample(1 + random.below(20), random);
    TaggerPass<double> pass(shape);
    TaggerPass<float> short_pass(shape);
    static_cast<void>(pass.forward(rounded, sample.words, sample.labels));
    static_cast<void>(short_pass.forward(single, sample.words, sample.labels));
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::vector<double> expected = textbook(shape, rounded, sample.words[l]);
      for (std::size_t t = 0; t < expected.size(); ++t) {
        RC_ASSERT(std::abs(pass.logits()[t * lanes + l] - expected[t]) <=
                  1e-13 * (1 + std::abs(expected[t])));
        RC_ASSERT(std::abs(short_pass.logits()[t * lanes + l] - expected[t]) <= 1e-4);
      }
    }
  }
}

RC_GTEST_PROP(Tagger, GradientsAreThoseOfDifferences, (std::uint64_t seed)) {
  Random random(seed);
  for (const std::string_view name : every) {
    const TaggerShape shape = tagger(name, 1 + random.below(5));
    std::vector<double> p = random_parameters<double>(shape, random);
    const Sample sample = random_sample(1 + random.below(12), random);
    TaggerPass<double> pass(shape);
    const auto loss = [&] { return pass.forward(p, sample.words, sample.labels).loss; };
    static_cast<void>(loss());
    std::vector<double> exact(p.size());
    pass.backward(p, exact);
    for (int probe = 0; probe < 10; ++probe) {
      const std::size_t at = random.below(p.size());
      const double middle = p[at];
      const auto difference = [&](double h) {
        p[at] = middle + h;
        const double up = loss();
        p[at] = middle - h;
        const double down = loss();
        p[at] = middle;
        return (up - down) / (2.0 * h);
      };
      // Two steps make the third derivative drop out.
      const double slope = (4.0 * difference(1e-3) - difference(2e-3)) / 3.0;
      RC_ASSERT(std::abs(exact[at] - slope) <= 1e-10 + 1e-7 * std::abs(slope));
    }
  }
}

TEST(Tagger, CountsWhatItGetsRight) {
  Random random(1);
  const TaggerShape shape = tagger("two_qrnns", 3);
  const std::vector<float> p = random_parameters<float>(shape, random);
  const Sample sample = random_sample(9, random);
  TaggerPass<float> pass(shape);
  const Judgement judged = pass.forward(p, sample.words, sample.labels);
  std::size_t right = 0;
  double loss = 0.0;
  for (std::size_t l = 0; l < lanes; ++l) {
    for (std::size_t t = 0; t < 9; ++t) {
      const double logit = pass.logits()[t * lanes + l];
      const bool yes = sample.labels[l][t] != 0;
      right += (logit > 0.0) == yes ? 1 : 0;
      loss -= std::log(sigma(yes ? logit : -logit)) / static_cast<double>(9 * lanes);
    }
  }
  EXPECT_EQ(judged.right, right);
  EXPECT_NEAR(judged.loss, loss, 1e-6);
}

TEST(Tagger, ShortExponentialsAreExponentials) {
  for (float x = 0.0F; x > -86.0F; x -= 0.0137F) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(decay(x)) / exact, 1.0, 3e-7) << x;
  }
  EXPECT_LT(decay(-1e30F), 1e-37F);
  EXPECT_EQ(logistic(1e30F), 1.0F);
  EXPECT_EQ(squash(-1e30F), -1.0F);
}

TEST(Tagger, HasNames) {
  EXPECT_EQ(parameters(tagger("lstm", 10)), 4U * 10 * (2 + 10 + 1) + 11);
  EXPECT_EQ(parameters(tagger("qrnn_d2", 10)), 4U * 10 * (4 + 1) + 10 * 11 + 11);
  EXPECT_THROW(static_cast<void>(tagger("gru", 10)), Error);
  EXPECT_THROW(static_cast<void>(tagger("lstm", 0)), Error);
}

}  // namespace
}  // namespace normscope::lab::counting
