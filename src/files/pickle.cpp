#include "pickle.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/dtype.hpp>
#include <normscope/core/error.hpp>
#include "parsed_file.hpp"

namespace normscope::files {
namespace {

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

using Kind = PickleValue::Kind;

bool is_sequence(const PickleValue& value) { return value.kind == Kind::list || value.kind == Kind::tuple; }
bool is_callable(const PickleValue& value) {
  return value.kind == Kind::global || value.kind == Kind::object;
}

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

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

constexpr std::size_t deepest_stack = std::size_t{1} << 20;

/// The stack machine that executes a pickle.
class Machine : private PickleObjects {
 public:
  Machine(Bytes bytes, Arena& arena, const std::string& where)
      : PickleObjects(arena, where), rest_(bytes), size_(bytes.size()) {}

  Pickled run() {
    while (!stopped_) step();
    return std::move(result_);
  }
  /// The bytes after the pickle.
  [[nodiscard]] Bytes rest() const { return rest_; }
  void expect_end() const {
    if (!rest_.empty()) fail(fmt::format("{} bytes follow the end of the pickle", rest_.size()));
  }

 private:
  void step() {
    begin_ = size_ - rest_.size();
    const auto opcode = number<std::uint8_t>();
    switch (opcode) {
      case 0x80: return check_protocol(number<std::uint8_t>());
      case 0x95: return (void)number<std::uint64_t>();  // FRAME
      case '.': return stop();
      case '(': return mark();
      case '}': return push(container(Kind::dict, {}));
      case ']': return push(container(Kind::list, {}));
      case ')': return push(container(Kind::tuple, {}));
      case 't': return push(container(Kind::tuple, pop_to_mark()));
      case 0x85: return push(container(Kind::tuple, pop(1)));
      case 0x86: return push(container(Kind::tuple, pop(2)));
      case 0x87: return push(container(Kind::tuple, pop(3)));
      case '0': return (void)pop(1);
      case '1': return (void)pop_to_mark();
      case '2': return push(top());
      case 'T':
      case 'X': return push_text(number<std::uint32_t>());
      case 'U':
      case 0x8c: return push_text(number<std::uint8_t>());
      case 0x8d: return push_text(number<std::uint64_t>());
      case 'C': return push_bytes(number<std::uint8_t>());
      case 'B': return push_bytes(number<std::uint32_t>());
      case 0x8e:
      case 0x96: return push_bytes(number<std::uint64_t>());
      case 0x8f: return push(object({"builtins", "set"}));
      case 0x90: return (void)(pop_to_mark(), top());
      case 0x91: (void)pop_to_mark(); return push(object({"builtins", "frozenset"}));
      case 0x97: return push(object({"", "buffer"}));
      case 0x98: return (void)top();
      case 'q': return remember(number<std::uint8_t>());
      case 'r': return remember(number<std::uint32_t>());
      case 0x94: return remember(memo_.size());
      case 'h': return recall(number<std::uint8_t>());
      case 'j': return recall(number<std::uint32_t>());
      case 'J': return push_integer(number<std::int32_t>());
      case 'K': return push_integer(number<std::uint8_t>());
      case 'M': return push_integer(number<std::uint16_t>());
      case 0x8a: return push_long(number<std::uint8_t>());
      case 0x8b: return push_long(number<std::uint32_t>());
      case 'G': (void)take(8); return push({Kind::real});
      case 0x88: return push({Kind::boolean, 1});
      case 0x89: return push({Kind::boolean, 0});
      case 'N': return push({});
      case 'c': return push(global_line());
      case 0x93: return push_stack_global();
      case 0x82: return push_extension(number<std::uint8_t>());
      case 0x83: return push_extension(number<std::uint16_t>());
      case 0x84: return push_extension(number<std::uint32_t>());
      case 'R':
      case 0x81: return construct(opcode == 0x81, pop(2));
      case 0x92: return construct(false, pop_without_keywords());
      case 'i': return push_instance(global_line(), pop_to_mark());
      case 'o': return push_instance(pop_to_mark());
      case 'b': return build();
      case 'Q': return push(persistent(pop(1)[0]));
      case 's': return set_items(pop(2));
      case 'u': return set_items(pop_to_mark());
      case 'a': return append(pop(1));
      case 'e': return append(pop_to_mark());
      default:
        fail(ErrorCode::Unsupported,
             fmt::format("opcode 0x{:02x} is not supported, expected those of protocols 2 to 5", opcode));
    }
  }

  // The stack.
  void push(PickleValue value) {
    if (stack_.size() == deepest_stack)
      fail(ErrorCode::Unsupported, fmt::format("more than {} values on the stack", deepest_stack));
    stack_.push_back(value);
  }
  void mark() {
    if (marks_.size() == deepest_stack)
      fail(ErrorCode::Unsupported, fmt::format("more than {} marks", deepest_stack));
    marks_.push_back(stack_.size());
  }
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleValue& top() {
    if (stack_.size() <= floor()) fail("the stack is empty");
    return stack_.back();
  }
  std::vector<PickleValue> pop(std::size_t count) {
    if (stack_.size() - floor() < count) fail("the stack is empty");
    std::vector<PickleValue> values(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }
  std::vector<PickleValue> pop_to_mark() {
    if (marks_.empty()) fail("there is no mark on the stack");
    std::vector<PickleValue> values = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }
  /// Entries are numbered consecutively.
  void remember(std::size_t index) {
    if (index > memo_.size()) fail(fmt::format("memo entry {} comes after {}", index, memo_.size()));
    if (index == memo_.size()) {
      arena_.charge(growth, sizeof(PickleValue));
      memo_.emplace_back();
    }
    memo_[index] = top();
  }
  void recall(std::size_t index) {
    if (index >= memo_.size()) fail(fmt::format("the memo has no entry {}", index));
    push(memo_[index]);
  }

  // Values.
  void push_bytes(std::uint64_t size) {
    (void)take(size);
    push(object({"builtins", "bytes"}));
  }
  void push_text(std::uint64_t size) {
    const Bytes text = take(size);
    push({Kind::text, 0, 0, {reinterpret_cast<const char*>(text.data()), text.size()}});
  }
  void push_integer(std::int64_t value) { push({Kind::integer, value}); }
  void push_long(std::size_t size) {
    const Bytes digits = take(size);
    if (size > sizeof(std::int64_t)) return push({Kind::other});
    // Two's complement; the sign is in the last byte.
    std::int64_t value = size > 0 && std::to_integer<int>(digits.back()) >= 0x80 ? -1 : 0;
    if (size > 0) std::memcpy(&value, digits.data(), size);
    push_integer(value);
  }
  void append(const std::vector<PickleValue>& values) { extend(Kind::list, values, "a list"); }
  void set_items(const std::vector<PickleValue>& values) {
    if (values.size() % 2 != 0) fail("a key has no value");
    extend(Kind::dict, values, "a dict");
  }
  void extend(Kind kind, const std::vector<PickleValue>& values, std::string_view expected) {
    if (top().kind == Kind::object) return;
    if (top().kind != kind) fail(fmt::format("an item is added to something that is not {}", expected));
    arena_.charge(growth * values.size(), sizeof(PickleValue));
    std::vector<PickleValue>& held = result_.containers[top().index];
    held.insert(held.end(), values.begin(), values.end());
  }

  // Globals, and objects constructed from them.
  std::string_view line() {
    const std::string_view text(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) fail("ends within a name");
    (void)take(end + 1);
    return text.substr(0, end);
  }
  PickleValue global_line() {
    const std::string_view module = line();
    return global(module, line());
  }
  void push_stack_global() {
    const std::vector<PickleValue> names = pop(2);
    if (names[0].kind != Kind::text || names[1].kind != Kind::text)
      fail("the name of a global is not made of strings");
    push(global(names[0].text, names[1].text));
  }
  /// A number of Python's registry of extensions, which only the program that wrote it knows.
  void push_extension(std::uint32_t) { push(object({"copyreg", "extension"})); }
  /// The state of a dict or parameter does not affect tensors; that of a module is its attributes.
  void build() {
    const PickleValue state = pop(1)[0];
    if (top().kind == Kind::tensor) fail(ErrorCode::Unsupported, "the state of a tensor is set");
    if (top().kind != Kind::module) return;
    if (state.kind != Kind::dict) fail("the attributes of a module are not a dict");
    const Values attributes = items(state);
    extend(Kind::module, {attributes.begin(), attributes.end()}, "a module");
  }
  std::vector<PickleValue> pop_without_keywords() {
    (void)pop(1);
    return pop(2);
  }
  /// INST and OBJ, of Python 2's classes without a base.
  void push_instance(const PickleValue& type, const std::vector<PickleValue>& arguments) {
    construct(false, {type, container(Kind::tuple, arguments)});
  }
  void push_instance(std::vector<PickleValue> call) {
    if (call.empty()) fail("the stack is empty");
    const PickleValue type = call.front();
    call.erase(call.begin());
    push_instance(type, call);
  }
  void construct(bool is_new, const std::vector<PickleValue>& call) {
    push(PickleObjects::construct(is_new, call[0], call[1]));
  }

  void check_protocol(int version) const {
    if (version < 2 || version > 5) {
      fail(ErrorCode::Unsupported, fmt::format("pickle protocol {}, expected 2 to 5", version));
    }
  }
  void stop() {
    result_.root = top();
    stopped_ = true;
  }

  Bytes take(std::uint64_t size) {
    if (size > rest_.size()) fail(fmt::format("{} bytes are needed, {} are left", size, rest_.size()));
    return take_front(rest_, static_cast<std::size_t>(size));
  }
  template <typename Number>
  Number number() {
    return load<Number>(take(sizeof(Number)));
  }

  Bytes rest_;
  std::size_t size_ = 0;
  bool stopped_ = false;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleValue> memo_;
};

}  // namespace

Pickled read_pickle(Bytes bytes, Arena& arena, const std::string& where) {
  Machine machine(bytes, arena, where);
  Pickled pickled = machine.run();
  machine.expect_end();
  return pickled;
}

Pickled read_first_pickle(Bytes& bytes, Arena& arena, const std::string& where) {
  Machine machine(bytes, arena, where);
  Pickled pickled = machine.run();
  bytes = machine.rest();
  return pickled;
}

}  // namespace normscope::files
