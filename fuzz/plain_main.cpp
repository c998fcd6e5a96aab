// Runs a fuzz target without libFuzzer:
//   PROGRAM FILE...       on these files, such as a crash that libFuzzer has saved
//   PROGRAM [-runs=N] [-seed=S]
//                         on its seeds and N mutations of them, the same ones for the same S
//   PROGRAM -seeds=DIR    writes its seeds to DIR, for libFuzzer to start from
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <normscope/core/random.hpp>

#include "fuzz_target.hpp"

namespace {

/// Processor time; an input that takes more is one of quadratic time, as others take milliseconds.
constexpr time_t seconds_per_input = 60;

extern "C" void end_slow_input(int /*signal*/) {
  constexpr char line[] = "fuzz: an input takes more than 60 s of processor time\n";
  static_cast<void>(!::write(STDERR_FILENO, line, sizeof line - 1));
  std::abort();
}

void run(const std::string& input) {
  std::signal(SIGPROF, end_slow_input);
  const itimerval limit{{0, 0}, {seconds_per_input, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  // A copy of its exact size lets AddressSanitizer see a read past the end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

/// `input` with one to four small changes.
std::string mutated(std::string input, normscope::Random& random) {
  // Bytes at the limits of integers, and those that formats consist of.
  constexpr char telling[] = {'\0', '\1', '\x7f', '\x80', '\xff', '{', '}', '[',
                              ']',  '"',  ',',    ':',    '-',    '0', '9', '\\'};
  for (std::uint64_t changes = 1 + random.below(4); changes > 0 && !input.empty(); --changes) {
    const std::size_t at = random.below(input.size());
    const std::size_t length = 1 + random.below(std::min<std::size_t>(input.size() - at, 16));
    switch (random.below(5)) {
      case 0: input[at] = static_cast<char>(random.bits()); break;
      case 1: input[at] = telling[random.below(sizeof telling)]; break;
      case 2: input.erase(at, length); break;
      case 3: input.insert(random.below(input.size() + 1), input.substr(at, length)); break;
      default: input.resize(at); break;
    }
  }
  return input;
}

void write_seeds(const std::string& folder) {
  const std::vector<std::string> seeds = fuzz_seeds();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(folder + "/seed-" + std::to_string(i), std::ios::binary) << seeds[i];
  }
}

void run_mutations(unsigned long runs, unsigned long seed_of_changes) {
  const std::vector<std::string> seeds = fuzz_seeds();
  for (const std::string& seed : seeds) run(seed);
  normscope::Random random(seed_of_changes);
  for (unsigned long i = 0; i < runs; ++i) run(mutated(seeds[random.below(seeds.size())], random));
  std::printf("%lu mutations of %zu seeds\n", runs, seeds.size());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "-runs=1000";
  if (first.rfind("-runs=", 0) == 0) {
    const std::string second = argc > 2 ? argv[2] : "-seed=1";
    run_mutations(std::strtoul(first.c_str() + 6, nullptr, 10),
                  std::strtoul(second.c_str() + 6, nullptr, 10));
  } else if (first.rfind("-seeds=", 0) == 0) {
    write_seeds(first.substr(7));
  } else {
    for (int i = 1; i < argc; ++i) {
      std::ifstream file(argv[i], std::ios::binary);
      run({std::istreambuf_iterator<char>(file), {}});
    }
  }
}
