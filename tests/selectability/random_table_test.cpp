#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::selectability {
namespace {

TEST(RandomTable, EmptyRangesAreNamed) {
  const RandomTable fine{.least_width = 3, .most_width = 3, .least_count = 4, .most_count = 4, .runs = 1};
  EXPECT_EQ(random_table(fine, 1).size(), 1U);
  const auto message = [&](const auto& change) -> std::string {
    RandomTable table = fine;
    change(table);
    try {
      static_cast<void>(random_table(table, 1));
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Argument);
      return error.what();
    }
  };
  const auto says = [](const std::string& found, const char* what) {
    EXPECT_NE(found.find(what), std::string::npos) << found;
  };
  says(message([](RandomTable& t) { t.least_width = 0; }), "widths 0 to 3");
  says(message([](RandomTable& t) { t.least_width = 4; }), "widths 4 to 3");
  says(message([](RandomTable& t) { t.least_count = 0; }), "counts 0 to 4");
  says(message([](RandomTable& t) { t.least_count = 5; }), "counts 5 to 4");
  says(message([](RandomTable& t) { t.runs = 0; }), "0 runs");
}

}  // namespace
}  // namespace normscope::selectability
