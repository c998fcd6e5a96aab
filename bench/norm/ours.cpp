#include <span>

#include <normscope/norm/kernels.hpp>

#include "problem.hpp"

namespace normscope::bench {
namespace {

template <typename T>
Solver solver(const Shared& problem, Task task) {
  using W = norm::Wide<T>;
  struct Own {
    std::shared_ptr<void> result, sum;
    std::vector<W> gain, bias, gradients;
  };
  const auto own = std::make_shared<Own>();
  own->result = aligned(problem->bytes());
  own->sum = aligned(task == Task::residual ? problem->bytes() : 64);
  own->gain.assign(problem->gain.begin(), problem->gain.end());
  own->bias.assign(problem->bias.begin(), problem->bias.end());
  own->gradients.resize(2 * problem->width);
  const norm::Layer<T> layer{.width = problem->width,
                             .groups = task == Task::grouped ? std::size_t{8} : std::size_t{1},
                             .eps = problem->eps,
                             .gain = own->gain,
                             .bias = own->bias};
  const auto given = [=](const void* at) {
    return MatrixView<const T>(static_cast<const T*>(at), problem->rows, problem->width, problem->stride);
  };
  const auto into = [=](const std::shared_ptr<void>& at) {
    return MatrixView<T>(static_cast<T*>(at.get()), problem->rows, problem->width, problem->stride);
  };
  const auto call = [=] {
    switch (task) {
      case Task::forward:
      case Task::grouped:
        return norm::normalize<T>(layer, given(problem->x), into(own->result), problem->threads);
      case Task::residual:
        return norm::add_normalize<T>(layer, given(problem->x), given(problem->dy), into(own->sum),
                                      into(own->result), problem->threads);
      case Task::backward: {
        const std::span<W> both(own->gradients);
        return norm::normalize_backward<T>(
            layer, given(problem->x), given(problem->dy), into(own->result),
            {.gain = both.first(problem->width), .bias = both.last(problem->width)}, problem->threads);
      }
    }
  };
  const auto results = [=] {
    const Dtype wide = sizeof(W) == sizeof(double) ? Dtype::F64 : Dtype::F32;
    return results_of(task, {own->result.get(), problem->size(), problem->dtype},
                      {own->gradients.data(), own->gradients.size(), wide});
  };
  return {"normscope", call, results};
}

}  // namespace

Solver ours(const Shared& problem, Task task) {
  switch (problem->dtype) {
    case Dtype::F64: return solver<double>(problem, task);
    case Dtype::BF16: return solver<norm::Bfloat16>(problem, task);
    case Dtype::F16: return solver<norm::Float16>(problem, task);
    default: return solver<float>(problem, task);
  }
}

}  // namespace normscope::bench
