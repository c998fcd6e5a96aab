#pragma once

#include <string>
#include <vector>

#include <normscope/models/model.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "inputs.hpp"

namespace normscope::cli {

/// Rows that enter norms of `model`, from files on the command line: FILE.npz and FILE.safetensors hold
/// arrays by the norms' names, NORM=FILE.npy is one norm's. The last axis is the norm's width. Of more than
/// `rewrite::most_rows` rows, that many are taken, spread evenly.
///
/// Errors    as `OpenedArray`; Argument for a name that is no norm's, or a norm given twice; Shape for
///           another width; Argument for numbers that are not finite
[[nodiscard]] std::vector<rewrite::Activations> read_activations(const std::vector<std::string>& names,
                                                                 const models::Model& model, Inputs& inputs);

}  // namespace normscope::cli
