#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "../../src/rewrite/matrix_rewrite.hpp"
#include "rewrite/appended.hpp"
#include "support/files.hpp"

namespace normscope::rewrite {
namespace {

constexpr Dtype all_dtypes[] = {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16};

double smallest_of(Dtype dtype) {
  return dtype == Dtype::F64 ? 0x1p-1022 : dtype == Dtype::F16 ? 0x1p-14 : 0x1p-126;
}

std::vector<double> stored_as(Dtype dtype, std::vector<double> values) {
  std::vector<std::byte> bytes(values.size() * bits(dtype) / 8);
  encode(dtype, values, bytes);
  decode(dtype, bytes, values);
  return values;
}

/// A matrix in memory.
struct Stored {
  Stored(Dtype dtype, models::Layout layout, std::size_t in, std::size_t out)
      : shape{layout == models::Layout::out_in ? out : in, layout == models::Layout::out_in ? in : out} {
    map.layout = layout;
    map.in = in;
    map.out = map.stored_out = out;
    tensor.name = "w";
    tensor.dtype = dtype;
    tensor.shape = shape;
    Random random(in * 1000 + out);
    for (std::size_t i = 0; i < in * out; ++i) values.push_back(0.02 * random.normal());
    set(values);
  }

  void set(std::vector<double> wanted) {
    values = stored_as(tensor.dtype, std::move(wanted));
    bytes.resize(values.size() * bits(tensor.dtype) / 8);
    encode(tensor.dtype, values, bytes);
    tensor.bytes = std::span<const std::byte>(bytes);
  }

  [[nodiscard]] std::size_t at(std::size_t output, std::size_t input) const {
    return map.layout == models::Layout::out_in ? output * map.in + input : input * map.stored_out + output;
  }

  std::vector<std::uint64_t> shape;
  std::vector<double> values;
  std::vector<std::byte> bytes;
  files::Tensor tensor;
  models::Linear map;
};

// Ties, numbers below the normal ones and on their edge, the largest, zeros of both signs.
TEST(RewriteTiles, RoundAsTheDtypeSays) {
  for (const Dtype dtype : all_dtypes) {
    const double smallest = smallest_of(dtype);
    const std::vector<double> old =
        stored_as(dtype, {1.0, 1.5, -1.25, 3.0, 0.0, -0.0, smallest, -smallest, 1.75 * smallest, smallest / 4,
                          smallest / 8 * 3, -smallest / 2, 0.1, 1e-3, -7.0, 13.0});
    for (const double factor : {1.0, 0.5, 1.5, 0.75, -1.0 / 3.0, 1.0 + 0x1p-8, 1.0 + 0x1p-11, 1.0 + 0x1p-24,
                                0.999, 1e-3, 0.0, 1000.0}) {
      for (const double shift : {0.0, 0x1p-9, 1.0}) {
        for (const bool is_one : {true, false}) {
          std::vector<double> exact;
          for (const double value : old) exact.push_back((value - shift) * factor);
          std::vector<std::byte> row(old.size() * bits(dtype) / 8);
          encode(dtype, old, row);
          std::vector<std::byte> wanted(row.size());
          encode(dtype, exact, wanted);
          std::vector<std::byte> got(row.size());
          const std::vector<double> shifts(tile_step, shift);
          const std::vector<double> factors(tile_step, factor);
          std::vector<double> values(3 * tile_step);
          const RowFlags flags =
              convert_row(dtype, row.data(), {shifts.data(), factors.data(), is_one}, tile_step, got.data(),
                          {values.data(), values.data() + tile_step, values.data() + 2 * tile_step});
          EXPECT_EQ(got, wanted) << to_string(dtype) << " " << factor << " " << shift;
          EXPECT_TRUE(flags.is_held);
          bool has_small = false;
          const std::vector<double> stored = stored_as(dtype, exact);
          for (std::size_t j = 0; j < tile_step; ++j) {
            EXPECT_EQ(values[j], old[j]);
            EXPECT_EQ(values[tile_step + j], exact[j]);
            EXPECT_EQ(values[2 * tile_step + j], stored[j]);
            has_small = has_small || (old[j] != 0.0 && std::abs(stored[j]) < smallest);
          }
          EXPECT_EQ(flags.small, has_small ? 1U : 0U) << to_string(dtype) << " " << factor << " " << shift;
        }
      }
    }
  }
}

// Several blocks and tiles, whose last ones are not whole.
TEST(RewriteTiles, SumsAreThoseOfTheDefinition) {
  struct Size {
    std::size_t in;
    std::size_t out;
  };
  for (const Dtype dtype : all_dtypes) {
    for (const models::Layout layout : {models::Layout::out_in, models::Layout::in_out}) {
      for (const auto& [in, out] :
           {Size{1, 1}, Size{37, 150}, Size{1100, 19}, Size{5, 9000}, Size{9000, 5}}) {
        const Stored stored(dtype, layout, in, out);
        const StoredMatrix matrix{stored.tensor, stored.map};
        Random random(7);
        std::vector<double> shift(in);
        std::vector<double> factor(in);
        std::vector<Probe> before(in);
        std::vector<Probe> after(in);
        for (std::size_t j = 0; j < in; ++j) {
          shift[j] = 0.01 * random.normal();
          factor[j] = j % 50 == 3 ? 1e-3 : random.normal();
          for (std::size_t k = 0; k < probe_count; ++k) {
            before[j][k] = random.normal();
            after[j][k] = random.normal();
          }
        }
        std::vector<double> exact(in * out);
        std::map<std::uint64_t, double> small;
        for (std::size_t i = 0; i < out; ++i) {
          for (std::size_t j = 0; j < in; ++j) {
            exact[stored.at(i, j)] = (stored.values[stored.at(i, j)] - shift[j]) * factor[j];
          }
        }
        const std::vector<double> rounded = stored_as(dtype, exact);
        for (std::size_t at = 0; at < rounded.size(); ++at) {
          if (stored.values[at] != 0.0 && std::abs(rounded[at]) < smallest_of(dtype)) {
            small[at] = rounded[at];
          }
        }
        std::vector<std::byte> wanted(stored.bytes.size());
        encode(dtype, exact, wanted);
        for (const bool of_outputs : {true, false}) {
          std::vector<std::byte> written;
          std::map<std::uint64_t, double> found;
          std::mutex mutex;
          const auto run = [&](unsigned threads) {
            written.clear();
            found.clear();
            return rewrite_matrix(matrix, {shift, factor}, before, after, of_outputs, threads,
                                  test::appended_to(written),
                                  [&](std::uint64_t at, double old, double value) {
                                    const std::scoped_lock lock(mutex);
                                    EXPECT_EQ(old, stored.values[at]);
                                    found[at] = value;
                                  });
          };
          const MatrixSums sums = run(1);
          EXPECT_EQ(written, wanted) << to_string(dtype) << " " << in << " " << out;
          EXPECT_EQ(found, small) << to_string(dtype) << " " << in << " " << out;
          const MatrixSums again = run(3);
          EXPECT_EQ(written, wanted);
          ASSERT_EQ(sums.outputs.size(), out);
          ASSERT_EQ(sums.lengths.size(), of_outputs ? out : in);
          for (std::size_t i = 0; i < out; ++i) {
            for (std::size_t k = 0; k < probe_count; ++k) {
              long double old = 0, product = 0, as_stored = 0, size = 0;
              for (std::size_t j = 0; j < in; ++j) {
                const std::size_t at = stored.at(i, j);
                old += static_cast<long double>(stored.values[at]) * before[j][k];
                product += static_cast<long double>(exact[at]) * after[j][k];
                as_stored += static_cast<long double>(rounded[at]) * after[j][k];
                size += std::abs(stored.values[at] * before[j][k]) + std::abs(exact[at] * after[j][k]);
              }
              const auto allowed = static_cast<double>(1e-13L * size);
              EXPECT_NEAR(sums.outputs[i].old[k], static_cast<double>(old), allowed);
              EXPECT_NEAR(sums.outputs[i].exact[k], static_cast<double>(product), allowed);
              EXPECT_NEAR(sums.outputs[i].stored[k], static_cast<double>(as_stored), 1.01 * allowed);
            }
            EXPECT_EQ(sums.outputs[i].old, again.outputs[i].old);
            EXPECT_EQ(sums.outputs[i].stored, again.outputs[i].stored);
          }
          for (std::size_t l = 0; l < sums.lengths.size(); ++l) {
            Lengths length;
            for (std::size_t other = 0; other < (of_outputs ? in : out); ++other) {
              const std::size_t at = of_outputs ? stored.at(l, other) : stored.at(other, l);
              length.exact += exact[at] * exact[at];
              length.error += (rounded[at] - exact[at]) * (rounded[at] - exact[at]);
              length.old += stored.values[at] * stored.values[at];
            }
            EXPECT_NEAR(sums.lengths[l].exact, length.exact, 1e-13 * length.exact);
            EXPECT_NEAR(sums.lengths[l].error, length.error, 1e-13 * length.error);
            EXPECT_NEAR(sums.lengths[l].old, length.old, 1e-13 * length.old);
            EXPECT_EQ(sums.lengths[l].exact, again.lengths[l].exact);
          }
        }
        const WeightedSums dots = sums_over_inputs(matrix, factor, 2);
        const WeightedSums means = sums_over_outputs(matrix, 2);
        std::vector<long double> of_inputs(in);
        for (std::size_t i = 0; i < out; ++i) {
          long double dot = 0, magnitude = 0;
          for (std::size_t j = 0; j < in; ++j) {
            const double term = stored.values[stored.at(i, j)] * factor[j];
            dot += term;
            magnitude += std::abs(term);
            of_inputs[j] += stored.values[stored.at(i, j)];
          }
          EXPECT_NEAR(dots.sum[i], static_cast<double>(dot), 1e-15 * (std::abs(dots.sum[i]) + 1e-12));
          EXPECT_NEAR(dots.magnitude[i], static_cast<double>(magnitude), 1e-12 * dots.magnitude[i]);
        }
        for (std::size_t j = 0; j < in; ++j) {
          EXPECT_NEAR(means.sum[j], static_cast<double>(of_inputs[j]),
                      1e-15 * (std::abs(means.sum[j]) + 1e-12));
        }
      }
    }
  }
}

TEST(RewriteTiles, ValuesThatTheDtypeCannotHoldAreNamed) {
  for (const Dtype dtype : all_dtypes) {
    for (const models::Layout layout : {models::Layout::out_in, models::Layout::in_out}) {
      Stored stored(dtype, layout, 150, 20);
      const StoredMatrix matrix{stored.tensor, stored.map};
      const std::vector<double> factor(150, 8.0);
      const std::vector<Probe> inputs(150);
      const auto refusal = [&](double value) {
        std::vector<double> values = stored.values;
        values[stored.at(19, 149)] = value;
        stored.set(values);
        return test::error_of(ErrorCode::Unsupported, [&] {
          std::vector<std::byte> written;
          static_cast<void>(rewrite_matrix(matrix, {.factor = factor}, inputs, inputs, true, 2,
                                           test::appended_to(written)));
        });
      };
      const double large = dtype == Dtype::F64 ? 0x1p1023 : dtype == Dtype::F16 ? 32768.0 : 0x1p127;
      EXPECT_NE(refusal(large).find("cannot hold"), std::string::npos) << to_string(dtype);
      EXPECT_NE(refusal(std::numeric_limits<double>::infinity()).find("has the value inf"),
                std::string::npos);
      EXPECT_NE(refusal(std::numeric_limits<double>::quiet_NaN()).find("has the value nan"),
                std::string::npos);
      EXPECT_NE(
          test::error_of(ErrorCode::Unsupported, [&] { static_cast<void>(sums_over_outputs(matrix, 1)); })
              .find("has the value nan"),
          std::string::npos);
    }
  }
}

}  // namespace
}  // namespace normscope::rewrite
