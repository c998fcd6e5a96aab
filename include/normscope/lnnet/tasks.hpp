#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::lnnet {

/// Labelled samples: row i of `x` belongs to class `labels[i]` < `classes`.
/// Shapes    x (labels.size(), width)
struct Dataset {
  std::size_t width = 0;
  std::size_t classes = 0;
  std::vector<double> x{};
  std::vector<std::uint32_t> labels{};

  [[nodiscard]] std::size_t rows() const { return labels.size(); }
  [[nodiscard]] MatrixView<const double> view() const { return {x.data(), rows(), width}; }
};

/// Throws unless `data` has at least one row and one feature, finite entries, two classes or more, and
/// labels below their number; `who` begins the message.
/// Errors    Shape, Argument
void validate(std::string_view who, const Dataset& data);

/// Samples with labels given as numbers, as an array file holds them.
/// Errors    Shape; Argument for a label that is not an integer in [0, 2^24), naming its row
[[nodiscard]] Dataset dataset(std::string_view who, std::size_t width, std::vector<double> x,
                              const std::vector<double>& labels);

/// Two arms of a spiral: class k at (s cos a, s sin a) + 0.02 normal, a = 2π turns s + πk, s uniform in
/// (0.15, 1).
/// Source    [Winsor 2022]; the post gives no parameters, these are ours
[[nodiscard]] Dataset spiral(std::size_t rows, std::uint64_t seed, double turns = 1.0);

/// Points of the unit sphere in R³; the class is the parity of the number of positive coordinates, so
/// that neighbouring octants differ.
/// Source    [Winsor 2022], the sphere in eight parts
[[nodiscard]] Dataset octants(std::size_t rows, std::uint64_t seed);

/// The four points (±1, ±1), each coordinate with noise 0.15 normal; the class says whether the signs of
/// the point without noise differ.
/// Source    [Ni et al. 2024, XOR]
[[nodiscard]] Dataset xor_corners(std::size_t rows, std::uint64_t seed);

/// Two circles around the origin, of radius 1 and 2, with noise 0.1 normal.
[[nodiscard]] Dataset rings(std::size_t rows, std::uint64_t seed);

/// Normal points of R^32 with labels drawn at random from ten classes.
/// Source    [Ni et al. 2024, random labels], at a size for one machine
[[nodiscard]] Dataset random_labels(std::size_t rows, std::uint64_t seed);

/// A named data set and how it is trained by default.
struct Task {
  std::string_view name;
  std::string_view claim;  ///< what the paper says, in a sentence
  std::size_t rows = 0;
  Dataset (*make)(std::size_t rows, std::uint64_t seed) = nullptr;
  bool fresh_test = true;  ///< whether new points say something about the net
};

/// The tasks there are.
[[nodiscard]] const std::vector<Task>& tasks();

/// The task of that name, null if there is none.
[[nodiscard]] const Task* find_task(std::string_view name);

}  // namespace normscope::lnnet
