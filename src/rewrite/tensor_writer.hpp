#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/model/model.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "matrix.hpp"

namespace normscope::rewrite {

/// Writes tensors of the output: their bytes in the input with the edits of a plan.
class TensorWriter {
 public:
  TensorWriter(const checkpoint::Checkpoint& checkpoint, const model::Model& model, const Plan& plan,
               unsigned threads);

  /// Writes all bytes of `tensor` to `sink`; adds to `certificates`.
  void write(const checkpoint::TensorHeader& tensor, const Sink& sink,
             std::vector<Certificate>& certificates);

 private:
  [[nodiscard]] double longest_input(std::size_t index) const;
  void copy(const checkpoint::Tensor& tensor, std::uint64_t first, std::uint64_t count,
            const Sink& sink) const;
  void write_edit(const checkpoint::Tensor& tensor, const Edit& edit, const Sink& sink,
                  std::vector<Certificate>& certificates);
  void write_vector(const checkpoint::Tensor& tensor, const Edit& edit, const Sink& sink,
                    Certificate& certificate);

  const checkpoint::Checkpoint& checkpoint_;
  const model::Model& model_;
  const Plan& plan_;
  unsigned threads_;
  std::map<std::string, std::vector<const Edit*>, std::less<>> edits_;
};

}  // namespace normscope::rewrite
