#include <normscope/nets/rnn/trained.hpp>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "trained_weights.hpp"

namespace normscope::nets::rnn {
namespace {

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

}  // namespace normscope::nets::rnn
