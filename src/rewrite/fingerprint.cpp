#include "fingerprint.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <normscope/core/file.hpp>

namespace normscope::rewrite {
namespace {

template <std::size_t count>
void mix(std::array<std::uint64_t, count>& lanes, const std::byte* bytes) {
  std::array<std::uint64_t, count> words{};
  std::memcpy(words.data(), bytes, sizeof words);
  for (std::size_t lane = 0; lane < count; ++lane) {
    const std::uint64_t mixed = (lanes[lane] ^ words[lane]) * 0x9e3779b97f4a7c15U;
    lanes[lane] = mixed ^ (mixed >> 29U);
  }
}

}  // namespace

void Fingerprint::add(std::span<const std::byte> bytes) {
  const std::size_t held = size_ % sizeof(Words);
  size_ += bytes.size();
  if (held > 0) {
    const std::size_t taken = std::min(bytes.size(), sizeof(Words) - held);
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < sizeof(Words)) return;
    mix(mixed_, rest_.data());
  }
  for (; bytes.size() >= sizeof(Words); bytes = bytes.subspan(sizeof(Words))) mix(mixed_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

std::uint64_t Fingerprint::value() const {
  Words mixed = mixed_;
  if (const std::size_t held = size_ % sizeof(Words); held > 0) {
    std::array<std::byte, sizeof(Words)> padded{};
    std::copy_n(rest_.begin(), held, padded.begin());
    mix(mixed, padded.data());
  }
  std::uint64_t result = size_;
  for (const std::uint64_t lane : mixed) result = (result ^ lane) * 0xbf58476d1ce4e5b9U;
  return result;
}

std::uint64_t fingerprint_of(const std::filesystem::path& path) {
  const RangedFile file(path);
  std::vector<std::byte> piece(std::size_t{1} << 20U);
  Fingerprint result;
  for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
    const std::span<std::byte> part = std::span(piece).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.size() - at)));
    file.read(at, part);
    result.add(part);
  }
  return result.value();
}

}  // namespace normscope::rewrite
