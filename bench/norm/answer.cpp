#include <cstring>
#include <span>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

#include "problem.hpp"

namespace normscope::bench {
namespace {

/// x, dy, gain and bias in the type of the rows, eps in float64.
Shared read_problem(const files::Checkpoint& file) {
  const auto tensor = [&](const char* name) {
    const files::Tensor* const found = file.find(name);
    if (found == nullptr) {
      throw Error(ErrorCode::Format,
                  fmt::format("{} has no tensor \"{}\", expected x, dy, gain, bias and eps",
                              file.path().string(), name));
    }
    return *found;
  };
  const files::Tensor x = tensor("x");
  const files::Tensor dy = tensor("dy");
  const std::vector<double> gain = read(tensor("gain"));
  const std::vector<double> bias = read(tensor("bias"));
  const std::vector<double> eps = read(tensor("eps"));
  const auto made = std::make_shared<Problem>();
  if (x.shape.size() == 2) {
    made->rows = x.shape[0];
    made->width = made->stride = x.shape[1];
  }
  made->dtype = x.dtype;
  const bool fits = made->size() > 0 && dy.dtype == x.dtype && dy.bytes.size() == x.bytes.size() &&
                    gain.size() == made->width && bias.size() == made->width && eps.size() == 1;
  if (!fits) {
    throw Error(
        ErrorCode::Shape,
        fmt::format("{}: tensors do not fit together, expected x and dy of rows × width, gain and bias "
                    "of that width, and one eps",
                    file.path().string()));
  }
  made->gain.assign(gain.begin(), gain.end());
  made->bias.assign(bias.begin(), bias.end());
  made->eps = eps.front();
  struct Memory {
    std::shared_ptr<void> x, dy;
  };
  const auto memory = std::make_shared<Memory>(Memory{aligned(made->bytes()), aligned(made->bytes())});
  std::memcpy(memory->x.get(), x.bytes.memory().data(), made->bytes());
  std::memcpy(memory->dy.get(), dy.bytes.memory().data(), made->bytes());
  made->memory = memory;
  made->x = memory->x.get();
  made->dy = memory->dy.get();
  return made;
}

}  // namespace

void answer(const std::vector<std::string>& arguments) {
  const bool complete = arguments.size() == 3 && (arguments[0] == "forward" || arguments[0] == "backward");
  if (!complete) {
    throw Error(ErrorCode::Argument,
                fmt::format("\"{}\" after --answer, expected forward or backward, the problem's file and the "
                            "answers'",
                            fmt::join(arguments, " ")));
  }
  const Task task = arguments[0] == "forward" ? Task::forward : Task::backward;
  const Shared problem = read_problem(files::Checkpoint(arguments[1]));
  std::vector<Solver> solvers = peers(problem, task);
  solvers.insert(solvers.begin(), ours(problem, task));
  std::vector<files::NewTensor> all;
  for (const Solver& solver : solvers) {
    solver.call();
    for (const Values& values : solver.results()) {
      all.push_back({fmt::format("{}/{}", solver.name, all.size()),
                     values.dtype,
                     {values.count},
                     {static_cast<const std::byte*>(values.at), values.bytes()}});
    }
  }
  files::write_safetensors(arguments[2], all);
}

}  // namespace normscope::bench
