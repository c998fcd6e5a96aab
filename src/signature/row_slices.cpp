#include "row_slices.hpp"

namespace normscope::signature {

std::vector<RowSlices::Block> RowSlices::blocks(std::size_t size) const {
  std::vector<Block> result;
  const std::size_t first = first_slice(rank());
  for (std::size_t slice = 0; slice < own_slices(); ++slice) {
    const std::size_t begin = row_of(first + slice);
    const std::size_t rows = row_of(first + slice + 1) - begin;
    if (rows == 0) continue;
    // Of equal size, since a product of few rows takes longer a row.
    const std::size_t parts = std::max<std::size_t>(1, (rows + size / 2) / size);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t from = rows * part / parts;
      result.push_back({slice, begin + from, rows * (part + 1) / parts - from});
    }
  }
  return result;
}

void RowSlices::sum(const std::vector<std::vector<double>>& of_slices, std::span<double> result) const {
  // Only some entries of all slices are held at a time.
  constexpr std::size_t most = std::size_t{1} << 18;
  std::vector<double> all;
  for (std::size_t first = 0; first < result.size(); first += most) {
    const std::size_t entries = std::min(most, result.size() - first);
    all.resize(count * entries);
    for (std::size_t slice = 0; slice < own_slices(); ++slice) {
      const auto from = of_slices[slice].begin() + static_cast<std::ptrdiff_t>(first);
      std::copy_n(from, entries,
                  all.begin() + static_cast<std::ptrdiff_t>((first_slice(rank()) + slice) * entries));
    }
    complete(std::as_writable_bytes(std::span(all)),
             [&](std::size_t slice) { return slice * entries * sizeof(double); });
    const std::span<double> sums = result.subspan(first, entries);
    std::copy_n(all.begin(), entries, sums.begin());
    for (std::size_t slice = 1; slice < count; ++slice) {
      for (std::size_t i = 0; i < entries; ++i) sums[i] += all[slice * entries + i];
    }
  }
}

}  // namespace normscope::signature
