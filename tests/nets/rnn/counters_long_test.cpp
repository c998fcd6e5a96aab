#include <gtest/gtest.h>

#include <normscope/nets/rnn/saturated.hpp>
#include <normscope/nets/rnn/theorems.hpp>

namespace normscope::nets::rnn {
namespace {

/// Words of up to `longest` letters that the acceptor gets wrong.
std::size_t mistakes(const Acceptor& acceptor, Language language, std::size_t longest) {
  return compare(acceptor, language, longest).differ;
}

TEST(Counters, LstmIsExactOnEveryWord) {
  EXPECT_EQ(mistakes(lstm_counter(Language::anbn), Language::anbn, 14), 0U);
  EXPECT_EQ(mistakes(lstm_counter(Language::anbncn), Language::anbncn, 10), 0U);
}

TEST(Counters, RectifierIsExactOnEveryWord) {
  EXPECT_EQ(mistakes(relu_counter(Language::anbn), Language::anbn, 14), 0U);
  EXPECT_EQ(mistakes(relu_counter(Language::anbncn), Language::anbncn, 10), 0U);
}

TEST(Counters, OneThresholdIsEnoughForAnLstm) {
  EXPECT_EQ(mistakes(lstm_threshold_counter(), Language::anbn, 14), 0U);
}

}  // namespace
}  // namespace normscope::nets::rnn
