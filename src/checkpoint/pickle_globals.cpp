#include "pickle_globals.hpp"

#include <algorithm>
#include <iterator>

namespace normscope::checkpoint {
namespace {

using Role = PickleGlobal::Role;

constexpr PickleGlobal globals[] = {
    {"collections", "OrderedDict", Role::ordered_dict},
    {"collections", "defaultdict", Role::default_dict},
    {"torch", "Size", Role::size},
    {"torch.jit._pickle", "build_intlist", Role::size},
    {"torch.jit._pickle", "build_doublelist", Role::size},
    {"torch.jit._pickle", "build_boollist", Role::size},
    {"torch.jit._pickle", "build_tensorlist", Role::size},
    {"torch.jit._pickle", "restore_type_tag", Role::size},
    {"torch._utils", "_rebuild_tensor", Role::rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v2", Role::rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v3", Role::rebuild_tensor_v3},
    {"torch._utils", "_rebuild_parameter", Role::rebuild_parameter},
    {"torch._utils", "_rebuild_parameter_with_state", Role::rebuild_parameter},
    {"torch._utils", "_rebuild_qtensor", Role::unread_tensor, Dtype::U8, 2, "QUANTIZED"},
    {"torch._utils", "_rebuild_wrapper_subclass", Role::unread_tensor, Dtype::U8, 2, "SUBCLASS"},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", Role::unread_tensor, Dtype::U8, 1, "META"},
    {"torch._utils", "_rebuild_sparse_tensor", Role::rebuild_sparse, Dtype::U8, 0, "SPARSE"},
    {"torch._tensor", "_rebuild_from_type_v2", Role::rebuild_typed},
    {"torch", "Tensor", Role::tensor_class},
    {"torch.nn.parameter", "Parameter", Role::tensor_class},
    {"torch.nn.parameter", "Buffer", Role::tensor_class},
    {"torch.storage", "UntypedStorage", Role::untyped_storage},
    {"torch", "DoubleStorage", Role::storage, Dtype::F64},
    {"torch", "FloatStorage", Role::storage, Dtype::F32},
    {"torch", "HalfStorage", Role::storage, Dtype::F16},
    {"torch", "BFloat16Storage", Role::storage, Dtype::BF16},
    {"torch", "LongStorage", Role::storage, Dtype::I64},
    {"torch", "IntStorage", Role::storage, Dtype::I32},
    {"torch", "ShortStorage", Role::storage, Dtype::I16},
    {"torch", "CharStorage", Role::storage, Dtype::I8},
    {"torch", "ByteStorage", Role::storage, Dtype::U8},
    {"torch", "BoolStorage", Role::storage, Dtype::BOOL},
    {"torch", "ComplexFloatStorage", Role::storage, Dtype::C64},
    {"torch", "ComplexDoubleStorage", Role::other_storage, Dtype::U8, 16, "C128"},
    {"torch", "ComplexHalfStorage", Role::other_storage, Dtype::U8, 4, "C32"},
    {"torch", "QInt8Storage", Role::other_storage, Dtype::U8, 1, "QUANTIZED"},
    {"torch", "QUInt8Storage", Role::other_storage, Dtype::U8, 1, "QUANTIZED"},
    {"torch", "QInt32Storage", Role::other_storage, Dtype::U8, 4, "QUANTIZED"},
    {"torch", "QUInt4x2Storage", Role::other_storage, Dtype::U8, 1, "QUANTIZED"},
    {"torch", "QUInt2x4Storage", Role::other_storage, Dtype::U8, 1, "QUANTIZED"},
    {"torch", "float64", Role::dtype, Dtype::F64},
    {"torch", "float32", Role::dtype, Dtype::F32},
    {"torch", "float16", Role::dtype, Dtype::F16},
    {"torch", "bfloat16", Role::dtype, Dtype::BF16},
    {"torch", "float8_e4m3fn", Role::dtype, Dtype::F8_E4M3},
    {"torch", "float8_e4m3fnuz", Role::dtype, Dtype::F8_E4M3FNUZ},
    {"torch", "float8_e5m2", Role::dtype, Dtype::F8_E5M2},
    {"torch", "float8_e5m2fnuz", Role::dtype, Dtype::F8_E5M2FNUZ},
    {"torch", "float8_e8m0fnu", Role::dtype, Dtype::F8_E8M0},
    {"torch", "int64", Role::dtype, Dtype::I64},
    {"torch", "int32", Role::dtype, Dtype::I32},
    {"torch", "int16", Role::dtype, Dtype::I16},
    {"torch", "int8", Role::dtype, Dtype::I8},
    {"torch", "uint64", Role::dtype, Dtype::U64},
    {"torch", "uint32", Role::dtype, Dtype::U32},
    {"torch", "uint16", Role::dtype, Dtype::U16},
    {"torch", "uint8", Role::dtype, Dtype::U8},
    {"torch", "bool", Role::dtype, Dtype::BOOL},
    {"torch", "complex64", Role::dtype, Dtype::C64},
    {"__torch__", "", Role::script_class},
};

}  // namespace

std::optional<std::size_t> find_pickle_global(std::string_view module, std::string_view name) {
  constexpr std::string_view script = "__torch__";
  if (module.substr(0, script.size()) == script &&
      (module.size() == script.size() || module[script.size()] == '.')) {
    module = script;
    name = "";
  }
  const auto* found = std::find_if(std::begin(globals), std::end(globals), [&](const PickleGlobal& global) {
    return global.module == module && global.name == name;
  });
  if (found == std::end(globals)) return std::nullopt;
  return found - std::begin(globals);
}

const PickleGlobal& pickle_global(std::size_t index) { return globals[index]; }

}  // namespace normscope::checkpoint
