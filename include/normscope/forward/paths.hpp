#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

/// A model as a sum over paths through its heads: with the weights of attention and the divisors of norms
/// kept as they are for a text, a head is linear in the stream, and a path has one factor for each norm and
/// position on it. MLPs are kept whole.
namespace normscope::forward {

/// Called with the first component of a branch, or an embedding, and the derivatives by what its components
/// add to the stream at each position, of all paths together.
using TakeDerivative = std::function<void(std::size_t component, MatrixView<const double> rows)>;

/// The derivatives of direction·x, for the row x that enters the final norm at position `at`, by what each
/// branch adds to the stream. `entered` are the rows that entered each of `Decoder::norms()`.
///
/// Accuracy  those of a pass in which all that is named above is kept (test: `cli.attribute`)
///
/// Errors    Unsupported, "not modelled: …", for norms on the way that have no one divisor, for values that
///           are clamped, and for branches that read the stream itself; as `models::read_weight`
///
/// Cost      attention, and 4 · tokens operations for each weight of values and of its output maps
void pull_back(const files::Checkpoint& checkpoint, const models::Model& model,
               const std::vector<std::vector<double>>& entered, std::size_t at,
               std::span<const double> direction, const TakeDerivative& take, unsigned threads = 0);

}  // namespace normscope::forward
