#include <normscope/results/figures.hpp>

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/nets/rnn/counting.hpp>

namespace normscope::nets::rnn {
namespace {

TEST(CountingTrace, TraceHoldsEveryUnitAndOutput) {
  const Network& network = trained(CellKind::lstm, Language::anbn);
  const nlohmann::json spec = figures::counting_trace(network, 40);
  const auto& units = spec["vconcat"][0]["layer"][0]["data"]["values"];
  EXPECT_EQ(units.size(), 81 * network.cell.width);
  const auto& outputs = spec["vconcat"][1]["layer"][0]["data"]["values"];
  EXPECT_EQ(outputs.size(), 81 * network.outputs());
  const Trace seen = trace(network, member(Language::anbn, 40));
  EXPECT_NEAR(units[40]["value"].get<double>(), seen.of("c")[40 * network.cell.width], 1e-4);
  std::set<std::string> roles;
  for (const auto& row : units) roles.insert(row["role"].get<std::string>());
  std::set<std::string> expected{"other units"};
  for (const UnitDrift& unit : drifts(network, 40)) {
    if (unit.counts) expected.insert("c" + std::to_string(unit.unit) + " counts");
  }
  EXPECT_EQ(roles, expected);
  EXPECT_EQ(spec["vconcat"][0]["layer"][1]["data"]["values"][0]["letters"], 40);
}

TEST(CountingTrace, LongTracesAreThinned) {
  const Network& network = trained(CellKind::gru, Language::anbn);
  const nlohmann::json spec = figures::counting_trace(network, 1000);
  const auto& units = spec["vconcat"][0]["layer"][0]["data"]["values"];
  EXPECT_LE(units.size(), 403 * network.cell.width);
  EXPECT_EQ(units.back()["letters"], 2000);
}

}  // namespace
}  // namespace normscope::nets::rnn
