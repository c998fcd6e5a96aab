#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/zip_files.hpp"

namespace normscope::test {

/// A pickle, written opcode by opcode.
class Pickle {
 public:
  Pickle() : text_("\x80\x02") {}

  Pickle& op(const std::string& bytes) {
    text_ += bytes;
    return *this;
  }
  Pickle& text(const std::string& value) {
    return op("X" + le(static_cast<std::uint32_t>(value.size())) + value);
  }
  Pickle& integer(std::int32_t value) { return op("J" + le(value)); }
  Pickle& integers(const std::vector<std::int32_t>& values) {
    op("(");
    for (const std::int32_t value : values) integer(value);
    return op("t");
  }
  Pickle& global(const std::string& module, const std::string& name) {
    return op("c" + module + "\n" + name + "\n");
  }
  Pickle& ordered_dict() { return global("collections", "OrderedDict").op(")R"); }
  Pickle& storage(const std::string& type, const std::string& key, std::int32_t elements) {
    return op("(").text("storage").global("torch", type).text(key).text("cpu").integer(elements).op("tQ");
  }
  /// A tensor of float32 storage `key`.
  Pickle& tensor(const std::string& key, std::int32_t stored, std::int32_t offset,
                 const std::vector<std::int32_t>& shape, const std::vector<std::int32_t>& strides) {
    global("torch._utils", "_rebuild_tensor_v2").op("(").storage("FloatStorage", key, stored).integer(offset);
    return integers(shape).integers(strides).op("\x89").ordered_dict().op("tR");
  }
  /// The opcodes that another pickle may contain.
  [[nodiscard]] std::string body() const { return text_.substr(2); }
  /// The pickle, ended by its STOP opcode.
  [[nodiscard]] std::string stop() const { return text_ + "."; }

 private:
  std::string text_;
};

/// The bytes of the float32 numbers 1, 2, 3, …
inline std::string counting(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 1; i <= count; ++i) bytes += le(static_cast<float>(i));
  return bytes;
}

/// A PyTorch zip of a pickle and storages "0", "1", ...
inline std::vector<ZipEntry> torch_members(const std::string& pickle,
                                           const std::vector<std::string>& storages) {
  std::vector<ZipEntry> members{ZipEntry(pickle, "m/data.pkl")};
  for (std::size_t i = 0; i < storages.size(); ++i) {
    members.emplace_back(storages[i], "m/data/" + std::to_string(i));
  }
  return members;
}

/// A file as torch.save wrote it before 1.6, of a pickle and storages "0", "1", ... of floats.
inline std::string legacy_torch_file(const std::string& pickle, const std::vector<std::string>& storages,
                                     bool is_little_endian = true) {
  std::string file("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  file += Pickle().integer(1001).stop();
  file += Pickle().op("}").text("little_endian").op(is_little_endian ? "\x88" : "\x89").op("s").stop();
  file += pickle;
  Pickle keys;
  keys.op("]");
  std::string data;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    keys.text(std::to_string(i)).op("a");
    data += le(static_cast<std::uint64_t>(storages[i].size() / sizeof(float))) + storages[i];
  }
  return file + keys.stop() + data;
}

}  // namespace normscope::test
