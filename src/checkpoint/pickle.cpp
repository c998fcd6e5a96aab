#include "pickle.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <normscope/bytes/little_endian.hpp>
#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>

#include "pickle_globals.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;
using Role = PickleGlobal::Role;

constexpr std::size_t deepest_stack = std::size_t{1} << 20;

/// The stack machine that executes a pickle.
class Machine {
 public:
  Machine(Bytes bytes, Arena& arena, const std::string& where) : rest_(bytes), arena_(arena), where_(where) {
    size_ = bytes.size();
  }

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
      case 'X': return push_text(number<std::uint32_t>());
      case 0x8c: return push_text(number<std::uint8_t>());
      case 'q': return remember(number<std::uint8_t>());
      case 'r': return remember(number<std::uint32_t>());
      case 0x94: return remember(memo_.size());
      case 'h': return recall(number<std::uint8_t>());
      case 'j': return recall(number<std::uint32_t>());
      case 'J': return push_integer(number<std::int32_t>());
      case 'K': return push_integer(number<std::uint8_t>());
      case 'M': return push_integer(number<std::uint16_t>());
      case 0x8a: return push_long(number<std::uint8_t>());
      case 'G': (void)take(8); return push({Kind::real});
      case 0x88: return push({Kind::boolean, 1});
      case 0x89: return push({Kind::boolean, 0});
      case 'N': return push({});
      case 'c': return push_global_line();
      case 0x93: return push_stack_global();
      case 'R': return reduce();
      case 0x81: return push_module();
      case 'b': return build();
      case 'Q': return push_storage();
      case 's': return set_items(pop(2));
      case 'u': return set_items(pop_to_mark());
      case 'a': return append(pop(1));
      case 'e': return append(pop_to_mark());
      default:
        fail(ErrorCode::Unsupported,
             fmt::format("opcode 0x{:02x} is not supported, expected those that torch.save writes", opcode));
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
  PickleValue container(Kind kind, std::vector<PickleValue> values) {
    arena_.charge(growth, sizeof(std::vector<PickleValue>));
    arena_.charge(values.size(), sizeof(PickleValue));
    result_.containers.push_back(std::move(values));
    return {kind, 0, result_.containers.size() - 1};
  }
  [[nodiscard]] const std::vector<PickleValue>& items(const PickleValue& value) const {
    return result_.containers[value.index];
  }
  void push_text(std::size_t size) {
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
    if (top().kind != kind) fail(fmt::format("an item is added to something that is not {}", expected));
    arena_.charge(growth * values.size(), sizeof(PickleValue));
    std::vector<PickleValue>& held = result_.containers[top().index];
    held.insert(held.end(), values.begin(), values.end());
  }

  // Globals, and objects constructed from them.
  void push_global(std::string_view module, std::string_view name) {
    const std::optional<std::size_t> index = find_pickle_global(module, name);
    if (!index) {
      fail(ErrorCode::Unsupported, fmt::format("refused: names {}, code that unpickling would run",
                                               bytes::quote(fmt::format("{}.{}", module, name))));
    }
    push({Kind::global, 0, *index});
  }
  std::string_view line() {
    const std::string_view text(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) fail("ends within a name");
    (void)take(end + 1);
    return text.substr(0, end);
  }
  /// NEWOBJ, which is supported only for TorchScript's own classes.
  void push_module() {
    const std::vector<PickleValue> call = pop(2);
    const bool is_module = call[0].kind == Kind::global && call[1].kind == Kind::tuple &&
                           pickle_global(call[0].index).role == Role::script_class;
    if (!is_module) fail(ErrorCode::Unsupported, "an object is made of a class that is not of TorchScript");
    push(container(Kind::module, {}));
  }
  /// The state of a dict or parameter does not affect tensors; that of a module is its attributes.
  void build() {
    const PickleValue state = pop(1)[0];
    if (top().kind != Kind::module) return;
    if (state.kind != Kind::dict) fail("the attributes of a module are not a dict");
    const std::vector<PickleValue> attributes = items(state);
    extend(Kind::module, attributes, "a module");
  }
  void push_global_line() {
    const std::string_view module = line();
    push_global(module, line());
  }
  void push_stack_global() {
    const std::vector<PickleValue> names = pop(2);
    if (names[0].kind != Kind::text || names[1].kind != Kind::text)
      fail("the name of a global is not made of strings");
    push_global(names[0].text, names[1].text);
  }
  void push_storage() {
    const PickleValue id = pop(1)[0];
    if (id.kind != Kind::tuple || items(id).size() < 5) fail_storage();
    const std::vector<PickleValue>& parts = items(id);
    const auto role = [&](Role wanted) { return pickle_global(parts[1].index).role == wanted; };
    if (parts[0].text != "storage" || parts[1].kind != Kind::global || parts[2].kind != Kind::text ||
        !(role(Role::storage) || role(Role::untyped_storage))) {
      fail_storage();
    }
    arena_.charge(growth, sizeof(PickledStorage));
    result_.storages.push_back({pickle_global(parts[1].index).dtype, role(Role::untyped_storage),
                                parts[2].text, count(parts[4]),
                                parts.size() > 5 && parts[5].kind != Kind::none});
    push({Kind::storage, 0, result_.storages.size() - 1});
  }
  void reduce() {
    const std::vector<PickleValue> call = pop(2);
    if (call[0].kind != Kind::global || call[1].kind != Kind::tuple)
      fail("calls something that is not a global");
    const std::vector<PickleValue>& arguments = items(call[1]);
    const Role role = pickle_global(call[0].index).role;
    const auto needs = [&](std::size_t least) {
      if (arguments.size() < least) fail("a call has too few arguments");
    };
    switch (role) {
      case Role::ordered_dict:
        if (!arguments.empty()) fail("an OrderedDict is built from arguments, expected none");
        return push(container(Kind::dict, {}));
      case Role::size: needs(1); return push(arguments[0]);
      case Role::rebuild_parameter:
        needs(1);
        if (arguments[0].kind != Kind::tensor)
          fail("a parameter is built from something that is not a tensor");
        return push(arguments[0]);
      case Role::rebuild_tensor: needs(4); return push_tensor(arguments, {});
      case Role::rebuild_tensor_v3:
        needs(7);
        if (arguments[6].kind != Kind::global || pickle_global(arguments[6].index).role != Role::dtype)
          fail("the dtype argument of a tensor is not a dtype");
        return push_tensor(arguments, pickle_global(arguments[6].index).dtype);
      default: fail("a call of a class that a state dict may name but not call");
    }
  }
  void push_tensor(const std::vector<PickleValue>& arguments, std::optional<Dtype> dtype) {
    if (arguments[0].kind != Kind::storage) fail("a tensor is built from something that is not a storage");
    PickledTensor tensor;
    tensor.storage = arguments[0].index;
    const PickledStorage& storage = result_.storages[tensor.storage];
    if (storage.is_untyped && !dtype) fail("a tensor of an untyped storage has no dtype");
    tensor.dtype = dtype.value_or(storage.dtype);
    tensor.offset = count(arguments[1]);
    tensor.shape = counts(arguments[2]);
    tensor.strides = counts(arguments[3]);
    if (tensor.shape.size() != tensor.strides.size()) {
      fail(fmt::format("a tensor has {} dimensions and {} strides", tensor.shape.size(),
                       tensor.strides.size()));
    }
    arena_.charge(growth, sizeof tensor);
    result_.tensors.push_back(tensor);
    push({Kind::tensor, 0, result_.tensors.size() - 1});
  }
  std::uint64_t count(const PickleValue& value) const {
    if (value.kind != Kind::integer || value.integer < 0) fail("a size is not an integer >= 0");
    return static_cast<std::uint64_t>(value.integer);
  }
  std::span<const std::uint64_t> counts(const PickleValue& value) {
    if (value.kind != Kind::tuple) fail("a shape is not a tuple");
    const std::span<std::uint64_t> numbers = arena_.allocate<std::uint64_t>(items(value).size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = count(items(value)[i]);
    return numbers;
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

  Bytes take(std::size_t size) {
    if (size > rest_.size()) fail(fmt::format("{} bytes are needed, {} are left", size, rest_.size()));
    return bytes::take_front(rest_, size);
  }
  template <typename Number>
  Number number() {
    return bytes::load<Number>(take(sizeof(Number)));
  }

  [[noreturn]] void fail_storage() const { fail("a persistent id is not that of a storage"); }
  [[noreturn]] void fail(const std::string& fact) const { fail(ErrorCode::Format, fact); }
  [[noreturn]] void fail(ErrorCode code, const std::string& fact) const {
    throw Error(code, fmt::format("{}: at byte {}: {}", where_, begin_, fact));
  }

  Bytes rest_;
  std::size_t size_ = 0;
  std::size_t begin_ = 0;  // offset of the current opcode
  Arena& arena_;
  const std::string& where_;
  bool stopped_ = false;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleValue> memo_;
  Pickled result_;
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

}  // namespace normscope::checkpoint
