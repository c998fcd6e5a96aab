#include <cstdint>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/construct.hpp>

#include "nets/nets.hpp"
#include "support/scratch.hpp"
#include "support/snapshots.hpp"

namespace normscope::nets {
namespace {

TEST(ConstructState, AForgedOneLeadsToNoWrongNet) {
  const std::size_t rows = 1300;
  const std::vector<double> x = test::random_values(rows * 2, 3);
  Random random(5);
  std::vector<std::int64_t> wanted(rows);
  for (std::int64_t& label : wanted) label = static_cast<std::int64_t>(random.below(3));
  const MatrixView<const double> view(x.data(), rows, 2);
  const test::Scratch scratch;
  const ConstructOptions options{.resume = scratch / "state"};
  const Progress stop([](std::string_view what, std::size_t, std::size_t) { return what != "fold"; });
  EXPECT_THROW(static_cast<void>(construct(view, wanted, options, stop)), Error);
  std::vector<std::byte> state;
  {
    const MappedFile file(options.resume);
    state.assign(file.bytes().begin(), file.bytes().end());
  }
  const test::OpenSnapshot open(state);
  const auto write = [&](const std::vector<std::byte>& bytes) {
    AtomicFile file(options.resume);
    file.write(bytes);
    file.commit();
  };
  int made = 0;
  for (int trial = 0; trial < 16; ++trial) {
    write(open.forged(random));
    try {
      EXPECT_EQ(construct(view, wanted, options).correct, rows);
      ++made;
    } catch (const Error&) {
    }
    write(state);
    std::vector<std::byte> flipped = state;
    flipped[random.below(flipped.size())] ^= std::byte{4};
    write(flipped);
    EXPECT_THROW(static_cast<void>(construct(view, wanted, options)), Error);
  }
  EXPECT_GT(made, 0);
  EXPECT_LT(made, 16);
}

}  // namespace
}  // namespace normscope::nets
