#include "results.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "experiment.hpp"
#include "figures.hpp"
#include "lines.hpp"
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
  const Figure late = over_steps("loss", "Loss", four, {.series = "arm", .metric = "loss", .from = 20});
  EXPECT_EQ(late.specification["data"]["values"].size(), 2U);
  const Figure bands =
      over_steps("loss", "Loss", four, {.series = "arm", .metric = "loss", .logarithmic = true});
  EXPECT_EQ(bands.specification["data"]["values"][3]["low"], 0.15);  // 1.5 less 1.414, but a tenth or more
  const Figure ends = at_end("end", "End", four, {"arm", "loss", "loss"}, "width", "width");
  EXPECT_EQ(ends.specification["data"]["values"].size(), 2U);
}

const Experiment experiment{
    .name = "test-results",
    .paper = "nobody",
    .claim = "numbers are stated",
    .plan =
        [](Size size) {
          return Plan{
              {Json{{"arm", "a"}, {"steps", size == Size::quick ? 1 : 2}}, Json{{"arm", "b"}, {"steps", 2}}},
              2};
        },
    .perform = [](lab::Run&) {},
    .claims = {{"first",
                "a | b",
                "0.5",
                {"loss"},
                [](const Results& results) {
                  return Finding{std::to_string(results.last("loss").mean), one_case(true)};
                }},
               {"second",
                "c",
                "none",
                {"loss", lab::Test::mean, 10, 1.0},
                [](const Results&) {
                  return Finding{"too few", {1.0, 2.0}};
                }}},
};

class Accounts : public testing::Test {
 protected:
  std::vector<std::int64_t> add(Size size, const std::optional<Sweep>& sweep = std::nullopt) {
    return store_.add(planned(experiment, size, 0, sweep));
  }
  void finish(std::span<const std::int64_t> runs, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      store_.finish(store_.lease(runs, 60).value(), 1,
                    std::vector<Metric>{{"loss", 1, static_cast<double>(i)}});
    }
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
  EXPECT_THROW(static_cast<void>(planned(experiment, Size::full, 0, Sweep{{{"rate", {1}}}, {}})), Error);
}

TEST_F(Accounts, AreInconclusiveUntilEveryArmHasRun) {
  const std::vector<std::int64_t> runs = add(Size::full);
  EXPECT_EQ(account(store_, experiment, Size::full).claims[0].verdict.outcome, Outcome::inconclusive);
  finish(runs, 3);
  const ExperimentResult there = account(store_, experiment, Size::full);
  EXPECT_EQ(there.done, 3U);
  EXPECT_EQ(there.planned, 4U);
  EXPECT_EQ(there.claims[0].verdict.outcome, Outcome::reproduced);
  EXPECT_EQ(there.claims[1].verdict.outcome, Outcome::inconclusive);
  EXPECT_EQ(there.count(Outcome::reproduced), 1U);
  EXPECT_EQ(entry(there).results->ours, "1 of 2 claims reproduced");
  EXPECT_EQ(entry(there).results->claims[1].verdict, "inconclusive (2 of 10 seeds)");
  EXPECT_NE(to_markdown(there, "images").find(R"(| a \| b | 0.5 | 1.000000 |  | reproduced |)"),
            std::string::npos);
}

TEST_F(Accounts, HaveNoVerdictAtTheQuickSize) {
  finish(add(Size::quick), 4);
  for (const ClaimResult& claim : account(store_, experiment, Size::quick).claims)
    EXPECT_EQ(claim.verdict.outcome, Outcome::inconclusive);
}

TEST_F(Accounts, SayWhenARuleIsYoungerThanARun) {
  const std::vector<std::int64_t> runs = add(Size::full);
  finish(runs, 2);
  const auto told = [&] {
    const ExperimentResult there = account(store_, experiment, Size::full);
    return provenance(there.claims[0]) + "; " +
           (to_markdown(there, "images").find("fixed before") == std::string::npos ? "rules"
                                                                                   : "fixed before");
  };
  EXPECT_EQ(told(), "rule written after 2 of 2 runs; rules");
  store_.write_rules(rules_of(experiment));
  finish(runs, 2);
  EXPECT_EQ(told(), "rule written after 2 of 4 runs; rules");

  Store fresh(folder_ / "fresh.sqlite");
  fresh.write_rules(rules_of(experiment));
  const std::vector<std::int64_t> later = fresh.add(planned(experiment, Size::full, 0, std::nullopt));
  while (const auto lease = fresh.lease(later, 60))
    fresh.finish(*lease, 1, std::vector<Metric>{{"loss", 1, 0.5}});
  const ExperimentResult there = account(fresh, experiment, Size::full);
  EXPECT_EQ(provenance(there.claims[0]), "rule stored before its 4 runs");
  EXPECT_NE(to_markdown(there, "images").find("Rules, fixed before the runs:"), std::string::npos);
  // A rule that is changed afterwards has another hash, so it is younger than every run.
  Experiment changed = experiment;
  changed.claims[0].rule.least = 2.0;
  EXPECT_EQ(provenance(account(fresh, changed, Size::full).claims[0]), "rule written after 4 of 4 runs");
}

TEST_F(Accounts, ComeBackFromTheirLines) {
  store_.write_rules(rules_of(experiment));
  const std::vector<std::int64_t> runs = add(Size::full);
  finish(runs, 3);
  const Lease last = store_.lease(runs, 60).value();
  store_.finish(last, 3,
                std::vector<Metric>{{"loss", 1, std::nan("")}, {"loss", 3, 0.1}, {"rate", 3, 1e-300}});
  const std::string lines = run_lines(store_, experiment);
  const std::filesystem::path file = folder_ / "runs.jsonl";
  std::ofstream(file) << lines;

  Store other(folder_ / "other.sqlite");
  const Imported imported = import_lines(other, file);
  EXPECT_EQ(imported.runs, 4U);
  EXPECT_EQ(imported.rules, 2U);
  EXPECT_EQ(run_lines(other, experiment), lines);
  EXPECT_EQ(results::lab({entry(account(other, experiment, Size::full))}),
            results::lab({entry(account(store_, experiment, Size::full))}));
  EXPECT_EQ(import_lines(other, file).runs, 0U);

  // A run whose number was changed, and lines that are none.
  std::string changed = lines;
  changed.replace(changed.rfind("0.1"), 3, "0.2");
  for (const std::string& text : {changed, std::string("x\n"), std::string("{}\n"), std::string("[1]"),
                                  std::string(R"({"run": {"seed": 1}})"), std::string(R"({"run": []})"),
                                  std::string(R"({"rule": {"experiment": 3}})")}) {
    std::ofstream(file) << text;
    EXPECT_THROW(import_lines(other, file), Error) << text;
  }
  EXPECT_EQ(run_lines(other, experiment), lines);

  Store empty(folder_ / "empty.sqlite");
  std::ofstream(file) << lines << "x\n";
  EXPECT_THROW(import_lines(empty, file), Error);
  EXPECT_EQ(run_lines(empty, experiment), "");
  EXPECT_TRUE(empty.rules(std::string(experiment.name)).empty());
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
                           R"({"sedes": [1]})", "[", R"({"values": {"steps": 3}})", R"({"seeds": [-1]})"})
    EXPECT_THROW(read(text), Error) << text;
}

}  // namespace
}  // namespace normscope::lab
