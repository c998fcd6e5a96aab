#include <normscope/core/error.hpp>

#include "grouped/network.hpp"
#include "language/network.hpp"
#include "torch/device.hpp"
#include "torch/threads.hpp"

/// What lab/torch defines, for the program that does not load libtorch: no network can be made.
namespace normscope::lab {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::Argument, "lab: this program has no libtorch, expected normscope-lab-torch");
}

}  // namespace

bool has_torch() { return false; }

void use_threads(int /*threads*/) {}

const std::string& device() {
  static const std::string name = "cpu";
  return name;
}

void expect_device(const std::string& name) {
  if (name != device()) refuse();
}

std::string use_device(const std::string& name) {
  expect_device(name);
  return "";
}

namespace grouped {

Network::Network(const Shape& /*shape*/) { refuse(); }
double Network::loss_and_gradient(std::span<const float> /*values*/, const Batch& /*batch*/,
                                  std::span<float> /*gradient*/) const {
  refuse();
}
Score Network::score(std::span<const float> /*values*/, const Batch& /*batch*/) const { refuse(); }
Observation Network::observe(std::span<const float> /*values*/, const Batch& /*batch*/) const { refuse(); }

}  // namespace grouped

namespace language {

struct Network::Torch {};

Network::Network(const Shape& /*shape*/, std::uint64_t /*seed*/) { refuse(); }
Network::~Network() = default;
double Network::train(std::span<const std::uint8_t> /*pieces*/, std::size_t /*rows*/, const Rate& /*rate*/,
                      std::uint64_t /*noise*/) {
  refuse();
}
double Network::loss(std::span<const std::uint8_t> /*pieces*/, std::size_t /*rows*/) { refuse(); }
std::vector<std::vector<double>> Network::attention_inputs(std::span<const std::uint8_t> /*sequence*/) {
  refuse();
}
std::vector<double> Network::key_map(std::size_t /*layer*/) const { refuse(); }
std::vector<float> Network::state() const { refuse(); }
void Network::restore(std::span<const float> /*state*/) { refuse(); }

}  // namespace language
}  // namespace normscope::lab
