#include <normscope/results/verification.hpp>

#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

namespace normscope::results {
namespace {

using Json = nlohmann::ordered_json;

Json verified_findings(const std::vector<verify::Finding>& findings) {
  Json list = Json::array();
  for (const verify::Finding& finding : findings) {
    list.push_back({{"item", finding.item}, {"reason", finding.reason}});
  }
  return list;
}

}  // namespace

Json verification(const std::string& kind, const verify::Verification& found) {
  return {{"schema", "normscope.verify/1"},
          {"version", version},
          {"result", "normscope." + kind + "/1"},
          {"checked", found.checked},
          {"failed", verified_findings(found.failed)},
          {"not_checkable", verified_findings(found.not_checkable)}};
}

}  // namespace normscope::results
