#include <normscope/nets/train.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>

#include "engine.hpp"

namespace normscope::nets {
namespace {

using detail::block_rows;
using detail::BlockLoss;
using detail::Pass;
using detail::PassLayer;
using detail::row_multiple;
using detail::Workspace;

/// Number of partial gradients that a step is summed from, whatever the number of threads.
constexpr std::size_t most_segments = 8;
/// Flops below which another thread costs more than it saves.
constexpr double flops_per_thread = 4e6;

std::size_t fill_up(std::size_t count) { return (count + row_multiple - 1) / row_multiple * row_multiple; }

Pass make_pass(const TrainSpec& spec, const Dataset& data, std::size_t& size) {
  Pass pass;
  std::size_t in = data.width;
  for (std::size_t l = 0; l <= spec.depth; ++l) {
    const bool head = l == spec.depth;
    PassLayer layer{.in = in,
                    .out = !head               ? spec.width
                           : data.classes == 2 ? 1
                                               : data.classes,
                    .activation = head ? Activation::none : spec.activation,
                    .norm = spec.norm,
                    .groups = spec.groups,
                    .eps = spec.eps};
    layer.affine = layer.activation == Activation::norm && spec.affine;
    const auto take = [&](std::size_t count) { return std::exchange(size, size + count); };
    layer.weight = take(layer.in * layer.out);
    layer.bias = take(layer.out);
    if (layer.affine) {
      layer.gain = take(layer.out);
      layer.shift = take(layer.out);
    }
    in = layer.out;
    pass.layers.push_back(layer);
  }
  pass.parameters = fill_up(size);
  return pass;
}

/// Rows in the layout that the kernels read.
template <typename T>
struct Batch {
  Batch(std::size_t most, std::size_t width)
      : x((most + block_rows - 1) / block_rows * block_rows * width),
        labels(x.size() / width),
        weights(labels.size()) {}

  /// Copies the rows of `data` listed in `chosen`, all if it is empty.
  void fill(const Dataset& data, std::span<const std::uint32_t> chosen, std::size_t begin,
            std::size_t count) {
    rows = count;
    const T weight = static_cast<T>(1.0 / static_cast<double>(count));
    const std::size_t blocks = (count + block_rows - 1) / block_rows;
    for (std::size_t at = 0; at < blocks * block_rows; ++at) {
      const bool real = at < count;
      const std::size_t row = !real ? 0 : chosen.empty() ? begin + at : chosen[begin + at];
      T* const column = x.data() + at / block_rows * block_rows * data.width + at % block_rows;
      for (std::size_t i = 0; i < data.width; ++i) {
        column[i * block_rows] = real ? static_cast<T>(data.x[row * data.width + i]) : T{0};
      }
      labels[at] = real ? data.labels[row] : 0;
      weights[at] = real ? weight : T{0};
    }
  }

  [[nodiscard]] std::size_t blocks() const { return (rows + block_rows - 1) / block_rows; }
  [[nodiscard]] detail::Block<T> block(std::size_t index, std::size_t width) const {
    const std::size_t begin = index * block_rows;
    return {.x = x.data() + begin * width,
            .labels = labels.data() + begin,
            .weights = weights.data() + begin,
            .rows = std::min(block_rows, rows - begin)};
  }

  std::vector<T> x;
  std::vector<std::uint32_t> labels;
  std::vector<T> weights;
  std::size_t rows = 0;
};

/// A matrix, out × in, with orthonormal rows, or orthonormal columns if there are more rows than columns.
std::vector<double> orthonormal(std::size_t out, std::size_t in, Random& random) {
  const bool by_rows = out <= in;
  const std::size_t length = std::max(out, in);
  std::vector<std::vector<double>> vectors;
  while (vectors.size() < std::min(out, in)) {
    std::vector<double> vector(length);
    for (double& value : vector) value = random.normal();
    // Twice, since the first pass leaves rounding errors of a vector that is nearly spanned by the others.
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::vector<double>& other : vectors) {
        const double along = std::inner_product(vector.begin(), vector.end(), other.begin(), 0.0);
        for (std::size_t i = 0; i < length; ++i) vector[i] -= along * other[i];
      }
    }
    const double size = std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
    for (double& value : vector) value /= size;
    vectors.push_back(std::move(vector));
  }
  std::vector<double> result(out * in);
  for (std::size_t i = 0; i < out; ++i) {
    for (std::size_t j = 0; j < in; ++j) result[i * in + j] = by_rows ? vectors[i][j] : vectors[j][i];
  }
  return result;
}

}  // namespace

template <typename T>
detail::Workspace<T>::Workspace(const Pass& pass) {
  std::size_t widest = 0;
  std::size_t inputs = 0;
  for (const PassLayer& layer : pass.layers) {
    const bool apart =
        layer.activation == Activation::norm ? layer.affine : layer.activation != Activation::none;
    core.emplace_back(layer.out * block_rows);
    value.emplace_back(apart ? layer.out * block_rows : 0);
    scale.emplace_back(layer.groups * block_rows);
    widest = std::max(widest, layer.out);
    inputs = std::max(inputs, layer.in);
  }
  delta.resize(widest * block_rows);
  next_delta.resize(widest * block_rows);
  transposed.resize(inputs * block_rows);
}

Trainer::Engine::Engine(const TrainSpec& s, std::shared_ptr<const Dataset> d, unsigned t)
    : spec(s), shared(std::move(d)), data(*shared), threads(t) {
  if (spec.batch == 0 || spec.batch > data.rows()) spec.batch = data.rows();
  pass = make_pass(spec, data, size);
  const std::size_t records = spec.steps / spec.record_every + 1;
  loss.reserve(records);
  accuracy.reserve(records);
}

void Trainer::Engine::choose_batch() {
  const std::size_t steps_per_epoch = (data.rows() + spec.batch - 1) / spec.batch;
  const std::size_t epoch = done / steps_per_epoch;
  if (epoch != ordered_epoch_) {
    // The order has a seed of its own, so that a resumed training finds the same one.
    Random random(spec.seed + 0x9e3779b97f4a7c15U * (epoch + 1));
    order_.resize(data.rows());
    std::iota(order_.begin(), order_.end(), 0U);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
    ordered_epoch_ = epoch;
  }
  const std::size_t begin = done % steps_per_epoch * spec.batch;
  batch_ = std::span<const std::uint32_t>(order_).subspan(begin, std::min(spec.batch, data.rows() - begin));
}

template <typename T>
class Trainer::EngineOf final : public Trainer::Engine {
 public:
  EngineOf(const TrainSpec& s, std::shared_ptr<const Dataset> d, unsigned t)
      : Engine(s, std::move(d), t),
        parameters_(pass.parameters),
        first_(pass.parameters),
        second_(pass.parameters),
        batch_data_(spec.batch, data.width),
        segments_(std::min(most_segments, batch_data_.labels.size() / block_rows)),
        gradients_(segments_ * pass.parameters),
        losses_(segments_) {
    for (std::size_t i = 0; i < segments_; ++i) work_.emplace_back(pass);
    begin_at_random();
    if (spec.batch == data.rows()) batch_data_.fill(data, {}, 0, data.rows());
  }

  void step() override {
    if (spec.batch != data.rows()) {
      choose_batch();
      batch_data_.fill(data, batch_, 0, batch_.size());
    }
    const Score before = accumulate(batch_data_, losses_, gradients_, work_);
    if (done % spec.record_every == 0) {
      loss.push_back(before.loss);
      accuracy.push_back(before.accuracy);
    }
    const auto time = static_cast<double>(done + 1);
    const detail::Update how{.adam = spec.optimizer == Optimizer::adam,
                             .rate = rate_at(spec, done),
                             .momentum = spec.momentum,
                             .beta1 = spec.beta1,
                             .beta2 = spec.beta2,
                             .eps = 1e-8,
                             .first_correction = 1.0 - std::pow(spec.beta1, time),
                             .second_correction = 1.0 - std::pow(spec.beta2, time)};
    const auto move = [&](std::size_t begin, std::size_t end) {
      detail::update(how, gradients_.data(), segments_, pass.parameters, begin * row_multiple,
                     end * row_multiple, parameters_.data(), first_.data(), second_.data());
    };
    parallel_for(pass.parameters / row_multiple, 4096, threads, move);
    ++done;
  }

  Score score(const Dataset& other) const override {
    // Blocks are evaluated separately and added in order.
    const std::size_t blocks = (other.rows() + block_rows - 1) / block_rows;
    std::vector<BlockLoss> losses(blocks);
    const double flops = 2.0 * static_cast<double>(pass.parameters) * block_rows;
    parallel_for(blocks, static_cast<std::size_t>(flops_per_thread / flops) + 1, threads,
                 [&](std::size_t begin, std::size_t end) {
                   Workspace<T> work(pass);
                   Batch<T> batch(block_rows, other.width);
                   for (std::size_t b = begin; b < end; ++b) {
                     const std::size_t rows = std::min(block_rows, other.rows() - b * block_rows);
                     batch.fill(other, {}, b * block_rows, rows);
                     losses[b] = detail::run_block(pass, parameters_.data(), batch.block(0, other.width),
                                                   work, static_cast<T*>(nullptr));
                     losses[b].loss *= static_cast<double>(rows);
                   }
                 });
    Score total;
    for (const BlockLoss& part : losses) {
      total.loss += part.loss;
      total.accuracy += static_cast<double>(part.correct);
    }
    const auto rows = static_cast<double>(other.rows());
    return {total.loss / rows, total.accuracy / rows};
  }

  std::vector<double> gradient() const override {
    Batch<T> all(data.rows(), data.width);
    all.fill(data, {}, 0, data.rows());
    std::vector<BlockLoss> losses(1);
    std::vector<T> sum(pass.parameters);
    std::vector<Workspace<T>> work{Workspace<T>(pass)};
    accumulate(all, losses, sum, work);
    return {sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(size)};
  }

  std::vector<double> parameters() const override { return values(parameters_); }
  std::vector<double> first() const override { return values(first_); }
  std::vector<double> second() const override { return values(second_); }

  void assign(std::span<const double> parameters, std::span<const double> first,
              std::span<const double> second) override {
    const auto copy = [](std::span<const double> from, std::vector<T>& to) {
      std::transform(from.begin(), from.end(), to.begin(),
                     [](double value) { return static_cast<T>(value); });
    };
    copy(parameters, parameters_);
    copy(first, first_);
    copy(second, second_);
  }

 private:
  std::vector<double> values(const std::vector<T>& from) const {
    return {from.begin(), from.begin() + static_cast<std::ptrdiff_t>(size)};
  }

  void begin_at_random() {
    Random random(spec.seed);
    for (const PassLayer& layer : pass.layers) {
      for (std::size_t i = 0; layer.affine && i < layer.out; ++i) parameters_[layer.gain + i] = T{1};
      if (spec.initialization == Initialization::orthogonal) {
        const std::vector<double> weights = orthonormal(layer.out, layer.in, random);
        std::transform(weights.begin(), weights.end(), parameters_.data() + layer.weight,
                       [](double value) { return static_cast<T>(value); });
        for (std::size_t i = 0; i < layer.out; ++i) {
          parameters_[layer.bias + i] = static_cast<T>(0.5 * random.normal());
        }
        continue;
      }
      const double bound = 1.0 / std::sqrt(static_cast<double>(layer.in));
      const std::size_t count = (layer.in + 1) * layer.out;
      for (std::size_t i = 0; i < count; ++i) {
        parameters_[layer.weight + i] = static_cast<T>(bound * (2.0 * random.uniform() - 1.0));
      }
    }
  }

  /// Loss of `batch`; its gradient is stored in as many parts as there are `losses`.
  Score accumulate(const Batch<T>& batch, std::vector<BlockLoss>& losses, std::vector<T>& gradients,
                   std::vector<Workspace<T>>& work) const {
    const std::size_t parts = losses.size();
    const std::size_t blocks = batch.blocks();
    const double flops = 6.0 * static_cast<double>(pass.parameters) * static_cast<double>(batch.rows) /
                         static_cast<double>(parts);
    const auto run = [&](std::size_t begin, std::size_t end) {
      for (std::size_t part = begin; part < end; ++part) {
        T* const gradient = gradients.data() + part * pass.parameters;
        std::fill(gradient, gradient + pass.parameters, T{0});
        losses[part] = {};
        for (std::size_t b = part * blocks / parts; b < (part + 1) * blocks / parts; ++b) {
          const BlockLoss sums =
              detail::run_block(pass, parameters_.data(), batch.block(b, data.width), work[part], gradient);
          losses[part].loss += sums.loss;
          losses[part].correct += sums.correct;
        }
      }
    };
    parallel_for(parts, static_cast<std::size_t>(flops_per_thread / flops) + 1, threads, run);
    Score total;
    std::size_t correct = 0;
    for (const BlockLoss& part : losses) {
      total.loss += part.loss;
      correct += part.correct;
    }
    total.accuracy = static_cast<double>(correct) / static_cast<double>(batch.rows);
    return total;
  }

  std::vector<T> parameters_;
  std::vector<T> first_;
  std::vector<T> second_;
  Batch<T> batch_data_;
  std::size_t segments_;
  std::vector<T> gradients_;
  std::vector<BlockLoss> losses_;
  std::vector<Workspace<T>> work_;
};

Trainer::Trainer(const TrainSpec& spec, const Dataset& data, unsigned threads)
    : Trainer(spec, std::make_shared<const Dataset>(data), threads) {}

Trainer::Trainer(const TrainSpec& spec, std::shared_ptr<const Dataset> data, unsigned threads) {
  validate(spec);
  validate("train", *data);
  if (spec.precision == Dtype::F32) {
    engine_ = std::make_unique<EngineOf<float>>(spec, std::move(data), threads);
  } else {
    engine_ = std::make_unique<EngineOf<double>>(spec, std::move(data), threads);
  }
}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::step() {
  NORMSCOPE_ASSERT(!done());
  engine_->step();
}

std::size_t Trainer::steps_done() const { return engine_->done; }
const TrainSpec& Trainer::spec() const { return engine_->spec; }
const Dataset& Trainer::data() const { return engine_->data; }
std::span<const double> Trainer::loss() const { return engine_->loss; }
std::span<const double> Trainer::accuracy() const { return engine_->accuracy; }
Score Trainer::score() const { return engine_->score(engine_->data); }

Score Trainer::score(const Dataset& data) const {
  validate("score", data);
  if (data.width != engine_->data.width || data.classes != engine_->data.classes) {
    throw Error(ErrorCode::Shape,
                fmt::format("score: {} features and {} classes, the net was trained on {} and {}", data.width,
                            data.classes, engine_->data.width, engine_->data.classes));
  }
  return engine_->score(data);
}

std::vector<double> Trainer::parameters() const { return engine_->parameters(); }

void Trainer::set_parameters(std::span<const double> values) {
  NORMSCOPE_ASSERT(values.size() == engine_->size);
  engine_->assign(values, engine_->first(), engine_->second());
}

std::vector<double> Trainer::gradient() const { return engine_->gradient(); }

Net Trainer::net() const {
  const std::vector<double> values = engine_->parameters();
  const auto slice = [&](std::size_t begin, std::size_t count) {
    return std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(begin),
                               values.begin() + static_cast<std::ptrdiff_t>(begin + count));
  };
  Net net;
  for (const PassLayer& from : engine_->pass.layers) {
    Layer layer{.in = from.in,
                .out = from.out,
                .weight = slice(from.weight, from.in * from.out),
                .bias = slice(from.bias, from.out),
                .activation = from.activation};
    if (from.activation == Activation::norm) {
      layer.norm = {.kind = from.norm, .width = from.out, .groups = from.groups, .eps = from.eps};
      if (from.affine) {
        layer.norm.gain = slice(from.gain, from.out);
        layer.norm.bias = slice(from.shift, from.out);
      }
    }
    net.layers.push_back(std::move(layer));
  }
  net.head = std::move(net.layers.back());
  net.layers.pop_back();
  if (net.head.out == 1) {
    // Class 0 has the logit 0.
    net.head.out = 2;
    net.head.weight.insert(net.head.weight.begin(), net.head.in, 0.0);
    net.head.bias.insert(net.head.bias.begin(), 0.0);
  }
  return net;
}

}  // namespace normscope::nets
