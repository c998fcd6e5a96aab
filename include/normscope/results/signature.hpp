#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <normscope/signature/compare.hpp>
#include <normscope/signature/extract.hpp>
#include <normscope/signature/kind.hpp>
#include <normscope/signature/verify.hpp>

namespace normscope::results {

/// The model or ellipse against which rows were tested.
struct SignatureSource {
  std::string path;
  std::string kind;  ///< "model" or "ellipse"
  std::string outputs;
  std::size_t dimension = 0;  ///< of u
  double temperature = 1.0;
};

/// Whether rows of outputs come from a model, schema "normscope.signature-verify/1"
/// (docs/schemas/signature-verify.schema.json).
[[nodiscard]] nlohmann::ordered_json signature_verify(const signature::Verification& result,
                                                      const signature::Outputs& outputs,
                                                      const SignatureSource& source);

/// The ellipse estimated from outputs, schema "normscope.signature-extract/1"
/// (docs/schemas/signature-extract.schema.json). `path` is where the ellipse is written.
[[nodiscard]] nlohmann::ordered_json signature_extract(const signature::Extraction& result,
                                                       const signature::Subspace& subspace,
                                                       const signature::Outputs& outputs,
                                                       const std::string& path);

/// The norm behind outputs, schema "normscope.signature-kind/1" (docs/schemas/signature-kind.schema.json).
[[nodiscard]] nlohmann::ordered_json signature_kind(const signature::Kind& result,
                                                    const signature::Subspace& subspace,
                                                    const signature::Outputs& outputs);

/// Two ellipses, schema "normscope.signature-compare/1" (docs/schemas/signature-compare.schema.json).
[[nodiscard]] nlohmann::ordered_json signature_compare(const signature::Comparison& result,
                                                       const std::string& one, const std::string& other);

}  // namespace normscope::results
