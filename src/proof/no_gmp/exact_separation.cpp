#include <normscope/proof/separate.hpp>

#include <normscope/core/error.hpp>

namespace normscope::proof {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::Unsupported, "exact separation: this build is without GMP");
}

}  // namespace

ExactSeparation separate_exactly(MatrixView<const double>, MatrixView<const double>, const ExactStart&,
                                 std::span<const std::size_t>, const ExactLimits&, unsigned,
                                 const Progress&) {
  refuse();
}

void decide_exactly(MatrixView<const double>, MatrixView<const double>, Separation&, const ExactLimits&,
                    unsigned, const Progress&) {
  refuse();
}

bool verify(MatrixView<const double>, MatrixView<const double>, const ExactSeparation&,
            std::span<const std::size_t>) {
  refuse();
}

bool has_exact_separation() { return false; }

}  // namespace normscope::proof
