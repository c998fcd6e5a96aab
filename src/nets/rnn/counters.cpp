#include <initializer_list>

#include <normscope/nets/rnn/saturated.hpp>

// Weights set by hand. Gates of an lstm are i, f, o, g; letters are a, b, c.
namespace normscope::nets::rnn {
namespace {

enum Gate : std::size_t { input, forget, output, candidate };

struct Term {
  std::size_t from;
  double weight;
};

/// One row of one map.
struct Row {
  double bias = 0.0;
  std::initializer_list<Term> letters{};
  std::initializer_list<Term> units{};
};

void set(Cell& cell, std::size_t map, std::size_t unit, const Row& row) {
  cell.bias(map)[unit] = row.bias;
  for (const Term& term : row.letters) cell.weight(map)[unit * cell.symbols + term.from] = term.weight;
  for (const Term& term : row.units) cell.recurrent(map)[unit * cell.width + term.from] = term.weight;
}

/// c' + the value of `up` if the gate `when` is open; always open without a `when`.
void accumulate(Cell& cell, std::size_t unit, const Row& up, const Row& when = {.bias = 1.0}) {
  set(cell, input, unit, when);
  set(cell, forget, unit, {.bias = 1.0});
  set(cell, output, unit, {.bias = 1.0});
  set(cell, candidate, unit, up);
}

/// 1 if the last letter was `letter`, −1 if it was another, 0 before the first.
void remember(Cell& cell, std::size_t unit, std::size_t letter) {
  set(cell, input, unit, {.bias = 1.0});
  set(cell, forget, unit, {.bias = -1.0});
  set(cell, output, unit, {.bias = 1.0});
  set(cell, candidate, unit, {.bias = -1.0, .letters = {{letter, 2.0}}});
}

/// Counts the occurrences of `letter` while unit `last` is `sign`. Since h is at least tanh 1 > 3/4, 2 sign h
/// + 2 [letter] − 5/2 is at most −1/2, or at least 1.
void latch(Cell& cell, std::size_t unit, std::size_t letter, std::size_t last, double sign) {
  accumulate(cell, unit, {.bias = 1.0},
             {.bias = -2.5, .letters = {{letter, 2.0}}, .units = {{last, 2.0 * sign}}});
}

/// Accepts if none of the given affine functions of the state is positive.
Decoder none_positive(Decoder::Activation activation, std::size_t width,
                      std::initializer_list<std::initializer_list<Term>> rows) {
  Decoder decoder{.activation = activation};
  for (const auto& row : rows) {
    decoder.hidden_weight.resize(decoder.hidden_weight.size() + width);
    for (const Term& term : row) *(decoder.hidden_weight.end() - width + term.from) = term.weight;
  }
  decoder.hidden_bias.assign(rows.size(), 0.0);
  decoder.weight.assign(rows.size(), -1.0);
  decoder.bias = 0.5;
  return decoder;
}

constexpr std::size_t a = 0;
constexpr std::size_t b = 1;
constexpr std::size_t c = 2;

Acceptor lstm_of_two_letters() {
  enum Unit : std::size_t { count, last_b, ba, units };
  Acceptor made{Cell::zeros(CellKind::lstm, 2, units), {}};
  accumulate(made.cell, count, {.letters = {{a, 1.0}, {b, -1.0}}});
  remember(made.cell, last_b, b);
  latch(made.cell, ba, a, last_b, 1.0);
  made.decoder =
      none_positive(Decoder::Activation::step, units, {{{count, 1.0}}, {{count, -1.0}}, {{ba, 1.0}}});
  return made;
}

Acceptor lstm_of_three_letters() {
  enum Unit : std::size_t { first, second, last_a, last_c, late_a, late_b, early_c, units };
  Acceptor made{Cell::zeros(CellKind::lstm, 3, units), {}};
  // A letter that a counter ignores leaves it unchanged: its input gate is closed.
  accumulate(made.cell, first, {.letters = {{a, 1.0}, {b, -1.0}, {c, 1.0}}},
             {.bias = 1.0, .letters = {{c, -2.0}}});
  accumulate(made.cell, second, {.letters = {{a, 1.0}, {b, 1.0}, {c, -1.0}}},
             {.bias = 1.0, .letters = {{a, -2.0}}});
  remember(made.cell, last_a, a);
  remember(made.cell, last_c, c);
  latch(made.cell, late_a, a, last_a, -1.0);
  latch(made.cell, late_b, b, last_c, 1.0);
  latch(made.cell, early_c, c, last_a, 1.0);
  made.decoder = none_positive(Decoder::Activation::step, units,
                               {{{first, 1.0}},
                                {{first, -1.0}},
                                {{second, 1.0}},
                                {{second, -1.0}},
                                {{late_a, 1.0}},
                                {{late_b, 1.0}},
                                {{early_c, 1.0}}});
  return made;
}

/// h' + [letter].
void count_letter(Cell& cell, std::size_t unit, std::size_t letter) {
  set(cell, 0, unit, {.letters = {{letter, 1.0}}, .units = {{unit, 1.0}}});
}

/// [last letter] of consecutive letters: 1 if `letter` follows the one that `last` stores.
void pair(Cell& cell, std::size_t unit, std::size_t last, std::size_t letter) {
  set(cell, 0, unit, {.bias = -1.0, .letters = {{letter, 1.0}}, .units = {{last, 1.0}}});
}

Acceptor relu_of_two_letters() {
  enum Unit : std::size_t { as, bs, last_b, ba, earlier_ba, units };
  Acceptor made{Cell::zeros(CellKind::elman_relu, 2, units), {}};
  count_letter(made.cell, as, a);
  count_letter(made.cell, bs, b);
  set(made.cell, 0, last_b, {.letters = {{b, 1.0}}});
  pair(made.cell, ba, last_b, a);
  set(made.cell, 0, earlier_ba, {.units = {{earlier_ba, 1.0}, {ba, 1.0}}});
  made.decoder =
      none_positive(Decoder::Activation::relu, units,
                    {{{as, 1.0}, {bs, -1.0}}, {{as, -1.0}, {bs, 1.0}}, {{ba, 1.0}}, {{earlier_ba, 1.0}}});
  return made;
}

Acceptor relu_of_three_letters() {
  enum Unit : std::size_t { as, bs, cs, last_a, last_b, last_c, ba, cb, ca, ac, earlier, units };
  Acceptor made{Cell::zeros(CellKind::elman_relu, 3, units), {}};
  for (const std::size_t letter : {a, b, c}) {
    count_letter(made.cell, as + letter, letter);
    set(made.cell, 0, last_a + letter, {.letters = {{letter, 1.0}}});
  }
  pair(made.cell, ba, last_b, a);
  pair(made.cell, cb, last_c, b);
  pair(made.cell, ca, last_c, a);
  pair(made.cell, ac, last_a, c);
  set(made.cell, 0, earlier, {.units = {{earlier, 1.0}, {ba, 1.0}, {cb, 1.0}, {ca, 1.0}, {ac, 1.0}}});
  made.decoder = none_positive(Decoder::Activation::relu, units,
                               {{{as, 1.0}, {bs, -1.0}},
                                {{as, -1.0}, {bs, 1.0}},
                                {{bs, 1.0}, {cs, -1.0}},
                                {{bs, -1.0}, {cs, 1.0}},
                                {{ba, 1.0}, {cb, 1.0}, {ca, 1.0}, {ac, 1.0}, {earlier, 1.0}}});
  return made;
}

enum ThresholdUnit : std::size_t { above, below, last_b, ba, threshold_units };

void add_threshold_units(Cell& cell) {
  // 10 h − 2 [b] + 1: closed for b if the counter is 0, since tanh 1 > 3/4.
  accumulate(cell, above, {.letters = {{a, 1.0}, {b, -1.0}}},
             {.bias = 1.0, .letters = {{b, -2.0}}, .units = {{above, 10.0}}});
  accumulate(cell, below, {.bias = 1.0}, {.bias = -1.0, .letters = {{b, 2.0}}, .units = {{above, -10.0}}});
  remember(cell, last_b, b);
  latch(cell, ba, a, last_b, 1.0);
}

}  // namespace

Acceptor lstm_counter(Language language) {
  return language == Language::anbn ? lstm_of_two_letters() : lstm_of_three_letters();
}

Acceptor relu_counter(Language language) {
  return language == Language::anbn ? relu_of_two_letters() : relu_of_three_letters();
}

Acceptor lstm_threshold_counter() {
  Acceptor made{Cell::zeros(CellKind::lstm, 2, threshold_units), {}};
  add_threshold_units(made.cell);
  // Each unit is 0, or at least tanh 1.
  made.decoder = {.weight = {-1.0, -1.0, 0.0, -1.0}, .bias = 0.5};
  return made;
}

Acceptor lstm_prefix_counter() {
  const std::size_t matched = threshold_units;
  Acceptor made{Cell::zeros(CellKind::lstm, 2, threshold_units + 1), {}};
  add_threshold_units(made.cell);
  accumulate(made.cell, matched, {.bias = 1.0},
             {.bias = -0.5, .units = {{above, -1.0}, {below, -1.0}, {last_b, 1.0}, {ba, -1.0}}});
  // 7 tanh 1 exceeds the sum of all the others.
  made.decoder = {.weight = {-1.0, -1.0, 1.0, -1.0, 7.0}, .bias = -0.5};
  return made;
}

}  // namespace normscope::nets::rnn
