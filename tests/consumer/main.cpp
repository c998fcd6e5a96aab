#include <cstdio>

#include <normscope/analysis/report.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL\n", argv[0]);
    return 2;
  }
  try {
    const normscope::files::Checkpoint checkpoint(argv[1]);
    for (const auto& norm : normscope::analysis::audit(checkpoint).norms) {
      if (norm.image) std::printf("%-22s condition %.3f\n", norm.norm.name.c_str(), norm.image->condition);
    }
  } catch (const normscope::Error& error) {  // a file that is not there, a tensor of the wrong shape
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
