#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <normscope/core/error.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/net.hpp>

#include "fuzz_target.hpp"

using namespace normscope;

namespace {

/// A file in memory, for a reader that maps what it reads.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("fuzz", 0)) { fuzz_require(descriptor_ >= 0); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  void fill(const std::uint8_t* data, std::size_t size) const {
    fuzz_require(ftruncate(descriptor_, 0) == 0);
    fuzz_require(pwrite(descriptor_, data, size, 0) == static_cast<ssize_t>(size));
  }
  [[nodiscard]] std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

nets::Net net_of(nets::Activation activation, nets::Precision precision) {
  nets::Net net;
  net.precision = precision;
  nets::Layer layer{
      .in = 2, .out = 3, .weight = {1, 2, 3, 4, 5, 6}, .bias = {0.5, 0, 1}, .activation = activation};
  layer.norm = {.width = 3, .eps = 0.0, .gain = {1, 2, 3}, .bias = {0, 0, 1}};
  net.layers = {layer, layer};
  net.layers[1].in = 3;
  net.layers[1].weight.resize(9, 0.25);
  net.head = {.in = 3, .out = 2, .weight = {1, 0, 0, 0, 1, 0}, .bias = {0, 0}};
  net.classes = {-1, 7};
  if (precision == nets::Precision::float64) return net;
  const auto widen = [](nets::Layer& each) {
    each.weight_low.resize(each.weight.size());
    each.bias_low.resize(each.out);
  };
  for (nets::Layer& each : net.layers) widen(each);
  widen(net.head);
  return net;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  file.fill(data, size);
  try {
    const nets::Net net = nets::load_net(file.path());
    fuzz_require(net.in() > 0 && net.out() > 0);
    std::size_t numbers = 0;
    for (const nets::Layer& layer : net.layers) numbers += layer.weight.size() + layer.bias.size();
    fuzz_require(8 * numbers <= size);
    const std::vector<double> x(2 * net.in(), 0.5);
    const std::vector<std::int64_t> given = labels(net, {x.data(), 2, net.in()}, 1);
    fuzz_require(given.size() == 2 && given[0] == given[1]);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("fuzz_net_" + std::to_string(getpid()));
  for (const nets::Activation activation : {nets::Activation::norm, nets::Activation::gelu}) {
    for (const nets::Precision precision : {nets::Precision::float64, nets::Precision::double_double}) {
      if (activation == nets::Activation::gelu && precision == nets::Precision::double_double) continue;
      save_net(path, net_of(activation, precision));
      std::ifstream saved(path, std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(saved), std::istreambuf_iterator<char>());
    }
  }
  std::filesystem::remove(path);
  return seeds;
}
