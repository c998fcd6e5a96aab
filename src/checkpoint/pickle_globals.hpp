#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <normscope/core/dtype.hpp>

namespace normscope::checkpoint {

/// A global that a pickle may name.
struct PickleGlobal {
  enum class Role {
    ordered_dict,
    size,               ///< its first argument by another name
    rebuild_tensor,     ///< storage, offset, shape, strides, ...
    rebuild_tensor_v3,  ///< the same, and a dtype in seventh place
    rebuild_parameter,  ///< tensor, ...
    storage,            ///< the class of storages of `dtype`
    untyped_storage,
    dtype,
    script_class,  ///< any class of a module "__torch__", which TorchScript writes
  };
  std::string_view module;
  std::string_view name;
  Role role;
  Dtype dtype = Dtype::U8;
};

/// Index of the global of that name, nothing unless a pickle may name it.
[[nodiscard]] std::optional<std::size_t> find_pickle_global(std::string_view module, std::string_view name);
[[nodiscard]] const PickleGlobal& pickle_global(std::size_t index);

}  // namespace normscope::checkpoint
