#include <normscope/files/source.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

namespace normscope::files {
namespace {

constexpr std::uint64_t piece = std::uint64_t{1} << 20;

class MappedSource : public Source {
 public:
  explicit MappedSource(const std::filesystem::path& path) : file_(path) {}

  [[nodiscard]] std::uint64_t size() const override { return file_.bytes().size(); }
  [[nodiscard]] std::optional<std::span<const std::byte>> memory() const override { return file_.bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::span<const std::byte> from =
        file_.bytes().subspan(static_cast<std::size_t>(offset), out.size());
    std::copy(from.begin(), from.end(), out.begin());
  }

 private:
  MappedFile file_;
};

}  // namespace

std::unique_ptr<Source> map_file(const std::filesystem::path& path) {
  return std::make_unique<MappedSource>(path);
}

StoredBytes::StoredBytes(const Source& source) : size_(source.size()) {
  if (const auto memory = source.memory()) {
    data_ = memory->data();
  } else {
    source_ = &source;
    offset_ = 0;
  }
}

StoredBytes StoredBytes::part(std::uint64_t offset, std::uint64_t size) const {
  NORMSCOPE_ASSERT(offset <= size_ && size <= size_ - offset);
  StoredBytes result = *this;
  result.size_ = size;
  if (in_memory()) {
    result.data_ += static_cast<std::size_t>(offset);
  } else {
    result.offset_ += offset;
  }
  return result;
}

std::uint64_t StoredBytes::offset_in(const StoredBytes& whole) const {
  NORMSCOPE_ASSERT(source_ == whole.source_);
  return in_memory() ? static_cast<std::uint64_t>(data_ - whole.data_) : offset_ - whole.offset_;
}

std::span<const std::byte> StoredBytes::memory() const {
  NORMSCOPE_ASSERT(in_memory());
  return {data_, static_cast<std::size_t>(size_)};
}

std::span<const std::byte> StoredBytes::fetch(std::vector<std::byte>& buffer) const {
  if (in_memory()) return memory();
  if (size_ > largest_held) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("source: {} bytes requested at once, expected at most {}", size_, largest_held));
  }
  buffer.resize(static_cast<std::size_t>(size_));
  source_->read(offset_, buffer);
  return buffer;
}

void StoredBytes::copy_to(std::span<std::byte> out) const {
  NORMSCOPE_ASSERT(out.size() == size_);
  if (in_memory()) {
    std::copy_n(data_, out.size(), out.begin());
  } else {
    source_->read(offset_, out);
  }
}

bool equal(const StoredBytes& a, const StoredBytes& b) {
  if (a.size() != b.size()) return false;
  std::vector<std::byte> left;
  std::vector<std::byte> right;
  for (std::uint64_t at = 0; at < a.size(); at += piece) {
    const std::uint64_t size = std::min(piece, a.size() - at);
    const std::span<const std::byte> x = a.part(at, size).fetch(left);
    const std::span<const std::byte> y = b.part(at, size).fetch(right);
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) return false;
  }
  return true;
}

}  // namespace normscope::files
