// Included once per instruction set: loads elements into vectors and stores them.

#if defined(NORMSCOPE_NORM_ELEMENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_NORM_ELEMENTS_INL
#undef NORMSCOPE_NORM_ELEMENTS_INL
#else
#define NORMSCOPE_NORM_ELEMENTS_INL
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include "kernel_jobs.hpp"

// A lambda that captures vectors must be inlined into the loop that calls it.
#define NORMSCOPE_IN_PLACE __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace normscope::norm::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Halves = hn::Rebind<std::uint16_t, D>;

#undef NORMSCOPE_ROUNDS_BFLOAT16
#if HWY_TARGET == HWY_AVX3 && HWY_COMPILER_GCC_ACTUAL + HWY_COMPILER_CLANG > 0
#define NORMSCOPE_ROUNDS_BFLOAT16 1
/// A bfloat16 for processors that round to it in hardware, which Highway does not support yet. Results below
/// the normal range become zero.
struct FastBfloat16 : Bfloat16 {};

/// Whether the processor does, for blocks of whole vectors.
HWY_INLINE bool RoundsBfloat16(const Layer<Bfloat16>& layer) {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has && layer.width / layer.groups >= hn::Lanes(hn::ScalableTag<float>());
}

HWY_INLINE auto ToBits(hn::ScalableTag<float> /*d*/, hn::Vec<hn::ScalableTag<float>> v,
                       FastBfloat16 /*type*/) {
  __m256i bits;
  asm("vcvtneps2bf16 %1, %0" : "=v"(bits) : "v"(v.raw));
  return hn::Vec<Halves<hn::ScalableTag<float>>>{bits};
}

inline MatrixView<FastBfloat16> Fast(MatrixView<Bfloat16> matrix) {
  return {reinterpret_cast<FastBfloat16*>(matrix.data()), matrix.rows(), matrix.width(), matrix.stride()};
}
inline MatrixView<const FastBfloat16> Fast(MatrixView<const Bfloat16> matrix) {
  return {reinterpret_cast<const FastBfloat16*>(matrix.data()), matrix.rows(), matrix.width(),
          matrix.stride()};
}
#else
#define NORMSCOPE_ROUNDS_BFLOAT16 0
#endif

/// The type of what is stored as T.
template <typename T>
using Stored = std::conditional_t<std::is_base_of_v<Bfloat16, T>, Bfloat16, T>;

template <class D>
HWY_INLINE hn::Vec<D> FromBits(D d, hn::Vec<Halves<D>> bits, Bfloat16 /*type*/) {
  const hn::RebindToUnsigned<D> words;
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(d) == 16) {
    // Lane 2i + 1 gets entry i, and lane 2i zero: one instruction instead of two.
    const hn::ScalableTag<std::uint16_t> all;
    const auto entry = hn::ShiftRight<1>(hn::Iota(all, 0));
    const __m512i spread =
        _mm512_maskz_permutexvar_epi16(0xAAAAAAAAU, entry.raw, _mm512_castsi256_si512(bits.raw));
    return hn::BitCast(d, hn::Vec<decltype(words)>{spread});
  }
#endif
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}

template <class D>
HWY_INLINE hn::Vec<D> FromBits(D d, hn::Vec<Halves<D>> bits, Float16 /*type*/) {
#if HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
#else
  const hn::RebindToUnsigned<D> words;
  const auto wide = hn::PromoteTo(words, bits);
  const auto size = hn::ShiftLeft<13>(hn::And(wide, hn::Set(words, 0x7FFFU)));
  // Correct for subnormals as well, because the product is exact.
  const auto number = hn::BitCast(words, hn::Mul(hn::BitCast(d, size), hn::Set(d, 0x1p112F)));
  const auto beyond = hn::Ge(hn::BitCast(d, size), hn::BitCast(d, hn::Set(words, 0x0F800000U)));
  const auto infinite = hn::IfThenElseZero(hn::RebindMask(words, beyond), hn::Set(words, 0x7F800000U));
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(words, 0x8000U)));
  return hn::BitCast(d, hn::Or(hn::Or(number, infinite), sign));
#endif
}

template <class D>
HWY_INLINE hn::Vec<Halves<D>> Narrow(D /*d*/, hn::Vec<hn::RebindToUnsigned<D>> words) {
  return hn::DemoteTo(Halves<D>(), hn::BitCast(hn::RebindToSigned<D>(), words));
}

/// The upper half of each word, rounded to nearest, ties to even.
template <class D>
HWY_INLINE hn::Vec<Halves<D>> ToBits(D d, hn::Vec<D> v, Bfloat16 /*type*/) {
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::BitCast(words, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1U));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(words, 0x7FFFU)), odd);
  const auto quiet = hn::Or(bits, hn::Set(words, 0x00400000U));
  const auto number = hn::RebindMask(words, hn::Eq(v, v));
  return Narrow(d, hn::ShiftRight<16>(hn::IfThenElse(number, rounded, quiet)));
}

template <class D>
HWY_INLINE hn::Vec<Halves<D>> ToBits(D d, hn::Vec<D> v, Float16 /*type*/) {
#if HWY_TARGET <= HWY_AVX2
  return hn::BitCast(Halves<D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
#else
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::BitCast(words, v);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 0x8000U));
  const auto size = hn::Abs(v);
  const auto size_bits = hn::BitCast(words, size);
  const auto odd = hn::And(hn::ShiftRight<13>(size_bits), hn::Set(words, 1U));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Add(size_bits, hn::Set(words, 0xC8000FFFU)), odd));  // 15 − 127 << 23
  // An addition that leaves only the subnormal's bits rounds correctly.
  const auto below =
      hn::Sub(hn::BitCast(words, hn::Add(size, hn::Set(d, 0.5F))), hn::Set(words, 0x3F000000U));
  const auto is = [&](auto mask) NORMSCOPE_IN_PLACE { return hn::RebindMask(words, mask); };
  auto half = hn::IfThenElse(is(hn::Lt(size, hn::Set(d, 0x1p-14F))), below, normal);
  half = hn::IfThenElse(is(hn::Ge(size, hn::Set(d, 65520.0F))), hn::Set(words, 0x7C00U), half);
  half = hn::IfThenElse(is(hn::Eq(v, v)), half, hn::Set(words, 0x7E00U));
  return Narrow(d, hn::Or(half, sign));
#endif
}

template <class D, typename T>
HWY_INLINE hn::Vec<D> Read(D d, const T* from) {
  if constexpr (std::is_floating_point_v<T>) {
    return hn::LoadU(d, from);
  } else {
    return FromBits(d, hn::LoadU(Halves<D>(), &from->bits), T{});
  }
}

template <class D, typename T>
HWY_INLINE void Write(D d, hn::Vec<D> v, T* to) {
  if constexpr (std::is_floating_point_v<T>) {
    hn::StoreU(v, d, to);
  } else {
    hn::StoreU(ToBits(d, v, T{}), Halves<D>(), &to->bits);
  }
}

/// Requires  `to` aligned to the vector as stored, which fills whole lines
template <class D, typename T>
HWY_INLINE void WriteThrough(D d, hn::Vec<D> v, T* to) {
  if constexpr (std::is_floating_point_v<T>) {
    hn::Stream(v, d, to);
  } else {
    hn::Stream(ToBits(d, v, T{}), Halves<D>(), &to->bits);
  }
}

/// Whether the instruction set can read and write part of a vector of T without touching memory beyond it.
template <typename T>
inline constexpr bool has_parts = HWY_TARGET <= HWY_AVX3 ||
                                  (HWY_TARGET <= HWY_AVX2 && std::is_floating_point_v<T>);

/// The first `count` lanes, fewer than all; the others are zero, and nothing beyond is read.
template <class D, typename T>
HWY_INLINE hn::Vec<D> ReadSome(D d, const T* from, std::size_t count) {
  if constexpr (!has_parts<T>) {
    T lanes[hn::MaxLanes(d)] = {};
    std::memcpy(lanes, from, count * sizeof(T));
    return Read(d, lanes);
  } else if constexpr (std::is_floating_point_v<T>) {
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
  } else {
    const Halves<D> halves;
    return FromBits(d, hn::MaskedLoad(hn::FirstN(halves, count), halves, &from->bits), T{});
  }
}

template <class D, typename T>
HWY_INLINE void WriteSome(D d, hn::Vec<D> v, T* to, std::size_t count) {
  if constexpr (!has_parts<T>) {
    T lanes[hn::MaxLanes(d)];
    Write(d, v, lanes);
    std::memcpy(to, lanes, count * sizeof(T));
  } else if constexpr (std::is_floating_point_v<T>) {
    hn::BlendedStore(v, hn::FirstN(d, count), d, to);
  } else {
    const Halves<D> halves;
    hn::BlendedStore(ToBits(d, v, T{}), hn::FirstN(halves, count), halves, &to->bits);
  }
}

/// Rows with fewer bytes are faster with stores through the caches and without prefetching.
inline constexpr std::size_t least_streamed = 512;

/// That width for blocks that share their first and last cache lines with their neighbours: a line written
/// both ways is slow.
inline constexpr std::size_t least_streamed_apart = 1536;

/// Number of rows, `stride` entries apart, to process together: fewer if the lines of one column map to the
/// same set of the first-level cache, which cannot hold those of four rows.
template <typename T>
std::size_t RowsTogether(std::size_t stride) {
  return stride * sizeof(T) % 4096 == 0 ? 2 : 4;
}

/// Order of access to a row's vectors if its matrix exceeds a core's cache: later vectors are prefetched into
/// the second-level cache, and stores may bypass the caches.
template <bool fetches, bool streams>
struct Way {
  static constexpr bool fetch = fetches;
  static constexpr bool stream = streams;
};

/// Prefetches the line of `at[i]` at the first vector of `lanes` entries in each line.
template <typename T>
HWY_INLINE void Fetch(const T* at, std::size_t i, std::size_t lanes) {
  if (i * sizeof(T) % 64 < lanes * sizeof(T)) __builtin_prefetch(at + i, 0, 2);
}

/// Bytes of a cache line, and of a row's results that are computed before they are stored past the caches.
inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t tile_bytes = 1024;

/// Whether two rows are a multiple of 4 KB apart, but for less than a line, so that their columns fall into
/// the same sets of the first-level cache.
template <typename T>
HWY_INLINE bool SameSets(const T* a, const T* b) {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  return (apart + line_bytes - 1) % 4096 < 2 * line_bytes - 1;
}

/// Results of some rows on their way to memory. Past the caches, where a vector does not fill a cache line:
/// processors collect such stores until the line is full, and write out a part of it if another access has
/// the same address but for a multiple of 4 KB, as the rows of most tensors have: that took up to eight times
/// as long. Through the caches, where the lines that are read and written in one column would not all fit
/// into their set. So a tile of every row is computed here, and then stored row by row in whole lines. What
/// does not fill a line waits for the next tile if it goes past the caches.
template <std::size_t rows, typename T>
class Tiles {
 public:
  static constexpr std::size_t columns = tile_bytes / sizeof(T);

  /// Where to write the tile that begins at `begin`: column i of row r at `at[r] + i`.
  HWY_INLINE void Place(std::size_t begin, T* (&at)[rows]) {
    for (std::size_t r = 0; r < rows; ++r) at[r] = kept_[r] + line - begin;
  }

  /// Stores that tile through the caches.
  HWY_INLINE void Copy(T* const (&to)[rows], std::size_t begin, std::size_t end) {
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(to[r] + begin, kept_[r] + line, (end - begin) * sizeof(T));
  }

  /// Stores that tile past the caches; it ends before column `end`.
  HWY_INLINE void Store(T* const (&to)[rows], std::size_t begin, std::size_t end, bool last) {
    for (std::size_t r = 0; r < rows; ++r) {
      T* const tile = kept_[r] + line;
      const std::size_t behind = reinterpret_cast<std::uintptr_t>(to[r] + end) % line_bytes / sizeof(T);
      const std::size_t until = last ? end : end - behind;
      const std::size_t count = until - begin + waiting_[r];
      StoreLines(tile - waiting_[r], to[r] + begin - waiting_[r], count);
      waiting_[r] = end - until;
      std::memcpy(tile - waiting_[r], tile + (until - begin), waiting_[r] * sizeof(T));
    }
  }

 private:
  static constexpr std::size_t line = line_bytes / sizeof(T);

  HWY_INLINE static void StoreLines(const T* from, T* to, std::size_t count) {
    const hn::ScalableTag<std::uint8_t> d;
    const std::size_t apart = reinterpret_cast<std::uintptr_t>(to) % line_bytes;
    const std::size_t head = apart == 0 ? 0 : std::min(count, (line_bytes - apart) / sizeof(T));
    std::memcpy(to, from, head * sizeof(T));
    const auto* const source = reinterpret_cast<const std::uint8_t*>(from + head);
    auto* const target = reinterpret_cast<std::uint8_t*>(to + head);
    const std::size_t bytes = (count - head) * sizeof(T);
    const std::size_t lines = bytes / line_bytes * line_bytes;
    for (std::size_t i = 0; i < lines; i += hn::Lanes(d)) hn::Stream(hn::LoadU(d, source + i), d, target + i);
    std::memcpy(target + lines, source + lines, bytes - lines);
  }

  alignas(line_bytes) T kept_[rows][line + columns];
  std::size_t waiting_[rows] = {};
};

/// Columns [i, end) in order: `whole(i, way)` for full vectors and `some(i, count)` for the rest.
template <bool streams, class Some, class Whole>
HWY_INLINE void EachColumn(std::size_t i, std::size_t end, std::size_t lanes, bool fetch, const Some& some,
                           const Whole& whole) {
  if (fetch) {
    for (; i + lanes <= end; i += lanes) whole(i, Way<true, streams>());
  }
  for (; i + lanes <= end; i += lanes) whole(i, Way<false, streams>());
  if (i < end) some(i, end - i);
}

/// Processes every column of some rows in order: `whole(i, way)` for full vectors and `some(i, count)` for
/// the rest, which write to `at[r] + i`. Stores to `to` are aligned if all its rows allow it, and bypass the
/// caches if requested and if they fill whole lines. `collide`: the lines of a column share sets of the
/// first-level cache, so that results through the caches are stored tile by tile.
template <class D, std::size_t rows, typename T, class Some, class Whole>
HWY_INLINE void Columns(D d, std::size_t n, T* const (&to)[rows], T* (&at)[rows], bool fetch, bool stream,
                        bool collide, const Some& some, const Whole& whole) {
  const std::size_t lanes = hn::Lanes(d);
  const auto behind_of = [&](const T* row) {
    return reinterpret_cast<std::uintptr_t>(row) % (lanes * sizeof(T));
  };
  const std::uintptr_t behind = behind_of(to[0]);
  const bool alike = std::all_of(to, to + rows, [&](const T* row) { return behind_of(row) == behind; });
  const bool can_align = alike && behind % sizeof(T) == 0;
  stream = stream && can_align && (behind == 0 || n * sizeof(T) >= least_streamed_apart);
  constexpr bool fills_lines = hn::MaxLanes(d) * sizeof(T) >= line_bytes;
  if constexpr (HWY_TARGET != HWY_SCALAR) {
    if (stream ? !fills_lines : collide) {
      Tiles<rows, T> tiles;
      for (std::size_t begin = 0; begin < n; begin += tiles.columns) {
        const std::size_t end = std::min(n, begin + tiles.columns);
        tiles.Place(begin, at);
        EachColumn<false>(begin, end, lanes, fetch, some, whole);
        if (stream) {
          tiles.Store(to, begin, end, end == n);
        } else {
          tiles.Copy(to, begin, end);
        }
      }
      return;
    }
  }
  std::copy(to, to + rows, at);
  std::size_t i = 0;
  if (n >= 8 * lanes && can_align && behind != 0) {
    i = lanes - behind / sizeof(T);
    some(0, i);
  }
  if constexpr (fills_lines) {
    if (stream) return EachColumn<true>(i, n, lanes, fetch, some, whole);
  }
  EachColumn<false>(i, n, lanes, fetch, some, whole);
}

/// A parameter per feature; without one, the same values for every feature.
template <typename W>
struct Parameter {
  const W* at;
  std::size_t mask;

  [[nodiscard]] Parameter From(std::size_t begin) const { return {at + (begin & mask), mask}; }
};

template <typename W, int value>
Parameter<W> ParameterOr(std::span<const W> given) {
  constexpr W v = static_cast<W>(value);
  alignas(64) static constexpr W same[16] = {v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v};
  if (given.empty()) return {same, 0};
  return {given.data(), ~std::size_t{0}};
}

/// Calls `run(d)` with a vector type that suits blocks of `width` entries of T; narrow blocks would mostly be
/// padding in wide vectors.
template <typename T, class Run>
HWY_INLINE void WithLanes(std::size_t width, const Run& run) {
  const hn::ScalableTag<Wide<T>> full;
  if (width >= hn::Lanes(full)) return run(full);
#if NORMSCOPE_ROUNDS_BFLOAT16
  if constexpr (std::is_same_v<T, FastBfloat16>) return;  // callers guarantee whole vectors
#endif
  run(hn::CappedTag<Wide<T>, 4>());
}

}  // namespace HWY_NAMESPACE
}  // namespace normscope::norm::detail
HWY_AFTER_NAMESPACE();

#endif
