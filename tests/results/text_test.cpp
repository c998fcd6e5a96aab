#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/results/documents.hpp>

namespace normscope {
namespace {

using Json = nlohmann::ordered_json;

TEST(JsonText, IsOneLineOrManyAndKeepsTheOrder) {
  const Json value = {{"b", 1}, {"a", {1.5, "x"}}};
  EXPECT_EQ(json_text(value), R"({"b":1,"a":[1.5,"x"]})");
  EXPECT_EQ(json_text(Json{{"b", 1}}, 1), "{\n \"b\": 1\n}");
  EXPECT_EQ(Json::parse(json_text(value, 1)), value);
}

TEST(JsonText, ShowsBytesThatAreNotText) {
  EXPECT_EQ(json_text(Json("a\xff\xc3")), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(json_text(Json("naïve")), "\"naïve\"");
}

}  // namespace
}  // namespace normscope
