#include <normscope/core/norm_spec.hpp>

#include <cmath>
#include <string>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>

namespace normscope {

std::string_view to_string(NormKind kind) {
  switch (kind) {
    case NormKind::layer: return "layer";
    case NormKind::rms: return "rms";
    case NormKind::spherical: return "spherical";
  }
  return "";
}

NormKind norm_kind(std::string_view name) {
  for (NormKind kind : {NormKind::layer, NormKind::rms, NormKind::spherical}) {
    if (to_string(kind) == name) return kind;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("unknown norm kind \"{}\", expected layer, rms or spherical", name));
}

double NormSpec::radius() const {
  return kind == NormKind::spherical ? 1.0 : std::sqrt(static_cast<double>(block_width()));
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

}  // namespace normscope
