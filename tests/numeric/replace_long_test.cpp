#include <new>

#include <gtest/gtest.h>
#include <Eigen/Core>

#include <normscope/numeric/eigen/replace.hpp>

namespace normscope {
namespace {

// Among the long tests, since sanitizers end the process where so much memory is asked for.
TEST(Replace, KeepsTheOldEntriesWhereMemoryEnds) {
  Eigen::VectorXd x = Eigen::VectorXd::Ones(3);
  replace(x, Eigen::VectorXd::Ones(5));
  EXPECT_EQ(x, Eigen::VectorXd::Ones(5));
  EXPECT_THROW(replace(x, Eigen::VectorXd::Zero(Eigen::Index{1} << 45)), std::bad_alloc);
  EXPECT_EQ(x, Eigen::VectorXd::Ones(5));
}

}  // namespace
}  // namespace normscope
