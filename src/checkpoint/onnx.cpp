#include "onnx.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <normscope/core/error.hpp>

#include "onnx_graph_reader.hpp"
#include "onnx_tensor.hpp"
#include "protobuf.hpp"

namespace normscope::checkpoint {
namespace {

void add_metadata(const bytes::StoredBytes& entry, ParsedFile& file, const std::string& where) {
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
void add_function(const bytes::StoredBytes& function, ParsedFile& file, const std::string& where,
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
bytes::StoredBytes find_graph(const bytes::StoredBytes& model, ParsedFile& file, const std::string& where,
                              OnnxFunctions& functions) {
  std::optional<bytes::StoredBytes> graph;
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

ParsedFile parse_onnx(const bytes::StoredBytes& stored, const std::string& where,
                      const OpenExternal& external) {
  ParsedFile file{Arena(static_cast<std::size_t>(std::min(stored.size(), bytes::largest_held)), where)};
  OnnxFunctions functions;
  const bytes::StoredBytes message = find_graph(stored, file, where, functions);
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
  file.graph =
      graph.link(file.tensors, static_cast<std::size_t>(std::min(message.size(), bytes::largest_held)));
  return file;
}

}  // namespace normscope::checkpoint
