#include "readers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/onnx_graph.hpp>
#include <normscope/files/source.hpp>

#include "file_format.hpp"
#include "parsed_file.hpp"
#include "protobuf.hpp"
#include "shard.hpp"

namespace normscope::files {

const OnnxAttribute* OnnxNode::attribute(std::string_view attribute_name) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const OnnxAttribute& attribute) {
    return attribute.name == attribute_name;
  });
  return found == attributes.end() ? nullptr : &*found;
}

bool OnnxNode::has_only(std::span<const Known> known) const {
  return std::all_of(attributes.begin(), attributes.end(), [&](const OnnxAttribute& attribute) {
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const Known& one) {
      return one.name == attribute.name && one.type == attribute.type;
    });
    return is_known && this->attribute(attribute.name) == &attribute;
  });
}

std::int64_t OnnxNode::integer(std::string_view attribute_name, std::int64_t otherwise) const {
  const OnnxAttribute* const found = attribute(attribute_name);
  return found == nullptr ? otherwise : found->integer;
}

double OnnxNode::real(std::string_view attribute_name, double otherwise) const {
  const OnnxAttribute* const found = attribute(attribute_name);
  return found == nullptr ? otherwise : found->real;
}

const OnnxNode* OnnxGraph::maker(ValueId value) const {
  return value == no_value || makers_[value] == no_node ? nullptr : &nodes_[makers_[value]];
}

std::span<const std::uint32_t> OnnxGraph::takers(ValueId value) const {
  if (value == no_value) return {};
  return std::span(takers_).subspan(takers_begin_[value], takers_begin_[value + 1] - takers_begin_[value]);
}

const Tensor* OnnxGraph::constant(ValueId value) const {
  return value == no_value ? nullptr : constants_[value];
}

/// Functions that a file defines, by domain and name: a node of that name calls the function.
using OnnxFunctions = std::set<std::pair<std::string, std::string>>;

/// Reads a graph node by node.
class OnnxGraphReader {
 public:
  OnnxGraphReader(Arena& arena, const std::string& where, const OnnxFunctions& functions)
      : arena_(arena), where_(where), functions_(functions) {}

  /// Adds a NodeProto; the value of a Constant is appended to `tensors`.
  ///
  /// Errors    Format, Unsupported
  void add_node(std::span<const std::byte> message, std::vector<Tensor>& tensors);
  /// Adds a ValueInfoProto: the type of an input, if `is_input`, or of another value.
  ///
  /// Errors    Format, Unsupported
  void add_value_info(std::span<const std::byte> message, bool is_input);
  /// The graph, after its last node. `tensors`, sorted by name, are its constants, whose addresses it keeps;
  /// it takes `stored_bytes` in its file.
  ///
  /// Errors    Format for a value with two producers, of which one may be an initializer
  [[nodiscard]] OnnxGraph link(std::span<const Tensor> tensors, std::size_t stored_bytes);

 private:
  struct Arity {
    std::size_t inputs = 0;
    std::size_t outputs = 0;
  };
  /// What a file states of a value before the values have numbers.
  struct ValueInfo {
    std::string_view name;
    bool is_input = false;
    bool has_extents = false;
    std::span<const std::int64_t> extents{};
  };
  [[nodiscard]] OnnxAttribute add_attribute(std::span<const std::byte> message, const OnnxNode& node,
                                            std::vector<Tensor>& tensors);
  void read_extents(std::span<const std::byte> tensor_type, ValueInfo& info);
  void add_constant(std::string_view name, Dtype dtype, std::span<const std::uint64_t> shape,
                    std::span<const std::byte> bytes, std::vector<Tensor>& tensors);
  void name_values();
  [[nodiscard]] ValueId value_of(std::string_view name) const;

  Arena& arena_;
  const std::string& where_;
  const OnnxFunctions& functions_;
  OnnxGraph graph_;
  std::vector<Arity> arities_;              // per node
  std::vector<std::string_view> operands_;  // node by node, inputs before outputs
  std::vector<ValueInfo> infos_;
};

namespace {

using Bytes = std::span<const std::byte>;

/// The parts of an AttributeProto that are used.
struct Attribute {
  std::string_view name;
  OnnxAttribute::Type type = OnnxAttribute::Type::other;
  std::optional<WireField> real;
  std::int64_t integer = 0;
  std::optional<Bytes> tensor;
  std::vector<std::int64_t> integers;
};

/// The type of an attribute with values in these fields, as bits, that states the type of number `stated`, 0
/// for none.
OnnxAttribute::Type type_of(std::uint64_t fields, std::uint64_t stated, bool has_other) {
  constexpr struct {
    std::uint64_t field;
    std::uint64_t code;
    OnnxAttribute::Type type;
  } types[] = {{2, 1, OnnxAttribute::Type::real},
               {3, 2, OnnxAttribute::Type::integer},
               {4, 3, OnnxAttribute::Type::text},
               {5, 4, OnnxAttribute::Type::tensor},
               {8, 7, OnnxAttribute::Type::integers}};
  for (const auto& [field, code, type] : types) {
    const std::uint64_t only = std::uint64_t{1} << field;
    // A zero and an empty list may be left out where the type is stated.
    const bool fits = stated == 0 ? fields == only : stated == code && (fields & ~only) == 0;
    if (fits && !has_other) return type;
  }
  return OnnxAttribute::Type::other;
}

Attribute read_attribute(Bytes message, Arena& arena, const std::string& where) {
  Attribute attribute;
  std::uint64_t fields = 0;
  std::uint64_t stated = 0;
  bool has_other = false;
  WireReader reader(message, "AttributeProto", where);
  while (const std::optional<WireField> field = reader.next()) {
    switch (field->number) {
      case 1: attribute.name = reader.text(*field); continue;
      case 2: attribute.real = field; break;
      case 3: attribute.integer = static_cast<std::int64_t>(reader.integer(*field)); break;
      case 4: break;
      case 5: attribute.tensor = reader.bytes(*field); break;
      case 8:
        reader.integers(*field, [&](std::uint64_t value) {
          arena.charge(growth, sizeof value);
          attribute.integers.push_back(static_cast<std::int64_t>(value));
        });
        break;
      case 13: continue;  // a text for people
      case 20: stated = reader.integer(*field); continue;
      // Lists, subgraphs, and the name of a function's attribute, which has the value.
      default: has_other = true; continue;
    }
    fields |= std::uint64_t{1} << field->number;
  }
  if (attribute.real) (void)reader.real(*attribute.real);
  attribute.type = type_of(fields, stated, has_other);
  return attribute;
}

}  // namespace

void OnnxGraphReader::add_constant(std::string_view name, Dtype dtype, std::span<const std::uint64_t> shape,
                                   Bytes bytes, std::vector<Tensor>& tensors) {
  arena_.charge(growth, sizeof(Tensor));
  const std::span<std::uint64_t> own_shape = arena_.allocate<std::uint64_t>(shape.size());
  std::copy(shape.begin(), shape.end(), own_shape.begin());
  tensors.push_back({name, dtype, own_shape, bytes});
}

OnnxAttribute OnnxGraphReader::add_attribute(Bytes message, const OnnxNode& node,
                                             std::vector<Tensor>& tensors) {
  using Type = OnnxAttribute::Type;
  const Attribute attribute = read_attribute(message, arena_, where_);
  OnnxAttribute result{attribute.name, attribute.type, 0.0, attribute.integer, {}};
  Bytes real;
  if (attribute.real) {
    float value = 0;
    real = attribute.real->bytes;
    std::memcpy(&value, real.data(), sizeof value);
    result.real = value;
  }
  if (attribute.type == Type::integers) {
    const std::span<std::int64_t> values = arena_.allocate<std::int64_t>(attribute.integers.size());
    std::copy(attribute.integers.begin(), attribute.integers.end(), values.begin());
    result.integers = values;
  }
  if (node.op != "Constant" || !node.is_standard || arities_.back().outputs == 0) return result;
  const std::string_view name = operands_.back();
  if (attribute.name == "value" && attribute.type == Type::tensor && attribute.tensor) {
    arena_.charge(growth, sizeof(Tensor));
    if (const auto tensor = read_onnx_tensor(*attribute.tensor, name, arena_, where_))
      tensors.push_back(*tensor);
  } else if (attribute.name == "value_float" && attribute.type == Type::real && attribute.real) {
    add_constant(name, Dtype::F32, {}, real, tensors);
  } else if (attribute.name == "value_ints" && attribute.type == Type::integers) {
    const std::uint64_t shape[] = {result.integers.size()};
    add_constant(name, Dtype::I64, shape, std::as_bytes(result.integers), tensors);
  }
  return result;
}

void OnnxGraphReader::add_node(Bytes message, std::vector<Tensor>& tensors) {
  arena_.charge(growth, sizeof(OnnxNode) + sizeof(Arity));
  OnnxNode& node = graph_.nodes_.emplace_back();
  Arity& arity = arities_.emplace_back();
  std::size_t attributes = 0;
  const auto reread = [&](std::uint64_t number, const auto& take) {
    WireReader reader(message, "NodeProto", where_);
    while (const std::optional<WireField> field = reader.next()) {
      if (field->number == number) take(reader, *field);
    }
  };
  const auto add_operand = [&](const WireReader& reader, const WireField& field) {
    arena_.charge(growth, 2 * sizeof(std::string_view) + 6 * sizeof(ValueId));
    operands_.push_back(reader.text(field));
  };
  const std::size_t first = operands_.size();
  reread(1, add_operand);
  arity.inputs = operands_.size() - first;
  reread(2, add_operand);
  arity.outputs = operands_.size() - first - arity.inputs;
  reread(3, [&](const WireReader& reader, const WireField& field) { node.name = reader.text(field); });
  reread(4, [&](const WireReader& reader, const WireField& field) { node.op = reader.text(field); });
  reread(7, [&](const WireReader& reader, const WireField& field) { node.domain = reader.text(field); });
  reread(5, [&](const WireReader&, const WireField&) { ++attributes; });
  const bool is_onnx = node.domain.empty() || node.domain == "ai.onnx";
  const bool is_function =
      functions_.contains({is_onnx ? std::string() : std::string(node.domain), std::string(node.op)});
  if (is_function) node.domain = "functions of the file";
  node.is_standard = is_onnx && !is_function;
  const std::span<OnnxAttribute> stored = arena_.allocate<OnnxAttribute>(attributes);
  node.attributes = stored;
  std::size_t next = 0;
  reread(5, [&](const WireReader& reader, const WireField& field) {
    stored[next++] = add_attribute(reader.bytes(field), node, tensors);
  });
}

/// The extents in a TypeProto.Tensor.
void OnnxGraphReader::read_extents(Bytes tensor_type, ValueInfo& info) {
  WireReader type(tensor_type, "TypeProto.Tensor", where_);
  while (const std::optional<WireField> shape = type.next()) {
    if (shape->number != 2) continue;
    std::vector<std::int64_t> extents;
    WireReader reader(type.bytes(*shape), "TensorShapeProto", where_);
    while (const std::optional<WireField> axis = reader.next()) {
      if (axis->number != 1) continue;
      arena_.charge(growth, sizeof(std::int64_t));
      std::int64_t extent = -1;
      WireReader dimension(reader.bytes(*axis), "TensorShapeProto.Dimension", where_);
      while (const std::optional<WireField> value = dimension.next()) {
        if (value->number == 1) extent = static_cast<std::int64_t>(dimension.integer(*value));
      }
      extents.push_back(extent > 0 ? extent : -1);
    }
    const std::span<std::int64_t> stored = arena_.allocate<std::int64_t>(extents.size());
    std::copy(extents.begin(), extents.end(), stored.begin());
    info.extents = stored;
    info.has_extents = true;
  }
}

void OnnxGraphReader::add_value_info(Bytes message, bool is_input) {
  arena_.charge(growth, sizeof(ValueInfo) + sizeof(OnnxExtents));
  ValueInfo info;
  info.is_input = is_input;
  WireReader reader(message, "ValueInfoProto", where_);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->number == 1) info.name = reader.text(*field);
    if (field->number != 2) continue;
    WireReader type(reader.bytes(*field), "TypeProto", where_);
    while (const std::optional<WireField> kind = type.next()) {
      if (kind->number == 1) read_extents(type.bytes(*kind), info);
    }
  }
  infos_.push_back(info);
}

/// Assigns a number to every name, and to every operand the number of its name.
void OnnxGraphReader::name_values() {
  graph_.names_ = operands_;
  std::sort(graph_.names_.begin(), graph_.names_.end());
  graph_.names_.erase(std::unique(graph_.names_.begin(), graph_.names_.end()), graph_.names_.end());
  graph_.ids_.reserve(operands_.size());
  for (const std::string_view operand : operands_) {
    const auto at =
        std::lower_bound(graph_.names_.begin(), graph_.names_.end(), operand) - graph_.names_.begin();
    graph_.ids_.push_back(operand.empty() ? no_value : static_cast<ValueId>(at));
  }
}

ValueId OnnxGraphReader::value_of(std::string_view name) const {
  const auto at = std::lower_bound(graph_.names_.begin(), graph_.names_.end(), name);
  return at == graph_.names_.end() || *at != name || name.empty()
             ? no_value
             : static_cast<ValueId>(at - graph_.names_.begin());
}

OnnxGraph OnnxGraphReader::link(std::span<const Tensor> tensors, std::size_t stored_bytes) {
  graph_.stored_bytes_ = stored_bytes;
  name_values();
  graph_.constants_.assign(graph_.names_.size(), nullptr);
  for (const Tensor& tensor : tensors) {
    if (const ValueId value = value_of(tensor.name); value != no_value) graph_.constants_[value] = &tensor;
  }
  graph_.is_input_.assign(graph_.names_.size(), false);
  for (const ValueInfo& info : infos_) {
    const ValueId value = value_of(info.name);
    if (value == no_value) continue;
    if (info.is_input) graph_.is_input_[value] = true;
    if (info.has_extents) graph_.stated_extents_.push_back({value, info.extents});
  }

  graph_.makers_.assign(graph_.names_.size(), OnnxGraph::no_node);
  graph_.takers_begin_.assign(graph_.names_.size() + 1, 0);
  std::span<const ValueId> rest = graph_.ids_;
  for (std::uint32_t i = 0; i < graph_.nodes_.size(); ++i) {
    OnnxNode& node = graph_.nodes_[i];
    node.inputs = rest.first(arities_[i].inputs);
    node.outputs = rest.subspan(arities_[i].inputs, arities_[i].outputs);
    rest = rest.subspan(arities_[i].inputs + arities_[i].outputs);
    for (const ValueId output : node.outputs) {
      if (output == no_value) continue;
      const bool is_stored = graph_.constants_[output] != nullptr && node.op != "Constant";
      if (is_stored || graph_.makers_[output] != OnnxGraph::no_node) {
        throw Error(ErrorCode::Format,
                    fmt::format("{}: value {} is the output of {}", where_, quote(graph_.names_[output]),
                                is_stored ? "a node and an initializer" : "two nodes"));
      }
      graph_.makers_[output] = i;
    }
    for (const ValueId input : node.inputs) {
      if (input != no_value) ++graph_.takers_begin_[input + 1];
    }
  }

  for (std::size_t value = 0; value < graph_.names_.size(); ++value)
    graph_.takers_begin_[value + 1] += graph_.takers_begin_[value];
  graph_.takers_.resize(graph_.takers_begin_.back());
  std::vector<std::uint32_t> next(graph_.takers_begin_.begin(), graph_.takers_begin_.end() - 1);
  for (std::uint32_t i = 0; i < graph_.nodes_.size(); ++i) {
    for (const ValueId input : graph_.nodes_[i].inputs) {
      if (input != no_value) graph_.takers_[next[input]++] = i;
    }
  }
  return std::move(graph_);
}

namespace {

void add_metadata(const StoredBytes& entry, ParsedFile& file, const std::string& where) {
  std::vector<std::byte> buffer;
  std::string_view key;
  std::string_view value;
  WireReader reader(entry.fetch(buffer), "StringStringEntryProto", where);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->number == 1) key = reader.text(*field);
    if (field->number == 2) value = reader.text(*field);
  }
  file.arena.charge(1, metadata_entry_bytes + key.size() + value.size());
  file.metadata.try_emplace(std::string(key), value);
}

/// Notes the name of a function that the file defines.
void add_function(const StoredBytes& function, ParsedFile& file, const std::string& where,
                  OnnxFunctions& functions) {
  std::pair<std::string, std::string> key;
  StoredWireReader reader(function, "FunctionProto", where);
  while (const std::optional<StoredField> field = reader.next()) {
    if (field->number != 1 && field->number != 10) continue;
    const std::span<const std::byte> text = file.arena.keep(reader.bytes(*field));
    (field->number == 1 ? key.second : key.first)
        .assign(reinterpret_cast<const char*>(text.data()), text.size());
  }
  if (key.first == "ai.onnx") key.first.clear();
  file.arena.charge(1, metadata_entry_bytes + key.first.size() + key.second.size());
  functions.insert(std::move(key));
}

/// Finds the graph's bytes and collects metadata and the names of functions.
StoredBytes find_graph(const StoredBytes& model, ParsedFile& file, const std::string& where,
                       OnnxFunctions& functions) {
  std::optional<StoredBytes> graph;
  StoredWireReader reader(model, "ModelProto", where);
  while (const std::optional<StoredField> field = reader.next()) {
    if (field->number == 14) add_metadata(reader.bytes(*field), file, where);
    if (field->number == 25) add_function(reader.bytes(*field), file, where, functions);
    if (field->number != 7) continue;
    if (graph) throw Error(ErrorCode::Format, where + ": has two graphs, expected one");
    graph = reader.bytes(*field);
  }
  if (!graph) throw Error(ErrorCode::Format, where + ": has no graph");
  return *graph;
}

}  // namespace

ParsedFile parse_onnx(const StoredBytes& stored, const std::string& where, const OpenExternal& external) {
  ParsedFile file{Arena(static_cast<std::size_t>(std::min(stored.size(), largest_held)), where)};
  OnnxFunctions functions;
  const StoredBytes message = find_graph(stored, file, where, functions);
  OnnxGraphReader graph(file.arena, where, functions);
  StoredWireReader reader(message, "GraphProto", where);
  while (const std::optional<StoredField> field = reader.next()) {
    if (field->number == 1) graph.add_node(file.arena.keep(reader.bytes(*field)), file.tensors);
    if (field->number >= 11 && field->number <= 13)
      graph.add_value_info(file.arena.keep(reader.bytes(*field)), field->number == 11);
    if (field->number == 15) {
      throw Error(ErrorCode::Unsupported, where + ": has a sparse initializer, which is not supported");
    }
    if (field->number != 5) continue;
    file.arena.charge(growth, sizeof(Tensor));
    if (const auto tensor = read_onnx_tensor(reader.bytes(*field), {}, file.arena, where, external)) {
      file.tensors.push_back(*tensor);
    }
  }
  sort_tensors(file.tensors, where + ":");
  file.graph = graph.link(file.tensors, static_cast<std::size_t>(std::min(message.size(), largest_held)));
  return file;
}

namespace {

/// The files beside a checkpoint that hold elements of its tensors, opened once each.
struct OtherFiles {
  const std::filesystem::path& path;
  const OpenSource& open;
  std::vector<std::unique_ptr<Source>> sources{};
  std::vector<std::filesystem::path> others{};
  std::map<std::string, std::size_t> numbers{};
  std::map<std::string_view, std::size_t> in_other{};

  StoredBytes operator()(std::string_view tensor, const std::string& other) {
    const auto [known, is_new] = numbers.try_emplace(other, sources.size());
    if (is_new) {
      others.push_back(path.parent_path() / other);
      sources.push_back(open(others.back()));
    }
    in_other[tensor] = known->second;
    return StoredBytes(*sources[known->second]);
  }

  void give_to(Shard& shard) {
    for (std::unique_ptr<Source>& source : sources) shard.views.push_back(std::move(source));
    shard.others = std::move(others);
    shard.in_other = std::move(in_other);
  }
};

Shard open_onnx(ShardRequest request) {
  OtherFiles others{request.path, request.open};
  ParsedFile parsed = parse_onnx(StoredBytes(*request.file), "onnx: " + request.path.string(),
                                 request.open ? OpenExternal(std::ref(others)) : OpenExternal());
  Shard shard = take_parsed(std::move(request.file), std::move(parsed), "onnx");
  others.give_to(shard);
  return shard;
}

}  // namespace

namespace formats {

extern const FileFormat onnx{
    .name = "ONNX",
    // A ModelProto: field 1 (ir_version), a small number, then field 2 (producer_name) or 7 (graph).
    .begins =
        [](std::string_view text) {
          return text.size() >= 3 && text[0] == 0x08 && text[1] >= 1 && text[1] <= 31 &&
                 (text[2] == 0x12 || text[2] == 0x3a);
        },
    .named = [](const std::filesystem::path& path) { return has_extension(path, {".onnx"}); },
    .open = open_onnx,
    .stands_alone = true};

}  // namespace formats

}  // namespace normscope::files
