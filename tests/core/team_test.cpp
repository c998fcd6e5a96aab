#include <atomic>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include "support/thread_team.hpp"

namespace normscope {
namespace {

TEST(Team, EveryItemIsOneMembers) {
  ThreadTeam::run(3, [](const Team& team) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{2}, std::size_t{7}}) {
      EXPECT_EQ(team.first_of(0, count), 0U);
      EXPECT_EQ(team.first_of(3, count), count);
      EXPECT_LE(team.first_of(1, count), team.first_of(2, count));
    }
  });
}

TEST(Team, AllMembersGetWhatEachHas) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4}}) {
    ThreadTeam::run(size, [size](const Team& team) {
      // As many bytes as its rank, so that the first has none.
      const std::vector<std::byte> own(team.rank(), std::byte(team.rank()));
      const std::vector<std::vector<std::byte>> all = gathered(own, team);
      ASSERT_EQ(all.size(), size);
      for (std::size_t member = 0; member < size; ++member) {
        EXPECT_EQ(all[member], std::vector<std::byte>(member, std::byte(member)));
      }
    });
  }
  EXPECT_EQ(gathered({std::byte{7}}, alone()), (std::vector<std::vector<std::byte>>{{std::byte{7}}}));
}

TEST(Team, OneThatIsCancelledStopsAll) {
  std::atomic<int> stopped = 0;
  std::atomic<int> worked = 0;
  ThreadTeam::run(3, [&](const Team& team) {
    together(team, [&] { ++worked; });
    try {
      together(team, [&] {
        if (team.rank() == 1) throw Error(ErrorCode::Cancelled, "cancelled");
        ++worked;
      });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Cancelled) ++stopped;
    }
  });
  EXPECT_EQ(stopped, 3);
  EXPECT_EQ(worked, 5);
}

TEST(Team, AnotherErrorIsTheMembersOwn) {
  try {
    together(alone(), [] { throw Error(ErrorCode::Argument, "wrong"); });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Argument);
    EXPECT_STREQ(error.what(), "wrong");
  }
}

}  // namespace
}  // namespace normscope
