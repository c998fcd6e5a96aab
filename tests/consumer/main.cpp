#include <cstdio>

#include <normscope/audit/report.hpp>
#include <normscope/checkpoint/checkpoint.hpp>

int main(int, char** argv) {
  const normscope::checkpoint::Checkpoint checkpoint(argv[1]);
  for (const auto& norm : normscope::audit::audit(checkpoint).norms) {
    if (norm.image) std::printf("%-22s condition %.3f\n", norm.norm.name.c_str(), norm.image->condition);
  }
}
