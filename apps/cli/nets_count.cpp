#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/nets/rnn/counting.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

namespace am = nets::rnn;

constexpr const char* states_file = "states.vl.json";  ///< of --figures

struct CountOptions {
  std::string cell = "lstm";
  std::string language = "anbn";
  std::string head;
  bool train = false;
  std::optional<std::size_t> width;
  std::optional<std::size_t> epochs;
  std::optional<std::size_t> longest;
  std::optional<double> rate;
  std::uint64_t seed = 1;
  std::size_t letters = 100;
  std::size_t up_to = 300;
  std::string figures;
  std::string states;
};

am::TrainSpec train_spec(const CountOptions& options) {
  am::TrainSpec spec =
      am::usual(am::cell_kind(options.cell), am::language(options.language),
                options.head.empty() ? am::Head::next_symbol : am::head(options.head), options.seed);
  const auto take = [](const auto& given, auto& value) {
    if (given) value = *given;
  };
  take(options.width, spec.width);
  take(options.epochs, spec.epochs);
  take(options.longest, spec.longest);
  take(options.rate, spec.rate);
  am::validate(spec);
  return spec;
}

/// A network and, if this command trained it, the course of the training.
struct Subject {
  am::Network network;
  am::TrainSpec spec;
  std::optional<results::TrainingCourse> trained{};
  std::string origin;
};

Subject get(const Session& session, const CountOptions& options) {
  if (!options.train) {
    const am::CellKind cell = am::cell_kind(options.cell);
    const am::Language language = am::language(options.language);
    return {am::trained(cell, language), am::trained_spec(cell, language), {}, "comes with normscope"};
  }
  const am::TrainSpec spec = train_spec(options);
  const am::Trainer trainer = am::train(spec, session.progress());
  return {trainer.network(), spec,
          results::TrainingCourse{{trainer.loss().begin(), trainer.loss().end()},
                                  {trainer.accuracy().begin(), trainer.accuracy().end()}},
          fmt::format("{} epochs, loss {:.4f}, {:.1f} % of the training words right", trainer.loss().size(),
                      trainer.loss().back(), 100.0 * trainer.accuracy().back())};
}

std::string describe(const am::Network& network, const std::vector<am::UnitDrift>& drifts) {
  const char* const name = network.cell.kind == am::CellKind::lstm ? "c" : "h";
  std::string text;
  for (const am::UnitDrift& unit : drifts) {
    if (!unit.counts) continue;
    text += fmt::format("{}{}{} (", text.empty() ? "counts in " : ", ", name, unit.unit);
    for (std::size_t block = 0; block < unit.blocks.size(); ++block) {
      text += fmt::format("{}{:+.4f} per letter {}", block == 0 ? "" : ", ", unit.blocks[block].mean,
                          static_cast<char>('a' + block));
    }
    text += ")";
  }
  return text.empty() ? "no unit counts" : text;
}

int run_count(const Session& session, Inputs& /*inputs*/, Outputs& outputs, const CountOptions& options) {
  const Subject subject = get(session, options);
  const am::Network& network = subject.network;
  const am::Range range = am::range(network, options.up_to);
  const am::Score score = am::score_on_near_members(network);
  const std::vector<am::UnitDrift> drifts = am::drifts_if_long(network, options.letters);

  const am::TrainSpec& spec = subject.spec;
  outputs.write_text_into(options.figures, states_file, [&] {
    return json_text(figures::counting_trace(network, options.letters)) + "\n";
  });
  outputs.write_text(options.states,
                     [&] { return json_text(results::trace(network, options.letters)) + "\n"; });
  outputs.commit([&] {
    return json_text(results::count({.network = network,
                                     .spec = spec,
                                     .trained = subject.trained,
                                     .range = range,
                                     .near_members = score,
                                     .n = options.letters,
                                     .drifts = drifts}));
  });

  session.say(fmt::format("{} of {} units on {} up to {}, {}, seed {}: {}", options.cell, network.cell.width,
                          options.language, spec.longest, am::to_string(network.head), spec.seed,
                          subject.origin));
  const std::size_t exact = range.exact_to();
  session.say(
      exact < 5
          ? std::string("not exact: at n = 5 a member is rejected or another word accepted")
          : fmt::format("exact for n from 5 to {}{}: the member is accepted; words with fewer or up "
                        "to {} more of the last letter{} are rejected",
                        exact, exact == options.up_to ? " and maybe beyond" : "", am::Range::beyond,
                        letters(network.language) > 2
                            ? fmt::format(", or up to {} fewer or more of the one before,", am::Range::around)
                            : ""));
  session.say(fmt::format(
      "{} near members: {:.1f} % right; {:.1f} % of members accepted, {:.1f} % of others "
      "rejected",
      score.words, 100.0 * score.accuracy(), 100.0 * score.accepted_members, 100.0 * score.rejected_others));
  if (!drifts.empty()) session.say(describe(network, drifts));
  return ok;
}

}  // namespace

Command count_command() {
  const auto options = std::make_shared<CountOptions>();
  const auto of_training = [](Argument argument) { return std::move(argument).needs({"--train"}); };
  return {
      .name = "count",
      .text =
          "Test how far a recurrent network can count letters (a^n b^n): a stored one, or a newly trained "
          "one",
      .outputs = {output("--figures", options->figures, Role::folder, {states_file})
                      .says("the states over the word"),
                  output("--states", options->states)},
      .options = {option("--cell", options->cell).one_of({"lstm", "gru", "elman_tanh", "elman_relu"}),
                  option("--language", options->language).one_of({"anbn", "anbncn"}),
                  option("-n", options->letters), option("--up-to", options->up_to),
                  option("--train", options->train),
                  of_training(option("--head", options->head).one_of({"membership", "next_symbol"})),
                  of_training(option("--width", options->width)
                                  .says("of the hidden state")
                                  .usually("10")
                                  .within(counts(1, 256))),
                  of_training(option("--epochs", options->epochs)),
                  of_training(option("--longest", options->longest)),
                  of_training(option("--lr", options->rate).usually("the task's")),
                  of_training(option("--seed", options->seed).says("of weights, words and their order"))},
      .examples = {"normscope nets count --cell lstm --up-to 50"},
      .run = with(run_count, options)};
}

}  // namespace normscope::cli
