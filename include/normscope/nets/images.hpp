#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include <normscope/nets/dataset.hpp>
#include <normscope/nets/tasks.hpp>

/// Images with labels, as their authors publish them, plain or gzipped (.gz):
///   MNIST     train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-…
///   CIFAR-10  data_batch_1.bin to data_batch_5.bin, as many as there are, test_batch.bin
namespace normscope::nets {

enum class Part { train, test };

/// Pixels as (byte − mean)/deviation of the training pixels, with the same constants for both parts.
struct Scaling {
  double mean = 0.0;
  double deviation = 1.0;
};
inline constexpr Scaling mnist_scaling{33.318, 78.567};
inline constexpr Scaling cifar10_scaling{120.707, 64.150};

/// The first `rows` images of a part; 0 for all.
///
/// Shapes    x (rows, 784) and (rows, 3072)
///
/// Errors    Io, Format, Shape naming the file; Argument if there are fewer images
[[nodiscard]] Dataset mnist(const std::filesystem::path& folder, Part part, std::size_t rows = 0);
[[nodiscard]] Dataset cifar10(const std::filesystem::path& folder, Part part, std::size_t rows = 0);

/// The task "mnist:FOLDER" or "cifar10:FOLDER", or either after "random-labels:", which replaces the images'
/// labels by random ones.
///
/// Source    [Winsor 2022] MNIST by normalization alone; [Ni et al. 2024, random labels]
[[nodiscard]] std::optional<Task> image_task(std::string_view name);

}  // namespace normscope::nets
