#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsed_file.hpp"

/// The pickles that torch.save writes, read without running anything: opcodes build plain values, and the
/// only globals known are the few that stand for tensors and dicts.
namespace normscope::checkpoint {

struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,    ///< `index` among containers
    list,     ///< likewise
    dict,     ///< likewise; keys and values in turn
    global,   ///< `index` among the globals known
    storage,  ///< `index` among storages
    tensor,   ///< `index` among tensors
    other,    ///< built by something harmless
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< the value of a boolean or integer
  std::size_t index = 0;
  std::string_view text{};
};

/// A run of elements that the pickle names and does not hold.
struct PickledStorage {
  Dtype dtype = Dtype::U8;
  bool is_untyped = false;  ///< counts bytes; the tensor tells the type
  std::string_view key;
  std::uint64_t elements = 0;
};

struct PickledTensor {
  std::size_t storage = 0;
  Dtype dtype = Dtype::F32;
  std::uint64_t offset = 0;  ///< in elements
  std::span<const std::uint64_t> shape;
  std::span<const std::uint64_t> strides;  ///< in elements, one an axis
};

struct Pickled {
  PickleValue root;
  std::vector<std::vector<PickleValue>> containers;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;
};

/// Values refer to `bytes` and to the arena.
/// Errors    Format; Unsupported for a global or an opcode that is not among those of a state dict;
///           messages begin with `where`
/// Cost      O(size); containers may hold each other in circles
[[nodiscard]] Pickled read_pickle(std::span<const std::byte> bytes, Arena& arena, const std::string& where);

}  // namespace normscope::checkpoint
