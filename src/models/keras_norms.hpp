#pragma once

#include <set>
#include <string>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

namespace normscope::models {

/// Appends the norms that a Keras configuration states (metadata `model_config`), in the order of its layers,
/// with kind, eps and groups, and returns the names of their tensors. A layer is found among the weights by
/// its name: as a component of theirs ("early/gamma:0"), or where Keras 3 names the group
/// ("layers/x/vars@name"). Norms whose weights or width the file does not show are noted and left out. Other
/// files state none.
[[nodiscard]] std::set<std::string, std::less<>> append_keras_norms(const files::Checkpoint& checkpoint,
                                                                    Model& model);

}  // namespace normscope::models
