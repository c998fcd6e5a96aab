#include <string>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/nets/rnn/theorems.hpp>

#include "frame/experiment.hpp"

// Networks with weights written by hand, on every word and on long ones.
namespace normscope::lab::weiss_counters {
namespace {

namespace am = nets::rnn;

Plan plan(Size size) {
  const bool full = size == Size::full;
  Plan plan;
  const auto add = [&](const char* machine, am::Language language) {
    const std::size_t longest = language == am::Language::anbn ? (full ? 14 : 10) : (full ? 10 : 6);
    plan.configurations.push_back({{"machine", machine},
                                   {"language", am::to_string(language)},
                                   {"longest", longest},
                                   {"n", full ? 10000 : 1000}});
  };
  for (const am::Language language : {am::Language::anbn, am::Language::anbncn}) {
    add("lstm", language);
    add("lstm_linear_output", language);
    add("elman_relu", language);
  }
  add("lstm_one_threshold", am::Language::anbn);
  return plan;
}

am::Acceptor made(const std::string& machine, am::Language language) {
  if (machine == "elman_relu") return am::relu_counter(language);
  if (machine == "lstm_one_threshold") {
    if (language != am::Language::anbn) {
      throw Error(ErrorCode::Argument, "weiss-counters: lstm_one_threshold on anbncn, expected anbn");
    }
    return am::lstm_threshold_counter();
  }
  if (machine != "lstm" && machine != "lstm_linear_output") {
    throw Error(
        ErrorCode::Argument,
        fmt::format("weiss-counters: machine \"{}\", expected lstm, lstm_linear_output, elman_relu or "
                    "lstm_one_threshold",
                    machine));
  }
  am::Acceptor acceptor = am::lstm_counter(language);
  acceptor.cell.linear_output = machine == "lstm_linear_output";
  return acceptor;
}

void perform(Run& run) {
  const am::Language language = am::language(run.get<std::string>("language"));
  const am::Acceptor acceptor = made(run.get<std::string>("machine"), language);
  if (run.step() == 0) {
    run.measure("mistakes_around_n", 1,
                static_cast<double>(am::mistakes_around(acceptor, language, run.get<std::size_t>("n"))));
    const am::Comparison seen = am::compare(acceptor, language, run.get<std::size_t>("longest"));
    run.measure("words", 1, static_cast<double>(seen.words));
    run.measure("mistakes", 1, static_cast<double>(seen.differ));
    run.reached(1, 1, [] { return Bytes{}; });
  }
}

Finding exact(const Results& results, const char* machine) {
  const Results runs = results.where("machine", machine);
  Finding finding;
  for (const Done& run : runs.runs()) {
    const bool three = run.is("language", "anbncn");
    finding.ours += fmt::format("{}{}: {:.0f} mistakes on {:.0f} words, {:.0f} around n = {}",
                                finding.ours.empty() ? "" : "; ", three ? "a^n b^n c^n" : "a^n b^n",
                                run.last("mistakes"), run.last("words"), run.last("mistakes_around_n"),
                                run.configuration.at("n").get<std::size_t>());
    finding.effects.push_back(run.last("mistakes") + run.last("mistakes_around_n") == 0.0 ? 1.0 : 0.0);
  }
  return finding;
}

constexpr std::string_view rule =
    "no mistake on all words of up to 14 letters over a, b and of up to 10 over a, b, c, nor on the member "
    "with n = 10,000 and its neighbours";

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "weiss-counters",
    .paper = "Weiss 2018",
    .claim = "An LSTM and an Elman network with ReLU count exactly with weights set by hand",
    .quick_seconds = 1,
    .full_minutes = 0.1,
    .scale = {.paper = "theorems, of any size",
              .ours = "every word of up to 14 letters (10 of three letters), and n = 10,000"},
    .plan = plan,
    .perform = perform,
    .claims = {{"lstm",
                "An LSTM can count: a^n b^n and a^n b^n c^n",
                "section 3",
                {rule},
                [](const Results& results) { return exact(results, "lstm"); }},
               {"lstm_linear_output",
                "An LSTM with h = o ∘ c instead of o ∘ tanh c can count as well",
                "section 3, as an option",
                {rule},
                [](const Results& results) { return exact(results, "lstm_linear_output"); }},
               {"elman_relu",
                "An Elman network with ReLU can count: a^n b^n and a^n b^n c^n",
                "section 3, after Chen et al. 2017",
                {rule},
                [](const Results& results) { return exact(results, "elman_relu"); }},
               {"lstm_one_threshold",
                "One threshold on an LSTM is enough for a^n b^n",
                "Merrill et al. 2020, theorem 13, its second unit corrected",
                {rule},
                [](const Results& results) { return exact(results, "lstm_one_threshold"); }}}};

}  // namespace normscope::lab::weiss_counters
