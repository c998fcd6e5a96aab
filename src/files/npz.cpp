#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/source.hpp>

#include "npy.hpp"
#include "readers.hpp"

namespace normscope::files {

namespace {

/// The header in front of `stream`, which then stands at the elements.
NpyHeader take_header(ZipStream& stream, const ZipMember& member, const std::string& zip_where) {
  const std::string where = fmt::format("{}: member {}", zip_where, quote(member.name));
  std::vector<std::byte> before_data(std::min<std::uint64_t>(member.size, npy_prefix));
  stream.read(before_data);
  const std::size_t begin = npy_data_begin(before_data, where);
  if (begin > member.size) {
    throw Error(ErrorCode::Format,
                fmt::format("{}: header ends at byte {}, member has {}", where, begin, member.size));
  }
  before_data.resize(begin);
  stream.read(std::span(before_data).subspan(npy_prefix));
  NpyHeader header = parse_npy_header(before_data, where);
  check_data_size(header, member.size - begin, where);
  return header;
}

}  // namespace

NpyHeader read_npz_header(std::span<const std::byte> bytes, const ZipMember& member,
                          const std::string& where) {
  ZipStream stream(bytes, member, where);
  return take_header(stream, member, where);
}

std::vector<std::byte> read_npz_data(std::span<const std::byte> bytes, const ZipMember& member,
                                     const std::string& where) {
  ZipStream stream(bytes, member, where);
  const NpyHeader header = take_header(stream, member, where);
  if (header.data_bytes() > most_unpacked(member.packed_size)) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: member {}: unpacks to {} bytes from {}, more than the {} that are unpacked; "
                            "store it uncompressed",
                            where, quote(member.name), header.data_bytes(), member.packed_size,
                            most_unpacked(member.packed_size)));
  }
  std::vector<std::byte> data(header.data_bytes());
  stream.read(data);
  stream.finish();
  return data;
}

namespace {

/// The most recently unpacked pieces of one file, by their position in the file: at most 32 MiB together, or
/// one larger piece. Thread-safe.
class UnpackedCache {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  /// The bytes at that place, or null.
  [[nodiscard]] Bytes find(std::uint64_t place) const {
    const std::lock_guard lock(mutex_);
    const auto found = pieces_.find(place);
    return found == pieces_.end() ? nullptr : found->second;
  }

  void keep(std::uint64_t place, const Bytes& bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t added = bytes->size();
    if (size_ + added > most_kept) {
      pieces_.clear();
      size_ = 0;
    }
    if (pieces_.try_emplace(place, bytes).second) size_ += added;
  }

 private:
  static constexpr std::size_t most_kept = std::size_t{32} << 20;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Bytes> pieces_;
  std::size_t size_ = 0;
};

constexpr std::string_view npy_ending = ".npy";

/// The elements of an array that is unpacked as a whole.
class UnpackedArray : public Source {
 public:
  UnpackedArray(StoredArray::Fetch fetch, std::uint64_t size, std::uint64_t place,
                std::shared_ptr<UnpackedCache> cache)
      : fetch_(std::move(fetch)), size_(size), place_(place), cache_(std::move(cache)) {}

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    UnpackedCache::Bytes elements = cache_->find(place_);
    if (!elements) {
      std::vector<std::byte> buffer;
      if (const std::span<const std::byte> found = fetch_(buffer); found.data() != buffer.data()) {
        buffer.assign(found.begin(), found.end());
      }
      elements = std::make_shared<const std::vector<std::byte>>(std::move(buffer));
      cache_->keep(place_, elements);
    }
    NORMSCOPE_ASSERT(elements->size() == size_ && offset <= size_ && out.size() <= size_ - offset);
    if (!out.empty()) std::memcpy(out.data(), elements->data() + offset, out.size());
  }

 private:
  StoredArray::Fetch fetch_;
  std::uint64_t size_;
  std::uint64_t place_;
  std::shared_ptr<UnpackedCache> cache_;
};

/// Memory of a view, with what its function keeps.
constexpr std::size_t npz_view_bytes = sizeof(UnpackedArray) + 512;

}  // namespace

bool is_npz(std::span<const ZipMember> members) {
  return !members.empty() && std::all_of(members.begin(), members.end(), [](const ZipMember& member) {
    return member.name.ends_with(npy_ending);
  });
}

ParsedFile parse_npz(std::span<const std::byte> bytes, std::span<const ZipMember> members,
                     const std::string& where) {
  ParsedFile parsed{Arena(bytes.size(), where)};
  const auto cache = std::make_shared<UnpackedCache>();
  for (const ZipMember& member : members) {
    StoredArray array = open_npz_member(bytes, member, where);
    const std::span<std::uint64_t> shape = parsed.arena.allocate<std::uint64_t>(array.shape.size());
    std::copy(array.shape.begin(), array.shape.end(), shape.begin());
    parsed.arena.charge(growth, sizeof(Tensor));
    Tensor tensor{
        member.name.substr(0, member.name.size() - npy_ending.size()), array.dtype, shape, {}, nullptr};
    if (array.in_place) {
      tensor.bytes = StoredBytes(*array.in_place);
    } else {
      // The size of the member has been checked against this product.
      const std::uint64_t size = tensor.elements() * (bits(tensor.dtype) / 8);
      parsed.arena.charge(1, npz_view_bytes + 16 * shape.size() + where.size());
      parsed.views.push_back(
          std::make_unique<UnpackedArray>(std::move(array.fetch), size, member.local_header, cache));
      tensor.bytes = StoredBytes(*parsed.views.back());
    }
    parsed.tensors.push_back(tensor);
  }
  sort_tensors(parsed.tensors, where + ":");
  return parsed;
}

}  // namespace normscope::files
