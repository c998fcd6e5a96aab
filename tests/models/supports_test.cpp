// What the descriptions of the fixtures support, of which scripts/model_oracle/table.py makes docs/models.md.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "support/fixtures.hpp"

namespace normscope::models {
namespace {

using Json = nlohmann::json;

// "yes", "in part", "not modelled" or, where a model has none, "".
std::string share(std::size_t known, std::size_t all) {
  if (all == 0) return "";
  if (known == 0) return "not modelled";
  return known == all ? "yes" : "in part";
}

Json supports(const Model& model) {
  const auto count = [](const auto& list, const auto& holds) {
    return static_cast<std::size_t>(std::count_if(list.begin(), list.end(), holds));
  };
  const std::size_t connected =
      count(model.norms, [](const Norm& norm) { return norm.connections_known && norm.order_known; });
  const std::size_t bounded =
      count(model.heads, [](const Head& head) { return why_no_scores(head).empty(); });
  const bool is_read = count(model.norms, [](const Norm& norm) { return !norm.readers.empty(); }) != 0;
  const bool runs = model.decoder && model.decoder->not_modelled.empty() &&
                    count(model.heads, [](const Head& head) { return !head.not_modelled.empty(); }) == 0;
  const std::string no_logits = why_no_logits(model);
  const bool speaks = model.vocabulary && model.vocabulary->unembedding;
  return {{"architecture", model.architecture},
          {"title", model.title},
          {"wiring", share(connected, model.norms.size())},
          {"heads", share(bounded, model.heads.size())},
          {"vocabulary", speaks ? share(no_logits.empty(), 1) : ""},
          {"ranges", share(is_read, 1)},
          {"centre", model.centres_exactly},
          {"rotate", model.rotates_exactly},
          {"run", runs},
          {"llama.cpp", !model.in_llama_cpp.empty()},
          {"TransformerLens", model.in_transformer_lens}};
}

TEST(Supports, AreThoseOfTheTable) {
  Json all = Json::object();
  for (const std::string& name : test::fixtures_with("truth.json")) {
    all[name] = supports(describe(files::Checkpoint(test::fixture(name))));
  }
  const std::string path = std::string(NORMSCOPE_SOURCE_DIR) + "/tests/models/supports.json";
  if (std::getenv("NORMSCOPE_WRITE_SUPPORTS") != nullptr) std::ofstream(path) << all.dump(1) << "\n";
  std::ifstream stored(path);
  EXPECT_EQ(Json::parse(stored), all)
      << "run with NORMSCOPE_WRITE_SUPPORTS=1, then scripts/model_oracle/table.py";
}

}  // namespace
}  // namespace normscope::models
