#include <normscope/results/documents.hpp>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <normscope/files/checkpoint.hpp>

#include "model.hpp"

namespace normscope::results {

/// A tensor of a checkpoint.
struct InspectedTensor {
  std::string name{};
  std::string dtype{};
  std::vector<std::uint64_t> shape{};
  std::uint64_t bytes = 0;
  std::string file{};
};

template <class V>
void fields(V& v, const InspectedTensor& tensor) {
  v("name", tensor.name);
  v("dtype", tensor.dtype);
  v("shape", tensor.shape);
  v("bytes", tensor.bytes);
  v("file", tensor.file, "the file that holds it");
}

template <class V>
void fields(V& v, const models::Norm& norm) {
  add_identity(v, norm);
  v("gain", slice_or_null(norm.gain));
  v("bias", slice_or_null(norm.bias));
  add_connections(v, norm);
  v.maybe(!norm.reasons.empty(), "reasons", norm.reasons,
          "of a graph: the operator, or the identity with its nodes, and the constants");
}

template <class V>
void fields(V& v, const models::NearMiss& miss) {
  v("node", miss.node, "operator and name of what takes the root");
  v("why", miss.why);
}

struct InspectionFields {
  std::string path;
  std::string format;
  const std::map<std::string, std::string, std::less<>>& metadata;
  std::vector<InspectedTensor> tensors;
  const models::Model& model;
};

template <class V>
void fields(V& v, const InspectionFields& x) {
  begin(v, "inspect");
  v("path", x.path);
  v("format", x.format);
  v("metadata", by_name(x.metadata));
  v("tensors", x.tensors);
  v("architecture", object([&](auto& architecture) { add_model(architecture, x.model); }));
  v("norms", x.model.norms);
  v.maybe(!x.model.near_misses.empty(), "near_misses", x.model.near_misses,
          "of a graph: divisions by the root of a sum or mean that are no norm, and why");
}

Json inspection(const files::Checkpoint& checkpoint, const models::Model& model) {
  std::vector<InspectedTensor> tensors;
  for (const files::Tensor& tensor : checkpoint.tensors()) {
    tensors.push_back({std::string(tensor.name),
                       std::string(tensor.stored_type()),
                       {tensor.shape.begin(), tensor.shape.end()},
                       tensor.stored_bytes(),
                       checkpoint.file_of(tensor).filename().string()});
  }
  return json_of(InspectionFields{checkpoint.path().string(), std::string(checkpoint.format()),
                                  checkpoint.metadata(), std::move(tensors), model});
}
Json describe_inspect(SchemaMaker& maker) { return maker.schema_of(InspectionFields{{}, {}, {}, {}, {}}); }

}  // namespace normscope::results
