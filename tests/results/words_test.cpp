#include <normscope/results/words.hpp>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/head_reports.hpp"
#include "analysis/norms.hpp"
#include "analysis/vocabulary_reports.hpp"

namespace normscope::analysis {
namespace {

/// The words of the report's findings of this kind.
std::vector<results::FindingText> words(const Report& report, const std::string& kind) {
  std::vector<results::FindingText> result;
  for (const Finding& finding : find(report)) {
    results::FindingText text = results::describe(finding, report);
    if (text.kind == kind) result.push_back(std::move(text));
  }
  return result;
}

std::string text_of(const Report& report, const std::string& kind) {
  const std::vector<results::FindingText> found = words(report, kind);
  return found.size() == 1 ? found[0].text : fmt::format("{} findings", found.size());
}

Report known(const std::vector<std::pair<double, double>>& extremes) {
  Report report = report_of(extremes);
  report.model.architecture = "gpt2";
  for (heads::HeadReach& head : report.heads) head.norm = "h.0.ln_1";
  return report;
}

TEST(FindingWords, NameWhatHeadsCanNeverDo) {
  const Report report = report_of({{0.0, 50.0}, {2.5, 40.0}, {0.0, 0.0}, {0.0, 5.0}});
  // e^2.5 = 12.18…
  EXPECT_EQ(
      text_of(report, "never_uniform"),
      "1 head can never attend to all keys nearly alike: layer 0 head 1. Whatever the query, some possible "
      "key has at least e times the weight of another (in one of these heads, 12.1 times).");
  EXPECT_EQ(words(report, "never_uniform")[0].reproduce, "normscope heads model.safetensors");
  EXPECT_EQ(text_of(report, "never_sharp"),
            "1 of 3 heads can never put half of their attention on one of 1024 keys: layer 1 head 1. In the "
            "least sharp one, any two weights are within a factor of 149.");
}

TEST(FindingWords, TellPassesOfAHeadApart) {
  EXPECT_NE(text_of(report_of_passes(), "never_uniform")
                .find("1 head can never attend to all keys nearly alike: layer 0 head 0 (later passes)."),
            std::string::npos);
}

TEST(FindingWords, NameUnreachableTokens) {
  const Report report = report_of(proof::Answer::no, 0.2);
  EXPECT_EQ(text_of(report, "unreachable_tokens"),
            "1 of 4 tokens can never have the largest logit after the final norm: token 3 \"the\". If hidden "
            "states "
            "of any length were possible, it would be 0.");
  EXPECT_EQ(text_of(report, "improbable_token"), "No context gives token 3 \"the\" a probability above 0.2.");
  EXPECT_EQ(words(report, "improbable_token")[0].reproduce, "normscope reach model.safetensors");
}

TEST(FindingWords, QuoteFilesForAShell) {
  Report report = report_of(proof::Answer::no, 0.2);
  const std::vector<std::pair<const char*, const char*>> quoted{{"plain/name-1.0:h.0", "plain/name-1.0:h.0"},
                                                                {"two words", "'two words'"},
                                                                {"it's", "'it'\\''s'"},
                                                                {"a\n'\xff", "$'a\\x0a\\x27\\xff'"}};
  for (const auto& [path, word] : quoted) {
    report.path = path;
    EXPECT_EQ(words(report, "improbable_token")[0].reproduce, fmt::format("normscope reach {}", word));
  }
}

using FindingSentences = Norms;

TEST_F(FindingSentences, NameTheNormsAndCountTheOthers) {
  for (int i = 0; i < 30; ++i) add({1.0, 0.0, 2.0, 1.0});
  EXPECT_EQ(
      text_of(report(), "zero_gain"),
      "Gains of exactly zero erase coordinates in norms.0.norm, norms.1.norm, norms.2.norm and 27 others: "
      "1 coordinate in the first.");
}

TEST_F(FindingSentences, HaveNoNumberThatIsNotFinite) {
  add({1e308, -1e308, 0.5e308, 1e300});
  add({1e-200, 2e-200, 3e-200, 4e-200});
  add({5e-324, 1e-323, 5e-324, 0.0});
  const Report given = report();
  for (const Finding& finding : given.findings) {
    const results::FindingText found = results::describe(finding, given);
    EXPECT_EQ(found.text.find("nan"), std::string::npos) << found.text;
    EXPECT_EQ(found.text.find("inf"), std::string::npos) << found.text;
    for (const auto& [name, value] : found.numbers) EXPECT_TRUE(std::isfinite(value)) << found.kind << name;
    EXPECT_FALSE(found.reproduce.empty()) << found.kind;
    EXPECT_NE(found.kind, "constant_gain");
  }
}

/// The lines about the causes of a report.
std::vector<std::string> lines(const Report& report) {
  std::vector<std::string> result;
  for (const Cause& cause : report.causes) result.push_back(results::describe(cause, report).line());
  return result;
}

TEST_F(FindingSentences, TellACauseWithWhatIsUsual) {
  std::vector<double> gain(64, 1.0);
  gain[3] = 1.01;
  add(gain);
  gain[7] = 5.0361;
  for (int i = 0; i < 3; ++i) add(gain);
  Report given = report();
  for (ComparedMeasure& compared : given.measures) {
    compared.usual.reset();
    if (compared.measure == Measure::largest_gain) compared.usual = {.limit = 5.036, .within = 8, .of = 10};
  }
  given.causes = find_causes(given);
  EXPECT_EQ(lines(given),
            std::vector<std::string>{
                "Coordinate 7 stands out in 3 of 4 norms, layers 1 to 3 (usual: at most 5.036, in "
                "8 of 10 reference models)"})
      << "digits tell the value from its limit";
  EXPECT_EQ(
      results::verdict(given),
      fmt::format("One thing is unusual beside {} reference models: coordinate 7.", references().size()));
  given.causes.clear();
  EXPECT_EQ(results::verdict(given),
            fmt::format("Nothing unusual beside {} reference models.", references().size()));
}

TEST_F(FindingSentences, SayAmplifiedOnlyWhereANormAmplifies) {
  const auto title = [&](double last) {
    Report given = report();
    for (ComparedMeasure& compared : given.measures) {
      compared.usual.reset();
      if (compared.measure == Measure::unusual_coordinate) {
        compared.usual = {.limit = 0.1, .within = 8, .of = 10};
      }
    }
    given.causes = find_causes(given);
    EXPECT_EQ(given.causes.size(), 1U) << last;
    EXPECT_EQ(given.norms[*given.causes[0].norm].switched_off.size(), 1U)
        << "the command shows a norm that switches it off";
    return results::describe(given.causes[0], given).title;
  };
  std::vector<double> gain(64, 1.0);
  gain[3] = 1.01;
  add(gain);
  gain[7] = 1e-6;
  add(gain);
  add(gain);
  EXPECT_EQ(title(1.0), "Coordinate 7 is switched off in 2 of 3 norms, layers 1 and 2");
  gain[7] = 30.0;
  add(gain);
  EXPECT_EQ(title(30.0), "Coordinate 7 is switched off or amplified in 3 of 4 norms, layers 1 to 3");
}

TEST(CauseWords, BoundWhatHeadsPrefer) {
  Report given = known({{0.0, 0.5}, {0.0, 300.0}});
  given.measures = {{.measure = Measure::sharp_head, .usual = Usual{.limit = 2.0, .within = 4, .of = 5}}};
  given.causes = find_causes(given);
  // e^0.5 = 1.6487…
  EXPECT_EQ(
      lines(given),
      std::vector<std::string>{
          "1 of 2 heads can hardly prefer one key to another: in head 0.0 no scores differ by more than "
          "0.5, and the weights of their keys by more than a factor of 1.65 (usual: at least 2, in 4 of 5 "
          "reference models)"});
}

TEST(CommandPath, NamesNoFolderOfTheMachine) {
  EXPECT_EQ(results::command_path("models/a.safetensors"), "models/a.safetensors");
  EXPECT_EQ(results::command_path("/somewhere/models/a.safetensors"), "a.safetensors");
  EXPECT_EQ(results::command_path("/somewhere/models/"), "models");
}

TEST(NumberText, WritesPowersOfEAsLowerBounds) {
  EXPECT_EQ(results::format_exp_at_least(2.5), "12.1");
  EXPECT_EQ(results::format_exp_at_least(5.0), "148");
  EXPECT_EQ(results::format_exp_at_least(13.8155), "999989");
  EXPECT_EQ(results::format_exp_at_least(13.8156), "10⁶");
  // The logarithm of 10^9 is 20.72326…
  EXPECT_EQ(results::format_exp_at_least(20.7232), "10⁸");
  EXPECT_EQ(results::format_exp_at_least(20.7233), "10⁹");
  EXPECT_EQ(results::format_exp_at_least(1e4), "10⁴³⁴²");
}

}  // namespace
}  // namespace normscope::analysis
