#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/nets/rnn/counting.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

namespace am = nets::rnn;

/// Number of words of the test set of [Weiss et al. 2018], and their largest exponent.
constexpr std::size_t test_words = 1000;
constexpr std::size_t test_seed = 1;

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
  std::string figure;
  std::string trace;
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

int run_count(const Session& session, const CountOptions& options) {
  expect_writable({options.figure, options.trace});
  keep_apart({}, {options.figure, options.trace, session.json});
  const Subject subject = get(session, options);
  const am::Network& network = subject.network;
  const am::Range range = am::range(network, options.up_to);
  const am::Score score =
      am::score(network, am::near_members(network.language, test_words,
                                          network.language == am::Language::anbn ? 200 : 150, test_seed));
  const std::vector<am::UnitDrift> drifts = options.letters >= am::least_drift_length
                                                ? am::drifts(network, options.letters)
                                                : std::vector<am::UnitDrift>{};

  const am::TrainSpec& spec = subject.spec;
  const auto write = [](const std::string& path, const nlohmann::ordered_json& json) {
    AtomicFile file(path);
    file.write(json_text(json) + "\n");
    file.commit();
  };
  AtomicGroup outputs;
  if (!options.figure.empty()) write(options.figure, figures::counting_trace(network, options.letters));
  if (!options.trace.empty()) write(options.trace, results::trace(network, options.letters));
  session.write_json(json_text(results::count({.network = network,
                                               .spec = spec,
                                               .trained = subject.trained,
                                               .range = range,
                                               .near_members = score,
                                               .n = options.letters,
                                               .drifts = drifts})));
  outputs.commit();

  session.say(fmt::format("{} of {} units on {} up to {}, {}, seed {}: {}", options.cell, network.cell.width,
                          options.language, spec.longest, am::to_string(network.head), spec.seed,
                          subject.origin));
  const std::size_t exact = range.exact_to();
  session.say(exact < 5
                  ? std::string("not exact: at n = 5 a member is rejected or another word accepted")
                  : fmt::format("exact for n from 5 to {}{}: the member is accepted; words with fewer or up "
                                "to {} more of the last letter are rejected",
                                exact, exact == options.up_to ? " and maybe beyond" : "", am::Range::beyond));
  session.say(fmt::format(
      "{} near members: {:.1f} % right; {:.1f} % of members accepted, {:.1f} % of others "
      "rejected",
      score.words, 100.0 * score.accuracy(), 100.0 * score.accepted_members, 100.0 * score.rejected_others));
  if (!drifts.empty()) session.say(describe(network, drifts));
  return ok;
}

}  // namespace

void add_count(CLI::App& root, Session& session) {
  const auto options = std::make_shared<CountOptions>();
  CLI::App* command = add_command(
      root, session, "count",
      "Test how far a recurrent network can count letters (a^n b^n): a stored one, or a newly trained one",
      [&session, options] { return run_count(session, *options); });
  command->add_option("--cell", options->cell, "Recurrent cell (default lstm)")
      ->check(CLI::IsMember({"lstm", "gru", "elman_tanh", "elman_relu"}));
  command->add_option("--language", options->language, "Language: a^n b^n or a^n b^n c^n (default anbn)")
      ->check(CLI::IsMember({"anbn", "anbncn"}));
  CLI::Option* train = command->add_flag(
      "--train", options->train, "Train a network; without it, a stored one is used (lstm and gru only)");
  const auto when_training = [&](CLI::Option* option, const std::string& type) {
    option->needs(train)->type_name(type);
    return option;
  };
  when_training(command->add_option("--head", options->head, "Training target (default next_symbol)"), "HEAD")
      ->check(CLI::IsMember({"membership", "next_symbol"}));
  when_training(command->add_option("--width", options->width, "Number of hidden units (default 10)"), "N")
      ->check(counts(1, 256));
  when_training(
      command->add_option("--epochs", options->epochs, "Largest number of epochs (default: the task's)"), "N")
      ->check(counts(1, largest_count));
  when_training(command->add_option("--longest", options->longest,
                                    "Largest n in the training words (default 100; 50 for anbncn)"),
                "N")
      ->check(counts(1, 1000));
  when_training(command->add_option("--lr", options->rate, "Learning rate (default: the task's)"), "X")
      ->check(numbers(0.0, 1.7e308));
  when_training(command->add_option("--seed", options->seed,
                                    "Random seed of weights, words and their order (default 1)"),
                "S")
      ->check(seeds());
  command->add_option("-n", options->letters, "n of the word whose states are shown (default 100)")
      ->type_name("N")
      ->check(counts(0, 10000));
  command->add_option("--up-to", options->up_to, "Largest n tested (default 300)")
      ->type_name("N")
      ->check(counts(5, 1000));
  command->add_option("--figure", options->figure, "Write a figure (Vega-Lite) of the states over the word")
      ->type_name("FILE");
  command
      ->add_option("--trace", options->trace, "Write every state, gate and probability over the word as JSON")
      ->type_name("FILE");
  add_examples(*command, {"normscope nets count --cell lstm --up-to 50"});
}

}  // namespace normscope::cli
