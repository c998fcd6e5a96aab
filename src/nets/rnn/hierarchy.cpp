#include <normscope/nets/rnn/hierarchy.hpp>

#include <array>

namespace normscope::nets::rnn {
namespace {

constexpr std::array classes{
    EncoderClass{
        "finite-state", "Finite state", Space::constant, true,
        "saturated Elman network (tanh), saturated GRU, CNN",
        "Everything inside stays in a fixed, finite set of states, so a finite automaton does the same.",
        "the parity of the a's, for a network with feedback", "Merrill et al. 2020, theorem 5",
        "Saturated.StatesAreIntegers"},
    EncoderClass{"counter-blind", "Counts, cannot look", Space::logarithmic, true,
                 "saturated QRNN, counter machine without zero tests, unigram rational network",
                 "It adds up, but what it adds next never depends on where a counter stands.",
                 "#a - #b, which no finite set of states holds", "Merrill et al. 2020, theorems 3, 4 and 7",
                 "CounterMachine.BlindMachinesAreWeightedAutomata"},
    EncoderClass{"counter-aware", "Counts and looks", Space::logarithmic, false,
                 "saturated LSTM, counter machine, saturated attention",
                 "It counts, and what it does next may depend on whether a counter stands at zero.",
                 "max(0, #a - #b) on words a...ab...b", "Merrill et al. 2020, theorems 2, 15 and 16",
                 "Hankel.CountersThatStopAtZeroAreNotRational"},
    EncoderClass{"rational-complete", "Every rational series", Space::linear, true,
                 "weighted automata side by side",
                 "It can give each word a state of its own, as long as a weighted automaton computes it.",
                 "the value of a binary number, which grows like 2^n", "Merrill et al. 2020, theorem 6",
                 "Weighted.ReadsBinaryNumbers"},
    EncoderClass{"memory", "Unbounded memory", Space::linear, false, "network with a stack",
                 "It remembers whole words, and computes more than any weighted automaton from them.",
                 "what the height of a stack stands for, which stops at empty",
                 "Merrill et al. 2020, lemmas 5 and 6", "Hankel.CountersThatStopAtZeroAreNotRational"},
};

constexpr std::array table{
    Standing{"weighted automaton", "one threshold", "a^n b^n", true, "Merrill et al. 2020, theorem 8",
             "Weighted.RecognizesAnBn"},
    Standing{"LSTM", "one threshold", "a^n b^n", true, "Merrill et al. 2020, theorem 13",
             "Counters.OneThresholdIsEnoughForAnLstm"},
    Standing{"QRNN", "one threshold", "a^n b^n", false, "Merrill et al. 2020, theorem 9",
             "Qrnn.OneThresholdDoesNotReadAnBn"},
    Standing{"QRNN", "two layers of thresholds", "a^n b^n", true, "Merrill et al. 2020, theorem 10",
             "Qrnn.TwoLayersOfThresholdsReadAnBn"},
    Standing{"LSTM", "one threshold", "a^n b^n and anything after, n > 0", true,
             "Merrill et al. 2020, theorem 14", "Counters.AnLstmReadsAPrefix"},
    Standing{"QRNN", "any", "a^n b^n and anything after, n > 0", false, "Merrill et al. 2020, theorem 11",
             "Qrnn.CannotDistinguishTheWordsOfTheSuffixAttack"},
    Standing{"two QRNN layers", "one threshold", "a^n b^n and anything after, n > 0, and the empty word",
             true, "Merrill et al. 2020, theorem 12", "Qrnn.TwoLayersReadAPrefix"},
    Standing{"LSTM", "two layers of thresholds", "a^n b^n", true, "Weiss et al. 2018, section 3",
             "Counters.LstmIsExactOnEveryWord"},
    Standing{"LSTM", "two layers of thresholds", "a^n b^n c^n", true, "Weiss et al. 2018, section 3",
             "Counters.LstmIsExactOnEveryWord"},
    Standing{"Elman network (ReLU)", "a hidden layer of rectifiers", "a^n b^n", true,
             "Weiss et al. 2018, section 3", "Counters.RectifierIsExactOnEveryWord"},
    Standing{"Elman network (ReLU)", "a hidden layer of rectifiers", "a^n b^n c^n", true,
             "Weiss et al. 2018, section 3", "Counters.RectifierIsExactOnEveryWord"},
    Standing{"GRU", "any, states of finite precision", "a^n b^n", false, "Weiss et al. 2018, section 3",
             "Cell.BoundedCellsStayBounded"},
    Standing{"Elman network (tanh)", "any, states of finite precision", "a^n b^n", false,
             "Weiss et al. 2018, section 3", "Cell.BoundedCellsStayBounded"},
};

constexpr std::array proper_inclusions{
    Order{"LSTM", "GRU", "c grows without bound, a GRU's state stays within -1 and 1",
          "Weiss et al. 2018, section 3"},
    Order{"LSTM", "Elman network (tanh)", "the same; with its gates held open or shut it is one",
          "Weiss et al. 2018, section 3"},
    Order{"Elman network (ReLU)", "Elman network (tanh)", "a rectifier grows without bound, tanh does not",
          "Weiss et al. 2018, section 3"},
    Order{"Elman network (ReLU)", "GRU", "a rectifier grows without bound, a GRU's state does not",
          "Weiss et al. 2018, section 3"},
    Order{"saturated LSTM", "saturated QRNN", "its gates see its counters", "Merrill et al. 2020, figure 1"},
    Order{"two QRNN layers", "QRNN", "the second layer sees the first one's counters",
          "Merrill et al. 2020, theorem 12"},
};

}  // namespace

std::string_view to_string(Space space) {
  switch (space) {
    case Space::constant: return "constant";
    case Space::logarithmic: return "logarithmic";
    case Space::linear: break;
  }
  return "linear";
}

std::span<const EncoderClass> encoder_classes() { return classes; }
std::span<const Standing> standings() { return table; }
std::span<const Order> orders() { return proper_inclusions; }

}  // namespace normscope::nets::rnn
