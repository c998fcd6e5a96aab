#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/lanes.hpp>
#include <normscope/core/random.hpp>

#include "pairs.hpp"

namespace normscope::nets::majority {
namespace {

constexpr std::size_t test_part = 5;

template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

/// Partitions into ascending parts whose last exceeds the one before by at least the lead.
class Partitions {
 public:
  Partitions(const Task& task, std::size_t wanted, Random& random)
      : task_(task), wanted_(wanted), random_(random) {
    extend(1, task.length);
  }

  [[nodiscard]] const std::vector<std::vector<std::size_t>>& found() const { return found_; }

 private:
  void extend(std::size_t least, std::size_t rest) {
    if (parts_.size() + 1 == task_.classes) {
      close(rest);
      return;
    }
    std::vector<std::size_t> sizes(rest - least + 1);
    std::iota(sizes.begin(), sizes.end(), least);
    shuffle(sizes, random_);
    for (const std::size_t size : sizes) {
      if (found_.size() == wanted_) return;
      if (size == rest) {
        close(rest);
      } else if (rest - size >= size) {
        parts_.push_back(size);
        extend(size, rest - size);
        parts_.pop_back();
      }
    }
  }

  void close(std::size_t last) {
    if (found_.size() == wanted_ || parts_.empty() || last < parts_.back() + task_.lead) return;
    found_.push_back(parts_);
    found_.back().push_back(last);
  }

  const Task& task_;
  std::size_t wanted_;
  Random& random_;
  std::vector<std::size_t> parts_{};
  std::vector<std::vector<std::size_t>> found_{};
};

void append(Examples& examples, const Examples& from, std::size_t index) {
  examples.counts.push_back(from.counts[index]);
  examples.majority.push_back(from.majority[index]);
}

/// Every fifth sequence, ordered by majority, is for the test.
Data split(const Examples& all, Random& random) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  shuffle(order, random);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all.majority[a] < all.majority[b]; });
  Data data;
  for (std::size_t i = 0; i < order.size(); ++i) {
    append(i % test_part == 0 ? data.test : data.training, all, order[i]);
  }
  return data;
}

}  // namespace

Data make_data(const Task& task, std::uint64_t seed) {
  if (task.classes < 2 || task.classes > most_classes) {
    throw Error(ErrorCode::Argument,
                fmt::format("majority task: {} classes, expected 2 to {}", task.classes, most_classes));
  }
  if (task.length == 0 || task.length > std::numeric_limits<std::uint8_t>::max() ||
      task.sequences_each == 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("majority task: length {}, {} sequences a partition, expected 1 to 255 and some",
                            task.length, task.sequences_each));
  }
  Random random(seed);
  const Partitions partitions(task, task.sequences / task.sequences_each + 1, random);
  if (partitions.found().empty()) {
    throw Error(ErrorCode::Argument, fmt::format("majority task: no partition of {} has a majority by {}",
                                                 task.length, task.lead));
  }
  Examples all;
  std::vector<std::uint8_t> names(task.classes);
  std::iota(names.begin(), names.end(), std::uint8_t{0});
  for (const std::vector<std::size_t>& parts : partitions.found()) {
    for (std::size_t copy = 0; copy < task.sequences_each; ++copy) {
      shuffle(names, random);
      Counts counts{};
      for (std::size_t i = 0; i < parts.size(); ++i) counts[names[i]] = static_cast<std::uint8_t>(parts[i]);
      all.counts.push_back(counts);
      all.majority.push_back(names[parts.size() - 1]);
    }
  }
  return split(all, random);
}

namespace {

template <class Real, class Size>
struct Constants {
  Real weight[Size::classes];
  Real weighted[Size::classes][Size::width];
  Real residual[Size::width];
  Real embedding[Size::classes][Size::width];
  Real gain[Size::width];
  Real shift[Size::width];
  Real first[Size::width][Size::width];
  Real first_bias[Size::width];
  Real second[Size::width][Size::width];
  Real second_bias[Size::width];
};

/// Sums over pairs, one per lane.
template <class Real, class Size>
struct Sums {
  Lanes<Real> denominator[Size::classes];  // of c_j times the gradient by Σ_j c_j weight_ij
  Lanes<Real> numerator[Size::classes][Size::width];
  Lanes<Real> residual[Size::width];
  Lanes<Real> embedding[Size::classes][Size::width];
  Lanes<Real> gain[Size::width];
  Lanes<Real> shift[Size::width];
  Lanes<Real> first[Size::width][Size::width];
  Lanes<Real> first_bias[Size::width];
  Lanes<Real> second[Size::width][Size::width];
  Lanes<Real> second_bias[Size::width];
};

/// Some pairs of one class.
template <class Real>
struct Block {
  Ints<Real> counts[most_classes / 4];  // of four classes each, a byte a class
  Ints<Real> majority;
  Lanes<Real> part;  // weight in the batch's mean
};

template <class Real>
struct BlockOutcome {
  Lanes<Real> sum;      // of e^(logit − largest)
  Lanes<Real> largest;  // logit
  Lanes<Real> answer;   // the majority's logit
};

template <class Real, class Size, bool with_gradient>
NORMSCOPE_LANES_INLINE void run_block(const Constants<Real, Size>& at, const Block<Real>& block,
                                      BlockOutcome<Real>& outcome, Sums<Real, Size>& sums) {
  constexpr std::size_t width = Size::width;
  constexpr std::size_t classes = Size::classes;
  using L = Lanes<Real>;
  constexpr Real share = Real{1} / static_cast<Real>(width);
  const L zero = block.part * Real{0};

  L counts[classes];
  L denominator = zero;
  L x[width];
  for (L& value : x) value = zero;
  for (std::size_t j = 0; j < classes; ++j) {
    const Ints<Real> byte = (block.counts[j / 4] >> static_cast<int>(8 * (j % 4))) & 255;
    counts[j] = __builtin_convertvector(byte, L);
    const L count = counts[j];
    denominator += count * at.weight[j];
    for (std::size_t f = 0; f < width; ++f) x[f] += count * at.weighted[j][f];
  }
  const L inverse = Real{1} / denominator;
  L mixed[width];
  L mean = zero;
  for (std::size_t f = 0; f < width; ++f) {
    mixed[f] = x[f] * inverse;
    x[f] = mixed[f] + at.residual[f];
    mean += x[f];
  }
  mean *= share;
  L scale = zero;
  L normed[width];
  for (std::size_t f = 0; f < width; ++f) {
    normed[f] = x[f] - mean;
    scale += normed[f] * normed[f];
  }
  scale *= share;
  invert_root<Real>(scale);
  L input[width];
  for (std::size_t f = 0; f < width; ++f) {
    normed[f] *= scale;
    input[f] = normed[f] * at.gain[f] + at.shift[f];
  }
  L hidden[width];
  for (std::size_t m = 0; m < width; ++m) {
    L sum = zero + at.first_bias[m];
    for (std::size_t f = 0; f < width; ++f) sum += input[f] * at.first[m][f];
    hidden[m] = sum > 0 ? sum : zero;
  }
  for (std::size_t f = 0; f < width; ++f) {
    L sum = x[f] + at.second_bias[f];
    for (std::size_t m = 0; m < width; ++m) sum += hidden[m] * at.second[f][m];
    x[f] = sum;
  }

  L logit[classes];
  for (std::size_t k = 0; k < classes; ++k) {
    L sum = x[0] * at.embedding[k][0];
    for (std::size_t f = 1; f < width; ++f) sum += x[f] * at.embedding[k][f];
    logit[k] = sum;
  }
  outcome.largest = logit[0];
  for (std::size_t k = 1; k < classes; ++k) {
    outcome.largest = logit[k] > outcome.largest ? logit[k] : outcome.largest;
  }
  outcome.answer = zero;
  outcome.sum = zero;
  for (std::size_t k = 0; k < classes; ++k) {
    const Ints<Real> is_answer = block.majority == static_cast<int>(k);
    outcome.answer = is_answer ? logit[k] : outcome.answer;
    logit[k] -= outcome.largest;
    exponentiate<Real>(logit[k]);
    outcome.sum += logit[k];
  }
  if constexpr (!with_gradient) return;

  const L part = block.part / outcome.sum;
  L dx[width];
  for (L& value : dx) value = zero;
  for (std::size_t k = 0; k < classes; ++k) {
    const Ints<Real> is_answer = block.majority == static_cast<int>(k);
    const L by_logit = logit[k] * part - (is_answer ? block.part : zero);
    for (std::size_t f = 0; f < width; ++f) {
      dx[f] += by_logit * at.embedding[k][f];
      sums.embedding[k][f] += by_logit * x[f];
    }
  }
  L by_input[width];
  for (std::size_t f = 0; f < width; ++f) {
    sums.second_bias[f] += dx[f];
    by_input[f] = zero;
  }
  for (std::size_t m = 0; m < width; ++m) {
    L by_hidden = zero;
    for (std::size_t f = 0; f < width; ++f) {
      by_hidden += dx[f] * at.second[f][m];
      sums.second[f][m] += dx[f] * hidden[m];
    }
    by_hidden = hidden[m] > 0 ? by_hidden : zero;
    sums.first_bias[m] += by_hidden;
    for (std::size_t f = 0; f < width; ++f) {
      by_input[f] += by_hidden * at.first[m][f];
      sums.first[m][f] += by_hidden * input[f];
    }
  }
  L mean_gradient = zero;
  L along = zero;
  for (std::size_t f = 0; f < width; ++f) {
    sums.gain[f] += by_input[f] * normed[f];
    sums.shift[f] += by_input[f];
    by_input[f] *= at.gain[f];
    mean_gradient += by_input[f];
    along += by_input[f] * normed[f];
  }
  mean_gradient *= share;
  along *= share;
  L by_denominator = zero;
  for (std::size_t f = 0; f < width; ++f) {
    dx[f] += scale * (by_input[f] - mean_gradient - normed[f] * along);
    sums.residual[f] += dx[f];
    dx[f] *= inverse;
    by_denominator -= dx[f] * mixed[f];
  }
  for (std::size_t j = 0; j < classes; ++j) {
    const L count = counts[j];
    sums.denominator[j] += count * by_denominator;
    for (std::size_t f = 0; f < width; ++f) sums.numerator[j][f] += count * dx[f];
  }
}

template <class Real, class Size>
NORMSCOPE_LANES_INLINE void run_each(const Constants<Real, Size>& at, const Block<Real>* blocks,
                                     std::size_t count, BlockOutcome<Real>* outcomes,
                                     Sums<Real, Size>* sums) {
  Sums<Real, Size> none;
  for (std::size_t i = 0; i < count; ++i) {
    if (sums != nullptr) {
      run_block<Real, Size, true>(at, blocks[i], outcomes[i], *sums);
    } else {
      run_block<Real, Size, false>(at, blocks[i], outcomes[i], none);
    }
  }
}

NORMSCOPE_LANES_CLONES void run_blocks(const Constants<float, Eight>& at, const Block<float>* blocks,
                                       std::size_t count, BlockOutcome<float>* outcomes,
                                       Sums<float, Eight>* sums) {
  run_each(at, blocks, count, outcomes, sums);
}

NORMSCOPE_LANES_CLONES void run_blocks(const Constants<float, Three>& at, const Block<float>* blocks,
                                       std::size_t count, BlockOutcome<float>* outcomes,
                                       Sums<float, Three>* sums) {
  run_each(at, blocks, count, outcomes, sums);
}

NORMSCOPE_LANES_CLONES void run_blocks(const Constants<double, Eight>& at, const Block<double>* blocks,
                                       std::size_t count, BlockOutcome<double>* outcomes,
                                       Sums<double, Eight>* sums) {
  run_each(at, blocks, count, outcomes, sums);
}

NORMSCOPE_LANES_CLONES void run_blocks(const Constants<double, Three>& at, const Block<double>* blocks,
                                       std::size_t count, BlockOutcome<double>* outcomes,
                                       Sums<double, Three>* sums) {
  run_each(at, blocks, count, outcomes, sums);
}

/// Every entry of an array of any shape, as a flat range.
template <class Real, class Array>
void convert(Real* to, const Array& from) {
  const auto* values = reinterpret_cast<const double*>(&from);
  for (std::size_t i = 0; i < sizeof(Array) / sizeof(double); ++i) to[i] = static_cast<Real>(values[i]);
}

template <class Real, class Array>
void add_totals(Array& to, const Lanes<Real>* from) {
  auto* values = reinterpret_cast<double*>(&to);
  for (std::size_t i = 0; i < sizeof(Array) / sizeof(double); ++i) values[i] += total<Real>(from[i]);
}

}  // namespace

template <class Real, class Size>
struct Pairs<Real, Size>::Work {
  static constexpr std::size_t classes = Size::classes;
  static constexpr std::size_t most_blocks = 8;

  Constants<Real, Size> constants{};
  Sums<Real, Size> sums{};
  Block<Real> blocks[most_blocks]{};
  BlockOutcome<Real> outcomes[most_blocks]{};
  std::vector<std::uint32_t> members[classes]{};
  std::size_t sizes[classes]{};

  /// Lists the sequences that contain each class; returns their number of tokens. Branch-free, because
  /// branches would be unpredictable.
  double sort(const Examples& examples, std::span<const std::uint32_t> rows) {
    for (std::size_t j = 0; j < classes; ++j) {
      members[j].resize(rows.size());
      sizes[j] = 0;
    }
    std::size_t tokens = 0;
    for (const std::uint32_t row : rows) {
      const Counts& counts = examples.counts[row];
      for (std::size_t j = 0; j < classes; ++j) {
        // At most the number of previous rows.
        members[j].data()[sizes[j]] = row;
        sizes[j] += counts[j] > 0 ? 1 : 0;
        tokens += counts[j];
      }
    }
    return static_cast<double>(tokens);
  }

  /// The pairs of class `own` from `first` on; returns their number.
  std::size_t fill(Block<Real>& block, const Examples& examples, std::size_t own, std::size_t first,
                   double tokens) const {
    constexpr std::size_t count = lane_count<Real>;
    const std::uint32_t* own_members = members[own].data() + first;
    const std::size_t filled = std::min(count, sizes[own] - first);
    IntArray<Real> words[most_classes / 4];
    IntArray<Real> majority;
    Real part[count];
    for (std::size_t lane = 0; lane < count; ++lane) {
      const std::uint32_t row = own_members[lane < filled ? lane : 0];
      const Counts& counts = examples.counts[row];
      for (std::size_t word = 0; word < most_classes / 4; ++word) {
        std::int32_t four = 0;
        std::memcpy(&four, counts.data() + 4 * word, 4);
        words[word][lane] = four;
      }
      majority[lane] = examples.majority[row];
      part[lane] = lane < filled ? static_cast<Real>(counts[own] / tokens) : Real{0};
    }
    same_bits(block.counts, words);
    same_bits(block.majority, majority);
    same_bits(block.part, part);
    return filled;
  }
};

template <class Real, class Size>
Pairs<Real, Size>::Pairs() : work_(std::make_unique<Work>()) {}
template <class Real, class Size>
Pairs<Real, Size>::Pairs(Pairs&&) noexcept = default;
template <class Real, class Size>
Pairs<Real, Size>& Pairs<Real, Size>::operator=(Pairs&&) noexcept = default;
template <class Real, class Size>
Pairs<Real, Size>::~Pairs() = default;

template <class Real, class Size>
Outcome Pairs<Real, Size>::evaluate(const Tables<Size>& tables, const Examples& examples,
                                    std::span<const std::uint32_t> rows, Tables<Size>* gradient) {
  constexpr std::size_t width = Size::width;
  constexpr std::size_t classes = Size::classes;
  NORMSCOPE_ASSERT(!rows.empty());
  Work& work = *work_;
  const double tokens = work.sort(examples, rows);
  Constants<Real, Size>& at = work.constants;
  convert(&at.embedding[0][0], tables.embedding);
  convert(at.gain, tables.gain);
  convert(at.shift, tables.shift);
  convert(&at.first[0][0], tables.first);
  convert(at.first_bias, tables.first_bias);
  convert(&at.second[0][0], tables.second);
  convert(at.second_bias, tables.second_bias);
  if (gradient != nullptr) {
    *gradient = {};
    work.sums = {};
  }

  Outcome outcome;
  for (std::size_t own = 0; own < classes; ++own) {
    convert(at.weight, tables.weight[own]);
    convert(at.residual, tables.residual[own]);
    for (std::size_t j = 0; j < classes; ++j) {
      for (std::size_t f = 0; f < width; ++f) {
        at.weighted[j][f] = static_cast<Real>(tables.weight[own][j] * tables.value[j][f]);
      }
    }
    const std::size_t pairs = work.sizes[own];
    for (std::size_t first = 0; first < pairs;) {
      std::size_t filled[Work::most_blocks]{};
      std::size_t blocks = 0;
      for (; blocks < Work::most_blocks && first < pairs; ++blocks) {
        filled[blocks] = work.fill(work.blocks[blocks], examples, own, first, tokens);
        first += filled[blocks];
      }
      run_blocks(at, work.blocks, blocks, work.outcomes, gradient != nullptr ? &work.sums : nullptr);
      for (std::size_t block = 0; block < blocks; ++block) {
        const BlockOutcome<Real>& it = work.outcomes[block];
        for (std::size_t lane = 0; lane < filled[block]; ++lane) {
          const double part = work.blocks[block].part[lane];
          outcome.loss += part * (std::log(it.sum[lane]) + it.largest[lane] - it.answer[lane]);
          if (it.answer[lane] == it.largest[lane]) outcome.right += part;
        }
      }
    }
    if (gradient == nullptr) continue;
    add_totals<Real>(gradient->residual[own], work.sums.residual);
    for (std::size_t j = 0; j < classes; ++j) {
      double& by_weight = gradient->weight[own][j];
      by_weight = total<Real>(work.sums.denominator[j]);
      for (std::size_t f = 0; f < width; ++f) {
        const double by_numerator = total<Real>(work.sums.numerator[j][f]);
        by_weight += by_numerator * tables.value[j][f];
        gradient->value[j][f] += by_numerator * tables.weight[own][j];
      }
    }
    std::memset(static_cast<void*>(work.sums.denominator), 0, sizeof work.sums.denominator);
    std::memset(static_cast<void*>(work.sums.numerator), 0, sizeof work.sums.numerator);
    std::memset(static_cast<void*>(work.sums.residual), 0, sizeof work.sums.residual);
  }
  if (gradient != nullptr) {
    add_totals<Real>(gradient->embedding, &work.sums.embedding[0][0]);
    add_totals<Real>(gradient->gain, work.sums.gain);
    add_totals<Real>(gradient->shift, work.sums.shift);
    add_totals<Real>(gradient->first, &work.sums.first[0][0]);
    add_totals<Real>(gradient->first_bias, work.sums.first_bias);
    add_totals<Real>(gradient->second, &work.sums.second[0][0]);
    add_totals<Real>(gradient->second_bias, work.sums.second_bias);
  }
  return outcome;
}

template class Pairs<float, Eight>;
template class Pairs<double, Eight>;
template class Pairs<float, Three>;
template class Pairs<double, Three>;

}  // namespace normscope::nets::majority
