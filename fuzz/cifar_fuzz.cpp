#include <span>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>

#include "fuzz_target.hpp"

using namespace normscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto batch = files::read_cifar10(std::as_bytes(std::span(data, size)), "fuzz");
    fuzz_require(batch.images.values.size() == 3072 * batch.labels.values.size());
    for (const double label : batch.labels.values) fuzz_require(label <= 9.0);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string record(3073, '\3');
  return {record, record + record};
}
