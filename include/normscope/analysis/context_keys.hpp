#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/selectability/select.hpp>

/// Which keys of real contexts a head's queries can select, with the norm's projection and scaling and
/// without them.
namespace normscope::analysis {

/// The rows that entered a norm, context by context.
struct NormContexts {
  std::string norm;                              ///< its name in the model
  std::vector<MatrixView<const double>> rows{};  ///< (positions, width) of each context
};

/// Norms x → g ⊙ (x − m)/σ + b with and without their parts: projection, the subtraction of the mean m, and
/// scaling, the division by the root mean square σ of what is left. A LayerNorm does both, an RMSNorm scales.
enum class NormParts : std::size_t { neither, projection, scaling, both };
inline constexpr std::size_t norm_parts = 4;

/// Numbers of keys of all contexts together, for one choice of the norm's parts.
struct KeyCounts {
  std::size_t selectable = 0;
  std::size_t undecided = 0;
};

/// One head over the contexts of the norm that it reads.
struct ContextKeys {
  std::size_t head = 0;  ///< index in `model.heads`
  std::string norm{};
  std::size_t contexts = 0;
  std::size_t keys = 0;
  NormParts own = NormParts::both;             ///< what the model's norm does
  std::array<KeyCounts, norm_parts> counts{};  ///< by NormParts
  /// The answer for each key of the first context, with what the model's norm does.
  std::vector<selectability::Selectability> first_context{};
  std::string refused{};  ///< why there are none; empty otherwise

  [[nodiscard]] const KeyCounts& of(NormParts parts) const { return counts[static_cast<std::size_t>(parts)]; }
};

struct ContextKeyOptions {
  std::size_t most_heads = 48;  ///< heads that are measured, spread evenly over all that can be
  /// Estimated multiplications after which no further head is started.
  double budget = std::numeric_limits<double>::infinity();
  unsigned threads = 0;
};

/// For each context, how many keys some query gives the strictly highest score (`selectability::keys`): of
/// the keys that the model computes, and of those that it would compute with other parts of the norm. Keys
/// are W norm(x) + b, passed through the head's own norm of keys if it has one, and rotated by their position
/// if the head has rotary embeddings. All keys of a context are used, as for its last query; windows are
/// ignored. Of heads that share their keys only the first is measured.
///
/// Source    [Brody, Alon, Yahav 2023, section 3.2], for real contexts
///
/// Errors    as `models::read_weight`; Cancelled
///
/// Accuracy  (test: test_selectable_keys_are_those_of_the_definition)
///
/// Cost      four `selectability::keys` of positions × head_dim for each context and head
[[nodiscard]] std::vector<ContextKeys> selectable_context_keys(const files::Checkpoint& checkpoint,
                                                               const models::Model& model,
                                                               const std::vector<NormContexts>& contexts,
                                                               const ContextKeyOptions& options = {},
                                                               const Progress& progress = {});

}  // namespace normscope::analysis
