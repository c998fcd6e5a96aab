#include <normscope/nets/rnn/train.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/nets/adam.hpp>

#include "unroll.hpp"

namespace normscope::nets::rnn {
namespace {

using detail::Unroll;

Network begin(const TrainSpec& spec, Random& random) {
  Network network{.language = spec.language, .head = spec.head};
  network.cell = Cell::zeros(spec.cell, letters(spec.language) + 1, spec.width);
  network.output.resize(network.outputs() * (spec.width + 1));
  const double bound = 1.0 / std::sqrt(static_cast<double>(spec.width));
  for (double& value : network.cell.parameters) value = bound * (2.0 * random.uniform() - 1.0);
  for (double& value : network.output) value = bound * (2.0 * random.uniform() - 1.0);
  return network;
}

/// Number of symbols, or words, whose probability enters the loss.
double terms(Head head, std::span<const Labelled* const> words) {
  double sum = 0.0;
  for (const Labelled* one : words) {
    sum += head == Head::membership ? 1.0 : static_cast<double>(one->word.size() + 1);
  }
  return sum;
}

void add(Unroll& unroll, const Network& network, std::span<const Labelled* const> words) {
  const double weight = 1.0 / terms(network.head, words);
  for (std::size_t at = 0; at < words.size(); at += detail::lanes) {
    unroll.add(network, words.subspan(at, std::min(detail::lanes, words.size() - at)), weight);
  }
}

template <typename T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

/// Exponents that are independent or close to one another, but not all equal.
Word other_word(const TrainSpec& spec, bool near, Random& random) {
  std::array<std::size_t, 3> counts{};
  const std::span<std::size_t> used = std::span(counts).first(letters(spec.language));
  do {
    const std::size_t n = random.below(spec.longest + 1);
    for (std::size_t& count : used) {
      const std::size_t above = n + random.below(7);
      count = near ? above - std::min<std::size_t>(above, 3) : random.below(spec.longest + 1);
    }
  } while (std::all_of(used.begin(), used.end(), [&](std::size_t count) { return count == used[0]; }));
  return blocks(used);
}

}  // namespace

TrainSpec usual(CellKind cell, Language language, Head head, std::uint64_t seed) {
  TrainSpec spec{.cell = cell, .language = language, .head = head, .seed = seed};
  if (language == Language::anbncn) {
    spec.longest = 50;
    spec.epochs = 1000;
  }
  if (head == Head::membership) {
    spec.batch = 16;
    spec.rate = 0.005;
    spec.epochs = language == Language::anbn ? 30 : 60;
  }
  return spec;
}

void validate(const TrainSpec& spec) {
  const auto expect = [](bool holds, std::string_view what) {
    if (!holds) throw Error(ErrorCode::Argument, fmt::format("train: {}", what));
  };
  constexpr std::size_t most_width = 256;
  constexpr std::size_t most_length = 1000;
  expect(spec.width >= 1 && spec.width <= most_width,
         fmt::format("{} units, expected 1 to {}", spec.width, most_width));
  expect(spec.longest >= 1 && spec.longest <= most_length,
         fmt::format("exponents up to {}, expected 1 to {}", spec.longest, most_length));
  expect(spec.words >= 2, fmt::format("{} words, expected 2 or more", spec.words));
  expect(spec.batch >= 1, "batches of no words, expected 1 or more");
  expect(spec.rate > 0.0 && std::isfinite(spec.rate),
         fmt::format("rate {}, expected more than 0", spec.rate));
  expect(spec.clip > 0.0, fmt::format("gradients clipped to {}, expected more than 0", spec.clip));
}

std::vector<Labelled> training_words(const TrainSpec& spec) {
  validate(spec);
  std::vector<Labelled> words;
  if (spec.head == Head::next_symbol) {
    for (std::size_t n = 0; n <= spec.longest; ++n) words.push_back({member(spec.language, n), true});
    return words;
  }
  // Words have a random stream of their own, so that they do not depend on the size of the network.
  Random random(spec.seed ^ 0x776f726473ULL);
  for (std::size_t i = 0; i < spec.words; ++i) {
    if (i % 2 == 0) {
      words.push_back({member(spec.language, random.below(spec.longest + 1)), true});
    } else {
      words.push_back({other_word(spec, i % 4 == 1, random), false});
    }
  }
  return words;
}

Gradient gradient(const Network& network, std::span<const Labelled> words) {
  NORMSCOPE_ASSERT(!words.empty());
  validate(network);
  std::vector<const Labelled*> pointers;
  for (const Labelled& one : words) {
    for (const std::uint8_t letter : one.word) {
      if (letter >= letters(network.language)) {
        throw Error(ErrorCode::Argument, fmt::format("gradient: letter {} of a word, expected less than {}",
                                                     letter, letters(network.language)));
      }
    }
    pointers.push_back(&one);
  }
  Unroll unroll(network);
  add(unroll, network, pointers);
  Gradient gradient{unroll.loss(), unroll.right(), {}};
  gradient.values.resize(network.cell.parameters.size() + network.output.size());
  unroll.gradient(gradient.values);
  return gradient;
}

struct Trainer::Work {
  explicit Work(const TrainSpec& s)
      : spec(s),
        random(s.seed),
        network(begin(s, random)),
        words(training_words(s)),
        unroll(network),
        values(network.cell.parameters.size() + network.output.size()),
        adam(values.size()) {}

  /// Batches of words of similar length, so that few wait for a long one; shuffled, so that their composition
  /// varies.
  void order() {
    std::size_t most = 0;
    for (const Labelled& one : words) most = std::max(most, one.word.size());
    std::vector<std::pair<std::size_t, const Labelled*>> all;
    for (const Labelled& one : words) all.emplace_back(one.word.size() + random.below(most / 4 + 1), &one);
    shuffle(all, random);
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    batches.clear();
    for (std::size_t at = 0; at < all.size(); at += spec.batch) {
      std::vector<const Labelled*>& batch = batches.emplace_back();
      for (std::size_t i = at; i < std::min(at + spec.batch, all.size()); ++i) batch.push_back(all[i].second);
    }
    shuffle(batches, random);
  }

  /// 1, or decreasing linearly to 0 in the second half.
  [[nodiscard]] double rate_share() const {
    const double done = static_cast<double>(loss.size()) / static_cast<double>(spec.epochs);
    return spec.decay ? std::min(1.0, 2.0 * (1.0 - done)) : 1.0;
  }

  void update() {
    unroll.gradient(values);
    // A rectifier may diverge: a step that is not finite is skipped.
    adam.step<double>(spec.rate * rate_share(), spec.clip, values, [this](std::size_t i) -> double& {
      const std::size_t of_cell = network.cell.parameters.size();
      return i < of_cell ? network.cell.parameters[i] : network.output[i - of_cell];
    });
  }

  TrainSpec spec;
  Random random;
  Network network;
  std::vector<Labelled> words;
  Unroll unroll;
  std::vector<std::vector<const Labelled*>> batches{};
  std::size_t next_batch = 0;
  double epoch_loss = 0.0;
  std::size_t epoch_right = 0;
  std::vector<double> values;  ///< of the gradient
  Adam adam;
  std::vector<double> loss{};
  std::vector<double> accuracy{};
};

Trainer::Trainer(const TrainSpec& spec) : work_((validate(spec), std::make_unique<Work>(spec))) {}
Trainer::Trainer(const TrainSpec& spec, std::span<const std::byte> saved) : Trainer(spec) {
  Work& work = *work_;
  Unpacker from(saved);
  from.get(work.random);
  from.get(work.adam.power1);
  from.get(work.adam.power2);
  for (std::vector<double>* const values :
       {&work.network.cell.parameters, &work.network.output, &work.adam.first, &work.adam.second, &work.loss,
        &work.accuracy}) {
    from.get(*values);
  }
  from.finish();
  const std::size_t size = work.network.cell.parameters.size() + work.network.output.size();
  if (size != work.values.size() || work.adam.first.size() != size || work.adam.second.size() != size ||
      work.loss.size() > spec.epochs || work.accuracy.size() != work.loss.size()) {
    throw Error(ErrorCode::Format,
                fmt::format("train: saved with {} parameters after {} epochs, expected {} and at most {}",
                            size, work.loss.size(), work.values.size(), spec.epochs));
  }
  validate(work.network);
}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::step() {
  NORMSCOPE_ASSERT(!done());
  Work& work = *work_;
  if (work.next_batch == 0) work.order();
  const std::vector<const Labelled*>& batch = work.batches[work.next_batch];
  work.unroll.clear();
  add(work.unroll, work.network, batch);
  const double share = static_cast<double>(batch.size()) / static_cast<double>(work.words.size());
  work.epoch_loss += share * work.unroll.loss();
  work.epoch_right += work.unroll.right();
  work.update();
  if (++work.next_batch < work.batches.size()) return;
  work.loss.push_back(work.epoch_loss);
  work.accuracy.push_back(static_cast<double>(work.epoch_right) / static_cast<double>(work.words.size()));
  work.epoch_loss = 0.0;
  work.epoch_right = 0;
  work.next_batch = 0;
}

void Trainer::epoch() {
  const std::size_t before = work_->loss.size();
  while (work_->loss.size() == before) step();
}

bool Trainer::done() const {
  const Work& work = *work_;
  const bool perfect =
      work.spec.head == Head::membership && !work.accuracy.empty() && work.accuracy.back() == 1.0;
  return work.next_batch == 0 && (perfect || work.loss.size() >= work.spec.epochs);
}

const TrainSpec& Trainer::spec() const { return work_->spec; }
const Network& Trainer::network() const { return work_->network; }
std::span<const double> Trainer::loss() const { return work_->loss; }
std::span<const double> Trainer::accuracy() const { return work_->accuracy; }

std::vector<std::byte> Trainer::save() const {
  const Work& work = *work_;
  NORMSCOPE_ASSERT(work.next_batch == 0);
  Packer to;
  to.put(work.random);
  to.put(work.adam.power1);
  to.put(work.adam.power2);
  for (const std::vector<double>* const values :
       {&work.network.cell.parameters, &work.network.output, &work.adam.first, &work.adam.second, &work.loss,
        &work.accuracy}) {
    to.put(*values);
  }
  return to.bytes();
}

Trainer train(const TrainSpec& spec, const Progress& progress) {
  Trainer trainer(spec);
  while (!trainer.done()) {
    progress("training", trainer.loss().size(), spec.epochs);
    trainer.epoch();
  }
  return trainer;
}

}  // namespace normscope::nets::rnn
