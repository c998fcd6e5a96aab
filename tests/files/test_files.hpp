#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "support/files.hpp"

namespace normscope::test {

/// `header` with its length in front and `data` behind.
inline std::string safetensors_file(std::string_view header, std::string_view data = "") {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  file += data;
  return file;
}

/// A file of one F32 vector: `name` with two entries.
inline std::string one_tensor_file(const std::string& name) {
  return safetensors_file("{\"" + name + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                          std::string(8, '\0'));
}

}  // namespace normscope::test
