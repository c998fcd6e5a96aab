#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <normscope/models/model.hpp>

/// The order in which a model's norms, heads and maps compute, and what lies between them.
namespace normscope::forward {

/// The maps of an MLP.
struct Mlp {
  const models::Linear* gate = nullptr;
  const models::Linear* in = nullptr;
  const models::Linear* out = nullptr;
};

/// A mixture of experts.
struct Experts {
  const models::Linear* router = nullptr;
  const models::Linear* correction = nullptr;   ///< of its scores, to choose experts
  std::vector<Mlp> mlps{};                      ///< one for each output of the router
  std::optional<Mlp> shared{};                  ///< which every token passes
  const models::Linear* shared_gate = nullptr;  ///< its output's factor is a sigmoid of this
};

/// What attention or an MLP computes from the output of one norm, or from the stream, and adds to the stream.
struct Branch {
  std::optional<std::size_t> norm{};  ///< index of the norm that it reads; empty: it reads the stream itself
  std::vector<std::size_t> heads{};   ///< of attention; empty for an MLP
  Mlp mlp{};                          ///< of attention: its output map alone
  Experts experts{};                  ///< in place of the MLP if there is a router
  const models::Norm* after = nullptr;  ///< the norm of its output, if there is one

  /// Whether it adds numbers that do not depend on its input.
  [[nodiscard]] bool has_bias() const {
    return (mlp.out != nullptr && mlp.out->bias) || (after != nullptr && after->bias);
  }
  /// Addends of the stream that are told apart.
  [[nodiscard]] std::size_t components() const {
    return (heads.empty() ? 1 : heads.size()) + (has_bias() ? 1 : 0);
  }
};

/// A norm, and the branches that are added to the stream before it reads the stream. Those that read the
/// stream itself read it one after the other.
struct Step {
  std::size_t norm = 0;
  std::vector<Branch> before{};
  bool becomes_stream = false;  ///< whether its output is the stream from here on (a norm behind a sum)
  /// The map of the last norm whose activation it reads in place of the stream (BERT's language head).
  const models::Linear* transform = nullptr;
};

struct Plan {
  const models::Linear* tokens = nullptr;     ///< the token embedding
  const models::Linear* positions = nullptr;  ///< the position embedding, if there is one
  const models::Linear* types = nullptr;      ///< the embedding of token types, all tokens being of the first
  std::vector<Step> steps{};                  ///< the last one is the final norm's
};

/// The order of a decoder's computations. Refers to `model`.
///
/// Errors    Unsupported, "not modelled: …", unless it is complete; for an encoder unless `encoders`
[[nodiscard]] Plan plan_of(const models::Model& model, bool encoders);

}  // namespace normscope::forward
