#include <normscope/core/norm_spec.hpp>

#include <cmath>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>

namespace normscope {

namespace {

std::string listed(const std::vector<std::string>& names) {
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

consteval bool kinds_are_in_order() {
  for (std::size_t i = 0; i < norm_kinds.size(); ++i) {
    if (norm_kinds[i].kind != static_cast<NormKind>(i)) return false;
  }
  return true;
}
static_assert(kinds_are_in_order());

}  // namespace

std::vector<std::string> norm_kind_names() {
  std::vector<std::string> names;
  names.reserve(std::size(norm_kinds));
  for (const NormKindFacts& row : norm_kinds) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> normalizing_kind_names() {
  std::vector<std::string> names;
  for (const NormKindFacts& row : norm_kinds) {
    if (!is_elementwise(row.kind)) names.emplace_back(row.name);
  }
  return names;
}

std::string_view to_string(NormEffect effect) {
  switch (effect) {
    case NormEffect::normalizes: return "normalizes";
    case NormEffect::elementwise: return "elementwise";
    case NormEffect::off: return "off";
  }
  return "";
}

NormEffect effect_of(NormKind kind, double eps, std::size_t width) {
  if (is_elementwise(kind)) return NormEffect::elementwise;
  const double entries = facts(kind).divisor == Divisor::length ? static_cast<double>(width) : 1.0;
  return eps >= eps_of_off * entries ? NormEffect::off : NormEffect::normalizes;
}

NormKind norm_kind(std::string_view name) {
  for (const NormKindFacts& row : norm_kinds) {
    if (row.name == name) return row.kind;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("unknown norm kind \"{}\", expected {}", name, listed(norm_kind_names())));
}

namespace {

void validate_parameter(std::string_view what, const std::vector<double>& values, std::size_t width) {
  if (values.empty()) return;
  if (values.size() != width) {
    throw Error(ErrorCode::Shape,
                fmt::format("norm: {} has {} entries, expected the width, {}", what, values.size(), width));
  }
  for (std::size_t i = 0; i < width; ++i) {
    if (!std::isfinite(values[i])) {
      throw Error(ErrorCode::Argument,
                  fmt::format("norm: {}[{}] is {}, expected a finite number", what, i, shown(values[i])));
    }
  }
}

void validate_scalar(std::string_view what, double value) {
  if (std::isfinite(value)) return;
  throw Error(ErrorCode::Argument,
              fmt::format("norm: {} is {}, expected a finite number", what, shown(value)));
}

void refuse_unused(std::string_view what, double value, double neutral, NormKind kind, bool used) {
  if (used || value == neutral) return;
  throw Error(ErrorCode::Argument, fmt::format("norm: {} is {}, but {} has no {}; expected {}", what,
                                               shown(value), to_string(kind), what, shown(neutral)));
}

}  // namespace

void validate(const NormSpec& spec) {
  if (spec.width == 0) throw Error(ErrorCode::Shape, "norm: width is 0, expected at least 1");
  if (spec.groups == 0 || spec.width % spec.groups != 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("norm: {} groups do not divide width {}", spec.groups, spec.width));
  }
  if (!(spec.eps >= 0.0) || !std::isfinite(spec.eps)) {
    throw Error(ErrorCode::Argument,
                fmt::format("norm: eps is {}, expected a finite number >= 0", shown(spec.eps)));
  }
  if (spec.elementwise()) {
    if (spec.groups != 1) {
      throw Error(ErrorCode::Argument, fmt::format("norm: {} has {} groups, expected 1: it is elementwise",
                                                   to_string(spec.kind), spec.groups));
    }
    validate_scalar("alpha", spec.alpha);
    validate_scalar("shift", spec.shift);
  }
  refuse_unused("alpha", spec.alpha, 1.0, spec.kind, spec.elementwise());
  refuse_unused("shift", spec.shift, 0.0, spec.kind, facts(spec.kind).has_shift);
  validate_parameter("gain", spec.gain, spec.width);
  validate_parameter("bias", spec.bias, spec.width);
}

void validate(std::string_view who, const NormSpec& spec, MatrixView<const double> x,
              MatrixView<const double> y) {
  validate(spec);
  if (x.width() != spec.width || y.width() != spec.width || x.rows() != y.rows()) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: x is {} x {}, y is {} x {}, expected equal rows of width {}", who, x.rows(),
                            x.width(), y.rows(), y.width(), spec.width));
  }
}

void require_normalizing(std::string_view who, const NormSpec& spec) {
  if (!spec.elementwise()) return;
  throw Error(ErrorCode::Argument,
              fmt::format("{}: the norm is {} ({}), which is elementwise; expected {}", who,
                          to_string(spec.kind), facts(spec.kind).title, listed(normalizing_kind_names())));
}

}  // namespace normscope
