#include "report_page.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace {

using normscope::report::fill;
using normscope::report::page;

std::string_view body(std::string_view html, std::string_view id) {
  const std::string start = R"(<script type="application/json" id=")" + std::string(id) + R"(">)";
  const std::size_t first = html.find(start) + start.size();
  return html.substr(first, html.find("</script>", first) - first);
}

std::size_t occurrences(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(ReportPage, IsOneWholeFileWithEmptyPlaces) {
  EXPECT_EQ(page().substr(0, 15), "<!doctype html>");
  EXPECT_EQ(page().substr(page().size() - 8), "</html>\n");
  EXPECT_EQ(body(page(), "report-data"), "null");
  EXPECT_EQ(body(page(), "chart-data"), "null");
  EXPECT_EQ(body(page(), "activation-data"), "null");
}

TEST(ReportPage, AsksForNothingFromOutsideItself) {
  const std::string_view head = page().substr(0, page().find("<style>"));
  EXPECT_NE(head.find("default-src 'none'; script-src 'sha256-"), std::string_view::npos);
  EXPECT_EQ(page().find("<link"), std::string_view::npos);
  EXPECT_EQ(page().find("<script src"), std::string_view::npos);
}

TEST(ReportPage, HoldsItsDocumentsUnchanged) {
  const nlohmann::json report = {{"name", "γ \"quoted\" \\ back"}, {"numbers", {1, 2.5, nullptr}}};
  const nlohmann::json charts = {{{"id", "a"}, {"question", "null</style>?"}}};
  const nlohmann::json activations = {{"document", {{"model", "<b>"}}}, {"charts", nlohmann::json::array()}};
  const std::string html = normscope::report::fill(report.dump(), charts.dump(), activations.dump());
  EXPECT_EQ(nlohmann::json::parse(body(html, "report-data")), report);
  EXPECT_EQ(nlohmann::json::parse(body(html, "activation-data")), activations);
  EXPECT_EQ(nlohmann::json::parse(body(html, "chart-data")), charts);
}

TEST(ReportPage, LetsNoDataEndItsScriptElement) {
  const std::string hostile = "</script><script>alert(1)</script><!--<script>";
  const nlohmann::json report = {{"name", hostile}};
  const std::string html = fill(report.dump(), "[]");
  EXPECT_EQ(occurrences(html, "<script"), occurrences(page(), "<script"));
  EXPECT_EQ(occurrences(html, "<!--"), occurrences(page(), "<!--"));
  EXPECT_EQ(nlohmann::json::parse(body(html, "report-data")).at("name"), hostile);
}

TEST(ReportPage, KeepsEverythingAroundItsPlaces) { EXPECT_EQ(fill("null", "null"), page()); }

TEST(ReportPage, IsNotMisledByDataThatLooksLikeThePlaces) {
  const std::string fake = R"(["<script type=\"application/json\" id=\"chart-data\">null</script>"])";
  const std::string html = fill(fake, "[1]");
  EXPECT_EQ(body(html, "chart-data"), "[1]");
}

}  // namespace
