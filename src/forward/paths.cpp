#include <normscope/forward/paths.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/forward/plan.hpp>
#include <normscope/norm/kernels.hpp>

#include "layers.hpp"

namespace normscope::forward {
namespace {

class PullBack {
 public:
  PullBack(const files::Checkpoint& checkpoint, const models::Model& model,
           const std::vector<std::vector<double>>& entered, const TakeDerivative& take, unsigned threads)
      : checkpoint_(checkpoint),
        model_(model),
        entered_(entered),
        take_(take),
        threads_(threads),
        plan_(plan_of(model, false)),
        width_(static_cast<std::size_t>(model.norms[plan_.steps.back().norm].width)),
        rows_(entered.front().size() / width_) {
    NORMSCOPE_ASSERT(entered.size() == plan_.steps.size());
  }

  /// `rows` are the derivatives by what enters the final norm.
  void run(std::vector<double> rows) {
    std::size_t next = plan_.positions == nullptr ? 1 : 2;
    for (const Step& step : plan_.steps) {
      for (const Branch& branch : step.before) {
        expect_linear(branch);
        next += branch.components();
      }
    }
    for (std::size_t s = plan_.steps.size() - 1; s > 0; --s) {
      const Step& step = plan_.steps[s];
      NORMSCOPE_ASSERT(!step.becomes_stream);
      std::vector<double> before = rows;
      for (auto branch = step.before.rbegin(); branch != step.before.rend(); ++branch) {
        next -= branch->components();
        take_(next, view(rows));
        if (branch->heads.empty()) continue;
        std::vector<double> of_normed(rows.size());
        const models::Norm& norm = model_.norms[*branch->norm];
        const std::vector<double>& x = entered_[step_of(*branch->norm)];
        pull_heads(*branch, norm, x, rows, of_normed);
        pull_norm(norm, x, of_normed);
        for (std::size_t i = 0; i < rows.size(); ++i) before[i] += of_normed[i];
      }
      rows = std::move(before);
    }
    for (std::size_t k = 0; k < (plan_.positions == nullptr ? 1U : 2U); ++k) take_(k, view(rows));
  }

 private:
  [[nodiscard]] MatrixView<const double> view(const std::vector<double>& rows) const {
    return {rows.data(), rows_, rows.size() / rows_};
  }

  /// Whether its heads are linear in the output of a norm, the weights of attention kept.
  void expect_linear(const Branch& branch) const {
    if (!branch.norm) {
      throw Error(ErrorCode::Unsupported, "not modelled: paths through branches that read the stream itself");
    }
    for (const std::size_t head : branch.heads) {
      if (model_.heads[head].clip == 0.0) continue;
      throw Error(ErrorCode::Unsupported, "not modelled: paths through values that are clamped");
    }
  }

  [[nodiscard]] std::size_t step_of(std::size_t norm) const {
    const auto found = std::find_if(plan_.steps.begin(), plan_.steps.end(),
                                    [&](const Step& step) { return step.norm == norm; });
    return static_cast<std::size_t>(found - plan_.steps.begin());
  }

  /// Derivatives by a norm's output in place become those by its input, with its divisors for `x`.
  void pull_norm(const models::Norm& norm, const std::vector<double>& x, std::vector<double>& rows) const {
    const NormSpec spec = models::read_norm(checkpoint_, norm);
    if (spec.elementwise() || spec.groups != 1) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("not modelled: paths through {}, expected a norm with one divisor", norm.name));
    }
    for (std::size_t t = 0; t < rows_; ++t) {
      std::vector<double> row(x.data() + t * width_, x.data() + (t + 1) * width_);
      if (spec.centers()) center(row);
      const double divisor = std::sqrt(sum_of_squares(row) / spec.squared_radius() + spec.eps);
      const std::span<double> of(rows.data() + t * width_, width_);
      for (std::size_t i = 0; i < width_; ++i) of[i] *= spec.gain_at(i) / divisor;
      if (spec.centers()) center(of);
    }
  }

  /// Adds to `normed` the derivatives by what attention reads, the output of its norm for x, for those by
  /// what it adds to the stream.
  void pull_heads(const Branch& branch, const models::Norm& norm, const std::vector<double>& x,
                  std::vector<double> rows, std::vector<double>& normed) const {
    const NormSpec spec = models::read_norm(checkpoint_, norm);
    std::vector<double> y(x.size());
    norm::normalize<double>(norm::view(spec), view(x), {y.data(), rows_, width_}, threads_);
    std::map<std::size_t, std::vector<double>> weights;
    const auto keep = [&](std::size_t head, MatrixView<const double> seen) {
      weights[head].assign(seen.data(), seen.data() + rows_ * rows_);
    };
    const std::vector<double> values =
        attended(checkpoint_, model_, branch.heads, {.rows = view(y)}, {.see = keep}, threads_);
    for (double& value : rows) value *= model_.decoder->branch_scale;
    const models::Linear& map = *branch.mlp.out;
    if (branch.after != nullptr) {
      pull_norm(*branch.after, apply(checkpoint_, map, view(values), threads_), rows);
    }
    const auto in = static_cast<std::size_t>(map.in);
    const std::size_t dim = in / branch.heads.size();
    const std::vector<double> out = whole_weight(checkpoint_, map, threads_);
    // Derivatives by what the output map reads; by the values, through the weights of all queries; then
    // through their maps.
    std::vector<double> of_sums(rows_ * in), of_values(rows_ * in), maps(in * width_);
    parallel_for(in, outputs_together(in, threads_), threads_, [&](std::size_t begin, std::size_t end) {
      multiply(view(rows), MatrixView<const double>(out.data() + begin, width_, end - begin, in),
               MatrixView<double>(of_sums.data() + begin, rows_, end - begin, in));
    });
    parallel_for(branch.heads.size(), 1, threads_, [&](std::size_t begin, std::size_t end) {
      for (std::size_t h = begin; h < end; ++h) {
        multiply(Factor<double>(view(weights.at(branch.heads[h]))).transposed(),
                 MatrixView<const double>(of_sums.data() + h * dim, rows_, dim, in),
                 MatrixView<double>(of_values.data() + h * dim, rows_, dim, in));
        const std::vector<double> value =
            models::read_weight(checkpoint_, *model_.heads[branch.heads[h]].value, 0, dim);
        std::copy(value.begin(), value.end(), maps.begin() + static_cast<std::ptrdiff_t>(h * dim * width_));
      }
    });
    parallel_for(
        width_, outputs_together(width_, threads_), threads_, [&](std::size_t begin, std::size_t end) {
          multiply(view(of_values), MatrixView<const double>(maps.data() + begin, in, end - begin, width_),
                   MatrixView<double>(normed.data() + begin, rows_, end - begin, width_), Into::add);
        });
  }

  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  const std::vector<std::vector<double>>& entered_;
  const TakeDerivative& take_;
  unsigned threads_;
  Plan plan_;
  std::size_t width_, rows_;
};

}  // namespace

void pull_back(const files::Checkpoint& checkpoint, const models::Model& model,
               const std::vector<std::vector<double>>& entered, std::size_t at,
               std::span<const double> direction, const TakeDerivative& take, unsigned threads) {
  std::vector<double> rows(entered.front().size());
  std::copy(direction.begin(), direction.end(),
            rows.begin() + static_cast<std::ptrdiff_t>(at * direction.size()));
  PullBack(checkpoint, model, entered, take, threads).run(std::move(rows));
}

}  // namespace normscope::forward
