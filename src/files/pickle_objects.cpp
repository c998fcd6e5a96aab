#include "pickle_objects.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace normscope::files {
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

/// Index of the global of that name, nothing if it is not known.
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

using Kind = PickleValue::Kind;

bool is_sequence(const PickleValue& value) { return value.kind == Kind::list || value.kind == Kind::tuple; }
bool is_callable(const PickleValue& value) {
  return value.kind == Kind::global || value.kind == Kind::object;
}

}  // namespace

void PickleObjects::fail(ErrorCode code, const std::string& fact) const {
  throw Error(code, fmt::format("{}: at byte {}: {}", where_, begin_, fact));
}

PickleValue PickleObjects::container(Kind kind, std::vector<PickleValue> values) {
  arena_.charge(growth, sizeof(std::vector<PickleValue>));
  arena_.charge(values.size(), sizeof(PickleValue));
  result_.containers.push_back(std::move(values));
  return {kind, 0, result_.containers.size() - 1};
}

PickleValue PickleObjects::object(const PickledObject& object) {
  arena_.charge(growth, sizeof object);
  result_.objects.push_back(object);
  return {Kind::object, 0, result_.objects.size() - 1};
}

PickleValue PickleObjects::global(std::string_view module, std::string_view name) {
  const std::optional<std::size_t> index = find_pickle_global(module, name);
  return index ? PickleValue{Kind::global, 0, *index} : object({module, name});
}

bool PickleObjects::is_global(const PickleValue& value, Role role) {
  return value.kind == Kind::global && pickle_global(value.index).role == role;
}

PickledObject PickleObjects::named(const PickleValue& value) const {
  if (value.kind == Kind::object) {
    const PickledObject& object = result_.objects[value.index];
    return {object.module, object.name};
  }
  return {pickle_global(value.index).module, pickle_global(value.index).name};
}

/// Private functions of Python, NumPy and PyTorch that make an object take its class first.
PickledObject PickleObjects::class_of(const PickleValue& maker, Values arguments) const {
  const PickledObject made_by = named(maker);
  if (made_by.module == "_codecs") return {"builtins", "bytes"};  // as protocol 2 writes them
  const bool has_class =
      made_by.name.substr(0, 1) == "_" && !arguments.empty() && arguments[0].kind == Kind::object;
  return has_class ? named(arguments[0]) : made_by;
}

PickleValue PickleObjects::construct(bool is_new, const PickleValue& maker, const PickleValue& arguments) {
  if (!is_callable(maker) || arguments.kind != Kind::tuple) fail("calls something that is not a global");
  if (is_global(maker, Role::script_class)) {
    if (!is_new) fail("a call of a class of TorchScript");
    return container(Kind::module, {});
  }
  return value_of(maker, items(arguments));
}

PickleValue PickleObjects::value_of(const PickleValue& maker, Values arguments) {
  if (maker.kind == Kind::object) return object(class_of(maker, arguments));
  const PickleGlobal& known = pickle_global(maker.index);
  const auto needs = [&](std::size_t least) {
    if (arguments.size() < least) fail("a call has too few arguments");
  };
  switch (known.role) {
    case Role::ordered_dict: return ordered_dict(arguments);
    case Role::default_dict: return container(Kind::dict, {});
    case Role::size: needs(1); return arguments[0];
    case Role::rebuild_parameter:
      needs(1);
      if (arguments[0].kind != Kind::tensor && arguments[0].kind != Kind::object)
        fail("a parameter is built from something that is not a tensor");
      return arguments[0];
    case Role::rebuild_tensor: needs(4); return tensor(arguments, {}, 6);
    case Role::rebuild_tensor_v3: {
      needs(7);
      const PickleValue& type = arguments[6];
      if (type.kind == Kind::object) return unread_tensor(named(type), named(type).name, arguments[2]);
      if (!is_global(type, Role::dtype)) fail("the dtype argument of a tensor is not a dtype");
      return tensor(arguments, pickle_global(type.index).dtype, 7);
    }
    case Role::rebuild_typed: needs(3); return typed(arguments);
    case Role::rebuild_sparse:
      needs(2);
      return unread_tensor(named(maker), known.type, sparse_shape(arguments[1]));
    case Role::unread_tensor:
      needs(known.number + 1);
      return unread_tensor(class_of(maker, arguments), known.type, arguments[known.number]);
    default: return object(named(maker));
  }
}

/// Python 2 gives the pairs as a list.
PickleValue PickleObjects::ordered_dict(Values arguments) {
  std::vector<PickleValue> held;
  if (arguments.empty()) return container(Kind::dict, {});
  const auto fail_pairs = [&] { fail("an OrderedDict is built from something that is not a list of pairs"); };
  if (!is_sequence(arguments[0])) fail_pairs();
  for (const PickleValue& pair : items(arguments[0])) {
    if (!is_sequence(pair) || items(pair).size() != 2) fail_pairs();
    held.insert(held.end(), items(pair).begin(), items(pair).end());
  }
  return container(Kind::dict, std::move(held));
}

/// A tensor with attributes, or of a class of its own, whose elements may mean something else.
PickleValue PickleObjects::typed(Values arguments) {
  if (!is_callable(arguments[1])) fail("the class of a tensor is not a global");
  const bool is_known = is_callable(arguments[0]) && !is_global(arguments[0], Role::rebuild_typed) &&
                        arguments[2].kind == Kind::tuple;
  if (!is_known) return object(named(arguments[1]));
  const PickleValue value = value_of(arguments[0], items(arguments[2]));
  if (value.kind != Kind::tensor || is_global(arguments[1], Role::tensor_class)) return value;
  PickledObject subclass = named(arguments[1]);
  subclass.tensor_type = "SUBCLASS";
  subclass.shape = result_.tensors[value.index].shape;
  return object(subclass);
}

PickleValue PickleObjects::tensor(Values arguments, std::optional<Dtype> dtype, std::size_t metadata) {
  const PickleValue& held = arguments[0];
  if (held.kind == Kind::object) return unread_tensor(named(held), named(held).name, arguments[2]);
  if (held.kind != Kind::storage) fail("a tensor is built from something that is not a storage");
  PickledTensor tensor;
  tensor.storage = held.index;
  const PickledStorage& storage = result_.storages[tensor.storage];
  const std::string_view type = storage.unread_as;
  if (!type.empty()) return unread_tensor({"torch", type}, type, arguments[2]);
  if (is_marked(arguments, metadata)) {
    return unread_tensor({"torch", "Tensor with a negative or conjugate bit"}, "MARKED", arguments[2]);
  }
  if (storage.is_untyped && !dtype) fail("a tensor of an untyped storage has no dtype");
  tensor.dtype = dtype.value_or(storage.dtype);
  tensor.offset = count(arguments[1]);
  tensor.shape = counts(arguments[2]);
  tensor.strides = counts(arguments[3]);
  if (tensor.shape.size() != tensor.strides.size()) {
    fail(
        fmt::format("a tensor has {} dimensions and {} strides", tensor.shape.size(), tensor.strides.size()));
  }
  arena_.charge(growth, sizeof tensor);
  result_.tensors.push_back(tensor);
  return {Kind::tensor, 0, result_.tensors.size() - 1};
}

PickleValue PickleObjects::unread_tensor(PickledObject made, std::string_view type,
                                         const PickleValue& shape) {
  made.tensor_type = type;
  made.shape = counts(shape);
  return object(made);
}

/// The shape is the last part of a sparse tensor, or the one before it.
PickleValue PickleObjects::sparse_shape(const PickleValue& parts) const {
  if (parts.kind != Kind::tuple || items(parts).size() < 2) return {};
  const Values all = items(parts);
  return all.back().kind == Kind::tuple ? all.back() : all[all.size() - 2];
}

/// Whether an argument states how the elements are to be read: negated, or conjugated.
bool PickleObjects::is_marked(Values arguments, std::size_t at) const {
  if (arguments.size() <= at || arguments[at].kind == Kind::none) return false;
  return arguments[at].kind != Kind::dict || !items(arguments[at]).empty();
}

std::uint64_t PickleObjects::count(const PickleValue& value) const {
  if (value.kind != Kind::integer || value.integer < 0) fail("a size is not an integer >= 0");
  return static_cast<std::uint64_t>(value.integer);
}

std::span<const std::uint64_t> PickleObjects::counts(const PickleValue& value) {
  if (value.kind != Kind::tuple) fail("a shape is not a tuple");
  const std::span<std::uint64_t> numbers = arena_.allocate<std::uint64_t>(items(value).size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = count(items(value)[i]);
  return numbers;
}

PickleValue PickleObjects::persistent(const PickleValue& id) {
  if (id.kind != Kind::tuple || items(id).empty() || items(id)[0].text != "storage") {
    return object({"", "persistent object"});
  }
  const auto fail_storage = [&] { fail("a persistent id is not that of a storage"); };
  const Values parts = items(id);
  if (parts.size() < 5 || !is_callable(parts[1]) || parts[2].kind != Kind::text) fail_storage();
  if (parts[1].kind == Kind::object) return object(named(parts[1]));
  const PickleGlobal& type = pickle_global(parts[1].index);
  const bool is_untyped = type.role == Role::untyped_storage;
  const bool is_other = type.role == Role::other_storage;
  if (!is_untyped && !is_other && type.role != Role::storage) fail_storage();
  const std::size_t width = is_other ? type.number : is_untyped ? 1 : bits(type.dtype) / 8;
  const bool is_part = parts.size() > 5 && parts[5].kind != Kind::none;
  arena_.charge(growth, sizeof(PickledStorage));
  result_.storages.push_back(
      {type.dtype, width, type.type, is_untyped, parts[2].text, count(parts[4]), is_part});
  return {Kind::storage, 0, result_.storages.size() - 1};
}

}  // namespace normscope::files
