#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/nets/train.hpp>

namespace normscope::nets {

/// Two arms of a spiral: class k at (s cos a, s sin a) + 0.02 normal, a = 2π turns s + πk, s uniform in
/// (0.15, 1).
///
/// Source    [Winsor 2022]; the post gives no parameters, these are ours
[[nodiscard]] Dataset spiral(std::size_t rows, std::uint64_t seed, double turns = 1.0);

/// Points of the unit sphere in R³; the class is the parity of the number of positive coordinates, so
/// that neighbouring octants differ.
///
/// Source    [Winsor 2022], the sphere in eight parts
[[nodiscard]] Dataset octants(std::size_t rows, std::uint64_t seed);

/// The four points (±1, ±1) with normal noise of deviation 0.15 in each coordinate; the class is whether the
/// signs of the point without noise differ.
///
/// Source    [Ni et al. 2024, XOR]
[[nodiscard]] Dataset xor_corners(std::size_t rows, std::uint64_t seed);

/// Two circles around the origin, of radius 1 and 2, with noise 0.1 normal.
[[nodiscard]] Dataset rings(std::size_t rows, std::uint64_t seed);

/// Normal points of R^32 with labels drawn at random from ten classes.
///
/// Source    [Ni et al. 2024, random labels], at a size for one machine
[[nodiscard]] Dataset random_labels(std::size_t rows, std::uint64_t seed);

/// The data with independent normal noise of that standard deviation added to every feature.
///
/// Requires  deviation >= 0
[[nodiscard]] Dataset with_noise(Dataset data, double deviation, std::uint64_t seed);

/// A named data set, the claim about it, and the default training of a net on it.
struct Task {
  std::string name;
  std::string claim;  ///< what the paper says, in a sentence
  std::size_t rows = 0;
  TrainSpec spec{};
  std::size_t seeds = 1;  ///< number of runs, of which the best is kept
  std::function<Dataset(std::size_t rows, std::uint64_t seed)> make{};
  /// New samples; none if they would not be informative about the net.
  std::function<Dataset(std::uint64_t seed)> test{};
  /// A feature is (value in the file − shift) · scale.
  double shift = 0.0;
  double scale = 1.0;
};

/// The tasks that need no files.
[[nodiscard]] const std::vector<Task>& tasks();

/// Names and forms of all tasks, for messages.
[[nodiscard]] std::string task_names();

/// The task of that name: one of `tasks`, or images in a folder (images.hpp).
///
/// Errors    Io, Format for missing images
[[nodiscard]] std::optional<Task> find_task(std::string_view name);

/// Converts `net`, trained on features (v − shift) · scale, to a net for v: W ← scale W, b ← b − scale ·
/// shift · W1.
[[nodiscard]] Net for_unscaled(Net net, double shift, double scale);

// Images with labels, as their authors publish them, plain or gzipped (.gz):
//   MNIST     train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-…
//   CIFAR-10  data_batch_1.bin to data_batch_5.bin, as many as there are, test_batch.bin

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

/// The `count` leading principal components of the samples, over the deviation along the first: a linear map
/// of their features.
///
/// Shapes    (width, count), row-major
///
/// Requires  count <= width, one sample or more
///
/// Cost      rows · width² and some 10 width³ flops
[[nodiscard]] std::vector<double> principal_components(const Dataset& data, std::size_t count);

/// The samples times `map`, (width, columns).
[[nodiscard]] Dataset mapped(const Dataset& data, std::span<const double> map);

/// The task "mnist:FOLDER" or "cifar10:FOLDER", or either after "random-labels:", which replaces the images'
/// labels by random ones.
///
/// Source    [Winsor 2022] MNIST by normalization alone; [Ni et al. 2024, random labels]
[[nodiscard]] std::optional<Task> image_task(std::string_view name);

}  // namespace normscope::nets
