#include "device.hpp"

#include <ATen/core/ivalue.h>  // before torch's own headers, which clang++ does not compile without it
#include <torch/cuda.h>
#include <torch/types.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/ranges.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>

namespace normscope::lab {
namespace {

std::string& selected() {
  static std::string name = "cpu";
  return name;
}

/// The index of a GPU, or nothing for the processor.
std::optional<std::size_t> gpu_index(const std::string& name) {
  if (name == "cpu") return std::nullopt;
  return name == "cuda" ? 0 : std::stoul(name.substr(std::string_view("cuda:").size()));
}

/// The models of the machine's GPUs, as NVIDIA's driver names them.
std::string gpu_models() {
  constexpr const char* drivers_list = "/proc/driver/nvidia/gpus";
  const std::string key = "Model:";
  std::set<std::string> models;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator(drivers_list, none)) {
    std::ifstream file(gpu.path() / "information");
    for (std::string line; std::getline(file, line);) {
      const std::size_t begin = line.find_first_not_of(" \t", key.size());
      if (line.starts_with(key) && begin != std::string::npos) models.insert(line.substr(begin));
    }
  }
  return models.empty() ? "a GPU" : fmt::to_string(fmt::join(models, " or "));
}

}  // namespace

bool has_torch() { return true; }

const std::string& device() { return selected(); }

void expect_device(const std::string& name) {
  if (gpu_index(name) && !at::Context::hasCUDART()) {
    throw Error(ErrorCode::Argument,
                fmt::format("lab: --device {}: this program is built with a libtorch that computes on the "
                            "processor only; lab/README.md says how to build it for a GPU",
                            name));
  }
}

std::string use_device(const std::string& name) {
  expect_device(name);
  const std::optional<std::size_t> index = gpu_index(name);
  if (!index) return "";
  // Without it cuBLAS does not compute the same bits again, and torch refuses to use it.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  const std::size_t count = torch::cuda::device_count();
  if (*index >= count) {
    throw Error(ErrorCode::Argument,
                fmt::format("lab: --device {}: this machine has {} that libtorch can use", name,
                            counted(count, "GPU")));
  }
  selected() = name;
  return gpu_models();
}

}  // namespace normscope::lab
