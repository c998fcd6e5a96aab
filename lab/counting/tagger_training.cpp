#include "tagger_training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/core/text.hpp>
#include <normscope/nets/adam.hpp>

#include "kernels.hpp"

namespace normscope::lab::counting {
namespace {

// Independent streams of random numbers.
constexpr std::uint64_t training_stream = 0x7461676765642077ULL;
constexpr std::uint64_t order_stream = 0x9e3779b97f4a7c15ULL;
constexpr std::uint64_t test_stream = 0x746573746564ULL;

struct Words {
  std::vector<Word> words{};
  std::vector<std::vector<std::uint8_t>> labels{};
};

Words draw_words(Tagging tagging, std::size_t length, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Words drawn;
  for (std::size_t i = 0; i < count; ++i) {
    drawn.words.push_back(draw(tagging, length, random));
    drawn.labels.push_back(labels(tagging, drawn.words.back()));
  }
  return drawn;
}

void validate(const TaggerSpec& spec) {
  const auto expect = [](bool holds, std::string_view what) {
    if (!holds) throw Error(ErrorCode::Argument, fmt::format("tagger training: {}", what));
  };
  expect(spec.length >= 1, "words of no letters, expected 1 or more");
  expect(spec.words >= lanes && spec.words % lanes == 0,
         fmt::format("{} words, expected a multiple of {}", spec.words, lanes));
  expect(spec.rate > 0.0 && std::isfinite(spec.rate),
         fmt::format("rate {}, expected more than 0", spec.rate));
  expect(spec.clip > 0.0, fmt::format("gradients clipped to {}, expected more than 0", spec.clip));
}

}  // namespace

struct TaggerTraining::Work {
  explicit Work(const TaggerSpec& s)
      : spec(s),
        words(draw_words(s.tagging, s.length, s.words, s.seed ^ training_stream)),
        pass(s.shape),
        parameters(counting::parameters(s.shape)),
        gradient(parameters.size()),
        adam(parameters.size()) {
    Random random(s.seed);
    const double bound = 1.0 / std::sqrt(static_cast<double>(s.shape.width));
    for (float& value : parameters) value = static_cast<float>(bound * (2.0 * random.uniform() - 1.0));
  }

  [[nodiscard]] std::size_t per_epoch() const { return spec.words / lanes; }

  /// The order of the words in an epoch depends only on the seed and the epoch.
  void reorder() {
    const std::size_t epoch = step / per_epoch();
    if (epoch == ordered) return;
    ordered = epoch;
    order.resize(spec.words);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random((spec.seed + 1) * order_stream + epoch);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }

  void update() {
    adam.step<float>(spec.rate, spec.clip, gradient,
                     [this](std::size_t i) -> float& { return parameters[i]; });
  }

  TaggerSpec spec;
  Words words;
  TaggerPass<float> pass;
  std::vector<float> parameters;
  std::vector<float> gradient;
  nets::Adam adam;
  std::size_t step = 0;
  double losses = 0.0;      ///< of this epoch's batches
  std::size_t batches = 0;  ///< of this epoch
  std::vector<std::size_t> order{};
  std::size_t ordered = ~std::size_t{0};
};

TaggerTraining::TaggerTraining(const TaggerSpec& spec)
    : work_((validate(spec), std::make_unique<Work>(spec))) {}

TaggerTraining::TaggerTraining(const TaggerSpec& spec, std::span<const std::byte> saved)
    : TaggerTraining(spec) {
  Work& work = *work_;
  const std::size_t size = work.parameters.size();
  Unpacker from(saved);
  from.get(work.parameters);
  from.get(work.adam.first);
  from.get(work.adam.second);
  from.get(work.adam.power1);
  from.get(work.adam.power2);
  from.get(work.step);
  from.get(work.losses);
  from.get(work.batches);
  from.finish();
  if (work.parameters.size() != size || work.adam.first.size() != size || work.adam.second.size() != size ||
      work.step > total()) {
    throw Error(
        ErrorCode::Format,
        fmt::format("tagger training: saved with {} parameters after {} batches, expected {} and at most {}",
                    work.parameters.size(), work.step, size, total()));
  }
}

TaggerTraining::TaggerTraining(TaggerTraining&&) noexcept = default;
TaggerTraining& TaggerTraining::operator=(TaggerTraining&&) noexcept = default;
TaggerTraining::~TaggerTraining() = default;

void TaggerTraining::step() {
  Work& work = *work_;
  NORMSCOPE_ASSERT(work.step < total());
  work.reorder();
  std::array<Word, lanes> words;
  std::array<std::vector<std::uint8_t>, lanes> tags;
  const std::size_t at = work.step % work.per_epoch() * lanes;
  if (at == 0) {
    work.losses = 0.0;
    work.batches = 0;
  }
  for (std::size_t l = 0; l < lanes; ++l) {
    words[l] = work.words.words[work.order[at + l]];
    tags[l] = work.words.labels[work.order[at + l]];
  }
  work.losses += work.pass.forward(work.parameters, words, tags).loss;
  work.pass.backward(work.parameters, work.gradient);
  work.update();
  ++work.batches;
  ++work.step;
}

std::size_t TaggerTraining::steps() const { return work_->step; }
std::size_t TaggerTraining::total() const { return work_->spec.epochs * work_->per_epoch(); }
std::size_t TaggerTraining::steps_per_epoch() const { return work_->per_epoch(); }
std::span<const float> TaggerTraining::parameters() const { return work_->parameters; }

double TaggerTraining::loss() const {
  return work_->losses / static_cast<double>(std::max<std::size_t>(1, work_->batches));
}

double TaggerTraining::accuracy(std::size_t length, std::size_t count) const {
  if (count == 0 || count % lanes != 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("tagger training: {}, expected a positive multiple of {} to test with",
                            counted(count, "word"), lanes));
  }
  NORMSCOPE_ASSERT(length > 0);
  const Words drawn = draw_words(work_->spec.tagging, length, count, length ^ test_stream);
  TaggerPass<float> pass(work_->spec.shape);
  std::size_t right = 0;
  for (std::size_t at = 0; at < count; at += lanes) {
    right += pass.forward(work_->parameters, std::span(drawn.words).subspan(at, lanes),
                          std::span(drawn.labels).subspan(at, lanes))
                 .right;
  }
  return static_cast<double>(right) / static_cast<double>(count * length);
}

std::vector<std::byte> TaggerTraining::save() const {
  const Work& work = *work_;
  Packer to;
  to.put(work.parameters);
  to.put(work.adam.first);
  to.put(work.adam.second);
  to.put(work.adam.power1);
  to.put(work.adam.power2);
  to.put(work.step);
  to.put(work.losses);
  to.put(work.batches);
  return to.bytes();
}

}  // namespace normscope::lab::counting
