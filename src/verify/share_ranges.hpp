#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "document.hpp"

/// What a component of the residual stream can add to a reading v·x in any context, from the description of a
/// model alone.
namespace normscope::verify {

/// Ends of v·x, and the sum of the sizes of the terms that they were computed from.
struct ShareLimits {
  double lower = 0.0, upper = 0.0, size = 0.0;
};

class ShareRanges {
 public:
  /// Keeps references to the first two.
  ShareRanges(const files::Checkpoint& checkpoint, const models::Model& model, std::vector<double> direction);

  /// The ends for a component of that name, and whether `source`, what the result states that they are
  /// computed from, is what the model says; none where nothing bounds it.
  ///
  /// Errors    as `models::read_weight`
  [[nodiscard]] std::optional<ShareLimits> limits(const std::string& component, const Field& source,
                                                  bool& is_source) const;

 private:
  /// Attention, or an MLP.
  struct Branch {
    const models::Norm* norm = nullptr;
    const models::Linear* out = nullptr;
    bool has_experts = false;
  };
  struct Part;

  [[nodiscard]] std::vector<Branch> branches(bool attends) const;
  [[nodiscard]] const models::Norm* norm_behind(std::string_view role, int layer) const;
  [[nodiscard]] std::optional<Part> part_of(const std::string& component) const;
  [[nodiscard]] ShareLimits of_rows(std::span<const double> rows) const;
  [[nodiscard]] ShareLimits of_table(const models::Linear& table) const;
  [[nodiscard]] ShareLimits of_head(const Part& part) const;
  [[nodiscard]] ShareLimits of_mlp(const Part& part, const Field& source) const;
  /// The ends of w·y + c over a norm's outputs y.
  [[nodiscard]] static ShareLimits behind(const NormSpec& norm, std::span<const double> row, double constant);
  /// vᵀ W for inputs of an output map.
  [[nodiscard]] std::vector<double> read_through(const models::Linear& out, std::size_t first,
                                                 std::size_t count) const;

  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  std::vector<double> direction_;
  std::vector<Branch> attention_, mlps_;
};

}  // namespace normscope::verify
