#include "report_page.hpp"

#include <utility>

#include <normscope/core/error.hpp>

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

std::string fill(std::string_view report_json, std::string_view charts_json,
                 std::string_view activations_json) {
  constexpr std::string_view empty = "null";
  const std::pair<std::string_view, std::string_view> places[] = {
      {R"(<script type="application/json" id="report-data">null)", report_json},
      {R"(<script type="application/json" id="chart-data">null)", charts_json},
      {R"(<script type="application/json" id="activation-data">null)", activations_json},
  };
  const std::string_view text = page();
  std::string out;
  out.reserve(text.size() + report_json.size() + charts_json.size() + activations_json.size());
  std::size_t start = 0;
  for (const auto& [place, json] : places) {
    // The bundler ensures that the page has exactly these placeholders in this order.
    const std::size_t found = text.find(place, start);
    NORMSCOPE_ASSERT(found != std::string_view::npos);
    const std::size_t end = found + place.size();
    out.append(text, start, end - empty.size() - start);
    append_escaped(out, json);
    start = end;
  }
  out.append(text, start);
  return out;
}

}  // namespace normscope::report
