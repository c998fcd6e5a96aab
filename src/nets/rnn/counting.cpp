#include <normscope/nets/rnn/counting.hpp>

#include <cmath>
#include <cstdint>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "trained_weights.hpp"

namespace normscope::nets::rnn {
namespace {

constexpr double least_drift = 0.1;
constexpr double most_ratio = 2.0;
constexpr double most_deviation = 0.1;

bool steady(const Drift& drift) {
  return std::abs(drift.mean) >= least_drift && drift.deviation <= most_deviation * std::abs(drift.mean);
}

bool up_and_down(const Drift& one, const Drift& next) {
  const double ratio = std::abs(one.mean / next.mean);
  return steady(one) && steady(next) && one.mean * next.mean < 0.0 && ratio <= most_ratio &&
         ratio >= 1.0 / most_ratio;
}

/// Mean and standard deviation of the changes of `unit` in steps begin + 1, …, end.
Drift drift(std::span<const double> values, std::size_t width, std::size_t unit, std::size_t begin,
            std::size_t end) {
  const auto value = [&](std::size_t step) { return values[step * width + unit]; };
  const double count = static_cast<double>(end - begin);
  Drift drift{.mean = (value(end) - value(begin)) / count};
  double squares = 0.0;
  for (std::size_t step = begin; step < end; ++step) {
    const double apart = value(step + 1) - value(step) - drift.mean;
    squares += apart * apart;
  }
  drift.deviation = std::sqrt(squares / count);
  return drift;
}

Network made(CellKind cell, Language language, std::span<const int> weights) {
  constexpr double decimals = 1e5;
  const TrainSpec spec = trained_spec(cell, language);
  Network network{.language = language, .head = spec.head};
  network.cell = Cell::zeros(cell, letters(language) + 1, spec.width);
  network.output.resize(network.outputs() * (spec.width + 1));
  const std::size_t of_cell = network.cell.parameters.size();
  NORMSCOPE_ASSERT(weights.size() == of_cell + network.output.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    (i < of_cell ? network.cell.parameters[i] : network.output[i - of_cell]) = weights[i] / decimals;
  }
  return network;
}

}  // namespace

std::vector<UnitDrift> drifts(const Network& network, std::size_t n) {
  if (n < least_drift_length) {
    throw Error(ErrorCode::Argument,
                fmt::format("drifts: {} of every letter, expected {} or more", n, least_drift_length));
  }
  const Trace seen = trace(network, member(network.language, n));
  const std::span<const double> values = seen.of(network.cell.kind == CellKind::lstm ? "c" : "h");
  std::vector<UnitDrift> all;
  for (std::size_t unit = 0; unit < seen.width; ++unit) {
    UnitDrift moves{.unit = unit};
    for (std::size_t block = 0; block < letters(network.language); ++block) {
      // Step 0 is after the start symbol.
      moves.blocks.push_back(drift(values, seen.width, unit, block * n + (n + 9) / 10, (block + 1) * n));
    }
    for (std::size_t block = 1; block < moves.blocks.size(); ++block) {
      moves.counts = moves.counts || up_and_down(moves.blocks[block - 1], moves.blocks[block]);
    }
    all.push_back(std::move(moves));
  }
  return all;
}

std::vector<UnitDrift> drifts_if_long(const Network& network, std::size_t n) {
  return n >= least_drift_length ? drifts(network, n) : std::vector<UnitDrift>{};
}

TrainSpec trained_spec(CellKind cell, Language language) {
  if (cell != CellKind::lstm && cell != CellKind::gru) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("count: no trained {} is stored, expected lstm or gru; train one instead",
                            to_string(cell)));
  }
  // The first of a few seeds whose lstm is exact far beyond its training lengths; all grus are similar.
  const bool second = cell == CellKind::lstm && language == Language::anbn;
  return usual(cell, language, Head::next_symbol, second ? 2 : 1);
}

const Network& trained(CellKind cell, Language language) {
  static_cast<void>(trained_spec(cell, language));
  static const Network lstm_anbn = made(CellKind::lstm, Language::anbn, detail::lstm_anbn());
  static const Network gru_anbn = made(CellKind::gru, Language::anbn, detail::gru_anbn());
  static const Network lstm_anbncn = made(CellKind::lstm, Language::anbncn, detail::lstm_anbncn());
  static const Network gru_anbncn = made(CellKind::gru, Language::anbncn, detail::gru_anbncn());
  if (language == Language::anbn) return cell == CellKind::lstm ? lstm_anbn : gru_anbn;
  return cell == CellKind::lstm ? lstm_anbncn : gru_anbncn;
}

Score score_on_near_members(const Network& network) {
  constexpr std::size_t words = 1000;
  constexpr std::uint64_t seed = 1;
  const std::size_t most = network.language == Language::anbn ? 200 : 150;
  return score(network, near_members(network.language, words, most, seed));
}

}  // namespace normscope::nets::rnn
