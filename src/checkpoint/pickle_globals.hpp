#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <normscope/core/dtype.hpp>

namespace normscope::checkpoint {

/// A global that tensors need. No other is looked up, and none is called.
struct PickleGlobal {
  enum class Role {
    ordered_dict,       ///< nothing, or a list of pairs
    default_dict,       ///< the constructor of its values, ...
    size,               ///< its first argument by another name
    rebuild_tensor,     ///< storage, offset, shape, strides, requires_grad, hooks, metadata
    rebuild_tensor_v3,  ///< the same, with a dtype before the metadata
    rebuild_parameter,  ///< tensor, ...
    rebuild_typed,      ///< function, class, its arguments, attributes
    rebuild_sparse,     ///< layout, parts of which one of the last is the shape
    unread_tensor,      ///< a tensor that is not read, whose shape is argument `number`
    storage,            ///< the class of storages of `dtype`
    other_storage,      ///< the class of storages of elements of `number` bytes, which are not read
    untyped_storage,
    tensor_class,  ///< a class of tensors that are nothing else
    dtype,
    script_class,  ///< any class of a module "__torch__", which TorchScript writes
  };
  std::string_view module;
  std::string_view name;
  Role role;
  Dtype dtype = Dtype::U8;
  std::size_t number = 0;
  std::string_view type{};  ///< of tensors that are not read, such as "QUANTIZED"
};

/// Index of the global of that name, nothing if it is not known.
[[nodiscard]] std::optional<std::size_t> find_pickle_global(std::string_view module, std::string_view name);
[[nodiscard]] const PickleGlobal& pickle_global(std::size_t index);

}  // namespace normscope::checkpoint
