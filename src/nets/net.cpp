#include <normscope/nets/net.hpp>

#include <cmath>
#include <string>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>

namespace normscope::nets {
namespace {

void validate_values(const std::string& who, std::string_view what, const std::vector<double>& values,
                     std::size_t expected) {
  if (values.size() != expected) {
    throw Error(ErrorCode::Shape,
                fmt::format("net: {}: {} has {} entries, expected {}", who, what, values.size(), expected));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw Error(ErrorCode::Argument, fmt::format("net: {}: {}[{}] is {}, expected a finite number", who,
                                                   what, i, shown(values[i])));
    }
  }
}

void validate_low(const std::string& who, std::string_view what, const std::vector<double>& high,
                  const std::vector<double>& low, Precision precision) {
  const std::string name = fmt::format("low part of {}", what);
  validate_values(who, name, low, precision == Precision::double_double ? high.size() : 0);
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (high[i] + low[i] != high[i]) {
      throw Error(ErrorCode::Argument,
                  fmt::format("net: {}: {}[{}] is {}, expected less than the rounding of {}", who, name, i,
                              low[i], high[i]));
    }
  }
}

void validate_layer(const std::string& who, const Layer& layer, Precision precision) {
  if (layer.in == 0 || layer.out == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("net: {}: is {} x {}, expected at least 1 x 1", who, layer.out, layer.in));
  }
  if (layer.weight.size() / layer.out != layer.in) {
    throw Error(ErrorCode::Shape, fmt::format("net: {}: weight has {} entries, expected {} x {}", who,
                                              layer.weight.size(), layer.out, layer.in));
  }
  validate_values(who, "weight", layer.weight, layer.out * layer.in);
  validate_values(who, "bias", layer.bias, layer.out);
  validate_low(who, "weight", layer.weight, layer.weight_low, precision);
  validate_low(who, "bias", layer.bias, layer.bias_low, precision);
  if (precision == Precision::double_double && layer.activation == Activation::gelu) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("net: {}: has activation gelu, expected norm, relu or none in double-double", who));
  }
  if (layer.activation != Activation::norm) return;
  if (layer.norm.width != layer.out) {
    throw Error(ErrorCode::Shape,
                fmt::format("net: {}: norm has width {}, expected {}", who, layer.norm.width, layer.out));
  }
  try {
    validate(layer.norm);
    require_normalizing("norm", layer.norm);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("net: {}: {}", who, error.what()));
  }
}

}  // namespace

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::norm: return "norm";
    case Activation::relu: return "relu";
    case Activation::gelu: return "gelu";
    case Activation::none: return "none";
  }
  return "";
}

std::string_view to_string(Precision precision) {
  return precision == Precision::double_double ? "double-double" : "float64";
}

Precision precision(std::string_view name) {
  for (const Precision candidate : {Precision::float64, Precision::double_double}) {
    if (to_string(candidate) == name) return candidate;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("unknown precision \"{}\", expected float64 or double-double", name));
}

Activation activation(std::string_view name) {
  for (const Activation candidate :
       {Activation::norm, Activation::relu, Activation::gelu, Activation::none}) {
    if (to_string(candidate) == name) return candidate;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("unknown activation \"{}\", expected norm, relu, gelu or none", name));
}

void validate(const Net& net) {
  std::size_t width = net.in();
  for (std::size_t l = 0; l <= net.layers.size(); ++l) {
    const bool is_head = l == net.layers.size();
    const Layer& layer = is_head ? net.head : net.layers[l];
    const std::string who = is_head ? "head" : fmt::format("layer {}", l);
    validate_layer(who, layer, net.precision);
    if (layer.in != width) {
      throw Error(ErrorCode::Shape, fmt::format("net: {}: reads {} features, the layer before it writes {}",
                                                who, layer.in, width));
    }
    width = layer.out;
  }
  if (net.head.activation != Activation::none) {
    throw Error(ErrorCode::Argument,
                fmt::format("net: head: has activation {}, expected none", to_string(net.head.activation)));
  }
  if (!net.classes.empty() && net.classes.size() != net.head.out) {
    throw Error(ErrorCode::Shape, fmt::format("net: has {} classes, the head has {} outputs",
                                              net.classes.size(), net.head.out));
  }
}

}  // namespace normscope::nets
