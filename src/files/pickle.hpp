#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsed_file.hpp"

/// Reads the pickles that torch.save and torch.jit.save write without running code: opcodes build plain
/// values, and only the globals that represent tensors and dicts are known. Whatever another global would
/// make is an object of which only the name of its class is kept.
namespace normscope::files {

struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,    ///< `index` among containers
    list,     ///< likewise
    dict,     ///< likewise; keys and values alternate
    module,   ///< an object of TorchScript; its attributes, as a dict
    global,   ///< `index` among the known globals
    storage,  ///< `index` among storages
    tensor,   ///< `index` among tensors
    object,   ///< `index` among objects: something that is not read
    other,    ///< a large integer
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< the value of a boolean or integer
  std::size_t index = 0;
  std::string_view text{};
};

/// A storage that the pickle refers to.
struct PickledStorage {
  Dtype dtype = Dtype::U8;
  std::size_t width = 1;         ///< bytes of an element
  std::string_view unread_as{};  ///< the type of elements that are not read
  bool is_untyped = false;       ///< counts bytes; the tensor has the type
  std::string_view key;
  std::uint64_t elements = 0;
  bool is_part = false;  ///< of another storage
};

struct PickledTensor {
  std::size_t storage = 0;
  Dtype dtype = Dtype::F32;
  std::uint64_t offset = 0;  ///< in elements
  std::span<const std::uint64_t> shape;
  std::span<const std::uint64_t> strides;  ///< in elements, one per axis
};

/// An object that is not read: what would make it, or a tensor of a kind that has no plain elements.
struct PickledObject {
  std::string_view module;  ///< of its class or function
  std::string_view name;
  std::string_view tensor_type{};  ///< of a tensor of a known shape, such as "QUANTIZED"
  std::span<const std::uint64_t> shape{};
};

struct Pickled {
  PickleValue root;
  std::vector<std::vector<PickleValue>> containers;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;
  std::vector<PickledObject> objects;
};

/// Values refer to `bytes` and to the arena.
///
/// Errors    Format; Unsupported for an opcode that protocols 2 to 5 do not write; messages begin with
///           `where`
///
/// Cost      O(size); containers may hold each other in circles
[[nodiscard]] Pickled read_pickle(std::span<const std::byte> bytes, Arena& arena, const std::string& where);

/// Reads the pickle that `bytes` begin with, which is cut off from them.
[[nodiscard]] Pickled read_first_pickle(std::span<const std::byte>& bytes, Arena& arena,
                                        const std::string& where);

}  // namespace normscope::files
