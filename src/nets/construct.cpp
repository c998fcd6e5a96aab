#include <normscope/nets/construct.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/nets/evaluate.hpp>

#include "modes.hpp"

namespace normscope::nets {
namespace {

/// An unfinished construction.
struct ResumeState {
  std::size_t attempt = 0;  ///< index in the order of attempts
  Line<DoubleDouble> line;  ///< also holds a line of doubles
};

/// Bound of a state's numbers.
struct StateBounds {
  std::size_t attempts = 0;
  std::size_t classes = 0;
  std::size_t rows = 0;
};

constexpr SnapshotKind build_state{.name = "build",
                                   .version = 3,
                                   .others = "other samples, labels or options",
                                   .former = "normscope.construct"};
constexpr const char* misfit = "holds what build did not save; delete it to start again";

bool is_finite(const DoubleDouble& value) { return std::isfinite(value.high) && std::isfinite(value.low); }

bool is_row(std::size_t row, std::size_t rows) { return row == no_row || row < rows; }

/// Whether the parts are consistent and all numbers are in range.
bool is_line(const Line<DoubleDouble>& line, const StateBounds& bounds) {
  const std::size_t clusters = line.q.size();
  if (clusters == 0 || line.folds.empty() || clusters > bounds.rows || line.classes.size() != clusters ||
      line.rows.size() != clusters) {
    return false;
  }
  for (std::size_t k = 0; k < clusters; ++k) {
    if (!is_finite(line.q[k]) || (k > 0 && line.q[k] > line.q[k - 1]) || line.classes[k] >= bounds.classes ||
        line.rows[k] >= bounds.rows) {
      return false;
    }
  }
  return std::all_of(line.folds.begin(), line.folds.end(), [&](const Crease<DoubleDouble>& fold) {
    return is_row(fold.first, bounds.rows) && is_row(fold.second, bounds.rows) && is_finite(fold.midpoint) &&
           is_finite(fold.radius) && !std::isnan(fold.gap) && fold.runs <= bounds.rows;
  });
}

/// Hash of the data and the options that determine the net.
Digest fingerprint_of(const std::vector<double>& x, const std::vector<std::uint32_t>& classes,
                      const ConstructOptions& options) {
  Packer inputs;
  inputs.put(piecewise_sha256(std::as_bytes(std::span(x)), options.threads));
  inputs.put(piecewise_sha256(std::as_bytes(std::span(classes)), options.threads));
  inputs.put(options.seed);
  inputs.put(options.early_stop);
  inputs.put(options.precision.has_value());
  inputs.put(options.precision.value_or(Precision::float64));
  return sha256(inputs.bytes());
}

/// Writes a snapshot; does nothing if `path` is empty.
///
/// Errors    Io
void save_state(const std::filesystem::path& path, const Digest& fingerprint, const ResumeState& state) {
  if (path.empty()) return;
  Packer payload;
  payload.put<std::uint64_t>(state.attempt);
  payload.put(state.line.q);
  payload.put(state.line.classes);
  payload.put(state.line.rows);
  payload.put(state.line.folds);
  save_snapshot(path, build_state, fingerprint, payload.bytes());
}

/// The state at `path`; none if `path` is empty or does not exist.
///
/// Errors    Io; Format for a file that is no state, is damaged, or has values that no construction saves;
///           Argument if the state is of another construction
std::optional<ResumeState> load_state(const std::filesystem::path& path, const Digest& fingerprint,
                                      const StateBounds& bounds) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  const std::vector<std::byte> payload = load_snapshot(path, build_state, fingerprint);
  Unpacker from(payload, fmt::format("{}: {}", path.string(), misfit));
  ResumeState state;
  std::uint64_t attempt = 0;
  from.get(attempt);
  from.get(state.line.q);
  from.get(state.line.classes);
  from.get(state.line.rows);
  from.get(state.line.folds);
  from.finish();
  if (attempt >= bounds.attempts || !is_line(state.line, bounds)) {
    throw Error(ErrorCode::Format, fmt::format("{}: {}", path.string(), misfit));
  }
  state.attempt = attempt;
  state.line.runs = count_runs(state.line.classes);
  return state;
}

/// The order of attempts: each κ for one projection, then the next projection; double-double last.
constexpr double kappas[] = {1024.0, 64.0};
constexpr std::size_t float64_projections = 5;
constexpr std::size_t double_double_projections = 2;
/// Factor of the weights for a norm with eps, which makes eps far smaller than the rounding of any mean
/// square.
constexpr int eps_exponent = 128;
/// Largest power of two by which the first layer's weights are scaled, at which they keep all digits; the
/// rest of the rows' scale is left to the layer's norm, whose squares are then in range.
constexpr int most_weight_exponent = 800;
/// Products in double-double overflow beyond 2^990.
constexpr int most_exponent_in_double_double = 985;
/// For smaller rows, an eps of 1 would not be negligible in the first layer.
constexpr int least_exponent_with_eps = -860;

struct Rung {
  Precision precision;
  std::size_t projection;
  double kappa;
};

std::vector<Rung> ladder(std::optional<Precision> wanted, int exponent) {
  std::vector<Rung> rungs;
  const auto add = [&](Precision precision, std::size_t projections) {
    if (wanted && *wanted != precision) return;
    for (std::size_t projection = 0; projection < projections; ++projection) {
      for (const double kappa : kappas) rungs.push_back({precision, projection, kappa});
    }
  };
  add(Precision::float64, float64_projections);
  if (exponent <= most_exponent_in_double_double) add(Precision::double_double, double_double_projections);
  return rungs;
}

Line<double> rounded(Line<DoubleDouble>&& line) {
  Line<double> result{.classes = std::move(line.classes), .rows = std::move(line.rows), .runs = line.runs};
  for (const DoubleDouble& q : line.q) result.q.push_back(q.high);
  for (const Crease<DoubleDouble>& fold : line.folds) {
    result.folds.push_back(
        {fold.first, fold.second, fold.midpoint.high, fold.radius.high, fold.gap, fold.runs});
  }
  return result;
}
Line<DoubleDouble> widened(const Line<double>& line) {
  Line<DoubleDouble> result{.classes = line.classes, .rows = line.rows, .runs = line.runs};
  result.q.assign(line.q.begin(), line.q.end());
  for (const Crease<double>& fold : line.folds) {
    result.folds.push_back({fold.first, fold.second, fold.midpoint, fold.radius, fold.gap, fold.runs});
  }
  return result;
}

/// The samples and the options.
struct Attempts {
  MatrixView<const double> given;
  MatrixView<const double> x;  ///< `given` divided by 2^exponent; the net is constructed for these
  int exponent;
  const Samples& samples;
  const ConstructOptions& options;
  const Progress& progress;
};

void multiply(std::vector<double>& values, int exponent) {
  for (double& value : values) value = std::scalbn(value, exponent);
}

/// Makes `net` the same function of rows that are 2^exponent times as large, with a norm that has `eps`.
void fit(Net& net, int exponent, double eps) {
  const int everywhere = eps > 0.0 ? eps_exponent : 0;
  for (Layer& layer : net.layers) {
    const bool first = &layer == net.layers.data();
    const int wanted = everywhere - (first ? exponent : 0);
    const int of_weight = std::clamp(wanted, -most_weight_exponent, most_weight_exponent + everywhere);
    const int of_bias = everywhere + (of_weight - wanted);
    for (std::vector<double>* values : {&layer.weight, &layer.weight_low}) multiply(*values, of_weight);
    for (std::vector<double>* values : {&layer.bias, &layer.bias_low}) multiply(*values, of_bias);
    layer.norm.eps = eps;
  }
}

/// Keeps `net` if it classifies more rows correctly than the best so far.
bool offer(const Attempts& task, Net net, std::vector<Fold> folds, Construction& construction) {
  fit(net, task.exponent, task.options.eps);
  const std::vector<std::int64_t> given = labels(net, task.given, task.options.threads, task.progress);
  std::size_t correct = 0;
  for (std::size_t row = 0; row < given.size(); ++row) {
    correct += given[row] == task.samples.wanted[row] ? 1 : 0;
  }
  if (construction.net.head.out == 0 || correct > construction.correct) {
    construction.net = std::move(net);
    construction.folds = std::move(folds);
    construction.correct = correct;
  }
  return construction.correct == construction.total;
}

Net constant_net(std::size_t width, std::int64_t label) {
  Net net;
  net.head = {.in = width, .out = 1, .weight = std::vector<double>(width, 0.0), .bias = {0.0}};
  net.classes = {label};
  return net;
}

void construct_stable(const Attempts& task, Construction& construction) {
  const ConstructOptions& options = task.options;
  const std::vector<double> values = gather(task.x, task.samples.rows);
  const MatrixView<const double> x(values.data(), task.samples.rows.size(), task.x.width());
  const std::vector<Rung> rungs = ladder(options.precision, task.exponent);
  Digest fingerprint{};
  if (!options.resume.empty()) fingerprint = fingerprint_of(values, task.samples.classes, options);
  std::optional<ResumeState> resumed =
      load_state(options.resume, fingerprint, {rungs.size(), task.samples.names.size(), task.x.rows()});
  bool separable = false;
  for (std::size_t attempt = resumed ? resumed->attempt : 0; attempt < rungs.size();) {
    const bool was_resumed = resumed.has_value();
    construction.attempts = attempt + 1;
    const Rung& rung = rungs[attempt];
    const StablePlan plan{options.seed + rung.projection, rung.kappa, options.early_stop, options.save_every,
                          options.threads};
    StableAttempt made;
    if (rung.precision == Precision::float64) {
      std::optional<Line<double>> line;
      if (resumed) line = rounded(std::move(resumed->line));
      const SaveLine<double> save = [&](const Line<double>& unfinished) {
        save_state(options.resume, fingerprint, {attempt, widened(unfinished)});
      };
      made = construct_stable<double>(x, task.samples, plan, std::move(line), save, task.progress);
    } else {
      std::optional<Line<DoubleDouble>> line;
      if (resumed) line = std::move(resumed->line);
      const SaveLine<DoubleDouble> save = [&](const Line<DoubleDouble>& unfinished) {
        save_state(options.resume, fingerprint, {attempt, unfinished});
      };
      made = construct_stable<DoubleDouble>(x, task.samples, plan, std::move(line), save, task.progress);
    }
    resumed.reset();
    separable = separable || made.separable;
    if (made.net && offer(task, std::move(*made.net), std::move(made.folds), construction)) return;
    // A saved line proves nothing: if it does not lead to a correct net, the attempt starts over.
    if (!was_resumed) ++attempt;
  }
  if (construction.net.head.out != 0) return;
  const std::string_view numbers = to_string(rungs.back().precision);
  throw Error(ErrorCode::Argument,
              separable ? fmt::format("construct: {} cannot tell apart some samples of different labels, "
                                      "expected samples further apart",
                                      numbers)
                        : fmt::format("construct: no projection in {} tells all samples of different labels "
                                      "apart, expected samples further apart",
                                      numbers));
}

void construct_paper(const Attempts& task, Construction& construction) {
  std::vector<Fold> folds;
  Net net = task.options.precision == Precision::double_double
                ? construct_paper<DoubleDouble>(task.x, task.samples, task.options, task.progress, folds)
                : construct_paper<double>(task.x, task.samples, task.options, task.progress, folds);
  offer(task, std::move(net), std::move(folds), construction);
}

void validate_options(const ConstructOptions& options) {
  if (!(options.eps >= 0.0 && options.eps <= 1.0)) {
    throw Error(ErrorCode::Argument, fmt::format("construct: eps is {}, expected 0 to 1", options.eps));
  }
}

/// The direction onto which the net projects its rows, up to a factor.
std::vector<double> direction_of(const Net& net, Mode mode) {
  std::vector<double> direction(net.in(), 0.0);
  const Layer& first = net.layers.empty() ? net.head : net.layers.front();
  for (std::size_t c = 0; c < first.in; ++c) {
    if (!net.layers.empty()) {
      direction[c] = first.weight[c] * (mode == Mode::paper ? std::sqrt(2.0) : 1.0);
    } else if (first.out > 1) {
      direction[c] = first.weight[first.in + c] - first.weight[c];
    }
  }
  return direction;
}

}  // namespace

// Tries settings in order and checks the nets. stable_mode and paper_mode construct, evaluate checks, and the
// two are independent of each other.

Construction construct(MatrixView<const double> x, std::span<const std::int64_t> labels,
                       const ConstructOptions& options, const Progress& progress) {
  validate_options(options);
  const Samples samples = distinct_samples(x, labels, options.first_label_wins);
  Construction construction;
  construction.distinct = samples.rows.size();
  construction.relabelled = samples.relabelled;
  construction.total = x.rows();
  const BinaryScale size = BinaryScale::of(x);
  if (options.eps > 0.0 && size.exponent() < least_exponent_with_eps) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("construct: the rows are of size 2^{}, too small beside eps, expected at least 2^{} or "
                    "an eps of 0",
                    size.exponent(), least_exponent_with_eps));
  }
  if (options.precision == Precision::double_double && size.exponent() > most_exponent_in_double_double) {
    throw Error(ErrorCode::Argument,
                fmt::format("construct: the rows are of size 2^{}, expected at most 2^{} for double-double",
                            size.exponent(), most_exponent_in_double_double));
  }
  // Rows whose squares neither overflow nor underflow are not scaled.
  std::vector<double> divided;
  if (!size.is_safe()) divided = size.divided(x);
  const Attempts task{.given = x,
                      .x = size.is_safe() ? x : MatrixView<const double>(divided.data(), x.rows(), x.width()),
                      .exponent = size.is_safe() ? 0 : size.exponent(),
                      .samples = samples,
                      .options = options,
                      .progress = progress};
  if (samples.names.size() == 1) {
    construction.net = constant_net(x.width(), samples.names[0]);
    construction.correct = x.rows();
  } else if (options.mode == Mode::paper) {
    construct_paper(task, construction);
  } else {
    construct_stable(task, construction);
  }
  return construction;
}

std::vector<std::int64_t> random_labels(std::size_t rows, std::size_t classes, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int64_t> labels(rows);
  for (std::int64_t& label : labels) label = static_cast<std::int64_t>(random.below(classes));
  return labels;
}

Layer one_fold(std::span<const double> direction, double midpoint, double radius) {
  if (direction.empty()) throw Error(ErrorCode::Shape, "one fold: a direction without entries");
  Layer layer{.in = direction.size(), .out = 3, .activation = Activation::norm};
  const double across = 1.0 / std::sqrt(2.0);
  for (const double sign : {across, -across, 0.0}) {
    for (const double weight : direction) layer.weight.push_back(sign * weight);
  }
  const double along = radius / std::sqrt(6.0);
  layer.bias = {along - across * midpoint, along + across * midpoint, -2.0 * along};
  layer.norm = {.width = 3, .eps = 0.0};
  return layer;
}

std::array<double, 2> circle_point(Mode mode, std::span<const double> neurons) {
  const double sign = mode == Mode::paper ? -1.0 : 1.0;
  return {(neurons[0] - neurons[1]) / std::sqrt(6.0), sign * neurons[2] / std::sqrt(2.0)};
}

double folded_place(Mode mode, const Fold& fold, double place) {
  const double height = std::hypot(1.0, (place - fold.midpoint) / fold.radius);
  return mode == Mode::paper ? 1.0 / height : height / std::sqrt(2.0);
}

MergeTrace merge_trace(const Construction& construction, Mode mode, MatrixView<const double> x) {
  const Net& net = construction.net;
  MergeTrace story{.rows = x.rows(), .layers = net.layers.size(), .direction = direction_of(net, mode)};
  const std::vector<std::vector<double>> outputs = trace(net, x);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    double place = 0.0;
    for (std::size_t c = 0; c < x.width(); ++c) place += story.direction[c] * x.row(row)[c];
    story.places.push_back(place);
  }
  for (const std::vector<double>& layer : outputs) {
    story.neurons.insert(story.neurons.end(), layer.begin(), layer.end());
    for (std::size_t row = 0; row < x.rows(); ++row) {
      const std::span<const double> neurons(layer.data() + 3 * row, 3);
      const std::array<double, 2> point = circle_point(mode, neurons);
      story.circle.insert(story.circle.end(), point.begin(), point.end());
      story.places.push_back(mode == Mode::paper ? point[1] : 1.0 / neurons[2]);
    }
  }
  return story;
}

}  // namespace normscope::nets
