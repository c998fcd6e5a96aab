#include <string>
#include <vector>

#include <normscope/core/error.hpp>
#include <normscope/verify/verify.hpp>

#include "fuzz_target.hpp"

using namespace normscope;

/// A result from the outside: it is refused, or every statement of it is checked; nothing else ends the
/// check.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<double> rows = {0, 0, 2, 0, 0, 2};
  static const MatrixView<const double> keys(rows.data(), 3, 2);
  try {
    const verify::Result result({reinterpret_cast<const char*>(data), size}, "fuzz");
    verify::Verification found;
    if (result.kind() == "select") {
      found = verify::verify_select(result, keys, false, nullptr, {.threads = 1});
    } else if (result.kind() == "separate") {
      found = verify::verify_separate(result, {{keys, keys}, {{0, 1, 2}, {0, 1, 2}}}, {.threads = 1});
    } else if (result.kind() == "reach") {
      const verify::VocabularyHead head{.norm = {.kind = NormKind::rms, .width = 2}, .unembedding = keys};
      found = verify::verify_reach(result, head, nullptr, {.threads = 1});
    }
    fuzz_require(found.checked >= found.failed.size());
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string head = R"("version":"0","inputs":{"arguments":[],"arrays":[]},)";
  const auto verdict = [](const char* query) {
    return std::string(R"({"answer":"selectable","proof":"query","margin":0.5,"query":[)") + query + "]}";
  };
  return {
      R"({"schema":"normscope.select/1",)" + head +
          R"("keys":3,"width":2,"norm":null,"selectable":3,"unselectable":[],"undecided":[],"proofs":{"alone":0,)"
          R"("own_direction":0,"query":3,"weights":0,"twin":0,"exact":0},"margin":{"least":0.5,"median":0.5,)"
          R"("largest":0.5},"scale":1.3333333333333335,"tolerance":1e-12,"center":[0.6666666666666666,)"
          R"(0.6666666666666666],"verdicts":[)" +
          verdict("-1,-1") + "," + verdict("1,0") + "," + verdict("0,1") + R"(],"certificates":"here"})",
      R"({"schema":"normscope.separate/1",)" + head +
          R"("width":2,"rows":[3,3],"ssr":1.0,"lssr":1.0,"direction":[1.0,0.0],"rank":2,"separable":"no",)"
          R"("margin":null,"normal":[],"offset":null,"a":[{"row":0,"weight":1.0}],"b":[{"row":0,"weight":1.0}],)"
          R"("residual":0.0,"scale":1.3333333333333335,"tolerance":1e-12})",
      "[{},{}]",
  };
}
