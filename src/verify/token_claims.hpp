#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include <normscope/verify/verify.hpp>

#include "arithmetic.hpp"
#include "document.hpp"

namespace normscope::verify {

enum class Answer { yes, no, undecided, open };

/// How a result states a point of the ball: not at all, because no statement needs it; as the token's own
/// direction; explicitly; or missing although needed.
enum class Point { none, own_direction, given, omitted };

/// The statements of a `reach` result about one token.
struct TokenClaims {
  Answer answer = Answer::open;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  Point witness = Point::none;
  std::vector<double> witness_point{};
  std::vector<Weight> weights{};  ///< weights that prove `upper`
  Answer without_ball = Answer::yes;
  std::vector<Weight> far_weights{};  ///< if `without_ball` is no
  Point far_witness = Point::none;    ///< if `without_ball` is yes and `answer` is not
  std::vector<double> far_point{};
  double far_height = 0.0;
  double probability_lower = 0.0;
  double probability_upper = 1.0;
  Point point = Point::none;
  std::vector<double> probable_point{};
  Point tangent = Point::none;
  std::vector<double> tangent_point{};
  std::vector<Weight> probability_weights{};  ///< or instead of a tangent
};

/// Errors    Format
[[nodiscard]] std::vector<TokenClaims> read_token_claims(const Field& root, const Folder* folder,
                                                         std::size_t tokens, std::size_t width);

}  // namespace normscope::verify
