#include "report_page.hpp"

#include <normscope/core/assert.hpp>

namespace normscope::report {
namespace {

void append_escaped(std::string& out, std::string_view json) {
  std::size_t start = 0;
  for (std::size_t end; (end = json.find('<', start)) != std::string_view::npos; start = end + 1) {
    out.append(json, start, end - start);
    out.append("\\u003c");
  }
  out.append(json, start);
}

}  // namespace

std::string fill(std::string_view report_json, std::string_view charts_json) {
  constexpr std::string_view empty = "null";
  constexpr std::string_view report_place = R"(<script type="application/json" id="report-data">null)";
  constexpr std::string_view charts_place = R"(<script type="application/json" id="chart-data">null)";
  const std::string_view text = page();
  const std::size_t report_end = text.find(report_place) + report_place.size();
  const std::size_t charts_end = text.find(charts_place) + charts_place.size();
  // The bundler refuses to make a page without exactly these two places in this order.
  NORMSCOPE_ASSERT(report_place.size() <= report_end && report_end < charts_end);

  std::string out;
  out.reserve(text.size() + report_json.size() + charts_json.size());
  out.append(text, 0, report_end - empty.size());
  append_escaped(out, report_json);
  out.append(text, report_end, charts_end - empty.size() - report_end);
  append_escaped(out, charts_json);
  out.append(text, charts_end);
  return out;
}

}  // namespace normscope::report
