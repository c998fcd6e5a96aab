#include <normscope/nets/answers.hpp>

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/tasks.hpp>

namespace normscope::nets {
namespace {

std::vector<double> logits(const Net& net, const Dataset& data) { return evaluate(net, data.view()); }

RC_GTEST_PROP(Recording, KeepsTheSameNetsForEverySlicing, ()) {
  const Dataset data = spiral(40, 1);
  TrainSpec spec;
  spec.steps = 100;
  const auto most = static_cast<std::size_t>(*rc::gen::inRange(2, 20));
  Recording recording(spec, data, most);
  std::map<std::size_t, std::vector<double>> truth;
  Trainer trainer(spec, data);
  truth[0] = logits(trainer.net(), data);
  while (!trainer.done()) {
    trainer.step();
    truth[trainer.steps_done()] = logits(trainer.net(), data);
  }
  while (recording.steps() < spec.steps) {
    recording.advance(static_cast<std::size_t>(*rc::gen::inRange(1, 40)));
    // The interval between records is the smallest power of two that leaves at most `most` records.
    RC_ASSERT(recording.steps() / recording.distance() + 1 <= most);
    RC_ASSERT((recording.distance() == 1 || recording.steps() / (recording.distance() / 2) + 1 > most));
    for (std::size_t step = 0; step <= spec.steps; ++step) {
      const std::size_t kept = recording.kept(step);
      RC_ASSERT(kept <= step);
      RC_ASSERT((kept == recording.steps() || kept % recording.distance() == 0));
      RC_ASSERT((kept == recording.steps() || step - kept < recording.distance()));
      if (step % 7 == 0) RC_ASSERT(logits(recording.net(step), data) == truth[kept]);
    }
  }
}

TEST(Recording, LooksBackWithoutDisturbingTheTraining) {
  const Dataset data = rings(60, 2);
  TrainSpec spec;
  spec.steps = 60;
  Recording looked(spec, data, 8);
  Recording left(spec, data, 8);
  for (std::size_t i = 0; i < 6; ++i) {
    looked.advance(10);
    static_cast<void>(looked.net(5 * i));
  }
  left.advance(1000);
  EXPECT_EQ(left.steps(), 60U);
  EXPECT_EQ(looked.trainer().parameters(), left.trainer().parameters());
  EXPECT_EQ(left.score(0).loss, Trainer(spec, data).score().loss);
  EXPECT_EQ(left.score(60).loss, left.trainer().score().loss);
  const Dataset other = rings(60, 3);
  EXPECT_EQ(left.score(0, other).loss, Trainer(spec, data).score(other).loss);
  EXPECT_EQ(left.score(60, other).accuracy, left.trainer().score(other).accuracy);
}

TEST(Recording, HasTheLossesOfTheExplorersTests) {
  // The same numbers stand in explorer/engine/tests/playground.test.ts, where WebAssembly has to give them.
  Recording recording({}, spiral(40, 1));
  recording.advance(50);
  EXPECT_NEAR(recording.score(0).loss, 0.6864009840227115, 1e-9);
  EXPECT_NEAR(recording.score(50).loss, 0.5043784482308873, 1e-9);
}

}  // namespace
}  // namespace normscope::nets
