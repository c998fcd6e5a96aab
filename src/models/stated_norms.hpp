#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/models/stated_norm.hpp>

namespace normscope::models {

/// Appends the norms that the checkpoint itself states, `all`, in their order; repeated parameters count as
/// another application. If `model` already has norms, the position of these among them is unknown. Linear
/// maps that read them directly are listed; their writers are unknown. Notes name the maps that are not
/// understood.
void append_stated_norms(const files::Checkpoint& checkpoint, std::span<const StatedNorm> all, Model& model);

/// Counts and notes operators that normalize and are not understood.
void note_not_understood(std::span<const std::string> operators, Model& model);

/// Counts norms of a kind that is not analysed.
void add_other_norms(Model& model, const std::string& kind, std::size_t count);

/// At most ten of `texts`, separated by commas, and how many more there are.
[[nodiscard]] std::string first_of(std::span<const std::string> texts);

/// Replaces an assumed eps of a norm by the eps that one of `all` has for its gain; notes which of `all`
/// contradict the model.
void take_stated_eps(std::span<const StatedNorm> all, Model& model);

}  // namespace normscope::models
