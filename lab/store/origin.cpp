#include "origin.hpp"

#include <fstream>
#include <thread>

#include <normscope/core/text.hpp>

namespace normscope::lab {
namespace {

/// What Linux calls the processor, or "unknown processor".
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

const std::string& this_machine() {
  static const std::string machine =
      processor() + ", " + counted(std::thread::hardware_concurrency(), "thread");
  return machine;
}

}  // namespace normscope::lab
