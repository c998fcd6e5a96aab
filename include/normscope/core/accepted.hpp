#pragma once

#include <initializer_list>
#include <string_view>

#include <normscope/core/view.hpp>

/// The sizes of numbers that the solvers accept. Numbers of models are far within these limits; beyond them,
/// squares and products of doubles overflow or lose their digits. A power of two times all numbers, or times
/// a column of points, changes no answer.
namespace normscope {

/// The largest number accepted, 1.3e30.
inline constexpr double largest_accepted = 0x1p100;
/// The smallest scale of logits accepted, 7.9e-31.
inline constexpr double least_accepted = 0x1p-100;
/// The smallest difference between the largest and the smallest entry of a column, 6.2e-61, unless it is 0.
/// The smallest positive float32 is larger.
inline constexpr double least_extent = 0x1p-200;

/// Refuses points with a number above `largest_accepted` or a column that extends over less than
/// `least_extent`. `who` begins the message.
///
/// Shapes    sets of rows of one width
///
/// Errors    Argument, for numbers that are not finite, too
///
/// Cost      O(rows width)
void expect_accepted(std::string_view who, std::initializer_list<MatrixView<const double>> sets);

/// Refuses a scale of logits above `largest_accepted` or, unless it is 0, below `least_accepted`.
///
/// Errors    Argument
void expect_accepted_logits(std::string_view who, double scale);

}  // namespace normscope
