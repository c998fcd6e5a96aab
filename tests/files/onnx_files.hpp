#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/files/checkpoint.hpp>

#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::test {

/// A protocol buffer message, written field by field.
class Proto {
 public:
  Proto& integer(std::uint64_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Proto& bytes(std::uint64_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Proto& message(std::uint64_t field, const Proto& value) { return bytes(field, value.text_); }
  Proto& real(std::uint64_t field, float value) {
    varint(field << 3 | 5);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Proto& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

enum OnnxType : std::uint64_t { onnx_float = 1, onnx_int64 = 7, onnx_string = 8, onnx_float16 = 10 };

template <typename Number>
std::string raw(const std::vector<Number>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)};
}

/// A TensorProto without data.
inline Proto tensor_proto(const std::string& name, std::uint64_t type,
                          const std::vector<std::uint64_t>& shape) {
  Proto tensor;
  for (const std::uint64_t extent : shape) tensor.integer(1, extent);
  return tensor.integer(2, type).bytes(8, name);
}

/// Attributes of a node.
inline Proto integer_attribute(const std::string& name, std::int64_t value) {
  return Proto().bytes(1, name).integer(3, static_cast<std::uint64_t>(value));
}
inline Proto real_attribute(const std::string& name, float value) {
  return Proto().bytes(1, name).real(2, value);
}
inline Proto axes_attribute(std::int64_t axis) {
  return Proto().bytes(1, "axes").integer(8, static_cast<std::uint64_t>(axis));
}
/// The type of a Cast: floats unless a number of ONNX's list of types is given.
inline Proto to(std::int64_t type = onnx_float) { return integer_attribute("to", type); }

/// An ONNX model, written node by node. The names of values and nodes are the test's own.
class OnnxFile {
 public:
  OnnxFile& initializer(const Proto& tensor) {
    graph_.message(5, tensor);
    return *this;
  }
  /// A float tensor with the elements 1/8, 2/8, 3/8, …
  OnnxFile& weights(const std::string& name, const std::vector<std::uint64_t>& shape) {
    std::size_t elements = 1;
    for (const std::uint64_t extent : shape) elements *= extent;
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i + 1) / 8;
    return initializer(tensor_proto(name, onnx_float, shape).bytes(9, raw(values)));
  }
  OnnxFile& scalar(const std::string& name, float value) {
    return initializer(tensor_proto(name, onnx_float, {}).bytes(9, raw(std::vector<float>{value})));
  }
  OnnxFile& axes(const std::string& name, const std::vector<std::int64_t>& axes) {
    return initializer(tensor_proto(name, onnx_int64, {axes.size()}).bytes(9, raw(axes)));
  }
  /// An input of those extents; 0 stands for one that is not fixed.
  OnnxFile& input(const std::string& name, const std::vector<std::uint64_t>& extents) {
    graph_.message(11, value_info(name, extents));
    return *this;
  }
  /// A value of those extents.
  OnnxFile& value(const std::string& name, const std::vector<std::uint64_t>& extents) {
    graph_.message(13, value_info(name, extents));
    return *this;
  }
  /// A function of the file.
  OnnxFile& function(const std::string& domain, const std::string& name) {
    functions_.message(25, Proto().bytes(1, name).bytes(10, domain));
    return *this;
  }
  OnnxFile& node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::vector<Proto>& attributes = {}, const std::string& domain = "") {
    Proto node;
    for (const std::string& input : inputs) node.bytes(1, input);
    node.bytes(2, output).bytes(3, "node/" + output).bytes(4, op);
    for (const Proto& attribute : attributes) node.message(5, attribute);
    if (!domain.empty()) node.bytes(7, domain);
    graph_.message(1, node);
    return *this;
  }
  [[nodiscard]] std::string text() const {
    return Proto().integer(1, 8).bytes(2, "test").message(7, graph_).text() + functions_.text();
  }

 private:
  static Proto value_info(const std::string& name, const std::vector<std::uint64_t>& extents) {
    Proto shape;
    for (const std::uint64_t extent : extents) {
      shape.message(1, extent == 0 ? Proto().bytes(2, "batch") : Proto().integer(1, extent));
    }
    const Proto tensor = Proto().integer(1, onnx_float).message(2, shape);
    return Proto().bytes(1, name).message(2, Proto().message(1, tensor));
  }

  Proto graph_;
  Proto functions_;
};

/// The model, whose mapping outlives the file's name.
inline files::Checkpoint open(const OnnxFile& file) {
  const Scratch scratch;
  put(scratch / "m.onnx", file.text());
  return files::Checkpoint(scratch / "m.onnx");
}

/// Adds "out" = LayerNorm of "x" as PyTorch's exporter writes it, with parameters of that shape.
inline OnnxFile& add_written_out_norm(OnnxFile& file, const std::vector<std::uint64_t>& shape,
                                      std::int64_t axis) {
  return file.weights("h.0.ln.weight", shape)
      .weights("h.0.ln.bias", shape)
      .scalar("two", 2)
      .scalar("eps", 1e-6f)
      .node("ReduceMean", {"x"}, "mean", {axes_attribute(axis)})
      .node("Sub", {"x", "mean"}, "centered")
      .node("Pow", {"centered", "two"}, "squares")
      .node("ReduceMean", {"squares"}, "variance", {axes_attribute(axis)})
      .node("Add", {"variance", "eps"}, "padded")
      .node("Sqrt", {"padded"}, "deviation")
      .node("Div", {"centered", "deviation"}, "normalized")
      .node("Mul", {"normalized", "h.0.ln.weight"}, "scaled")
      .node("Add", {"scaled", "h.0.ln.bias"}, "out");
}

}  // namespace normscope::test
