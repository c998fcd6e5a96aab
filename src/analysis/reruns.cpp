#include "reruns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/core/hash.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/forward/paths.hpp>

namespace normscope::analysis {
namespace {

/// Entries of rows of MLPs that are in memory together, for those four times as wide as the stream.
constexpr std::size_t most_entries = std::size_t{1} << 23;
/// Weights of attention that are in memory together.
constexpr double most_attention = 0x1p27;

class Reruns {
 public:
  Reruns(const files::Checkpoint& checkpoint, const forward::Decoder& decoder, const FirstPass& pass,
         const NormReading& reading, const AttributeOptions& options, Attribution& result,
         const Progress& progress)
      : checkpoint_(checkpoint),
        model_(*result.model),
        decoder_(decoder),
        pass_(pass),
        reading_(reading),
        options_(options),
        result_(result),
        progress_(progress),
        value_(
            reading.value_at({pass.entered.back().data() + pass.entered.back().size() - width(), width()})),
        direction_(reading.direction()) {
    for (double& value : direction_) value /= reading.divisor();
  }

  /// All components but those of the circuit at their means over the positions.
  void run_circuit() {
    if (!spend(0)) return;
    std::vector<bool> removed(result_.components.size(), true);
    for (const std::size_t k : result_.circuit->kept) removed[k] = false;
    double value = value_;
    (void)decoder_.run_apart(
        pass_.context,
        {.change = [](std::size_t /*index*/, MatrixView<double> rows) { fill(rows, column_means(rows)); },
         .observe = read_into(value),
         .entered = &pass_.entered,
         .first = static_cast<std::size_t>(std::find(removed.begin(), removed.end(), true) - removed.begin()),
         .changed = removed},
        {});
    result_.circuit->rerun = value - value_;
  }

  void run_components() {
    const std::vector<std::size_t> chosen = chosen_components();
    if (chosen.empty()) return;
    const std::optional<Derivatives> derivatives = path_derivatives();
    std::vector<double> values(chosen.size(), value_);
    double null_value = value_;
    RunCheck check;
    std::vector<forward::Apart> runs = {null_patch(check, derivatives ? &*derivatives : nullptr, chosen)};
    runs.back().observe = read_into(null_value);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      runs.push_back(without(chosen[i]));
      runs.back().observe = read_into(values[i]);
    }
    const std::size_t together =
        std::max<std::size_t>(1, most_entries / (4 * width() * pass_.context.size()));
    for (std::size_t first = 0; first < runs.size(); first += together) {
      progress_("components", first, runs.size());
      (void)decoder_.run_apart(pass_.context,
                               std::span(runs).subspan(first, std::min(together, runs.size() - first)));
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) result_.components[chosen[i]].rerun = values[i] - value_;
    check.null_patch = null_value - value_;
    if (derivatives) check.freeze = frozen(*derivatives);
    result_.check = check;
  }

 private:
  /// Derivatives of the reading by what the components of a branch add to the stream; the key is the first of
  /// these.
  using Derivatives = std::map<std::size_t, std::vector<double>>;

  [[nodiscard]] std::size_t width() const { return pass_.entered.back().size() / pass_.context.size(); }

  static void fill(MatrixView<double> rows, const std::vector<double>& by) {
    for (std::size_t t = 0; t < rows.rows(); ++t) std::copy(by.begin(), by.end(), rows.row(t).begin());
  }

  /// Reads the last row that enters the final norm.
  forward::Observe read_into(double& value) const {
    return [this, &value](std::size_t norm, MatrixView<const double> rows) {
      if (norm == result_.norm) value = reading_.value_at(rows.row(rows.rows() - 1));
    };
  }

  /// Whether one more run from that component on is within the budget.
  bool spend(std::size_t first) {
    spent_ += static_cast<double>(pass_.context.size()) * static_cast<double>(model_.parameters) *
              decoder_.share_behind(first);
    return spent_ <= options_.budget;
  }

  /// Those of the largest direct effects that the budget allows, in their order in the model.
  std::vector<std::size_t> chosen_components() {
    const std::vector<ComponentEffect>& components = result_.components;
    std::vector<std::size_t> order(components.size()), chosen;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(components[a].effect.exact) > std::abs(components[b].effect.exact);
    });
    for (const std::size_t k : order) {
      // A given row stands behind the branch's norm and factor, where the rest of the model has no input.
      const forward::Component& component = *components[k].component;
      const bool is_behind =
          component.after != nullptr || (component.layer && model_.decoder->branch_scale != 1.0);
      if (options_.removal == Removal::given && is_behind) continue;
      if (!spend(k)) break;
      chosen.push_back(k);
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  /// A run in which a component is replaced at every position.
  [[nodiscard]] forward::Apart without(std::size_t component) const {
    std::vector<bool> changed(result_.components.size());
    changed[component] = true;
    return {.change =
                [this, component](std::size_t /*index*/, MatrixView<double> rows) {
                  fill(rows, options_.removal == Removal::mean ? pass_.means[component]
                                                               : pass_.replacements[component]);
                },
            .entered = &pass_.entered,
            .first = component,
            .changed = std::move(changed),
            .replaces = true,
            .last_only = true};
  }

  static const std::vector<double>& derivative_of(const Derivatives& derivatives, std::size_t component) {
    return std::prev(derivatives.upper_bound(component))->second;
  }

  /// A run of the same text whose components are compared with those of the first pass. It collects what they
  /// add, for the path sums of those that are chosen.
  [[nodiscard]] forward::Apart null_patch(RunCheck& check, const Derivatives* derivatives,
                                          const std::vector<std::size_t>& chosen) const {
    forward::Apart run{.entered = &pass_.entered, .last_only = true};
    run.change = [this, &check](std::size_t index, MatrixView<double> rows) {
      const RowsHash found(rows);
      const RowsHash& known = pass_.computed[index];
      const bool is_last_alone = rows.rows() < pass_.context.size();
      if (is_last_alone ? found.last != known.last : found.all != known.all) ++check.differing;
    };
    if (derivatives == nullptr) return run;
    run.collect = [this, derivatives, &chosen](std::size_t index, MatrixView<const double> rows) {
      if (!std::binary_search(chosen.begin(), chosen.end(), index)) return;
      std::vector<double> change(rows.rows() * rows.width());
      fill({change.data(), rows.rows(), rows.width()}, pass_.replacements[index]);
      for (std::size_t i = 0; i < change.size(); ++i) change[i] -= rows.data()[i];
      // Where rows before the last have no effect, they are not there.
      const std::span<const double> derivative = derivative_of(*derivatives, index);
      result_.components[index].paths = plain_dot(derivative.last(change.size()), change);
    };
    return run;
  }

  /// The derivatives that give path sums; none for norms without one divisor, and for too many tokens.
  [[nodiscard]] std::optional<Derivatives> path_derivatives() const {
    const auto positions = static_cast<double>(pass_.context.size());
    if (positions * positions * static_cast<double>(model_.heads_per_layer) > most_attention) {
      return std::nullopt;
    }
    Derivatives derivatives;
    try {
      forward::pull_back(
          checkpoint_, model_, pass_.entered, result_.at, direction_,
          [&](std::size_t component, MatrixView<const double> rows) {
            derivatives[component].assign(rows.data(), rows.data() + rows.rows() * rows.width());
          },
          options_.threads);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unsupported) throw;
      return std::nullopt;
    }
    return derivatives;
  }

  /// Runs the frozen model with random changes of all components, of about the stream's size.
  [[nodiscard]] RunCheck::Freeze frozen(const Derivatives& derivatives) const {
    const double size = result_.divisor;
    const std::span<const double> stream = std::span(pass_.entered.back()).last(width());
    RunCheck::Freeze freeze;
    (void)decoder_.run_apart(
        pass_.context, {.change =
                            [&](std::size_t index, MatrixView<double> rows) {
                              const forward::Component& of = decoder_.components()[index];
                              // What an embedding behind a norm of its own computes is not what it adds.
                              if (of.kind == forward::Component::Kind::embedding && of.after != nullptr) {
                                return;
                              }
                              Random random(index + 1);
                              const std::vector<double>& derivative = derivative_of(derivatives, index);
                              for (std::size_t i = 0; i < derivative.size(); ++i) {
                                // By the sign of the bits; which it is, no processor can predict.
                                const auto bits = static_cast<std::int64_t>(random.bits());
                                const double added = std::copysign(size, -static_cast<double>(bits));
                                rows.data()[i] += added;
                                freeze.by_paths += derivative[i] * added;
                              }
                            },
                        .observe =
                            [&](std::size_t norm, MatrixView<const double> rows) {
                              if (norm != result_.norm) return;
                              const std::span<const double> last = rows.row(rows.rows() - 1);
                              for (std::size_t i = 0; i < direction_.size(); ++i)
                                freeze.by_run += direction_[i] * (last[i] - stream[i]);
                            },
                        .entered = &pass_.entered,
                        .frozen = true});
    return freeze;
  }

  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  const forward::Decoder& decoder_;
  const FirstPass& pass_;
  const NormReading& reading_;
  const AttributeOptions& options_;
  Attribution& result_;
  const Progress& progress_;
  double value_;                   ///< of the first pass
  std::vector<double> direction_;  ///< the derivative with the final norm's divisor kept
  double spent_ = 0.0;             ///< of the budget
};

}  // namespace

RowsHash::RowsHash(MatrixView<const double> rows) {
  Fnv of_all;
  for (std::size_t t = 0; t < rows.rows(); ++t) of_all.add(rows.row(t));
  Fnv of_last;
  of_last.add(rows.row(rows.rows() - 1));
  all = of_all.value();
  last = of_last.value();
}

std::vector<double> column_means(MatrixView<const double> rows) {
  std::vector<double> means(rows.width());
  std::vector<double> column(rows.rows());
  for (std::size_t i = 0; i < rows.width(); ++i) {
    for (std::size_t t = 0; t < rows.rows(); ++t) column[t] = rows.row(t)[i];
    means[i] = mean(column);
  }
  return means;
}

void add_reruns(const files::Checkpoint& checkpoint, const forward::Decoder& decoder, const FirstPass& pass,
                const NormReading& reading, const AttributeOptions& options, Attribution& result,
                const Progress& progress) {
  Reruns runs(checkpoint, decoder, pass, reading, options, result, progress);
  if (result.circuit) runs.run_circuit();
  runs.run_components();
}

}  // namespace normscope::analysis
