#include <normscope/nets/net.hpp>

#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/json_value.hpp>
#include <normscope/files/safetensors.hpp>

namespace normscope::nets {
namespace {

using nlohmann::ordered_json;
using Json = nlohmann::json;

constexpr const char* key = "normscope.lnnet";
constexpr const char* schema = "normscope.lnnet/1";

bool same_but_numbers(const Layer& a, const Layer& b) {
  if (a.in != b.in || a.out != b.out || a.activation != b.activation) return false;
  if (a.activation != Activation::norm) return true;
  return a.norm.kind == b.norm.kind && a.norm.groups == b.norm.groups && a.norm.eps == b.norm.eps &&
         a.norm.gain.empty() == b.norm.gain.empty() && a.norm.bias.empty() == b.norm.bias.empty();
}

ordered_json describe(const Layer& layer, std::size_t count) {
  ordered_json entry = {{"count", count},
                        {"in", layer.in},
                        {"out", layer.out},
                        {"activation", std::string(to_string(layer.activation))}};
  if (layer.activation == Activation::norm) {
    entry["norm"] = {{"kind", std::string(to_string(layer.norm.kind))},
                     {"groups", layer.norm.groups},
                     {"eps", layer.norm.eps},
                     {"gain", !layer.norm.gain.empty()},
                     {"bias", !layer.norm.bias.empty()}};
  }
  return entry;
}

/// The tensors of a file to be written, with their values.
class Tensors {
 public:
  explicit Tensors(std::size_t most) { values_.reserve(most); }

  void add(const std::string& name, std::vector<std::uint64_t> shape, std::vector<double> values) {
    values_.push_back(std::move(values));
    tensors_.push_back({name, Dtype::F64, std::move(shape), std::as_bytes(std::span(values_.back()))});
  }
  [[nodiscard]] const std::vector<files::NewTensor>& all() const { return tensors_; }

 private:
  std::vector<std::vector<double>> values_;
  std::vector<files::NewTensor> tensors_;
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : file_(path), path_(path.string()) {}

  Net read() {
    Net net;
    try {
      const Json json = architecture();
      const Json& entries = json.at("layers");
      if (!entries.is_array()) fail("\"layers\" is not an array");
      net.classes = json.at("classes").get<std::vector<std::int64_t>>();
      if (json.contains("precision")) net.precision = precision(json["precision"].get<std::string>());
      low_ = net.precision == Precision::double_double;
      for (std::size_t i = 0; i < entries.size(); ++i) read_entry(entries[i], i, net);
    } catch (const nlohmann::json::exception& error) {
      fail(fmt::format("its architecture is not as expected: {}", error.what()));
    }
    read_head(net);
    if (used_ != file_.tensors().size())
      fail(fmt::format("has {} tensors, the net {}", file_.tensors().size(), used_));
    try {
      validate(net);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("net: {}: {}", path_, error.what()));
    }
    return net;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::Format, fmt::format("net: {}: {}", path_, what));
  }

  [[nodiscard]] Json architecture() const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end())
      fail(fmt::format("has no \"{}\" in its metadata, expected a net", key));
    std::optional<Json> read = files::read_json(found->second);
    if (!read) fail(fmt::format("its \"{}\" is not valid JSON", key));
    Json json = std::move(*read);
    if (json.at("schema").get<std::string>() != schema)
      fail(fmt::format("does not have the schema \"{}\"", schema));
    return json;
  }

  static std::size_t count_of(const Json& entry, const char* name) {
    // get() would convert a negative or fractional number to some count.
    if (!entry.at(name).is_number_unsigned()) {
      throw Error(ErrorCode::Format,
                  fmt::format("net: \"{}\" is {}, expected a count", name, entry.at(name).dump()));
    }
    const auto count = entry.at(name).get<std::uint64_t>();
    if (count > std::numeric_limits<std::size_t>::max()) throw std::bad_alloc();
    return static_cast<std::size_t>(count);
  }

  /// All values of a tensor, which must have that shape.
  std::vector<double> values(const std::string& name, const std::vector<std::uint64_t>& shape) {
    const files::Tensor* tensor = file_.find(name);
    if (tensor == nullptr) fail(fmt::format("has no tensor \"{}\"", name));
    if (tensor->dtype != Dtype::F64 ||
        !std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
      fail(fmt::format("tensor \"{}\" does not have dtype F64 and the shape that the architecture states",
                       name));
    }
    ++used_;
    return files::read(*tensor);
  }

  /// The low parts of the values of a double-double net; empty for others.
  std::vector<double> low_values(const std::string& name, const std::vector<std::uint64_t>& shape) {
    return low_ ? values(name, shape) : std::vector<double>();
  }

  void read_entry(const Json& entry, std::size_t index, Net& net) {
    const std::size_t count = count_of(entry, "count");
    Layer layer{.in = count_of(entry, "in"), .out = count_of(entry, "out")};
    if (count == 0 || layer.in == 0 || layer.out == 0)
      fail(fmt::format("entry {} of its layers is empty", index));
    layer.activation = activation(entry.at("activation").get<std::string>());
    const std::string prefix = fmt::format("layers.{}.", index);
    // Tensor shapes limit every count before memory of that size is allocated.
    const std::vector<double> weight = values(prefix + "weight", {count, layer.out, layer.in});
    const std::vector<double> bias = values(prefix + "bias", {count, layer.out});
    const std::vector<double> weight_low = low_values(prefix + "weight_low", {count, layer.out, layer.in});
    const std::vector<double> bias_low = low_values(prefix + "bias_low", {count, layer.out});
    std::vector<double> gain;
    std::vector<double> norm_bias;
    if (layer.activation == Activation::norm) {
      const Json& norm = entry.at("norm");
      layer.norm = {.kind = norm_kind(norm.at("kind").get<std::string>()),
                    .width = layer.out,
                    .groups = count_of(norm, "groups"),
                    .eps = norm.at("eps").get<double>()};
      if (layer.norm.elementwise())
        fail(fmt::format("entry {} of its layers has an elementwise norm", index));
      if (norm.at("gain").get<bool>()) gain = values(prefix + "norm_gain", {count, layer.out});
      if (norm.at("bias").get<bool>()) norm_bias = values(prefix + "norm_bias", {count, layer.out});
    }
    const auto slice = [](const std::vector<double>& all, std::size_t at, std::size_t size) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at * size);
      return all.empty() ? std::vector<double>()
                         : std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(size));
    };
    for (std::size_t l = 0; l < count; ++l) {
      layer.weight = slice(weight, l, layer.out * layer.in);
      layer.bias = slice(bias, l, layer.out);
      layer.weight_low = slice(weight_low, l, layer.out * layer.in);
      layer.bias_low = slice(bias_low, l, layer.out);
      layer.norm.gain = slice(gain, l, layer.out);
      layer.norm.bias = slice(norm_bias, l, layer.out);
      net.layers.push_back(layer);
    }
  }

  void read_head(Net& net) {
    const files::Tensor* weight = file_.find("head.weight");
    if (weight == nullptr || weight->shape.size() != 2) fail("has no tensor \"head.weight\" of two axes");
    net.head.out = weight->shape[0];
    net.head.in = weight->shape[1];
    net.head.weight = values("head.weight", {net.head.out, net.head.in});
    net.head.bias = values("head.bias", {net.head.out});
    net.head.weight_low = low_values("head.weight_low", {net.head.out, net.head.in});
    net.head.bias_low = low_values("head.bias_low", {net.head.out});
  }

  files::Checkpoint file_;
  std::string path_;
  std::size_t used_ = 0;
  bool low_ = false;
};

}  // namespace

void save_net(const std::filesystem::path& path, const Net& net) {
  validate(net);
  ordered_json json = {{"schema", schema},
                       {"precision", std::string(to_string(net.precision))},
                       {"layers", ordered_json::array()},
                       {"classes", net.classes}};
  Tensors tensors(6 * net.layers.size() + 4);
  for (std::size_t first = 0; first < net.layers.size();) {
    const Layer& layer = net.layers[first];
    const std::string prefix = fmt::format("layers.{}.", json["layers"].size());
    std::vector<double> weight;
    std::vector<double> bias;
    std::vector<double> weight_low;
    std::vector<double> bias_low;
    std::vector<double> gain;
    std::vector<double> norm_bias;
    const auto append = [](std::vector<double>& all, const std::vector<double>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    std::size_t count = 0;
    for (; first < net.layers.size() && same_but_numbers(layer, net.layers[first]); ++first, ++count) {
      append(weight, net.layers[first].weight);
      append(bias, net.layers[first].bias);
      append(weight_low, net.layers[first].weight_low);
      append(bias_low, net.layers[first].bias_low);
      if (layer.activation != Activation::norm) continue;
      append(gain, net.layers[first].norm.gain);
      append(norm_bias, net.layers[first].norm.bias);
    }
    json["layers"].push_back(describe(layer, count));
    tensors.add(prefix + "weight", {count, layer.out, layer.in}, std::move(weight));
    tensors.add(prefix + "bias", {count, layer.out}, std::move(bias));
    if (!weight_low.empty())
      tensors.add(prefix + "weight_low", {count, layer.out, layer.in}, std::move(weight_low));
    if (!bias_low.empty()) tensors.add(prefix + "bias_low", {count, layer.out}, std::move(bias_low));
    if (!gain.empty()) tensors.add(prefix + "norm_gain", {count, layer.out}, std::move(gain));
    if (!norm_bias.empty()) tensors.add(prefix + "norm_bias", {count, layer.out}, std::move(norm_bias));
  }
  tensors.add("head.weight", {net.head.out, net.head.in}, net.head.weight);
  tensors.add("head.bias", {net.head.out}, net.head.bias);
  if (net.precision == Precision::double_double) {
    tensors.add("head.weight_low", {net.head.out, net.head.in}, net.head.weight_low);
    tensors.add("head.bias_low", {net.head.out}, net.head.bias_low);
  }
  files::write_safetensors(path, tensors.all(), {{key, json.dump()}});
}

Net load_net(const std::filesystem::path& path) { return Reader(path).read(); }

}  // namespace normscope::nets
