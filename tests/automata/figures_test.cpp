#include <normscope/automata/figures.hpp>

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/automata/counting.hpp>
#include <normscope/automata/hierarchy.hpp>
#include <normscope/automata/trained.hpp>

namespace normscope::automata {
namespace {

TEST(Figures, TraceHoldsEveryUnitAndOutput) {
  const Network& network = trained(CellKind::lstm, Language::anbn);
  const auto spec = nlohmann::json::parse(trace_figure(network, 40));
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

TEST(Figures, LongTracesAreThinned) {
  const Network& network = trained(CellKind::gru, Language::anbn);
  const auto spec = nlohmann::json::parse(trace_figure(network, 1000));
  const auto& units = spec["vconcat"][0]["layer"][0]["data"]["values"];
  EXPECT_LE(units.size(), 403 * network.cell.width);
  EXPECT_EQ(units.back()["letters"], 2000);
}

TEST(Figures, TraceJsonIsTheTrace) {
  const Network& network = trained(CellKind::gru, Language::anbn);
  const auto json = nlohmann::json::parse(trace_json(network, 5));
  EXPECT_EQ(json["letters"], "aaaaabbbbb");
  EXPECT_EQ(json["accepted"], accepts(network, member(Language::anbn, 5)));
  const Trace seen = trace(network, member(Language::anbn, 5));
  ASSERT_EQ(json["signals"].size(), seen.signals.size());
  for (std::size_t s = 0; s < seen.signals.size(); ++s) {
    EXPECT_EQ(json["signals"][s]["name"], seen.signals[s].name);
    for (std::size_t step = 0; step < seen.steps; ++step) {
      for (std::size_t unit = 0; unit < seen.width; ++unit) {
        EXPECT_EQ(json["signals"][s]["values"][step][unit].get<double>(),
                  seen.signals[s].values[step * seen.width + unit]);
      }
    }
  }
  EXPECT_TRUE(json["drifts"].empty());
  EXPECT_EQ(nlohmann::json::parse(trace_json(network, 30))["drifts"].size(), network.cell.width);
}

TEST(Hierarchy, HasAFieldForEverySpaceButOne) {
  std::set<std::pair<Space, bool>> fields;
  for (const EncoderClass& one : encoder_classes()) fields.emplace(one.space, one.rational);
  EXPECT_EQ(fields.size(), encoder_classes().size());
  // Finitely many states are always rational [Merrill et al. 2020, lemma 2].
  EXPECT_FALSE(fields.contains({Space::constant, false}));
  EXPECT_EQ(fields.size(), 5U);
  const auto json = nlohmann::json::parse(hierarchy_json());
  EXPECT_EQ(json["classes"].size(), encoder_classes().size());
  EXPECT_EQ(json["standings"].size(), standings().size());
  EXPECT_EQ(json["orders"].size(), orders().size());
}

}  // namespace
}  // namespace normscope::automata
