#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/files/safetensors.hpp>
#include <normscope/heads/heads.hpp>

#include "support/scratch.hpp"

namespace normscope::analysis {
namespace {

/// ALBERT: the first pass reads the mapped norm of the embedding, later ones the norm at a layer's end.
struct Albert {
  std::map<std::string, std::vector<double>> weights{};
  std::map<std::string, std::vector<std::uint64_t>> shapes{};
  std::string layer = "encoder.albert_layer_groups.0.albert_layers.0.";
  Random random{5};

  Albert() {
    add("embeddings.word_embeddings.weight", {7, 3});
    add("embeddings.position_embeddings.weight", {5, 3});
    add("embeddings.token_type_embeddings.weight", {2, 3});
    for (const std::string& norm : {std::string("embeddings.LayerNorm"), layer + "attention.LayerNorm",
                                    layer + "full_layer_layer_norm"}) {
      const std::uint64_t width = norm.starts_with("embeddings") ? 3 : 4;
      add(norm + ".weight", {width});
      add(norm + ".bias", {width});
    }
    linear("encoder.embedding_hidden_mapping_in", 4, 3);
    for (const char* part : {"query", "key", "value", "dense"}) linear(layer + "attention." + part, 4, 4);
    linear(layer + "ffn", 6, 4);
    linear(layer + "ffn_output", 4, 6);
  }
  void add(const std::string& name, std::vector<std::uint64_t> shape) {
    std::size_t count = 1;
    for (const std::uint64_t extent : shape) count *= extent;
    std::vector<double>& values = weights[name];
    values.resize(count);
    for (double& value : values) value = random.normal();
    shapes[name] = std::move(shape);
  }
  void linear(const std::string& name, std::uint64_t out, std::uint64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  }

  /// The bounds of the checkpoint's heads.
  [[nodiscard]] std::vector<heads::HeadReach> reach() const {
    const test::Scratch scratch;
    const std::filesystem::path folder = scratch / "albert";
    std::filesystem::create_directory(folder);
    std::vector<files::NewTensor> tensors;
    for (const auto& [name, values] : weights) {
      tensors.push_back({name, Dtype::F64, shapes.at(name), std::as_bytes(std::span(values))});
    }
    files::write_safetensors(folder / "model.safetensors", tensors, {});
    std::ofstream(folder / "config.json")
        << R"({"model_type": "albert", "hidden_size": 4, "num_attention_heads": 1, "num_hidden_layers": 3})";
    const files::Checkpoint file(folder);
    return heads::reach_of_heads(file, models::describe(file), 1);
  }
};

TEST(HeadsAudit, ComposesTheFirstPass) {
  Albert albert;
  auto& weights = albert.weights;
  const std::string& layer = albert.layer;
  Random& random = albert.random;
  const std::vector<heads::HeadReach> heads = albert.reach();
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0].pass, "first");
  EXPECT_EQ(heads[1].pass, "later");
  ASSERT_TRUE(heads[0].attention.has_value()) << heads[0].refused;
  ASSERT_TRUE(heads[1].attention.has_value()) << heads[1].refused;

  // Spreads of random contexts, from the forward pass itself: embedding norm, map, queries and keys.
  const auto apply = [&](const std::string& name, const std::vector<double>& x) {
    const std::vector<double>& matrix = weights[name + ".weight"];
    std::vector<double> y = weights[name + ".bias"];
    for (std::size_t i = 0; i < y.size(); ++i) {
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += matrix[i * x.size() + j] * x[j];
    }
    return y;
  };
  const auto row = [&] {
    std::vector<double> x(3);
    for (double& entry : x) entry = random.normal();
    const double mean = (x[0] + x[1] + x[2]) / 3.0;
    double square = 0.0;
    for (double& entry : x) {
      entry -= mean;
      square += entry * entry;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      x[i] = weights["embeddings.LayerNorm.weight"][i] * x[i] / std::sqrt(square / 3.0 + 1e-12) +
             weights["embeddings.LayerNorm.bias"][i];
    }
    return apply("encoder.embedding_hidden_mapping_in", x);
  };
  double widest = 0.0;
  for (int context = 0; context < 3000; ++context) {
    const std::vector<double> query = apply(layer + "attention.query", row());
    const std::vector<double> first = apply(layer + "attention.key", row());
    const std::vector<double> second = apply(layer + "attention.key", row());
    double spread = 0.0;
    for (std::size_t i = 0; i < 4; ++i) spread += query[i] * (first[i] - second[i]) / 2.0;
    widest = std::max(widest, std::abs(spread));
  }
  EXPECT_LE(widest, heads[0].attention->sharpest.upper);
  EXPECT_GE(widest, 0.97 * heads[0].attention->sharpest.lower) << "on a circle, random rows come near";
}

// Terms that cancel to below their rounding: the composed entry is 0, the exact one is not.
TEST(HeadsAudit, BoundsHoldWhereComposedWeightsCancel) {
  Albert albert;
  const double size = 0x1p120;
  std::vector<double>& map = albert.weights["encoder.embedding_hidden_mapping_in.weight"];
  map = {size, 0.5 * size, -size, 1, 2, -1, size, 0.5 * size, -size, 0, 0, 0};
  albert.weights["encoder.embedding_hidden_mapping_in.bias"] = {0, 0, 0, 0};
  for (const char* part : {"query", "key"}) {
    const std::string name = albert.layer + "attention." + part;
    albert.weights[name + ".weight"] = {1, 1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    albert.weights[name + ".bias"] = {0, 0, 0, 0};
  }
  albert.weights["embeddings.LayerNorm.weight"] = {1, 1, 1};
  albert.weights["embeddings.LayerNorm.bias"] = {0, 0, 1};
  const std::vector<heads::HeadReach> heads = albert.reach();
  ASSERT_TRUE(heads[0].attention.has_value()) << heads[0].refused;
  // The one coordinate that is not 0 maps rows by (1, 2, -1): q = √3 (1, 2, -1) Π u − 1, likewise keys.
  const double longest = std::sqrt(3.0) * std::sqrt(6.0 - 4.0 / 3.0);
  const double sharpest = 2.0 / std::sqrt(4.0) * longest * (longest + 1.0);
  EXPECT_GE(heads[0].attention->sharpest.upper, sharpest);
  EXPECT_LE(heads[0].attention->sharpest.lower, sharpest);
  EXPECT_EQ(heads[0].attention->most_uniform.lower, 0.0);
}

}  // namespace
}  // namespace normscope::analysis
