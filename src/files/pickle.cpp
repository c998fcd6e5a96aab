#include "pickle.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "pickle_objects.hpp"

namespace normscope::files {
namespace {

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
