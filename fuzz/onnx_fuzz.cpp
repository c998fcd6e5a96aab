#include <span>

#include <normscope/core/error.hpp>

#include "files/readers.hpp"
#include "fuzz_target.hpp"
#include "models/found_norms.hpp"

using namespace normscope;

namespace {

/// A field of bytes; `content` is shorter than 128.
std::string field(char key, const std::string& content) {
  return key + std::string(1, static_cast<char>(content.size())) + content;
}

std::string node(const std::string& op, const std::string& inputs, const std::string& output,
                 const std::string& attributes = "") {
  std::string fields;
  for (const char input : inputs) fields += field('\x0a', std::string(1, input));
  return field('\x0a', fields + field('\x12', output) + field('\x22', op) + attributes);
}

std::string onnx_file(const std::string& graph) {
  std::string length(1, static_cast<char>((graph.size() & 0x7f) | 0x80));
  length += static_cast<char>(graph.size() >> 7);
  return "\x08\x08\x3a" + length + graph;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string other(64, 'x');
    const files::OpenExternal open = [&other](std::string_view, const std::string& name) {
      fuzz_require(!name.empty() && name != ".." && name.find('/') == std::string::npos);
      return files::StoredBytes(std::as_bytes(std::span(other)));
    };
    const files::ParsedFile file = files::parse_onnx(std::as_bytes(std::span(data, size)), "fuzz", open);
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const files::Tensor& tensor = file.tensors[i];
      fuzz_require(i == 0 || file.tensors[i - 1].name < tensor.name);
      fuzz_require(tensor.elements() * bits(tensor.dtype) == tensor.bytes.size() * 8);
      if (is_decodable(tensor.dtype)) fuzz_require(read(tensor).size() == tensor.elements());
    }
    const models::StatedNorms stated = models::find_onnx_norms(*file.graph, "fuzz");
    for (const models::StatedNorm& norm : stated.norms) {
      fuzz_require(norm.width > 0 && norm.eps >= 0.0 && norm.axis < 0);
    }
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string gain = field('\x2a', "\x08\2\x10\1\x42\1g\x4a\x08" + std::string(8, '1'));
  const std::string eps = field('\x2a', "\x10\1\x42\1e\x22\4\0\0\0\x3f"s);
  const std::string two = field('\x2a', "\x10\1\x42\1t\x4a\4\0\0\0\x40"s);
  const std::string axis = field('\x2a', field('\x0a', "axes") + "\x40\1");
  const std::string epsilon = field('\x2a', field('\x0a', "epsilon") + "\x15\0\0\0\x3f"s);
  const std::string value = field('\x2a', field('\x0a', "value") + field('\x2a', "\x08\3\x10\7\x3a\3\1\2\3"));
  return {
      onnx_file(gain + node("LayerNormalization", "xgg", "y", epsilon) + node("MatMul", "yw", "z") +
                field('\x2a', "\x08\2\x08\1\x10\1\x42\1w\x4a\x08" + std::string(8, '1'))),
      onnx_file(gain + eps + two + node("ReduceMean", "x", "m", axis) + node("Sub", "xm", "c") +
                node("Pow", "ct", "s") + node("ReduceMean", "s", "v", axis) + node("Add", "ve", "p") +
                node("Sqrt", "p", "r") + node("Div", "cr", "n") + node("Mul", "ng", "o") +
                node("Add", "og", "b")),
      onnx_file(gain + eps + node("Mul", "xx", "s") + node("ReduceSum", "sa", "q") + node("Mul", "qe", "m") +
                node("Add", "me", "p") + node("Sqrt", "p", "r") + node("Reciprocal", "r", "i") +
                node("Mul", "ig", "f") + node("Mul", "xf", "o") +
                field('\x2a', "\x08\1\x10\7\x42\1a\x3a\1\1")),
      onnx_file(field('\x2a', "\x08\2\x10\1\x42\1o" +
                                  field('\x6a', field('\x0a', "location") + field('\x12', "data")) +
                                  field('\x6a', field('\x0a', "length") + field('\x12', "8")) + "\x70\1")),
      // An input of extents, a norm that reads it, reshapes and a map, and a function.
      onnx_file(
          gain + field('\x5a', "\x0a\1x\x12\x0c\x0a\x0a\x08\1\x12\6\x0a\2\x08\3\x0a\0"s) +
          field('\x2a', "\x08\2\x10\7\x42\1s\x3a\2\2\1") +
          node("LayerNormalization", "xgg", "y", epsilon + field('\x2a', field('\x0a', "axis") + "\x18\1")) +
          node("Reshape", "ys", "z") + node("Transpose", "w", "t") + node("Gemm", "ztg", "o", epsilon)) +
          "\xca\x01\6\x0a\4Gelu",
      onnx_file(node("Constant", "", "c", value) + field('\x2a', "\x08\2\x10\x0a\x42\1h\x28\x80\x78\x28\0"s)),
  };
}
