#include <normscope/results/documents.hpp>

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/nets/rnn/counting.hpp>
#include <normscope/nets/rnn/theorems.hpp>

namespace normscope::nets::rnn {
namespace {

TEST(CountingDocuments, TraceIsTheTrace) {
  const Network& network = trained(CellKind::gru, Language::anbn);
  const nlohmann::json json = results::trace(network, 5);
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
  EXPECT_EQ(results::trace(network, 30)["drifts"].size(), network.cell.width);
}

TEST(Hierarchy, HasAFieldForEverySpaceButOne) {
  std::set<std::pair<Space, bool>> fields;
  for (const EncoderClass& one : encoder_classes()) fields.emplace(one.space, one.rational);
  EXPECT_EQ(fields.size(), encoder_classes().size());
  // Finitely many states are always rational [Merrill et al. 2020, lemma 2].
  EXPECT_FALSE(fields.contains({Space::constant, false}));
  EXPECT_EQ(fields.size(), 5U);
  const nlohmann::json json = results::hierarchy();
  EXPECT_EQ(json["classes"].size(), encoder_classes().size());
  EXPECT_EQ(json["standings"].size(), standings().size());
  EXPECT_EQ(json["orders"].size(), orders().size());
}

}  // namespace
}  // namespace normscope::nets::rnn
