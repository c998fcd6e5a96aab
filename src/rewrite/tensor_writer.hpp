#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "matrix.hpp"
#include "output_files.hpp"

namespace normscope::rewrite {

/// Writes elements [first, first + count) of a tensor as they are.
void copy_elements(const files::Tensor& tensor, std::uint64_t first, std::uint64_t count, const Sink& sink);

/// Writes tensors of the output: their bytes in the input with the edits of a plan.
class TensorWriter {
 public:
  TensorWriter(const files::Checkpoint& checkpoint, const models::Model& model, const Plan& plan,
               unsigned threads);

  /// Writes all bytes of `tensor` to `sink`; adds to `written`.
  void write(const files::TensorHeader& tensor, const Sink& sink, Written& written);

 private:
  [[nodiscard]] double longest_input(std::size_t index) const;
  [[nodiscard]] double input_error(std::size_t index) const;
  /// What the model adds to stored entries of that gain, or bias.
  [[nodiscard]] double offset_of(std::size_t index, const models::Slice& part) const;
  [[nodiscard]] std::vector<double> divided_by_scale(std::size_t index, const models::Slice& part) const;
  void write_edit(const files::Tensor& tensor, const Edit& edit, const Sink& sink, Written& written);
  void write_vector(const files::Tensor& tensor, const Edit& edit, const Sink& sink,
                    Certificate& certificate);

  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  const Plan& plan_;
  unsigned threads_;
  std::map<std::string, std::vector<const Edit*>, std::less<>> edits_;
};

}  // namespace normscope::rewrite
