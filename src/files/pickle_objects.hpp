#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/core/error.hpp>

#include "parsed_file.hpp"
#include "pickle.hpp"

namespace normscope::files {

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

/// The values of a pickle, and what its globals would make of them; nothing is called.
class PickleObjects {
 protected:
  using Values = std::span<const PickleValue>;

  PickleObjects(Arena& arena, const std::string& where) : arena_(arena), where_(where) {}

  PickleValue container(PickleValue::Kind kind, std::vector<PickleValue> values);
  PickleValue object(const PickledObject& object);
  /// The elements of a container, valid until it is extended.
  [[nodiscard]] Values items(const PickleValue& value) const { return result_.containers[value.index]; }

  PickleValue global(std::string_view module, std::string_view name);
  /// What a call of `maker`, or a new object of that class, is.
  PickleValue construct(bool is_new, const PickleValue& maker, const PickleValue& arguments);
  /// A storage, or an object that the program which wrote the file kept elsewhere.
  PickleValue persistent(const PickleValue& id);

  [[noreturn]] void fail(const std::string& fact) const { fail(ErrorCode::Format, fact); }
  [[noreturn]] void fail(ErrorCode code, const std::string& fact) const;

  Arena& arena_;
  const std::string& where_;
  std::size_t begin_ = 0;  ///< offset of the current opcode
  Pickled result_{};

 private:
  using Role = PickleGlobal::Role;

  [[nodiscard]] static bool is_global(const PickleValue& value, Role role);
  /// The name of a global, or of what made an object.
  [[nodiscard]] PickledObject named(const PickleValue& value) const;
  [[nodiscard]] PickledObject class_of(const PickleValue& maker, Values arguments) const;
  PickleValue value_of(const PickleValue& maker, Values arguments);
  PickleValue ordered_dict(Values arguments);
  PickleValue typed(Values arguments);
  PickleValue tensor(Values arguments, std::optional<Dtype> dtype, std::size_t metadata);
  PickleValue unread_tensor(PickledObject made, std::string_view type, const PickleValue& shape);
  [[nodiscard]] PickleValue sparse_shape(const PickleValue& parts) const;
  [[nodiscard]] bool is_marked(Values arguments, std::size_t at) const;
  [[nodiscard]] std::uint64_t count(const PickleValue& value) const;
  std::span<const std::uint64_t> counts(const PickleValue& value);
};

}  // namespace normscope::files
