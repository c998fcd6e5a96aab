// Which tokens are reachable, against the plain screening: all of A A^T and the largest entry of each row, in
// float32 on the same threads. Both must find the tokens planted in the hull of five others. Where rows
// differ in length, or in the size of their columns, many tokens do not lead in the direction of their own
// row; then the peer is one product A A^T by OpenBLAS, which answers nothing.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <cblas.h>
#include <fmt/core.h>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>
#include <normscope/selectability/reach.hpp>

#include "bench.hpp"

namespace {

using namespace normscope;

constexpr std::size_t carriers = 5;

struct Case {
  std::size_t tokens;
  std::size_t width;
  std::size_t planted;
  double lengths = 0.0;  ///< standard deviation of the logarithm of a row's length
  double decay = 0.0;    ///< column k is (k + 1)^-decay times as large as the first
};

std::shared_ptr<selectability::Logits> logits_of(const Case& what) {
  Random random(what.width);
  std::vector<double> weights(what.tokens * what.width);
  for (double& weight : weights) weight = random.normal();
  for (std::size_t token = 0; token < what.tokens; ++token) {
    const double length = what.lengths > 0.0 ? std::exp(what.lengths * random.normal()) : 1.0;
    for (std::size_t i = 0; i < what.width; ++i) {
      weights[token * what.width + i] *= length * std::pow(static_cast<double>(i + 1), -what.decay);
    }
  }
  for (std::size_t token = 0; token < what.planted; ++token) {
    std::vector<double> row(what.width, 0.0);
    for (std::size_t k = 0; k < carriers; ++k) {
      const std::size_t carrier = what.planted + random.below(what.tokens - what.planted);
      for (std::size_t i = 0; i < what.width; ++i) row[i] += weights[carrier * what.width + i] / carriers;
    }
    std::copy(row.begin(), row.end(), weights.begin() + static_cast<std::ptrdiff_t>(token * what.width));
  }
  return std::make_shared<selectability::Logits>(selectability::fold(
      {.kind = NormKind::rms, .width = what.width}, {weights.data(), what.tokens, what.width}, {}));
}

bench::Contender ours(const std::shared_ptr<selectability::Logits>& logits, unsigned threads) {
  const auto found = std::make_shared<std::vector<double>>();
  const auto run = [logits, found, threads] {
    std::vector<selectability::TokenReach> tokens;
    selectability::decide(*logits, tokens, {.threads = threads});
    found->clear();
    for (const selectability::TokenReach& token : tokens) {
      found->push_back(token.answer == proof::Answer::yes ? 1.0 : 0.0);
    }
  };
  return {"normscope", run, [found] { return *found; }};
}

/// 1 for each row of A whose product with itself is the largest entry of its row of A Aᵀ.
void lead(const std::vector<float>& rows, std::size_t width, std::size_t begin, std::size_t end,
          std::vector<double>& leads) {
  constexpr std::size_t strip = 512;
  constexpr std::size_t block = 4096;
  const std::size_t tokens = leads.size();
  std::vector<float> products(strip * block);
  for (std::size_t i = begin; i < end; i += strip) {
    const std::size_t count = std::min(strip, end - i);
    std::vector<float> own(count);
    std::vector<float> other(count, -std::numeric_limits<float>::infinity());
    for (std::size_t j = 0; j < tokens; j += block) {
      const std::size_t columns = std::min(block, tokens - j);
      multiply(Factor<float>(rows.data() + i * width, count, width, width),
               Factor<float>(rows.data() + j * width, columns, width, width).transposed(),
               MatrixView<float>(products.data(), count, columns));
      for (std::size_t r = 0; r < count; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
          const float product = products[r * columns + c];
          if (i + r == j + c) {
            own[r] = product;
          } else {
            other[r] = std::max(other[r], product);
          }
        }
      }
    }
    for (std::size_t r = 0; r < count; ++r) leads[i + r] = own[r] > 1.001F * other[r] ? 1.0 : 0.0;
  }
}

bench::Contender product(const std::shared_ptr<selectability::Logits>& logits, unsigned threads) {
  const auto rows = std::make_shared<std::vector<float>>(logits->rows.begin(), logits->rows.end());
  const auto leads = std::make_shared<std::vector<double>>(logits->tokens);
  const auto run = [logits, rows, leads, threads] {
    parallel_for(logits->tokens, 512, threads,
                 [&](std::size_t begin, std::size_t end) { lead(*rows, logits->width, begin, end, *leads); });
  };
  return {"A A^T", run, [leads] { return *leads; }};
}

/// One product of all rows with each other, in strips that are not kept.
bench::Contender openblas(const std::shared_ptr<selectability::Logits>& logits, unsigned threads) {
  const auto rows = std::make_shared<std::vector<float>>(logits->rows.begin(), logits->rows.end());
  const auto products = std::make_shared<std::vector<float>>();
  const auto run = [logits, rows, products, threads] {
    constexpr std::size_t strip = 1024;
    openblas_set_num_threads(static_cast<int>(threads));
    const int width = static_cast<int>(logits->width);
    products->resize(strip * logits->tokens);
    for (std::size_t i = 0; i < logits->tokens; i += strip) {
      const int count = static_cast<int>(std::min(strip, logits->tokens - i));
      const int tokens = static_cast<int>(logits->tokens);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, count, tokens, width, 1.0F,
                  rows->data() + i * logits->width, width, rows->data(), width, 0.0F, products->data(),
                  tokens);
    }
  };
  return {"A A^T, OpenBLAS", run, {}};
}

void rows(bool quick, const bench::Show& show) {
  std::vector<Case> cases;
  for (const std::size_t planted : {0, 1, 10, 100, 1000}) {
    cases.push_back(quick ? Case{4096, 256, planted} : Case{50257, 768, planted});
  }
  const unsigned threads = thread_count(0);
  for (const Case& what : cases) {
    const auto logits = logits_of(what);
    const bench::Shape shape{
        .text = fmt::format("{} x {}, {} planted", what.tokens, what.width, what.planted),
        .dtype = "float32",
        .threads = threads};
    show(bench::compare("reach", shape, ours(logits, threads), {product(logits, threads)}, quick ? 3 : 1,
                        0.0));
  }
  cases.clear();
  for (const auto& [lengths, decay] : {std::pair(0.5, 0.0), std::pair(0.0, 0.7)}) {
    for (const std::size_t tokens : {8000U, 16000U, 32000U}) {
      if (!quick || tokens == 8000) cases.push_back({tokens, quick ? 256U : 768U, 0, lengths, decay});
    }
  }
  for (const Case& what : cases) {
    const auto logits = logits_of(what);
    const bench::Shape shape{.text = fmt::format("{} x {}, lengths e^({} N), columns k^-{}", what.tokens,
                                                 what.width, what.lengths, what.decay),
                             .dtype = "float32",
                             .threads = 1,
                             .clock = bench::Clock::thread};
    show(bench::compare("reach", shape, ours(logits, 1), {openblas(logits, 1)}, quick ? 3 : 1, 0.0));
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
