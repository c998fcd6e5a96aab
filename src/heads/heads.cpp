#include <normscope/heads/heads.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include <normscope/heads/projection.hpp>

namespace normscope::heads {
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

/// Estimated multiplications of `attention` for a head whose norm has this width.
double estimated_work(const models::Head& head, std::size_t width, const HeadContexts& contexts,
                      const AttentionEffort& effort) {
  const auto dim = static_cast<double>(head.head_dim);
  const double fixed = 24.0 * static_cast<double>(width) * dim * dim + 40.0 * dim * dim * dim;
  if (!head.rotary) return fixed;
  const std::size_t context = contexts.positions != 0 ? contexts.positions : head.rotary->context;
  const double enumerated = static_cast<double>(context) * dim * dim * dim;
  return fixed + (enumerated <= effort.operations ? enumerated / 6.0 : 0.0);
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
    const models::Norm* const norm = find_norm(model, tasks[index].norm);
    is_left_out[index] = spent >= contexts.budget;
    spent +=
        estimated_work(model.heads[tasks[index].head], norm == nullptr ? 0 : norm->width, contexts, effort);
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
            refuse("left out, beyond the budget for heads; `normscope heads` bounds all");
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
