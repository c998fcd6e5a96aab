#include <limits>
#include <vector>

#include <normscope/analysis/causes.hpp>

namespace normscope::analysis {

// Written by `scripts/references`: the most unusual value of each measure, in the order of `measures`.
// clang-format off
const std::vector<Reference>& references() {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<Reference> all{
      {"ALBERT (RXNMapper)", 4, 128, {{1.531, 0.8978, 0.9581, 0.0, 0.0, 0.2326, 0.9598, 0.1844, 0.0, 0.0, 70.50}}},
      {"Galileo nano", 9, 128, {{9.124, 0.07214, 0.1060, 0.05469, 0.05469, 0.9215, 0.1835, 0.02873, 0.0, 0.01365, 54.17}}},
      {"GPT-2 medium", 49, 1024, {{12.71, 0.05702, 0.02725, 0.003907, 0.0, 0.4089, 0.2348, none, 0.1225, none, none}}},
      {"GPT-2 small", 25, 768, {{13.93, 0.03908, 0.01145, 0.005209, 0.0, 0.2796, 0.1789, 0.008578, 0.2, 0.0, 107.8}}},
      {"Magika 3.3", 2, 512, {{2.692, 0.8911, 0.9700, 0.0, 0.0, 0.2047, none, 0.05463, 0.0, none, none}}},
      {"minGPT sorter", 7, 48, {{1.071, 0.9960, 0.9994, 0.0, 0.0, 0.01842, 0.9976, 0.01622, 0.0, 0.0, 2.083}}},
      {"Presto", 10, 128, {{2.942, 0.4359, 0.09676, 0.1407, 0.0, 0.4883, 0.4440, 0.02557, 0.0, none, none}}},
      {"RWKV-5 tiny", 38, 64, {{1.211, 0.9653, 0.9921, 0.0, 0.0, 0.1705, 0.9596, 0.003474, 0.0, none, none}}},
      {"stories260K", 11, 64, {{2.581, 0.6238, none, 0.0, 0.0, none, 0.7328, none, 0.0, 0.0, 250.0}}},
  };
  return all;
}
// clang-format on

}  // namespace normscope::analysis
