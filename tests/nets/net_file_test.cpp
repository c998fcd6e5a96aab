#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/net.hpp>

#include "nets/nets.hpp"
#include "support/scratch.hpp"

namespace normscope::nets {
namespace {

using test::random_net;
using test::random_values;

TEST(NetFile, RoundTripsNets) {
  const test::Scratch scratch;
  const Net net = random_net(1);
  save_net(scratch / "net.safetensors", net);
  const Net back = load_net(scratch / "net.safetensors");
  const std::vector<double> x = random_values(20, 2);
  EXPECT_EQ(evaluate(net, {x.data(), 5, 4}), evaluate(back, {x.data(), 5, 4}));
  EXPECT_EQ(back.classes, net.classes);
  EXPECT_EQ(back.layers.size(), net.layers.size());
}

TEST(NetFile, KeepsBothPartsOfADoubleDouble) {
  const test::Scratch scratch;
  Net net;
  net.precision = Precision::double_double;
  net.layers = {test::random_layer(2, 3, Activation::norm, 1)};
  net.head = test::random_layer(3, 2, Activation::none, 2);
  const auto widen = [](Layer& layer) {
    for (const double value : layer.weight) layer.weight_low.push_back(value * 0x1p-55);
    for (const double value : layer.bias) layer.bias_low.push_back(value * -0x1p-60);
  };
  widen(net.layers[0]);
  widen(net.head);
  save_net(scratch / "net.safetensors", net);
  const Net back = load_net(scratch / "net.safetensors");
  EXPECT_EQ(back.precision, Precision::double_double);
  EXPECT_EQ(back.layers[0].weight_low, net.layers[0].weight_low);
  EXPECT_EQ(back.head.bias_low, net.head.bias_low);
}

TEST(NetFile, LayersOfOneShapeAreOneTensor) {
  const test::Scratch scratch;
  Net net;
  for (std::uint64_t l = 0; l < 1000; ++l)
    net.layers.push_back(test::random_layer(3, 3, Activation::norm, l));
  net.head = test::random_layer(3, 2, Activation::none, 5);
  save_net(scratch / "net.safetensors", net);
  EXPECT_EQ(files::Checkpoint(scratch / "net.safetensors").tensors().size(), 4U);
  EXPECT_EQ(load_net(scratch / "net.safetensors").layers[777].weight, net.layers[777].weight);
}

/// A file of one 2 → 3 norm layer and a head of two outputs, after `change`.
template <typename Change>
std::string complaint(const Change& change) {
  const test::Scratch scratch;
  std::string json =
      R"({"schema":"normscope.lnnet/1","layers":[{"count":1,"in":2,"out":3,"activation":"norm",)"
      R"("norm":{"kind":"layer","groups":1,"eps":0.0,"gain":false,"bias":false}}],"classes":[]})";
  std::map<std::string, std::pair<std::vector<std::uint64_t>, std::vector<double>>> tensors = {
      {"layers.0.weight", {{1, 3, 2}, random_values(6, 1)}},
      {"layers.0.bias", {{1, 3}, random_values(3, 2)}},
      {"head.weight", {{2, 3}, random_values(6, 3)}},
      {"head.bias", {{2}, random_values(2, 4)}}};
  change(json, tensors);
  std::vector<files::NewTensor> written;
  for (const auto& [name, tensor] : tensors) {
    written.push_back({name, Dtype::F64, tensor.first, std::as_bytes(std::span(tensor.second))});
  }
  files::write_safetensors(scratch / "net.safetensors", written, {{"normscope.lnnet", json}});
  try {
    static_cast<void>(load_net(scratch / "net.safetensors"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NetFile, HostileFilesAreRefused) {
  const auto replace = [](const std::string& from, const std::string& to) {
    return complaint([&](std::string& json, auto&) { json.replace(json.find(from), from.size(), to); });
  };
  EXPECT_EQ(complaint([](auto&, auto&) {}), "");
  EXPECT_NE(replace(R"("count":1)", R"("count":1000000000000)").find("layers.0.weight"), std::string::npos);
  for (const auto& [from, to] :
       std::map<std::string, std::string>{{"\"count\":1", "\"count\":-1"},
                                          {"\"count\":1", "\"count\":0"},
                                          {"\"in\":2", "\"in\":2.5"},
                                          {"\"norm\",", "\"tanh\","},
                                          {"\"groups\":1", "\"groups\":2"},
                                          {"\"eps\":0.0", "\"eps\":-1"},
                                          {"\"eps\":0.0", "\"eps\":\"a\""},
                                          {"\"gain\":false", "\"gain\":true"},
                                          {"lnnet/1", "lnnet/2"},
                                          {"\"layers\"", "\"precision\":\"float8\",\"layers\""},
                                          {"\"layers\"", "\"precision\":\"double-double\",\"layers\""},
                                          {"[]}", "[1]}"},
                                          {"[]}", "[1.5e300,\"a\"]}"},
                                          {"{\"schema", "[[[[{\"schema"},
                                          {"\"layers\":", "\"layer\":"}}) {
    EXPECT_NE(replace(from, to), "") << from << " " << to;
  }
  const auto change = [](const std::string& name, auto edit) {
    return complaint([&](std::string&, auto& tensors) { edit(tensors[name]); });
  };
  EXPECT_NE(
      change("layers.0.weight", [](auto& t) { t.second[0] = std::numeric_limits<double>::quiet_NaN(); }), "");
  EXPECT_NE(change("layers.0.bias", [](auto& t) { t.first = {3, 1}; }), "");
  EXPECT_NE(change("head.bias", [](auto& t) { t = {{1}, {0.0}}; }), "");
  EXPECT_NE(change("head.weight", [](auto& t) { t.first = {6}; }), "");
  EXPECT_NE(change("extra", [](auto& t) { t = {{1}, {0.0}}; }), "");
}

}  // namespace
}  // namespace normscope::nets
