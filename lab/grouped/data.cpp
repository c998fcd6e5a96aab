#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/tasks.hpp>

#include "training.hpp"

namespace normscope::lab::grouped {
namespace {

/// Rows evaluated at once.
constexpr std::size_t score_rows = 250;
constexpr std::size_t channels = 3;

/// A random stream of its own for every seed and step, so that no other state has to be saved.
Random drawn(std::uint64_t seed, std::uint64_t step) { return Random((seed << 32U) ^ step); }

Batch windows(const std::vector<std::int64_t>& tokens, const std::vector<std::size_t>& begins,
              std::size_t length) {
  Batch batch{.rows = begins.size()};
  for (const std::size_t begin : begins) {
    for (std::size_t i = begin; i < begin + length; ++i) {
      batch.tokens.push_back(tokens[i]);
      batch.labels.push_back(tokens[i + 1]);
    }
  }
  return batch;
}

struct Images {
  std::size_t side = 0;
  std::vector<float> pixels{};
  std::vector<std::int64_t> labels{};

  [[nodiscard]] std::size_t size() const { return channels * side * side; }

  void append(Batch& batch, std::size_t image, bool mirrored) const {
    const float* from = pixels.data() + image * size();
    for (std::size_t row = 0; row < channels * side; ++row, from += side) {
      batch.pixels.insert(batch.pixels.end(), from, from + side);
      if (mirrored) std::reverse(batch.pixels.end() - static_cast<std::ptrdiff_t>(side), batch.pixels.end());
    }
    batch.labels.push_back(labels[image]);
    ++batch.rows;
  }
};

Images images(const nets::Dataset& data, bool halved) {
  Images result{.side = halved ? image_side / 2 : image_side};
  if (!halved) {
    for (const double value : data.x) result.pixels.push_back(static_cast<float>(value));
  } else {
    for (std::size_t row = 0; row < data.rows() * channels * image_side; row += 2) {
      const double* above = data.x.data() + row * image_side;
      for (std::size_t i = 0; i < image_side; i += 2) {
        const double sum = above[i] + above[i + 1] + above[image_side + i] + above[image_side + i + 1];
        result.pixels.push_back(static_cast<float>(sum / 4.0));
      }
    }
  }
  result.labels.assign(data.labels.begin(), data.labels.end());
  return result;
}

/// The order of the images in an epoch.
std::vector<std::size_t> order(std::size_t count, std::uint64_t seed, std::uint64_t pass) {
  // Above every step.
  Random random = drawn(seed, (std::uint64_t{1} << 31U) + pass);
  std::vector<std::size_t> result(count);
  std::iota(result.begin(), result.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(result[i - 1], result[random.below(i)]);
  return result;
}

}  // namespace

Text text_data(const std::string& name, std::string_view text, std::size_t length, std::size_t rows,
               std::size_t pieces) {
  const std::size_t held_out = text.size() / 10;
  if (held_out < length + 2) {
    throw Error(ErrorCode::Format,
                fmt::format("{}: a text of {} characters, expected at least {} for pieces of {}", name,
                            text.size(), 10 * (length + 2), length));
  }
  std::array<std::int64_t, 256> token{};
  for (const char c : text) token[static_cast<unsigned char>(c)] = 1;
  Text result;
  for (std::int64_t& code : token) {
    if (code != 0) code = static_cast<std::int64_t>(result.alphabet++);
  }
  std::vector<std::int64_t> tokens;
  for (const char c : text) tokens.push_back(token[static_cast<unsigned char>(c)]);

  const std::size_t first_held_out = tokens.size() - held_out;
  const std::size_t room = held_out - length - 1;
  std::vector<std::size_t> begins;
  for (std::size_t piece = 0; piece < pieces; ++piece)
    begins.push_back(first_held_out + piece * room / pieces);
  result.data.held_out.push_back(windows(tokens, begins, length));
  result.data.batch = [tokens = std::move(tokens), first_held_out, length, rows](std::uint64_t seed,
                                                                                 std::uint64_t step) {
    Random random = drawn(seed, step);
    std::vector<std::size_t> at(rows);
    for (std::size_t& begin : at) begin = random.below(first_held_out - length);
    return windows(tokens, at, length);
  };
  return result;
}

Data image_data(const std::string& folder, std::size_t train, std::size_t test, std::size_t rows,
                bool halved) {
  if (rows == 0 || rows > train) {
    throw Error(ErrorCode::Argument, fmt::format("batches of {} of {} images", rows, train));
  }
  Images seen = images(nets::cifar10(folder, nets::Part::train, train), halved);
  const Images unseen = images(nets::cifar10(folder, nets::Part::test, test), halved);
  Data data;
  for (std::size_t image = 0; image < unseen.labels.size(); ++image) {
    if (image % score_rows == 0) data.held_out.emplace_back();
    unseen.append(data.held_out.back(), image, false);
  }
  // Consecutive steps share an epoch, whose order takes as long to compute as the steps.
  auto pass = std::uint64_t{0};
  auto seed_of_order = std::uint64_t{0};
  std::vector<std::size_t> of_pass;
  data.batch = [seen = std::move(seen), rows, pass, seed_of_order, of_pass](std::uint64_t seed,
                                                                            std::uint64_t step) mutable {
    const std::uint64_t steps = seen.labels.size() / rows;
    if (of_pass.empty() || step / steps != pass || seed != seed_of_order) {
      pass = step / steps;
      seed_of_order = seed;
      of_pass = order(seen.labels.size(), seed, pass);
    }
    Random random = drawn(seed, step);
    Batch batch;
    for (std::size_t i = 0; i < rows; ++i)
      seen.append(batch, of_pass[step % steps * rows + i], random.below(2) != 0);
    return batch;
  };
  return data;
}

}  // namespace normscope::lab::grouped
