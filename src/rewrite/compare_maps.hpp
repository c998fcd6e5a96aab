#pragma once

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/compare.hpp>

namespace normscope::rewrite {

/// A linear map of a file with the norm that it reads.
struct MapOfFile {
  const files::Checkpoint& file;
  const models::Linear& map;
  const NormSpec& norm;
};

/// Requires  both maps have the same numbers of inputs and outputs
[[nodiscard]] ReaderComparison compare_readers(const MapOfFile& before, const MapOfFile& after);
[[nodiscard]] WriterComparison compare_writers(const MapOfFile& before, const MapOfFile& after);
/// |b - a| / |a|; |b| where a is 0, and 1 where the sizes differ.
[[nodiscard]] double relative_change(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace normscope::rewrite
