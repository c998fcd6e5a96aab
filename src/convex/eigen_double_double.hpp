#pragma once

#include <cmath>

#include <Eigen/Core>

#include <normscope/numeric/double_double.hpp>

namespace Eigen {

template <>
struct NumTraits<normscope::DoubleDouble> : GenericNumTraits<normscope::DoubleDouble> {
  enum {
    IsInteger = 0,
    IsSigned = 1,
    IsComplex = 0,
    RequireInitialization = 1,
    ReadCost = 2,
    AddCost = 20,
    MulCost = 20
  };
  static normscope::DoubleDouble epsilon() { return 0x1p-102; }
  static normscope::DoubleDouble dummy_precision() { return 0x1p-96; }
};

}  // namespace Eigen
