#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/norm/kernels.hpp>

#include "state.hpp"

namespace normscope::forward {
namespace {

/// What the components of a branch are computed from, for rows of several passes.
struct Addends {
  std::vector<double> inputs{};  ///< of the output map, head after head; of a mixture of experts its output
  std::vector<double> weight{};  ///< the output map; empty for a mixture of experts
  std::vector<double> bias{};    ///< the last component, if the branch has one; empty: zeros
  std::size_t count = 1, dim = 0, width = 0;  ///< components without the bias, and inputs of each

  /// Writes the features from `begin` on of a component, for rows from `first` on.
  void write(std::size_t component, std::size_t first, std::size_t begin, MatrixView<double> to) const {
    const std::size_t in = count * dim;
    if (component < count && !weight.empty()) {
      const MatrixView<const double> map(weight.data() + begin * in + component * dim, to.width(), dim, in);
      multiply(MatrixView<const double>(inputs.data() + first * in + component * dim, to.rows(), dim, in),
               Factor<double>(map).transposed(), to);
      return;
    }
    for (std::size_t r = 0; r < to.rows(); ++r) {
      const double* const from = component == count ? (bias.empty() ? nullptr : bias.data() + begin)
                                                    : inputs.data() + (first + r) * width + begin;
      for (std::size_t i = 0; i < to.width(); ++i) to.row(r)[i] = from == nullptr ? 0.0 : from[i];
    }
  }
};

}  // namespace

/// Passes of the same tokens with changes of their own. Their rows stand one after the other, in the order in
/// which they begin, so that each matrix is read once for all. No entry depends on how many there are.
class Decoder::State::Together {
 public:
  Together(const State& state, std::span<const std::size_t> tokens, std::span<const Apart> runs)
      : state_(state), width_(state.width), tokens_(tokens), last_only_(runs.front().last_only) {
    for (const Apart& run : runs) {
      const bool is_late = run.entered != nullptr;
      NORMSCOPE_ASSERT(!run.frozen || (is_late && run.first == 0 && !run.collect && runs.size() == 1));
      NORMSCOPE_ASSERT(run.last_only == last_only_);
      runs_.push_back(&run);
      begins_.push_back(is_late ? state.step_of(run.first) : 0);
    }
    order_.resize(runs.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return begins_[a] < begins_[b]; });
    for (std::size_t s = 0; s < state.plan.steps.size(); ++s) {
      for (const Branch& branch : state.plan.steps[s].before) {
        if (!branch.heads.empty()) last_attention_ = &branch, last_step_ = s;
      }
    }
    last_only_ = last_only_ && last_attention_ != nullptr;
  }

  /// The output of the final norm, run after run as they were given.
  [[nodiscard]] std::vector<double> run(const Progress& progress) {
    const std::vector<double> found = state_.pass({}, *this, progress, begins_[order_.front()]);
    std::vector<double> result(found.size());
    const auto each = static_cast<std::ptrdiff_t>(found.size() / runs_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(i) * each, each,
                  result.begin() + static_cast<std::ptrdiff_t>(order_[i]) * each);
    }
    return result;
  }

  /// Adds the rows of the runs that begin with a step.
  void enter(std::size_t step, std::vector<double>& stream, Normed& normed) {
    next_ = state_.starts[step];
    Normed read;
    std::vector<double> rows;
    for (; active_ < runs_.size() && begins_[order_[active_]] == step; ++active_) {
      const Apart& run = *runs_[order_[active_]];
      if (step == 0) {
        rows.assign(tokens_.size() * width_, 0.0);
        begin(0, state_.embedded(tokens_), run, rows);
        begin(1, state_.placed(tokens_), run, rows);
      } else if (rows.empty()) {
        read = resumed(*run.entered, step, rows);
      }
      stream.insert(stream.end(), rows.begin(), rows.end());
      for (const auto& [norm, output] : read) {
        normed[norm].insert(normed[norm].end(), output.begin(), output.end());
      }
    }
  }

  void observe(std::size_t norm, MatrixView<const double> rows) const {
    for (std::size_t i = 0; i < active_; ++i) {
      const Apart& run = *runs_[order_[i]];
      if (run.observe) run.observe(norm, of_run(rows, i));
    }
  }

  [[nodiscard]] std::vector<double> output(std::size_t step, MatrixView<const double> rows) const {
    const models::Norm& norm = state_.model.norms[state_.norms[step]];
    const Apart& run = *runs_.front();
    return run.frozen ? frozen_output(norm, rows, (*run.entered)[step]) : state_.output_of(norm, rows);
  }

  void add(const Branch& branch, MatrixView<const double> read, std::vector<double>& stream) {
    const std::size_t first = next_;
    next_ += branch.components();
    if (runs_.front()->frozen) {
      add_frozen(branch, first, *runs_.front(), read, stream);
      return;
    }
    const bool ends_attention = last_only_ && &branch == last_attention_;
    if (ends_attention) stream = last_rows(view(stream), active_);
    std::vector<double> last;
    if (!ends_attention && read.rows() * width_ != stream.size()) last = last_rows(read, active_);
    const MatrixView<const double> all = last.empty() ? read : MatrixView<const double>(view(last));
    // The runs that begin here are the last, and may replace all that the branch computes.
    const std::size_t computed = branch.components() - (branch.has_bias() ? 1 : 0);
    std::size_t needed = active_;
    while (needed > 1 && replaces_all(*runs_[order_[needed - 1]], first, computed)) --needed;
    const Addends of = addends(branch, {.rows = {all.data(), all.rows() / active_ * needed, width_},
                                        .contexts = needed,
                                        .last_only = ends_attention});
    const std::size_t rows = stream.size() / width_ / active_;
    std::vector<double> total(stream.size());
    for (std::size_t i = 0; i < active_; ++i) {
      const Apart& run = *runs_[order_[i]];
      std::vector<std::vector<double>> parts(branch.components());
      for (std::size_t c = 0; c < parts.size(); ++c) {
        const bool changes = run.change && (run.changed.empty() || run.changed[first + c]);
        if (!changes && !run.collect) continue;
        const bool is_computed = i < needed || c >= computed;
        parts[c] = is_computed ? part(of, c, i * rows, rows) : std::vector<double>(rows * width_);
        if (changes) run.change(first + c, view(parts[c]));
      }
      const MatrixView<double> sum = of_run(view(total), i);
      add_up(of, i * rows, parts, sum);
      if (branch.after != nullptr) pass_after(branch, sum, run.collect ? &parts : nullptr);
      for (std::size_t c = 0; c < parts.size() && run.collect; ++c) {
        for (double& value : parts[c]) value *= state_.model.decoder->branch_scale;
        run.collect(first + c, view(parts[c]));
      }
    }
    parallel_for(stream.size(), std::size_t{1} << 16, state_.threads,
                 [&](std::size_t begin, std::size_t end) {
                   for (std::size_t i = begin; i < end; ++i) {
                     stream[i] += state_.model.decoder->branch_scale * total[i];
                   }
                 });
  }

 private:
  [[nodiscard]] MatrixView<double> view(std::vector<double>& rows) const {
    return {rows.data(), rows.size() / width_, width_};
  }

  static bool replaces_all(const Apart& run, std::size_t first, std::size_t count) {
    for (std::size_t c = 0; c < count && run.replaces && !run.changed.empty(); ++c) {
      if (!run.changed[first + c]) return false;
    }
    return run.replaces && !run.collect;
  }

  /// Those of the i-th run.
  template <typename T>
  [[nodiscard]] MatrixView<T> of_run(MatrixView<T> rows, std::size_t i) const {
    const std::size_t each = rows.rows() / active_;
    return {rows.row(i * each).data(), each, rows.width()};
  }

  /// Adds an embedding, unless there is none.
  void begin(std::size_t component, std::vector<double> rows, const Apart& hooks,
             std::vector<double>& stream) const {
    if (rows.empty()) return;
    if (hooks.change && (hooks.changed.empty() || hooks.changed[component])) {
      hooks.change(component, view(rows));
    }
    if (hooks.collect) {
      const models::Norm* const after = state_.components[component].after;
      std::vector<double> normed = after == nullptr ? rows : state_.output_of(*after, view(rows));
      hooks.collect(component, view(normed));
    }
    for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += rows[i];
  }

  /// What a pass has in front of step `first`, of the rows that entered the norms before.
  [[nodiscard]] Normed resumed(const std::vector<std::vector<double>>& entered, std::size_t first,
                               std::vector<double>& stream) const {
    const auto kept = [&](std::vector<double> rows) {
      return last_only_ && first > last_step_ ? last_rows(view(rows), 1) : rows;
    };
    Normed normed;
    for (std::size_t s = first; s > 0; --s) {
      const Step& step = state_.plan.steps[s - 1];
      std::vector<double> rows = kept(entered[s - 1]);
      normed[step.norm] = state_.output_of(state_.model.norms[step.norm], view(rows));
      if (s == first) stream = step.becomes_stream ? normed[step.norm] : std::move(rows);
      if (!step.before.empty()) break;
    }
    return normed;
  }

  [[nodiscard]] Addends addends(const Branch& branch, const AttentionInput& input) const {
    if (branch.experts.router != nullptr) {
      return {.inputs = state_.output_of(branch.experts, input.rows), .dim = width_, .width = width_};
    }
    const models::Linear& out = *branch.mlp.out;
    Addends result{.count = std::max<std::size_t>(1, branch.heads.size()), .width = width_};
    result.inputs = branch.heads.empty() ? state_.activations(branch.mlp, input.rows)
                                         : attended(state_.checkpoint, state_.model, branch.heads, input, {},
                                                    state_.threads, state_.disturbance);
    const auto in = static_cast<std::size_t>(out.in);
    const std::size_t rows = input.last_only ? input.contexts : input.rows.rows();
    if (result.inputs.size() != rows * in) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("not modelled: \"{}\" reads {} features, expected {}", out.weight.selector(),
                              in, result.inputs.size() / rows));
    }
    result.dim = in / result.count;
    result.weight = whole_weight(state_.checkpoint, out, state_.threads);
    result.bias = models::read_bias(state_.checkpoint, out);
    return result;
  }

  [[nodiscard]] std::vector<double> part(const Addends& of, std::size_t component, std::size_t first,
                                         std::size_t rows) const {
    std::vector<double> result(rows * width_);
    parallel_for(width_, outputs_together(width_, state_.threads), state_.threads,
                 [&](std::size_t begin, std::size_t end) {
                   of.write(component, first, begin, {result.data() + begin, rows, end - begin, width_});
                 });
    return result;
  }

  /// Adds the components of a branch in their order, some of which are there.
  void add_up(const Addends& of, std::size_t first, const std::vector<std::vector<double>>& parts,
              MatrixView<double> sum) const {
    parallel_for(width_, outputs_together(width_, state_.threads), state_.threads,
                 [&](std::size_t begin, std::size_t end) {
                   std::vector<double> some(sum.rows() * (end - begin));
                   for (std::size_t c = 0; c < parts.size(); ++c) {
                     const bool is_there = !parts[c].empty();
                     if (!is_there) of.write(c, first, begin, {some.data(), sum.rows(), end - begin});
                     for (std::size_t r = 0; r < sum.rows(); ++r) {
                       const double* const from =
                           is_there ? parts[c].data() + r * width_ + begin : some.data() + r * (end - begin);
                       for (std::size_t i = begin; i < end; ++i) sum.row(r)[i] += from[i - begin];
                     }
                   }
                 });
  }

  /// Passes the norm of a branch's output; makes parts of its input those of its output.
  void pass_after(const Branch& branch, MatrixView<double> total,
                  std::vector<std::vector<double>>* parts) const {
    const NormSpec spec = models::read_norm(state_.checkpoint, *branch.after);
    if (parts != nullptr && (spec.elementwise() || spec.groups != 1)) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("not modelled: components through {}, expected a norm with one divisor",
                              branch.after->name));
    }
    for (std::size_t t = 0; t < total.rows() && parts != nullptr; ++t) {
      const double divisor = divisor_of(spec, total.row(t));
      for (std::vector<double>& part : *parts) {
        const std::span<double> of(part.data() + t * width_, width_);
        if (spec.centers()) center(of);
        for (std::size_t i = 0; i < width_; ++i) of[i] *= spec.gain_at(i) / divisor;
      }
      for (std::size_t i = 0; i < width_ && !spec.bias.empty(); ++i) {
        parts->back()[t * width_ + i] += spec.bias[i];
      }
    }
    norm::normalize<double>(norm::view(spec), total, total, state_.threads);
  }

  static double divisor_of(const NormSpec& spec, std::span<const double> row) {
    std::vector<double> centered(row.begin(), row.end());
    if (spec.centers()) center(centered);
    return std::sqrt(sum_of_squares(centered) / spec.squared_radius() + spec.eps);
  }

  /// The output of a norm with its divisors for other rows.
  [[nodiscard]] std::vector<double> frozen_output(const models::Norm& norm, MatrixView<const double> x,
                                                  const std::vector<double>& of) const {
    const NormSpec spec = models::read_norm(state_.checkpoint, norm);
    if (spec.elementwise() || spec.groups != 1) {
      throw Error(
          ErrorCode::Unsupported,
          fmt::format("not modelled: {} with its divisors kept, expected a norm with one", norm.name));
    }
    std::vector<double> output(x.data(), x.data() + of.size());
    for (std::size_t t = 0; t < x.rows(); ++t) {
      const std::span<double> y(output.data() + t * width_, width_);
      if (spec.centers()) center(y);
      const double divisor = divisor_of(spec, {of.data() + t * width_, width_});
      for (std::size_t i = 0; i < width_; ++i) y[i] = y[i] / divisor * spec.gain_at(i) + spec.bias_at(i);
    }
    return output;
  }

  /// What an MLP added that alone stands between two norms of the stream.
  [[nodiscard]] std::optional<std::vector<double>> kept_output(
      const Branch& branch, std::size_t step, const std::vector<std::vector<double>>& entered) const {
    const std::vector<Step>& steps = state_.plan.steps;
    if (!branch.heads.empty() || steps[step].becomes_stream || steps[step + 1].before.size() != 1) {
      return std::nullopt;
    }
    std::vector<double> output = entered[step + 1];
    for (std::size_t i = 0; i < output.size(); ++i) output[i] -= entered[step][i];
    return output;
  }

  /// As `add`, with attention, MLPs and the divisor of the branch's norm as for the rows that entered the
  /// norm that the branch reads.
  void add_frozen(const Branch& branch, std::size_t first, const Apart& hooks,
                  MatrixView<const double> normed, std::vector<double>& stream) const {
    const std::size_t rows = normed.rows();
    const auto step = static_cast<std::size_t>(
        std::find(state_.norms.begin(), state_.norms.end(), branch.norm) - state_.norms.begin());
    if (step + 1 >= state_.norms.size()) {
      throw Error(ErrorCode::Unsupported, "not modelled: a freeze of branches that read the stream itself");
    }
    if (auto output = kept_output(branch, step, *hooks.entered)) {
      for (std::size_t c = 0; c < branch.components(); ++c) {
        if (hooks.change) hooks.change(first + c, view(*output));
      }
      for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += (*output)[i];
      return;
    }
    std::vector<double> entered = (*hooks.entered)[step];
    std::vector<double> read = state_.output_of(state_.model.norms[state_.norms[step]], view(entered));
    AttentionInput input{.rows = view(read)};
    std::vector<double> total;
    if (branch.after != nullptr) {
      total.resize(stream.size());
      add_up(addends(branch, input), 0, std::vector<std::vector<double>>(branch.components()), view(total));
    }
    input.of_values = normed;
    const Addends of = addends(branch, input);
    std::vector<std::vector<double>> parts;
    for (std::size_t c = 0; c < branch.components(); ++c) parts.push_back(part(of, c, 0, rows));
    if (branch.after != nullptr) pass_after(branch, view(total), &parts);
    for (std::size_t c = 0; c < parts.size(); ++c) {
      for (double& value : parts[c]) value *= state_.model.decoder->branch_scale;
      if (hooks.change) hooks.change(first + c, view(parts[c]));
      for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += parts[c][i];
    }
  }

  const State& state_;
  std::size_t width_;
  std::span<const std::size_t> tokens_;
  std::vector<const Apart*> runs_{};
  std::vector<std::size_t> begins_{}, order_{};
  bool last_only_ = false;
  const Branch* last_attention_ = nullptr;
  std::size_t last_step_ = 0;
  std::size_t active_ = 0;  ///< runs that have begun
  std::size_t next_ = 0;    ///< component
};

std::vector<double> Decoder::run_apart(std::span<const std::size_t> tokens, std::span<const Apart> runs,
                                       const Progress& progress) const {
  NORMSCOPE_ASSERT(!runs.empty());
  state_->expect_tokens(tokens);
  return State::Together(*state_, tokens, runs).run(progress);
}

std::vector<double> Decoder::run_apart(std::span<const std::size_t> tokens, const Apart& apart,
                                       const Progress& progress) const {
  return run_apart(tokens, std::span(&apart, 1), progress);
}

std::size_t Decoder::State::step_of(std::size_t component) const {
  const auto behind = std::upper_bound(starts.begin(), starts.end(), component);
  // The last of steps that add nothing has the number of the next component too.
  const auto step = static_cast<std::size_t>(behind - starts.begin());
  return component < starts.front() ? 0 : step - 1;
}

double Decoder::share_behind(std::size_t component) const {
  const auto steps = static_cast<double>(state_->plan.steps.size());
  return (steps - static_cast<double>(state_->step_of(component))) / steps;
}

}  // namespace normscope::forward
