#include <normscope/results/documents.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/norms.hpp"
#include "support/gains.hpp"

namespace normscope::analysis {
namespace {

using ReportDocument = Norms;

TEST_F(ReportDocument, HasNoNumberThatIsNotFinite) {
  for (const double size : {1e-310, 1e-200, 1e200, 1e307}) {
    std::vector<double> gain = test::random_gain(16, "ordinary", 4);
    for (double& g : gain) g *= size;
    add(gain, gain);
  }
  add(std::vector<double>(16, 1e308));
  auto found = results::report(report());
  found.erase("references");  // names
  EXPECT_EQ(json_text(found).find("nan"), std::string::npos);
}

TEST_F(ReportDocument, HasNoImageOfAGainThatIsNotFinite) {
  add({1.0, NAN, 2.0});
  add({1.0, 3.0, 2.0});
  EXPECT_TRUE(results::report(report())["norms"][0]["image"].is_null());
}

}  // namespace
}  // namespace normscope::analysis
