#include "keras.hpp"

#include <algorithm>
#include <string_view>

#include "hdf5.hpp"

namespace normscope::checkpoint {
namespace {

const bytes::ZipMember* find_keras_member(std::span<const bytes::ZipMember> members, std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [name](const bytes::ZipMember& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

constexpr std::string_view keras_weights = "model.weights.h5";

}  // namespace

bool is_keras_zip(std::span<const bytes::ZipMember> members) {
  return find_keras_member(members, keras_weights) != nullptr;
}

ParsedFile parse_keras_zip(std::span<const std::byte> bytes, std::span<const bytes::ZipMember> members,
                           const std::string& where) {
  ParsedFile parsed = parse_hdf5(
      bytes::stored_member(bytes, *find_keras_member(members, keras_weights), where).memory(), where);
  if (const bytes::ZipMember* config = find_keras_member(members, "config.json")) {
    const std::span<const std::byte> text = bytes::stored_member(bytes, *config, where).memory();
    parsed.arena.charge(1, metadata_entry_bytes + text.size());
    parsed.metadata.insert_or_assign("model_config",
                                     std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  }
  return parsed;
}

}  // namespace normscope::checkpoint
