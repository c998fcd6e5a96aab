#include <normscope/heads/heads.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>

#include "rotary_search.hpp"

namespace normscope::heads {
namespace {

bool names(const std::vector<models::Linear>& linears, const models::Linear& wanted) {
  return std::any_of(linears.begin(), linears.end(), [&](const models::Linear& linear) {
    return linear.weight.selector() == wanted.weight.selector() && linear.role == wanted.role;
  });
}

}  // namespace

std::string head_refusal(const models::Model& model, const models::Head& head, const std::string& read,
                         const models::Linear* between) {
  if (std::string why = models::why_no_scores(head); !why.empty()) return why;
  const models::Norm* const norm = find_norm(model, read);
  if (norm == nullptr) return "the norm it reads is not known";
  if (norm->effect() != NormEffect::normalizes) return not_normalizing(*norm);
  if (norm->groups != 1) return fmt::format("its norm has {} groups", norm->groups);
  if (!names(norm->readers, between == nullptr ? *head.key : *between)) {
    return "its keys do not read the norm that its queries read";
  }
  const std::size_t width = between == nullptr ? norm->width : between->out;
  if (head.query->in != width || head.key->in != width) return "it reads a part of its norm";
  if (between != nullptr && between->in != norm->width) return "it reads a part of its norm";
  for (const models::Linear* part : {&*head.query, &*head.key}) {
    const models::Norm* const own = own_norm(model, *part);
    if (own != nullptr && own->effect() != NormEffect::normalizes) return not_normalizing(*own);
    if (own != nullptr && (own->width != head.head_dim || own->groups != 1)) {
      return "its queries or keys pass a norm that is not one of each head";
    }
  }
  return {};
}

namespace {

/// start + Σ a_k b_k.
Bounded dot(const double* a, const double* b, std::size_t count, std::size_t step, double start) {
  constexpr double unit = 0x1p-53;
  DoubleDouble sum(start);
  double size = std::abs(start);
  for (std::size_t k = 0; k < count; ++k) {
    const DoubleDouble product = DoubleDouble(a[k]) * DoubleDouble(b[k * step]);
    sum += product;
    size += std::abs(product.high);
  }
  // Each operation rounds by 16 u² of its result, which is at most the sum of sizes; products may also
  // underflow.
  const double terms = static_cast<double>(count) + 2.0;
  const double error = std::abs(sum.low) + 32.0 * terms * unit * unit * size +
                       8.0 * terms * std::numeric_limits<double>::min();
  return {sum.high, error * (1.0 + 4.0 * unit)};
}

}  // namespace

Projection read_projection(const files::Checkpoint& checkpoint, const models::Linear& part,
                           const models::Linear* between) {
  Projection stored{models::read_weight(checkpoint, part, 0, part.out), models::read_bias(checkpoint, part)};
  if (between == nullptr) return stored;
  const std::vector<double> map = models::read_weight(checkpoint, *between, 0, between->out);
  const std::vector<double> shift = models::read_bias(checkpoint, *between);
  const std::size_t inner = between->out;
  Projection composed;
  composed.weight.reserve(part.out * between->in);
  composed.weight_error.reserve(part.out * between->in);
  for (std::size_t row = 0; row < part.out; ++row) {
    const double* const weights = stored.weight.data() + row * inner;
    for (std::size_t column = 0; column < between->in; ++column) {
      const Bounded entry = dot(weights, map.data() + column, inner, between->in, 0.0);
      composed.weight.push_back(entry.value);
      composed.weight_error.push_back(entry.error);
    }
    if (shift.empty() && stored.bias.empty()) continue;
    const double start = stored.bias.empty() ? 0.0 : stored.bias[row];
    const Bounded entry = shift.empty() ? Bounded{start, 0.0} : dot(weights, shift.data(), inner, 1, start);
    composed.bias.push_back(entry.value);
    composed.bias_error.push_back(entry.error);
  }
  return composed;
}

namespace {

/// One head and one norm that it reads.
struct Task {
  std::size_t head;
  std::string norm;
  std::string pass;
};

std::vector<Task> tasks_of(const models::Model& model) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    const models::Head& head = model.heads[i];
    tasks.push_back({i, head.norm, head.later_norms.empty() ? "" : "first"});
    for (const std::string& norm : head.later_norms) tasks.push_back({i, norm, "later"});
  }
  return tasks;
}

/// Errors    Argument, Shape or Unsupported for tensors that cannot be read
HeadReach reach(const files::Checkpoint& checkpoint, const models::Model& model, const Task& task,
                const HeadContexts& contexts, const AttentionEffort& effort) {
  const models::Head& head = model.heads[task.head];
  HeadReach result{.head = task.head, .norm = task.norm, .pass = task.pass};
  const models::Linear* const between = task.norm == head.norm && head.between ? &*head.between : nullptr;
  result.refused = head_refusal(model, head, task.norm, between);
  if (!result.refused.empty()) return result;
  const NormSpec norm = models::read_norm(checkpoint, *find_norm(model, task.norm));
  const Projection query = read_projection(checkpoint, *head.query, between);
  const Projection key = read_projection(checkpoint, *head.key, between);
  const auto own = [&](const models::Linear& part, std::string& name) -> std::optional<NormSpec> {
    const models::Norm* const found = own_norm(model, part);
    if (found == nullptr) return {};
    name = found->name;
    return models::read_norm(checkpoint, *found);
  };
  const std::optional<NormSpec> query_norm = own(*head.query, result.query_norm);
  const std::optional<NormSpec> key_norm = own(*head.key, result.key_norm);
  result.norm_kind = norm.kind;
  if (query_norm) {
    result.query_norm_kind = query_norm->kind;
    result.query_norm_eps = query_norm->eps;
  }
  if (key_norm) {
    result.key_norm_kind = key_norm->kind;
    result.key_norm_eps = key_norm->eps;
  }
  HeadMaps maps{.query = {query.weight.data(), head.head_dim, norm.width},
                .query_bias = query.bias,
                .key = {key.weight.data(), head.head_dim, norm.width},
                .key_bias = key.bias,
                .query_error = query.error(norm.width),
                .key_error = key.error(norm.width),
                .scale = head.scale,
                .query_norm = query_norm ? &*query_norm : nullptr,
                .key_norm = key_norm ? &*key_norm : nullptr,
                .context = contexts.positions,
                .window = head.window.value_or(0),
                .soft_cap = head.soft_cap};
  Rotation rotation;
  if (head.rotary) {
    rotation = {.dims = head.rotary->dims,
                .interleaved = head.rotary->interleaved,
                .frequencies = head.rotary->frequencies,
                .score_factor = head.rotary->score_factor};
    maps.rotation = &rotation;
    if (maps.context == 0) maps.context = head.rotary->context;
  }
  try {
    result.attention = attention(norm, maps, effort);
  } catch (const Error& error) {
    // Weights may contain NaN; the other heads are still analysed.
    if (error.code() == ErrorCode::Argument) {
      result.refused = "its weights are not finite";
    } else if (error.code() == ErrorCode::Unsupported) {
      result.refused = "its weights are too large or too small: scores leave the range of float64";
    } else {
      throw;
    }
  }
  return result;
}

/// Estimated multiplications in float64 of `attention` for a head that reads this norm, of which four in
/// float32 count as one.
double estimated_work(const models::Head& head, const models::Norm* norm, bool is_composed,
                      const HeadContexts& contexts, const AttentionEffort& effort) {
  const auto dim = static_cast<double>(head.head_dim);
  const auto width = static_cast<double>(norm == nullptr ? 0 : norm->width);
  double work = 24.0 * width * dim * dim + 40.0 * dim * dim * dim;
  // The entries of composed maps are computed in twice the precision.
  if (is_composed) work += 40.0 * width * width * dim;
  if (!head.rotary) return work;
  const std::size_t context = contexts.positions != 0 ? contexts.positions : head.rotary->context;
  const std::size_t least = distances_within(context, head.window.value_or(0));
  const auto distances = static_cast<double>(least == 0 ? searched : least);
  const auto has_bias = [](const std::optional<models::Linear>& part) {
    return part && part->bias.has_value();
  };
  // Constants make more local maxima, a choice of two squares, and the most uniform query a problem.
  const bool shifts =
      has_bias(head.query) || has_bias(head.key) || (norm != nullptr && norm->bias.has_value());
  const double sweeps = (shifts ? 66.0 : 6.0) * std::min(distances, static_cast<double>(most_swept)) +
                        (shifts ? 330.0 : 30.0) * std::min(distances, static_cast<double>(explored));
  work += 0.25 * sweeps * dim * dim;
  const double enumerated = distances * dim * dim * dim;
  // A sixth as many, of which nearly all are in float32.
  return work + (enumerated <= effort.operations ? (shifts ? 3.0 : 1.0) * enumerated / 24.0 : 0.0);
}

}  // namespace

std::vector<HeadReach> reach_of_heads(const files::Checkpoint& checkpoint, const models::Model& model,
                                      unsigned threads, const Progress& progress,
                                      const HeadContexts& contexts) {
  const std::vector<Task> tasks = tasks_of(model);
  std::vector<HeadReach> result(tasks.size());
  const auto turning = std::count_if(tasks.begin(), tasks.end(), [&](const Task& task) {
    return model.heads[task.head].rotary.has_value();
  });
  const AttentionEffort effort{.operations = contexts.work /
                                             static_cast<double>(std::max<std::ptrdiff_t>(turning, 16))};
  // Where the budget is short, all layers have some heads.
  std::vector<std::size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return model.heads[tasks[a].head].head < model.heads[tasks[b].head].head;
  });
  std::vector<bool> is_left_out(tasks.size(), false);
  double spent = 0.0;
  for (const std::size_t index : order) {
    const models::Head& head = model.heads[tasks[index].head];
    const bool is_composed = head.between.has_value() && tasks[index].norm == head.norm;
    const double work =
        estimated_work(head, find_norm(model, tasks[index].norm), is_composed, contexts, effort);
    is_left_out[index] = spent + work > contexts.budget;
    if (!is_left_out[index]) spent += work;
  }
  const std::size_t together = thread_count(threads);
  for (std::size_t first = 0; first < result.size(); first += together) {
    progress("measuring heads", first, result.size());
    const std::size_t count = std::min(together, result.size() - first);
    parallel_for(count, 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = first + begin; k < first + end; ++k) {
        const Task& task = tasks[order[k]];
        HeadReach& found = result[order[k]];
        const auto refuse = [&](std::string reason) {
          found = {.head = task.head, .norm = task.norm, .pass = task.pass, .refused = std::move(reason)};
        };
        try {
          if (is_left_out[order[k]]) {
            refuse("left out, beyond the budget for heads");
            found.left_out = true;
          } else {
            found = reach(checkpoint, model, task, contexts, effort);
          }
        } catch (const Error& error) {
          // A tensor of a type without decoder: the other heads are still analysed.
          if (error.code() == ErrorCode::Cancelled) throw;
          refuse(error.what());
        }
      }
    });
  }
  progress("measuring heads", result.size(), result.size());
  return result;
}

}  // namespace normscope::heads
