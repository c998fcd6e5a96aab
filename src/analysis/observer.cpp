#include <normscope/analysis/observer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/norm/kernels.hpp>

namespace normscope::analysis {

/// Counts of positive numbers by the size of their logarithms, for quantiles.
class LogHistogram {
 public:
  void add(double value);
  /// The smallest value that at least `fraction` of the numbers do not exceed.
  ///
  /// Accuracy  half a bin, 1.1 %
  ///
  /// Requires  some number was added
  [[nodiscard]] double quantile(double fraction) const;
  void add(const LogHistogram& other);
  void pack(Packer& to) const;
  void unpack(Unpacker& from);

 private:
  static constexpr int bins_per_octave = 32;

  std::map<int, std::uint64_t> bins_{};
  std::uint64_t total_ = 0;
};

void LogHistogram::add(double value) {
  // Below every normal number: blocks without deviation, at eps = 0.
  const double exponent = value > 0.0 ? std::log2(value) : -1100.0;
  ++bins_[static_cast<int>(std::floor(exponent * bins_per_octave))];
  ++total_;
}

double LogHistogram::quantile(double fraction) const {
  const double wanted = fraction * static_cast<double>(total_);
  std::uint64_t passed = 0;
  for (const auto& [bin, count] : bins_) {
    passed += count;
    if (static_cast<double>(passed) >= wanted) return std::exp2((bin + 0.5) / bins_per_octave);
  }
  return 0.0;
}

void LogHistogram::add(const LogHistogram& other) {
  for (const auto& [bin, count] : other.bins_) bins_[bin] += count;
  total_ += other.total_;
}

void LogHistogram::pack(Packer& to) const {
  to.put(bins_.size());
  for (const auto& [bin, count] : bins_) {
    to.put(bin);
    to.put(count);
  }
}

void LogHistogram::unpack(Unpacker& from) {
  std::size_t size = 0;
  from.get(size);
  for (std::size_t k = 0; k < size; ++k) {
    int bin = 0;
    std::uint64_t count = 0;
    from.get(bin);
    from.get(count);
    bins_[bin] += count;
    total_ += count;
  }
}

namespace {

/// Sums in four parts, which the compiler computes side by side.
template <typename Term>
double summed(std::size_t count, const Term& term) {
  double parts[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) parts[k] += term(i + k);
  }
  for (; i < count; ++i) parts[0] += term(i);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

double dot(std::span<const double> a, std::span<const double> b) {
  return summed(a.size(), [&](std::size_t i) { return a[i] * b[i]; });
}

void expect_width(std::size_t width, std::size_t expected) {
  if (width == expected) return;
  throw Error(ErrorCode::Shape, fmt::format("observe: rows of width {}, expected {}", width, expected));
}

template <typename T>
double widened(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else {
    return norm::to_float(value);
  }
}

}  // namespace

struct Observer::State {
  NormSpec spec;
  ObserverOptions options;
  std::vector<double> lengths{};  ///< of all semi-axes, descending
  std::vector<double> axes{};     ///< options.axes × width

  std::uint64_t rows = 0, not_finite = 0, blocks = 0;
  LogHistogram sigmas{};
  double least_sigma = 0.0, most_sigma = 0.0;
  double sigma_mean = 0.0, sigma_squares = 0.0;  ///< running mean, and Σ (σ − mean)²
  double energy = 0.0, ones_energy = 0.0, most_ones_share = 0.0;
  double least_radius = 0.0, radius_sum = 0.0;
  double output_energy = 0.0, largest_output = 0.0;
  std::vector<double> axis_energy{};
  std::vector<double> squares{}, largest{};  ///< per feature
  std::vector<std::uint64_t> largest_row{};
  std::vector<double> sample{};  ///< rows of x
  Random random;
  std::vector<std::vector<double>> contexts{};
  std::uint64_t contexts_seen = 0;
  Random context_random;

  std::vector<double> x{}, y{};  ///< the row in work, and its y − bias

  State(const NormSpec& norm, const ObserverOptions& wanted)
      : spec(norm), options(wanted), random(wanted.seed), context_random(wanted.seed) {
    const std::size_t width = spec.width;
    for (std::vector<double>* values : {&squares, &largest, &x, &y}) values->resize(width);
    largest_row.resize(width);
    if (!spec.gain.empty() &&
        std::all_of(spec.gain.begin(), spec.gain.end(), [](double g) { return g == 0.0; }))
      return;
    const norm::NormImage image(spec);
    lengths.assign(image.semi_axes().begin(), image.semi_axes().end());
    const std::size_t kept = std::min(options.axes, lengths.size());
    axes.resize(kept * width);
    axis_energy.resize(kept);
    if (kept > 0) image.axes(0, {axes.data(), kept, width});
  }

  [[nodiscard]] std::size_t sampled() const { return sample.size() / spec.width; }
  [[nodiscard]] std::span<const double> sampled_row(std::size_t index) const {
    return {sample.data() + index * spec.width, spec.width};
  }
  [[nodiscard]] double gain(std::size_t i) const { return spec.gain.empty() ? 1.0 : spec.gain[i]; }

  /// y − bias of `row`. `each` is called with the mean of every block, its |x − m| and its σ.
  template <typename Each>
  void normalize(std::span<const double> row, std::span<double> output, const Each& each) const {
    const std::size_t n = spec.block_width();
    for (std::size_t begin = 0; begin < spec.width; begin += n) {
      const double* const block = row.data() + begin;
      const double mean = summed(n, [&](std::size_t i) { return block[i]; }) / static_cast<double>(n);
      const double centre = spec.centers() ? mean : 0.0;
      const double square =
          summed(n, [&](std::size_t i) { return (block[i] - centre) * (block[i] - centre); });
      const double sigma = std::sqrt(square / spec.squared_radius() + spec.eps);
      const double factor = sigma > 0.0 ? 1.0 / sigma : 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        output[begin + i] = gain(begin + i) * ((block[i] - centre) * factor);
      }
      each(mean, std::sqrt(square), sigma);
    }
  }

  void add_block(double length, double sigma) {
    const double radius = sigma > 0.0 ? length / (spec.radius() * sigma) : 0.0;
    if (blocks == 0) {
      least_sigma = most_sigma = sigma;
      least_radius = radius;
    }
    ++blocks;
    least_sigma = std::min(least_sigma, sigma);
    most_sigma = std::max(most_sigma, sigma);
    least_radius = std::min(least_radius, radius);
    radius_sum += radius;
    const double before = sigma - sigma_mean;
    sigma_mean += before / static_cast<double>(blocks);
    sigma_squares += before * (sigma - sigma_mean);
    sigmas.add(sigma);
  }

  void add_row() {
    const std::size_t n = spec.block_width();
    double along_ones = 0.0;
    normalize(x, y, [&](double mean, double length, double sigma) {
      along_ones += static_cast<double>(n) * mean * mean;
      add_block(length, sigma);
    });
    double row_energy = 0.0;
    for (std::size_t i = 0; i < spec.width; ++i) {
      const double size = std::abs(x[i]);
      row_energy += size * size;
      squares[i] += size * size;
      largest_output = std::max(largest_output, std::abs(y[i] + spec.bias_at(i)));
      if (size > largest[i]) {
        largest[i] = size;
        largest_row[i] = rows + not_finite;
      }
    }
    energy += row_energy;
    ones_energy += along_ones;
    if (row_energy > 0.0) most_ones_share = std::max(most_ones_share, std::min(1.0, along_ones / row_energy));
    output_energy += dot(y, y);
    for (std::size_t k = 0; k < axis_energy.size(); ++k) {
      const double coordinate = dot(y, {axes.data() + k * spec.width, spec.width});
      axis_energy[k] += coordinate * coordinate;
    }
    keep();
    ++rows;
  }

  /// Vitter's algorithm R: each of the rows so far is in the sample with the same probability.
  void keep() {
    if (sampled() < options.sample) {
      sample.insert(sample.end(), x.begin(), x.end());
      return;
    }
    const std::uint64_t place = random.below(rows + 1);
    if (place < options.sample) {
      std::copy(x.begin(), x.end(), sample.begin() + static_cast<std::ptrdiff_t>(place * spec.width));
    }
  }

  /// Keeps a uniform sample of the contexts.
  void keep_context(std::vector<double> context) {
    ++contexts_seen;
    if (contexts.size() < options.contexts) {
      contexts.push_back(std::move(context));
      return;
    }
    const std::uint64_t place = context_random.below(contexts_seen);
    if (place < contexts.size()) contexts[place] = std::move(context);
  }

  /// `each` is called with every value that adding rows changes.
  template <typename Self, typename Each>
  static void each_value(Self& self, const Each& each) {
    each(self.rows);
    each(self.not_finite);
    each(self.blocks);
    each(self.least_sigma);
    each(self.most_sigma);
    each(self.sigma_mean);
    each(self.sigma_squares);
    each(self.energy);
    each(self.ones_energy);
    each(self.most_ones_share);
    each(self.least_radius);
    each(self.radius_sum);
    each(self.output_energy);
    each(self.largest_output);
    each(self.axis_energy);
    each(self.squares);
    each(self.largest);
    each(self.largest_row);
    each(self.sample);
    each(self.random);
    each(self.contexts_seen);
    each(self.context_random);
  }

  /// How many of `wanted` of `mine` and `theirs` things a uniform sample has of mine.
  static std::uint64_t share_of(std::uint64_t wanted, std::uint64_t mine, std::uint64_t theirs,
                                Random& random) {
    std::uint64_t taken = 0;
    for (std::uint64_t k = 0; k < wanted && mine + theirs > 0; ++k) {
      const bool of_mine = random.below(mine + theirs) < mine;
      taken += of_mine ? 1 : 0;
      (of_mine ? mine : theirs) -= 1;
    }
    return taken;
  }

  /// `count` of the things, evenly chosen, at the front of `order`.
  static std::vector<std::size_t> chosen(std::size_t count, std::size_t of, Random& random) {
    std::vector<std::size_t> order(of);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t k = 0; k < count; ++k) std::swap(order[k], order[k + random.below(of - k)]);
    order.resize(count);
    return order;
  }

  void merge_samples(const State& other) {
    const std::uint64_t wanted = std::min<std::uint64_t>(options.sample, rows + other.rows);
    const auto mine = static_cast<std::size_t>(share_of(wanted, rows, other.rows, random));
    std::vector<double> merged;
    for (const auto& [from, count] : {std::pair(static_cast<const State*>(this), mine),
                                      std::pair(&other, static_cast<std::size_t>(wanted) - mine)}) {
      for (const std::size_t k : chosen(count, from->sampled(), random)) {
        merged.insert(merged.end(), from->sampled_row(k).begin(), from->sampled_row(k).end());
      }
    }
    sample = std::move(merged);
    const std::uint64_t kept = std::min<std::uint64_t>(options.contexts, contexts_seen + other.contexts_seen);
    const auto own =
        static_cast<std::size_t>(share_of(kept, contexts_seen, other.contexts_seen, context_random));
    std::vector<std::vector<double>> merged_contexts;
    for (const std::size_t k : chosen(own, contexts.size(), context_random)) {
      merged_contexts.push_back(contexts[k]);
    }
    for (const std::size_t k :
         chosen(static_cast<std::size_t>(kept) - own, other.contexts.size(), context_random)) {
      merged_contexts.push_back(other.contexts[k]);
    }
    contexts = std::move(merged_contexts);
    contexts_seen += other.contexts_seen;
  }

  void merge(const State& other) {
    merge_samples(other);
    if (other.blocks > 0) {
      const auto before = static_cast<double>(blocks);
      const auto added = static_cast<double>(other.blocks);
      const double step = other.sigma_mean - sigma_mean;
      least_sigma = blocks > 0 ? std::min(least_sigma, other.least_sigma) : other.least_sigma;
      least_radius = blocks > 0 ? std::min(least_radius, other.least_radius) : other.least_radius;
      most_sigma = std::max(most_sigma, other.most_sigma);
      sigma_mean += step * added / (before + added);
      sigma_squares += other.sigma_squares + step * step * before * added / (before + added);
    }
    for (std::size_t i = 0; i < spec.width; ++i) {
      squares[i] += other.squares[i];
      if (other.largest[i] <= largest[i]) continue;
      largest[i] = other.largest[i];
      largest_row[i] = rows + not_finite + other.largest_row[i];
    }
    for (std::size_t k = 0; k < axis_energy.size(); ++k) axis_energy[k] += other.axis_energy[k];
    rows += other.rows;
    not_finite += other.not_finite;
    blocks += other.blocks;
    sigmas.add(other.sigmas);
    energy += other.energy;
    ones_energy += other.ones_energy;
    output_energy += other.output_energy;
    radius_sum += other.radius_sum;
    most_ones_share = std::max(most_ones_share, other.most_ones_share);
    largest_output = std::max(largest_output, other.largest_output);
  }

  [[nodiscard]] Spread sigma_spread() const {
    const auto within = [&](double value) { return std::clamp(value, least_sigma, most_sigma); };
    return {.least = least_sigma,
            .most = most_sigma,
            .low = within(sigmas.quantile(0.05)),
            .median = within(sigmas.quantile(0.5)),
            .high = within(sigmas.quantile(0.95)),
            .mean = sigma_mean,
            .deviation = std::sqrt(sigma_squares / static_cast<double>(blocks))};
  }

  [[nodiscard]] std::vector<Feature> top_features() const {
    std::vector<std::size_t> order(spec.width);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t count = std::min(options.features, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                      [&](std::size_t a, std::size_t b) { return squares[a] > squares[b]; });
    std::vector<Feature> features;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = order[k];
      features.push_back({.coordinate = i,
                          .rms = std::sqrt(squares[i] / static_cast<double>(rows)),
                          .share = energy > 0.0 ? squares[i] / energy : 0.0,
                          .largest = largest[i],
                          .row = largest_row[i]});
    }
    return features;
  }

  /// (tr C)²/tr C²: tr C is the mean of |y|², tr C² that of (y · y')² over pairs of rows.
  [[nodiscard]] double participation() const {
    const std::size_t count = sampled();
    if (count < 2) return 0.0;
    std::vector<double> outputs(count * spec.width);
    for (std::size_t i = 0; i < count; ++i) {
      normalize(sampled_row(i), {outputs.data() + i * spec.width, spec.width}, [](double, double, double) {});
    }
    const auto output = [&](std::size_t i) {
      return std::span<const double>(outputs.data() + i * spec.width, spec.width);
    };
    double trace = 0.0;
    double pairs = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      trace += dot(output(i), output(i));
      for (std::size_t j = 0; j < i; ++j) {
        const double product = dot(output(i), output(j));
        pairs += product * product;
      }
    }
    const auto n = static_cast<double>(count);
    trace /= n;
    pairs /= n * (n - 1.0) / 2.0;
    return pairs > 0.0 ? trace * trace / pairs : 0.0;
  }

  void add_sample_statistics(Summary& summary) const {
    summary.sampled = sampled();
    summary.available_dimension = norm::effective_dimension(spec);
    // No more directions are used than there are.
    summary.used_dimension = std::min(participation(), static_cast<double>(lengths.size()));
    const std::vector<double> measures =
        norm::curvature(spec, MatrixView<const double>{sample.data(), sampled(), spec.width}, 1);
    for (const double measure : measures) {
      summary.mean_curvature += measure / static_cast<double>(measures.size());
      summary.most_curvature = std::max(summary.most_curvature, measure);
    }
  }

  [[nodiscard]] Summary summary() const {
    Summary result{.rows = rows, .not_finite = not_finite};
    if (rows == 0) return result;
    result.sigma = sigma_spread();
    result.ones_share = energy > 0.0 ? ones_energy / energy : 0.0;
    result.most_ones_share = most_ones_share;
    result.least_radius = least_radius;
    result.mean_radius = radius_sum / static_cast<double>(blocks);
    result.frozen_scale_error = sigma_mean > 0.0 ? result.sigma.deviation / sigma_mean : 0.0;
    result.largest_output = largest_output;
    result.features = top_features();
    const double available = std::accumulate(lengths.begin(), lengths.end(), 0.0,
                                             [](double sum, double l) { return sum + l * l; });
    for (std::size_t k = 0; k < axis_energy.size(); ++k) {
      result.axes.push_back({.rank = k,
                             .length = lengths[k],
                             .available = lengths[k] * lengths[k] / available,
                             .used = output_energy > 0.0 ? axis_energy[k] / output_energy : 0.0});
    }
    add_sample_statistics(result);
    return result;
  }
};

Observer::Observer(const NormSpec& spec, const ObserverOptions& options) {
  validate(spec);
  if (spec.elementwise()) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("observe: {} divides by no deviation, expected a kind that normalizes",
                            to_string(spec.kind)));
  }
  state_ = std::make_unique<State>(spec, options);
}

Observer::Observer(Observer&&) noexcept = default;
Observer& Observer::operator=(Observer&&) noexcept = default;
Observer::~Observer() = default;

const NormSpec& Observer::spec() const { return state_->spec; }

void Observer::merge(const Observer& other) {
  const State& theirs = *other.state_;
  const auto facts = [](const State& state) {
    const NormSpec& norm = state.spec;
    const ObserverOptions& wanted = state.options;
    return std::tuple(norm.kind, norm.width, norm.groups, norm.eps, norm.gain, norm.bias, wanted.axes,
                      wanted.sample, wanted.contexts, wanted.positions);
  };
  if (facts(*state_) != facts(theirs)) {
    throw Error(ErrorCode::Argument, "merge: the observers are of different norms, or have other options");
  }
  state_->merge(theirs);
}

std::vector<std::byte> Observer::packed() const {
  Packer to;
  State::each_value(*state_, [&](const auto& value) { to.put(value); });
  state_->sigmas.pack(to);
  to.put(state_->contexts.size());
  for (const std::vector<double>& rows : state_->contexts) to.put(rows);
  return to.bytes();
}

void Observer::unpack(std::span<const std::byte> bytes) {
  State made(state_->spec, state_->options);
  const std::array sizes{made.axis_energy.size(), made.squares.size()};
  Unpacker from(bytes, "observer: its saved state is not that of such a norm");
  State::each_value(made, [&](auto& value) { from.get(value); });
  made.sigmas.unpack(from);
  std::size_t contexts = 0;
  from.get(contexts);
  bool fits = contexts == std::min<std::uint64_t>(made.options.contexts, made.contexts_seen);
  for (std::size_t k = 0; fits && k < contexts; ++k) {
    from.get(made.contexts.emplace_back());
    fits = made.contexts.back().size() % made.spec.width == 0;
  }
  from.finish();
  fits = fits && made.axis_energy.size() == sizes[0] && made.squares.size() == sizes[1] &&
         made.largest.size() == sizes[1] && made.largest_row.size() == sizes[1] &&
         made.sample.size() == made.spec.width * std::min<std::uint64_t>(made.options.sample, made.rows);
  if (!fits) throw Error(ErrorCode::Format, "observer: its saved state is not that of such a norm");
  *state_ = std::move(made);
}

Summary Observer::summary() const { return state_->summary(); }

MatrixView<const double> Observer::sample() const {
  return {state_->sample.data(), state_->sampled(), state_->spec.width};
}

std::vector<MatrixView<const double>> Observer::contexts() const {
  std::vector<MatrixView<const double>> views;
  const std::size_t width = state_->spec.width;
  for (const std::vector<double>& rows : state_->contexts) {
    views.emplace_back(rows.data(), rows.size() / width, width);
  }
  return views;
}

double Observer::mean_sigma() const { return state_->sigma_mean; }

template <typename T>
void Observer::add_contexts(MatrixView<const T> x, std::size_t length) {
  expect_width(x.width(), state_->spec.width);
  if (length < 2 || state_->options.contexts == 0) return;
  NORMSCOPE_ASSERT(x.rows() % length == 0);
  const std::size_t kept = std::min(length, state_->options.positions);
  for (std::size_t first = 0; first < x.rows(); first += length) {
    std::vector<double> rows;
    rows.reserve(kept * x.width());
    for (std::size_t r = first; r < first + kept; ++r) {
      for (const T value : x.row(r)) rows.push_back(widened(value));
    }
    if (std::all_of(rows.begin(), rows.end(), [](double value) { return std::isfinite(value); })) {
      state_->keep_context(std::move(rows));
    }
  }
}

template <typename T>
void Observer::add(MatrixView<const T> x) {
  expect_width(x.width(), state_->spec.width);
  for (std::size_t r = 0; r < x.rows(); ++r) {
    const std::span<const T> row = x.row(r);
    bool finite = true;
    for (std::size_t i = 0; i < row.size(); ++i) {
      state_->x[i] = widened(row[i]);
      finite = finite && std::isfinite(state_->x[i]);
    }
    if (finite) {
      state_->add_row();
    } else {
      ++state_->not_finite;
    }
  }
}

template void Observer::add<double>(MatrixView<const double>);
template void Observer::add<float>(MatrixView<const float>);
template void Observer::add<norm::Float16>(MatrixView<const norm::Float16>);
template void Observer::add<norm::Bfloat16>(MatrixView<const norm::Bfloat16>);
template void Observer::add_contexts<double>(MatrixView<const double>, std::size_t);
template void Observer::add_contexts<float>(MatrixView<const float>, std::size_t);
template void Observer::add_contexts<norm::Float16>(MatrixView<const norm::Float16>, std::size_t);
template void Observer::add_contexts<norm::Bfloat16>(MatrixView<const norm::Bfloat16>, std::size_t);

}  // namespace normscope::analysis
