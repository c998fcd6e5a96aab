#include "results.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "experiment.hpp"
#include "figures.hpp"
#include "plan.hpp"
#include "show.hpp"
#include "support/scratch.hpp"

namespace normscope::lab {
namespace {

Done run(const char* arm, std::uint64_t seed, double early, double late) {
  return {Json{{"arm", arm}, {"width", 8}}, seed, {{"loss", 10, early}, {"loss", 20, late}}};
}

const Results four({run("LN", 2, 3.0, 1.0), run("LN", 1, 5.0, 2.0), run("RMS", 1, 4.0, 2.5),
                    run("RMS", 2, 4.0, 0.5)});

TEST(Results, AreTakenByConfigurationAndStep) {
  EXPECT_EQ(four.all("arm"), (std::vector<Json>{"LN", "RMS"}));
  EXPECT_EQ(four.seeds(), 2U);
  const Results layer = four.where("arm", "LN");
  ASSERT_EQ(layer.runs().size(), 2U);
  EXPECT_EQ(layer.runs()[0].seed, 1U);
  const Spread last = layer.last("loss");
  EXPECT_EQ(last.mean, 1.5);
  EXPECT_NEAR(last.deviation, std::sqrt(0.5), 1e-15);
  EXPECT_EQ(last.least, 1.0);
  EXPECT_EQ(last.most, 2.0);
  EXPECT_EQ(layer.at("loss", 19).mean, 4.0);
  EXPECT_THROW(static_cast<void>(layer.at("loss", 9)), Error);
  EXPECT_THROW(static_cast<void>(layer.last("angle")), Error);
  EXPECT_TRUE(four.where("arm", "none").runs().empty());
}

TEST(Results, ArePairedBySeed) {
  const Results::Paired paired = Results::paired(four.where("arm", "LN"), four.where("arm", "RMS"),
                                                 [](const Done& done) { return done.last("loss"); });
  EXPECT_EQ(paired.difference.count, 2U);
  EXPECT_EQ(paired.difference.mean, 0.0);  // 0.5 and -0.5
  EXPECT_EQ(paired.larger, 1U);
}

TEST(Results, AreDrawnAsMeansWithinADeviation) {
  const Figure steps = over_steps("loss", "Loss", four, {"arm", "loss", "loss"});
  const Json& rows = steps.specification["data"]["values"];
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[1], (Json{{"series", "LN"}, {"x", 20}, {"y", 1.5}, {"low", 0.79289}, {"high", 2.2071}}));
  const Figure ends = at_end("end", "End", four, {"arm", "loss", "loss"}, "width", "width");
  EXPECT_EQ(ends.specification["data"]["values"].size(), 2U);
}

const Experiment experiment{
    .name = "test-results",
    .paper = "nobody",
    .claim = "numbers are told",
    .plan =
        [](Size size) {
          return Plan{
              {Json{{"arm", "a"}, {"steps", size == Size::quick ? 1 : 2}}, Json{{"arm", "b"}, {"steps", 2}}},
              2};
        },
    .perform = [](lab::Run&) {},
    .claims = {{"first", "a | b", "0.5", "one run",
                [](const Results& results) {
                  return Finding{std::to_string(results.last("loss").mean), true};
                }},
               {"second", "c", "none", "ten seeds",
                [](const Results&) {
                  return Finding{"too few", std::nullopt};
                }}},
};

class Accounts : public testing::Test {
 protected:
  std::vector<std::int64_t> add(Size size, std::optional<Sweep> sweep = std::nullopt) {
    return store_.add(planned(experiment, size, 0, sweep));
  }
  void finish(std::span<const std::int64_t> runs, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      store_.finish(store_.lease(runs, 60).value(), 1,
                    std::vector<Metric>{{"loss", 1, static_cast<double>(i)}});
  }

  test::Scratch folder_;
  Store store_{folder_ / "runs.sqlite"};
};

TEST_F(Accounts, KeepSizesAndSweepsApart) {
  finish(add(Size::quick), 4);
  finish(add(Size::full, Sweep{{{"steps", {7, 8}}}, {1}}), 4);
  EXPECT_EQ(done(store_, experiment, Size::quick).runs().size(), 4U);
  EXPECT_TRUE(done(store_, experiment, Size::full).runs().empty());
}

TEST_F(Accounts, SweepsPutValuesOverThePlan) {
  // Both configurations get both values: four; where they differ in nothing else they are one.
  EXPECT_EQ(planned(experiment, Size::full, 3, Sweep{{{"steps", {7, 8}}}, {}}).size(), 12U);
  EXPECT_EQ(planned(experiment, Size::full, 0, Sweep{{{"arm", {"x"}}}, {5}}).size(), 1U);
  EXPECT_THROW(planned(experiment, Size::full, 0, Sweep{{{"rate", {1}}}, {}}), Error);
}

TEST_F(Accounts, AreInconclusiveUntilEveryArmHasRun) {
  const std::vector<std::int64_t> runs = add(Size::full);
  EXPECT_FALSE(account(store_, experiment, Size::full).claims[0].finding.holds.has_value());
  finish(runs, 3);
  const ExperimentResult there = account(store_, experiment, Size::full);
  EXPECT_EQ(there.done, 3U);
  EXPECT_EQ(there.planned, 4U);
  EXPECT_EQ(there.claims[0].finding.holds, true);
  EXPECT_EQ(there.holds(), std::nullopt);
  EXPECT_EQ(to_json(there)["ours"], "1 of 2 claims reproduced");
  EXPECT_TRUE(to_json(there)["holds"].is_null());
  EXPECT_NE(to_markdown(there, "images").find(R"(| a \| b | 0.5 | 1.000000 | reproduced |)"),
            std::string::npos);
}

TEST_F(Accounts, AreExportedRowByRow) {
  finish(add(Size::quick), 2);
  const std::string csv = exported(store_, experiment, TableFormat::csv);
  EXPECT_EQ(csv.substr(0, csv.find('\n')),
            "experiment,run,seed,version,done,configuration.size,configuration.arm,configuration.steps,step,"
            "metric,value");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  const std::string lines = exported(store_, experiment, TableFormat::json_lines);
  EXPECT_EQ(Json::parse(lines.substr(0, lines.find('\n')))["configuration.arm"], "a");
}

TEST_F(Accounts, SweepFilesAreReadStrictly) {
  const auto read = [&](const char* text) {
    std::ofstream(folder_ / "sweep.json") << text;
    return read_sweep(folder_ / "sweep.json");
  };
  const Sweep sweep = read(R"({"values": {"arm": ["a", "b"]}, "seeds": [3, 4]})");
  EXPECT_EQ(sweep.seeds, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(sweep.values[0].second.size(), 2U);
  for (const char* text : {"", "[]", R"({"values": []})", R"({"values": {"arm": []}})", R"({"seeds": [1.5]})",
                           R"({"sedes": [1]})"})
    EXPECT_THROW(read(text), Error) << text;
}

}  // namespace
}  // namespace normscope::lab
