#include "unroll.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <normscope/core/error.hpp>

#include "pass.hpp"

namespace normscope::nets::rnn::detail {

struct Unroll::Words {
  std::span<const Labelled* const> words;
  double weight = 0.0;

  /// Steps of a word: its start symbol and its letters; none for an unused lane.
  [[nodiscard]] std::size_t steps(std::size_t lane) const {
    return lane < words.size() ? words[lane]->word.size() + 1 : 0;
  }
  [[nodiscard]] std::size_t steps() const {
    std::size_t most = 0;
    for (std::size_t l = 0; l < lanes; ++l) most = std::max(most, steps(l));
    return most;
  }
};

Unroll::Unroll(const Network& network)
    : width_(network.cell.width),
      outputs_(network.outputs()),
      gates_(gates(network.cell.kind).size()),
      has_cell_(network.cell.kind == CellKind::lstm),
      delta_((maps(network.cell.kind) + 1) * width_ * lanes),
      d_hidden_(width_ * lanes),
      d_cell_(has_cell_ ? width_ * lanes : 0),
      cell_gradient_(network.cell.parameters.size() * lanes),
      output_gradient_(network.output.size() * lanes) {}

void Unroll::reserve(std::size_t steps) {
  const auto grow = [&](std::vector<double>& values, std::size_t each) {
    values.resize(std::max(values.size(), (steps + 1) * each * lanes));
  };
  grow(hidden_, width_);
  grow(cell_, has_cell_ ? width_ : 0);
  grow(extra_, width_);
  grow(gate_values_, gates_ * width_);
  grow(output_slopes_, outputs_);
  symbols_.resize(std::max(symbols_.size(), (steps + 1) * lanes));
}

void Unroll::judge(const Network& network, const Words& words, std::size_t step) {
  double* const slopes = output_slopes_.data() + step * outputs_ * lanes;
  outputs<lanes>(width_, outputs_, network.output.data(), hidden_.data() + step * width_ * lanes, slopes);
  if (network.head == Head::membership) {
    for (std::size_t l = 0; l < lanes; ++l) {
      if (step != words.steps(l)) {
        slopes[l] = 0.0;
        continue;
      }
      const bool member = words.words[l]->member;
      const double logit = member ? slopes[l] : -slopes[l];
      loss_ += words.weight * (std::log1p(std::exp(-std::abs(logit))) + std::max(0.0, -logit));
      if (logit > 0.0) ++right_;
      slopes[l] = words.weight * (logistic(slopes[l]) - (member ? 1.0 : 0.0));
    }
    return;
  }
  softmax<lanes>(outputs_, slopes);
  for (std::size_t l = 0; l < lanes; ++l) {
    const bool reads = step <= words.steps(l);
    if (reads) {
      const std::size_t target =
          step < words.steps(l) ? words.words[l]->word[step - 1] : letters(network.language);
      const double p = slopes[target * lanes + l];
      loss_ -= words.weight * std::log(p);
      slopes[target * lanes + l] -= 1.0;
      // A word is accepted, rightly or not, if its end was probable as well.
      if (p <= least_probability) ruled_out_[l] = true;
      if (step == words.steps(l) && ruled_out_[l] != words.words[l]->member) ++right_;
    }
    for (std::size_t o = 0; o < outputs_; ++o) slopes[o * lanes + l] *= reads ? words.weight : 0.0;
  }
}

void Unroll::add(const Network& network, std::span<const Labelled* const> batch, double weight) {
  NORMSCOPE_ASSERT(batch.size() <= lanes && network.cell.width == width_);
  const Words words{batch, weight};
  const std::size_t steps = words.steps();
  const std::size_t n = width_ * lanes;
  const Shape shape = shape_of(network.cell);
  const double* const p = network.cell.parameters.data();
  reserve(steps);
  ruled_out_.fill(false);
  const auto before = [&](std::size_t step) {
    return Before{hidden_.data() + step * n, has_cell_ ? cell_.data() + step * n : nullptr};
  };
  const auto after = [&](std::size_t step) {
    return After{hidden_.data() + step * n, has_cell_ ? cell_.data() + step * n : nullptr,
                 extra_.data() + step * n, gate_values_.data() + step * n * gates_};
  };

  for (std::size_t step = 1; step <= steps; ++step) {
    std::uint8_t* const x = symbols_.data() + step * lanes;
    for (std::size_t l = 0; l < lanes; ++l) {
      x[l] = static_cast<std::uint8_t>(step == 1                ? letters(network.language)
                                       : step <= words.steps(l) ? batch[l]->word[step - 2]
                                                                : 0);
    }
    const After made = after(step);
    forward<lanes>(shape, p, x, before(step - 1), made);
    for (std::size_t l = 0; l < lanes; ++l) {
      if (step <= words.steps(l)) continue;
      // After its end a word's state stays 0; otherwise a rectifier could diverge and spoil the sums.
      for (std::size_t i = 0; i < width_; ++i) {
        made.hidden[i * lanes + l] = 0.0;
        made.extra[i * lanes + l] = 0.0;
        if (has_cell_) made.cell[i * lanes + l] = 0.0;
      }
    }
    judge(network, words, step);
  }

  std::fill(d_hidden_.begin(), d_hidden_.end(), 0.0);
  std::fill(d_cell_.begin(), d_cell_.end(), 0.0);
  for (std::size_t step = steps; step > 0; --step) {
    outputs_back<lanes>(width_, outputs_, network.output.data(), hidden_.data() + step * n,
                        output_slopes_.data() + step * outputs_ * lanes, d_hidden_.data(),
                        output_gradient_.data());
    backward<lanes>(shape, p, symbols_.data() + step * lanes, before(step - 1), after(step),
                    {d_hidden_.data(), d_cell_.data()}, delta_.data(), cell_gradient_.data());
  }
}

void Unroll::gradient(std::span<double> values) const {
  const std::size_t of_cell = cell_gradient_.size() / lanes;
  NORMSCOPE_ASSERT(values.size() == of_cell + output_gradient_.size() / lanes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double* const parts =
        i < of_cell ? cell_gradient_.data() + i * lanes : output_gradient_.data() + (i - of_cell) * lanes;
    double sum = 0.0;
    for (std::size_t l = 0; l < lanes; ++l) sum += parts[l];
    values[i] = sum;
  }
}

void Unroll::clear() {
  loss_ = 0.0;
  right_ = 0;
  std::fill(cell_gradient_.begin(), cell_gradient_.end(), 0.0);
  std::fill(output_gradient_.begin(), output_gradient_.end(), 0.0);
}

}  // namespace normscope::nets::rnn::detail
