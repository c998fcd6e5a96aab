#include <normscope/files/json_value.hpp>

#include <cmath>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace normscope::files {
namespace {

using Json = nlohmann::json;

TEST(JsonValue, IsWhatPythonReads) {
  EXPECT_EQ(read_json(R"({"a": [1, -2, 0.5, null, "x"], "b": {}, "a": true})"),
            Json::parse(R"({"a":true,"b":{}})"));
  EXPECT_EQ(read_json("3"), Json(3));
  const std::optional<Json> numbers = read_json("[NaN,Infinity, -Infinity ,0.0,\"NaN\",{\"Infinity\":1}]");
  ASSERT_TRUE(numbers);
  EXPECT_TRUE(std::isnan((*numbers)[0].get<double>()));
  EXPECT_EQ((*numbers)[1], HUGE_VAL);
  EXPECT_EQ((*numbers)[2], -HUGE_VAL);
  EXPECT_EQ((*numbers)[3], 0.0);
  EXPECT_EQ((*numbers)[4], "NaN");
  EXPECT_EQ((*numbers)[5]["Infinity"], 1);
  EXPECT_EQ(read_json("-Infinity"), Json(-HUGE_VAL));
  const std::optional<Json> both = read_json("[0.5,NaN,1.5]");
  ASSERT_TRUE(both);
  EXPECT_EQ((*both)[0], 0.5);
  EXPECT_TRUE(std::isnan((*both)[1].get<double>()));
  EXPECT_EQ((*both)[2], 1.5);
  for (const char* wrong : {"", "{", "[1,]", "nan", "NaN5", "5NaN", "[+Infinity]", "--Infinity", "Infinity.0",
                            "{NaN:1}", "[\"\\", "{} {}"}) {
    EXPECT_FALSE(read_json(wrong)) << wrong;
  }
  EXPECT_FALSE(read_json(std::string_view("1\0", 2)));
}

TEST(JsonValue, LeavesOutWhatIsTooDeep) {
  EXPECT_EQ(read_json("{\"a\":" + std::string(100'000, '[') + "1" + std::string(100'000, ']') + ",\"b\":2}")
                ->at("b"),
            2);
  EXPECT_FALSE(read_json(std::string(100'000, '[')));
}

TEST(JsonValue, HasBoundedNumbersOfValuesInLinearTime) {
  std::string text = "{\"x\":[";
  for (int i = 0; i < 300'000; ++i) text += "{},";
  EXPECT_EQ(read_json(text + "{}]}")->at("x").size(), 300'001u);  // minutes, where time is quadratic
  for (int i = 0; i < 800'000; ++i) text += "1,";
  EXPECT_FALSE(read_json(text + "{}]}"));
}

TEST(JsonFlag, ChangesNothingElse) {
  EXPECT_EQ(with_json_flag("{}", "f", false), "{\n  \"f\": false\n}");
  EXPECT_EQ(with_json_flag("{\"a\": [1.50, NaN]}", "f", true), "{\n  \"f\": true,\"a\": [1.50, NaN]}");
  EXPECT_EQ(with_json_flag("{\"a\":{\"f\":1},\"f\" :\n null }", "f", false),
            "{\"a\":{\"f\":1},\"f\" :\n false }");
  EXPECT_EQ(with_json_flag("{\"f\":true,\"f\":false}", "f", true), "{\"f\":true,\"f\":true}");
  EXPECT_FALSE(with_json_flag("{\"f\":1}", "f", true));
  EXPECT_FALSE(with_json_flag("[]", "f", true));
  EXPECT_FALSE(with_json_flag("{", "f", true));
  EXPECT_FALSE(with_json_flag(std::string_view("{}\0", 3), "f", true));
  // What is not an object has no flags.
  for (const char* value : {"null", "true", "1", "-1", "0.5", "\"f\""})
    EXPECT_FALSE(with_json_flag(value, "f", true));
  EXPECT_EQ(with_json_flag("{\"a\":[null,true,1,-1,0.5,\"f\"]}", "f", true),
            "{\n  \"f\": true,\"a\":[null,true,1,-1,0.5,\"f\"]}");
}

}  // namespace
}  // namespace normscope::files
