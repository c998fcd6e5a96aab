#pragma once

#include <filesystem>

#include <normscope/nets/net.hpp>

/// A net as a safetensors file, for any safetensors reader:
///   metadata  "normscope.lnnet": one JSON object
///     {"schema": "normscope.lnnet/1",
///      "precision": "float64" or "double-double",
///      "layers": [{"count", "in", "out", "activation",
///                  "norm": {"kind", "groups", "eps", "gain": bool, "bias": bool}}, …],
///      "classes": [label of each output, …]}
///     An entry of "layers" stands for `count` layers in a row that differ in their numbers only; "norm" is
///     there where the activation is "norm"; an empty "classes" means 0, 1, …; without "precision" it is
///     float64.
///   tensors   float64, i the index of the entry:
///     layers.i.weight (count, out, in)   layers.i.bias (count, out)
///     layers.i.norm_gain (count, out) and layers.i.norm_bias (count, out) where the norm has them
///     head.weight (outputs, width)       head.bias (outputs)
///     In double-double each weight and bias is the sum of this and of its weight_low, bias_low, and the
///     net is to be evaluated with 106 bits or more.
///   So 60,000 layers of three neurons are four tensors and the head.
namespace normscope::nets {

/// Writes `net`, atomically. `load_net` returns the same net, bit by bit.
///
/// Errors    Shape, Argument: see `validate`; Io
void save_net(const std::filesystem::path& path, const Net& net);

/// Reads a net. Every name, count and number is checked, and tensors without a use are an error.
///
/// Errors    Io, Format, Shape, Argument; messages name the file
[[nodiscard]] Net load_net(const std::filesystem::path& path);

}  // namespace normscope::nets
