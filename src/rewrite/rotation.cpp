#include <normscope/rewrite/plan.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/view.hpp>

namespace normscope::rewrite {
namespace {

/// Rows of a dense product at a time.
constexpr std::size_t rows_at_a_time = 64;

double squared(std::span<const double> x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return sum;
}

/// Makes the rows of a random matrix orthonormal, each twice against those before it.
std::vector<double> random_orthogonal(std::size_t size, Random& random) {
  std::vector<double> q(size * size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::span<double> row = std::span(q).subspan(i * size, size);
    for (double& value : row) value = random.normal();
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (std::size_t p = 0; p < i; ++p) {
        const std::span<const double> before = std::span<const double>(q).subspan(p * size, size);
        double along = 0.0;
        for (std::size_t j = 0; j < size; ++j) along += row[j] * before[j];
        for (std::size_t j = 0; j < size; ++j) row[j] -= along * before[j];
      }
      const double length = std::sqrt(squared(row));
      for (double& value : row) value /= length;
    }
  }
  return q;
}

/// Largest entry of QᵀQ - 1; `gram` becomes QᵀQ.
double deviation(const std::vector<double>& q, std::size_t width, std::vector<double>& gram) {
  const Factor<double> factor(q.data(), width, width, width);
  multiply(factor.transposed(), factor, MatrixView<double>(gram.data(), width, width));
  double largest = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      const double off = std::abs(gram[i * width + j] - (i == j ? 1.0 : 0.0));
      if (!(off <= largest)) largest = off;
    }
  }
  return largest;
}

void hadamard(std::span<double> x) {
  for (std::size_t half = 1; half < x.size(); half *= 2) {
    for (std::size_t begin = 0; begin < x.size(); begin += 2 * half) {
      for (std::size_t i = begin; i < begin + half; ++i) {
        const double sum = x[i] + x[i + half];
        x[i + half] = x[i] - x[i + half];
        x[i] = sum;
      }
    }
  }
}

bool ones_are_kept(const Rotation& rotation) {
  std::vector<double> ones(rotation.width(), 1.0);
  rotation.apply(ones);
  const double sign = ones.front() < 0.0 ? -1.0 : 1.0;
  return std::all_of(ones.begin(), ones.end(), [&](double value) { return std::abs(value - sign) < 1e-9; });
}

}  // namespace

Rotation Rotation::random(std::size_t width, std::uint64_t seed, bool keeps_ones) {
  Random random(seed);
  Rotation result(width);
  while (width % (2 * result.block_) == 0) result.block_ *= 2;
  const std::size_t odd = width / result.block_;
  result.signs_.resize(width);
  for (double& sign : result.signs_) sign = (random.bits() & 1U) != 0 ? 1.0 : -1.0;
  if (odd > 1) result.dense_ = random_orthogonal(odd, random);
  if (keeps_ones) {
    std::vector<double> mirror(width, 1.0 / std::sqrt(static_cast<double>(width)));
    result.apply(mirror);
    for (double& value : mirror) value -= 1.0 / std::sqrt(static_cast<double>(width));
    const double length = std::sqrt(squared(mirror));
    for (double& value : mirror) value /= length;
    if (length > 1e-12) result.reflection_ = std::move(mirror);
  }
  result.keeps_ones_ = ones_are_kept(result);
  return result;
}

Rotation Rotation::nearest(std::vector<double> matrix, std::size_t width) {
  std::vector<double> gram(width * width);
  double off = deviation(matrix, width, gram);
  if (!(off <= 1e-3)) {
    throw Error(ErrorCode::Argument,
                fmt::format("rotation: an entry of Q'Q - 1 is {:.3g}, expected an orthogonal matrix", off));
  }
  // Newton's iteration for the orthogonal factor: Q <- Q (3 - QᵀQ) / 2.
  for (int step = 0; step < 8 && off > 1e-15 * std::sqrt(static_cast<double>(width)); ++step) {
    for (double& value : gram) value *= -0.5;
    for (std::size_t i = 0; i < width; ++i) gram[i * width + i] += 1.5;
    std::vector<double> next(matrix.size());
    multiply(Factor<double>(matrix.data(), width, width, width),
             Factor<double>(gram.data(), width, width, width), MatrixView<double>(next.data(), width, width));
    const double before = off;
    const double now = deviation(next, width, gram);
    if (now >= before) break;
    matrix = std::move(next);
    off = now;
  }
  Rotation result(width);
  result.dense_ = std::move(matrix);
  result.keeps_ones_ = ones_are_kept(result);
  return result;
}

double Rotation::error() const {
  const double steps = std::log2(static_cast<double>(block_)) + 2.0;
  const double dense = static_cast<double>(dense_.empty() ? 0 : width_ / block_);
  // Sums of m products and of k halvings, a reflection, and the deviation of Q from an orthogonal matrix.
  return 0x1p-52 * (steps + dense * std::sqrt(dense) + (reflection_.empty() ? 0.0 : 8.0) +
                    4.0 * std::sqrt(static_cast<double>(width_)));
}

void Rotation::reflect(double* row) const {
  double along = 0.0;
  for (std::size_t j = 0; j < reflection_.size(); ++j) along += reflection_[j] * row[j];
  for (std::size_t j = 0; j < reflection_.size(); ++j) row[j] -= 2.0 * along * reflection_[j];
}

/// The product with R ⊗ H and the signs, of one row.
void Rotation::factors(double* row, std::vector<double>& work, bool transposed) const {
  const std::size_t odd = width_ / block_;
  const double scale = 1.0 / std::sqrt(static_cast<double>(block_));
  if (!transposed) {
    for (std::size_t j = 0; j < width_; ++j) row[j] *= signs_[j];
  }
  if (block_ > 1) {
    for (std::size_t i = 0; i < odd; ++i) hadamard({row + i * block_, block_});
    for (std::size_t j = 0; j < width_; ++j) row[j] *= scale;
  }
  if (!dense_.empty()) {
    work.resize(width_);
    const Factor<double> r(dense_.data(), odd, odd, odd);
    multiply(transposed ? r.transposed() : r, Factor<double>(row, odd, block_, block_),
             MatrixView<double>(work.data(), odd, block_));
    std::copy(work.begin(), work.end(), row);
  }
  if (transposed) {
    for (std::size_t j = 0; j < width_; ++j) row[j] *= signs_[j];
  }
}

void Rotation::apply_all(std::span<double> rows, unsigned threads, bool transposed) const {
  const std::size_t count = rows.size() / width_;
  if (signs_.empty()) {
    const std::size_t pieces = (count + rows_at_a_time - 1) / rows_at_a_time;
    parallel_for(pieces, 1, threads, [&](std::size_t from, std::size_t to) {
      std::vector<double> work(rows_at_a_time * width_);
      for (std::size_t piece = from; piece < to; ++piece) {
        double* const begin = rows.data() + piece * rows_at_a_time * width_;
        const std::size_t n = std::min(rows_at_a_time, count - piece * rows_at_a_time);
        const Factor<double> q(dense_.data(), width_, width_, width_);
        multiply(Factor<double>(begin, n, width_, width_), transposed ? q : q.transposed(),
                 MatrixView<double>(work.data(), n, width_));
        std::copy_n(work.begin(), n * width_, begin);
      }
    });
    return;
  }
  parallel_for(count, 1, threads, [&](std::size_t from, std::size_t to) {
    std::vector<double> work;
    for (std::size_t i = from; i < to; ++i) {
      double* const row = rows.data() + i * width_;
      if (transposed && !reflection_.empty()) reflect(row);
      factors(row, work, transposed);
      if (!transposed && !reflection_.empty()) reflect(row);
    }
  });
}

void Rotation::apply(std::span<double> rows, unsigned threads) const { apply_all(rows, threads, false); }

void Rotation::apply_transposed(std::span<double> rows, unsigned threads) const {
  apply_all(rows, threads, true);
}

std::vector<double> Rotation::numbers() const {
  std::vector<double> result = {static_cast<double>(block_), signs_.empty() ? 0.0 : 1.0,
                                reflection_.empty() ? 0.0 : 1.0, keeps_ones_ ? 1.0 : 0.0};
  for (const auto* part : {&signs_, &reflection_, &dense_}) {
    result.insert(result.end(), part->begin(), part->end());
  }
  return result;
}

Rotation Rotation::from_numbers(std::span<const double> numbers, std::size_t width) {
  const auto expect = [](bool holds) {
    if (!holds) throw Error(ErrorCode::Format, "rotation: its numbers are not those of a rotation");
  };
  expect(width > 0 && numbers.size() >= 4);
  Rotation result(width);
  while (static_cast<double>(result.block_) < numbers[0] && width / result.block_ % 2 == 0) {
    result.block_ *= 2;
  }
  expect(static_cast<double>(result.block_) == numbers[0]);
  result.keeps_ones_ = numbers[3] == 1.0;
  const bool has_signs = numbers[1] == 1.0;
  const bool has_reflection = numbers[2] == 1.0;
  const std::size_t odd = width / result.block_;
  std::span<const double> rest = numbers.subspan(4);
  const auto take = [&](std::vector<double>& part, std::size_t size) {
    expect(size <= rest.size());
    part.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(size));
    rest = rest.subspan(size);
  };
  if (has_signs) take(result.signs_, width);
  if (has_reflection) take(result.reflection_, width);
  if (!rest.empty()) {
    expect(odd <= rest.size() / odd);
    take(result.dense_, odd * odd);
  }
  expect(rest.empty());
  // A matrix alone, or random signs with R where that is not 1.
  expect(has_signs ? odd == 1 || !result.dense_.empty()
                   : result.block_ == 1 && !has_reflection && !result.dense_.empty());
  return result;
}

}  // namespace normscope::rewrite
