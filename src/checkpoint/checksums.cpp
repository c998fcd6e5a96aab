#include <normscope/checkpoint/checksums.hpp>

#include <filesystem>
#include <span>

#include <normscope/bytes/zip.hpp>
#include <normscope/core/file.hpp>

#include "file_format.hpp"

namespace normscope::checkpoint {

void check_sums(const Checkpoint& checkpoint) {
  if (checkpoint.format() != "pytorch") return;
  for (const std::filesystem::path& path : checkpoint.files()) {
    const MappedFile file(path);
    if (file_format(path, file.bytes()) == FileFormat::zip) {
      bytes::check_zip(file.bytes(), "checkpoint: " + path.string());
    }
  }
}

}  // namespace normscope::checkpoint
