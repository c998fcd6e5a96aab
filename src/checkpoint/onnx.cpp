#include "onnx.hpp"

#include <optional>

#include <normscope/core/error.hpp>

#include "onnx_graph_reader.hpp"
#include "onnx_tensor.hpp"
#include "protobuf.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;

void add_metadata(Bytes entry, ParsedFile& file, const std::string& where) {
  std::string_view key;
  std::string_view value;
  WireReader reader(entry, "StringStringEntryProto", where);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->number == 1) key = reader.text(*field);
    if (field->number == 2) value = reader.text(*field);
  }
  file.arena.charge(1, metadata_entry_bytes + key.size() + value.size());
  file.metadata.try_emplace(std::string(key), value);
}

/// Finds the graph's bytes and collects metadata.
Bytes find_graph(Bytes model, ParsedFile& file, const std::string& where) {
  std::optional<Bytes> graph;
  WireReader reader(model, "ModelProto", where);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->number == 14) add_metadata(reader.bytes(*field), file, where);
    if (field->number != 7) continue;
    if (graph) throw Error(ErrorCode::Format, where + ": has two graphs, expected one");
    graph = reader.bytes(*field);
  }
  if (!graph) throw Error(ErrorCode::Format, where + ": has no graph");
  return *graph;
}

}  // namespace

ParsedFile parse_onnx(Bytes bytes, const std::string& where, const OpenExternal& external) {
  ParsedFile file{Arena(bytes.size(), where)};
  const Bytes message = find_graph(bytes, file, where);
  OnnxGraphReader graph(file.arena, where);
  WireReader reader(message, "GraphProto", where);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->number == 1) graph.add_node(reader.bytes(*field), file.tensors);
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
  file.graph = graph.link(file.tensors, message.size());
  return file;
}

}  // namespace normscope::checkpoint
