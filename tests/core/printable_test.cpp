#include <normscope/core/text.hpp>

#include <string>

#include <gtest/gtest.h>

namespace normscope {
namespace {

TEST(Printable, ControlsAndBrokenBytesAreEscaped) {
  EXPECT_EQ(printable("a\x1b[31m\n\t\x7f"), "a\\x1b[31m\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");
}

TEST(Printable, WhatIsInvisibleOrChangesTheDirectionIsEscaped) {
  EXPECT_EQ(printable("a\u202eb\u2028c\u2029d\u200be\u2066f\u061cg\ufeffh\u00adi\U000e0041j"),
            "a\\u202eb\\u2028c\\u2029d\\u200be\\u2066f\\u061cg\\ufeffh\\u00adi\\ue0041j");
  for (const char* mark : {"\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u2060", "\u2067",
                           "\u2068", "\u2069", "\u206f", "\u180e", "\ufff9"}) {
    EXPECT_EQ(printable(mark).substr(0, 2), "\\u") << mark;
  }
}

TEST(Printable, OtherTextStaysAsItIs) {
  const std::string text = "שכבה.נרמול 層 🦜 1\u202f000 W₁ – µ";
  EXPECT_EQ(printable(text), text);
}

}  // namespace
}  // namespace normscope
