#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <normscope/files/source.hpp>

#include "parsed_file.hpp"
#include "pickle.hpp"

namespace normscope::files {

// The tensors that a pickle of torch.save names, whatever file holds their elements.

/// The elements of a storage in the file.
struct TorchStorage {
  std::optional<StoredBytes> bytes{};  ///< empty if they are missing
  std::string name;                    ///< for messages
};
using FindStorage = std::function<TorchStorage(const PickledStorage&)>;

/// Adds the tensors of a state dict to `file`, sorted. The state dict is the dict at `member`, a path of keys
/// with slashes, such as "ema/module". Without a path it is the whole if that holds tensors itself;
/// otherwise, or if the whole has a "state_dict", "model_state_dict" or "model" with tensors, the only dict
/// in it that holds tensors.
///
/// Errors    Format, Shape; Argument for a path that does not lead to tensors, or for no path if several
///           dicts hold tensors; Unsupported for a pickle without tensors; messages begin with `where`
void add_torch_tensors(const Pickled& pickled, std::string_view member, const FindStorage& find,
                       ParsedFile& file, const std::string& where);

}  // namespace normscope::files
