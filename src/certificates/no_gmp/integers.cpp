#include "integers.hpp"

namespace normscope::certificates {

std::optional<bool> separates(const std::vector<std::string>&, MatrixView<const double>,
                              MatrixView<const double>) {
  return std::nullopt;
}

std::optional<bool> meet(const std::vector<Numerator>&, const std::vector<Numerator>&, const std::string&,
                         MatrixView<const double>, MatrixView<const double>) {
  return std::nullopt;
}

}  // namespace normscope::certificates
