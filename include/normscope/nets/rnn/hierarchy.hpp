#pragma once

#include <cstdint>
#include <span>
#include <string_view>

/// The formal hierarchy of recurrent architectures as data.
///
/// Saturated cells (`saturated.hpp`) are compared by the number of states they can be in after n letters, and
/// by whether weighted automata can compute the same functions.
///
/// Source    [Merrill et al. 2020, figure 1 and section 4]; [Weiss, Goldberg, Yahav 2018]
namespace normscope::nets::rnn {

/// 2^T(n) states after at most n letters.
enum class Space : std::uint8_t { constant, logarithmic, linear };

[[nodiscard]] std::string_view to_string(Space space);

/// One class of the map.
struct EncoderClass {
  std::string_view id;
  std::string_view name;
  Space space;
  bool rational;             ///< all its functions are rational series
  std::string_view members;  ///< architectures, separated by ", "
  std::string_view says;     ///< its meaning, in one sentence
  std::string_view
      example;  ///< a function or language in this class that is not in the classes below or beside it
  std::string_view source;
  std::string_view test;  ///< a test of ours that shows it; empty if there is none
};

/// Whether an architecture with a decoder recognizes a language.
struct Standing {
  std::string_view architecture;
  std::string_view decoder;  ///< one threshold, two layers of thresholds, or any; and what the states must be
  std::string_view language;
  bool recognizes;
  std::string_view source;
  std::string_view test;
};

/// An architecture that can do strictly more than another.
struct Order {
  std::string_view more;
  std::string_view less;
  std::string_view because;
  std::string_view source;
};

[[nodiscard]] std::span<const EncoderClass> encoder_classes();
[[nodiscard]] std::span<const Standing> standings();
[[nodiscard]] std::span<const Order> orders();

}  // namespace normscope::nets::rnn
