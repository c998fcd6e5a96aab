#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/selectability/select.hpp>

#include "selectability/test_keys.hpp"
#include "support/snapshots.hpp"

/// Saved states of a search: resumed, broken, forged.
namespace normscope::selectability {
namespace {

TEST(SelectState, ResumesBitwiseAfterAnyStep) {
  const Keys set = normal_keys(1300, 8, 6);
  const Selection whole = select_keys(set.view());
  Search stopped(set.view(), {});
  std::size_t steps = 0;
  for (; !stopped.done(); ++steps) {
    stopped.step();
    Search next(set.view(), {.threads = 2});
    next.resume(stopped.state());
    // Without another step: the state contains what was restored.
    EXPECT_EQ(next.state(), stopped.state());
    while (!next.done()) next.step();
    const Selection parts = std::move(next).result();
    for (std::size_t i = 0; i < set.rows(); ++i) {
      ASSERT_EQ(whole.keys[i].answer, parts.keys[i].answer);
      ASSERT_EQ(whole.keys[i].margin, parts.keys[i].margin);
      ASSERT_EQ(whole.keys[i].residual, parts.keys[i].residual);
      ASSERT_EQ(whole.keys[i].query, parts.keys[i].query);
    }
  }
  EXPECT_GT(steps, 2);
}

std::string text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(SelectState, ABrokenStateIsRefused) {
  const Keys set = normal_keys(700, 4, 7);
  Search search(set.view(), {});
  while (!search.done()) search.step();
  const std::string state = search.state();
  Search(set.view(), {}).resume(state);
  EXPECT_THROW(Search(normal_keys(700, 4, 8).view(), {}).resume(state), Error);
  EXPECT_THROW(Search(set.view(), {.tolerance = 1e-9}).resume(state), Error);
  EXPECT_THROW(Search(set.view(), {}).resume(state + "x"), Error);
  Random random(1);
  for (int trial = 0; trial < 40; ++trial) {
    EXPECT_THROW(Search(set.view(), {}).resume(state.substr(0, random.below(state.size()))), Error);
    std::string broken = state;
    broken[random.below(broken.size())] ^= static_cast<char>(1U << random.below(8));
    EXPECT_THROW(Search(set.view(), {}).resume(broken), Error);
  }
}

// A forged state can have a correct checksum, so every proof and every number in it is checked.
TEST(SelectState, AForgedStateIsRefused) {
  const Keys set = normal_keys(300, 3, 7);
  const Selection whole = select_keys(set.view());
  Search search(set.view(), {});
  while (!search.done()) search.step();
  const std::string state = search.state();
  const test::OpenSnapshot open(std::as_bytes(std::span(state)));
  EXPECT_EQ(text(open.with(open.payload())), state);
  Random random(2);
  int refused = 0;
  for (int trial = 0; trial < 150; ++trial) {
    Search other(set.view(), {});
    try {
      other.resume(text(open.forged(random)));
      while (!other.done()) other.step();
    } catch (const Error&) {
      ++refused;
      continue;
    }
    const Selection got = std::move(other).result();
    EXPECT_TRUE(verify(set.view(), got));
    for (std::size_t i = 0; i < set.rows(); ++i) {
      // An accepted state may have weaker bounds, other proofs or fewer answers, but no wrong ones.
      EXPECT_TRUE(got.keys[i].answer == whole.keys[i].answer ||
                  got.keys[i].answer == Selectability::undecided)
          << i;
    }
  }
  EXPECT_GT(refused, 75);
}

/// The contents of a saved search, to be saved again with other numbers and a matching checksum.
struct Saved {
  struct Entry {
    std::size_t row = 0;
    int answer = 0;
    int proof = 0;
    Verdict verdict{};
  };
  std::uint64_t blocks = 0;
  std::vector<Entry> entries{};
  std::vector<std::size_t> front{};

  explicit Saved(const std::vector<std::byte>& payload) {
    Unpacker from(payload);
    std::vector<std::size_t> rows;
    from.get(blocks);
    from.get(rows);
    from.get(front);
    for (const std::size_t row : rows) {
      Entry& entry = entries.emplace_back();
      entry.row = row;
      from.get(entry.answer);
      from.get(entry.proof);
      from.get(entry.verdict.margin);
      from.get(entry.verdict.residual);
      from.get(entry.verdict.query);
      from.get(entry.verdict.weights);
    }
    from.finish();
  }
  [[nodiscard]] std::vector<std::byte> payload() const {
    Packer to;
    std::vector<std::size_t> rows;
    for (const Entry& entry : entries) rows.push_back(entry.row);
    to.put(blocks);
    to.put(rows);
    to.put(front);
    for (const Entry& entry : entries) {
      to.put(entry.answer);
      to.put(entry.proof);
      to.put(entry.verdict.margin);
      to.put(entry.verdict.residual);
      to.put(entry.verdict.query);
      to.put(entry.verdict.weights);
    }
    return to.bytes();
  }
};

class ForgedState : public testing::Test {
 protected:
  /// The message with which the state is refused after a change; empty if it is accepted.
  template <typename Change>
  [[nodiscard]] std::string refusal(const Change& change) const {
    Saved saved(open_.payload());
    change(saved);
    Search other(set_.view(), {});
    try {
      other.resume(text(open_.with(saved.payload())), "keys.state");
      while (!other.done()) other.step();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Format) << error.what();
      return error.what();
    }
    return "";
  }
  /// Expects a refusal of a change of the first entry with this answer.
  template <typename Change>
  void expect_misfit(Selectability answer, const Change& change) const {
    const std::string message = refusal([&](Saved& saved) { change(first_with(saved, answer)); });
    EXPECT_EQ(message, "keys.state: holds what select did not save; delete it to start again");
  }
  static Saved::Entry& first_with(Saved& saved, Selectability answer) {
    return *std::find_if(saved.entries.begin(), saved.entries.end(),
                         [&](const Saved::Entry& entry) { return entry.answer == static_cast<int>(answer); });
  }

 private:
  static std::string saved_state(const Keys& set) {
    Search search(set.view(), {});
    while (!search.done()) search.step();
    return search.state();
  }

  Keys set_ = normal_keys(300, 3, 7);
  std::string state_ = saved_state(set_);
  test::OpenSnapshot open_{std::as_bytes(std::span(state_))};
};

TEST_F(ForgedState, NumbersOfAnAnswerAreChecked) {
  EXPECT_EQ(refusal([](Saved&) {}), "");
  const auto selectable = Selectability::selectable;
  const auto inside = Selectability::unselectable;
  const double infinity = std::numeric_limits<double>::infinity();
  const auto code = [](Proof proof) { return static_cast<int>(proof); };
  using Entry = Saved::Entry;
  for (const double broken : {infinity, std::nan("")}) {
    expect_misfit(selectable, [&](Entry& e) { e.verdict.margin = broken; });
    expect_misfit(selectable, [&](Entry& e) { e.verdict.residual = broken; });
    expect_misfit(inside, [&](Entry& e) { e.verdict.residual = broken; });
    expect_misfit(inside, [&](Entry& e) { e.verdict.weights[0].weight = broken; });
    expect_misfit(selectable, [&](Entry& e) {
      e.proof = code(Proof::query);
      e.verdict.query = {1.0, broken, 0.0};
    });
  }
  expect_misfit(inside, [](Entry& e) { e.verdict.weights[0].id = 300; });
  expect_misfit(inside, [](Entry& e) { e.verdict.query = {1.0, 0.0, 0.0}; });
  expect_misfit(selectable, [&](Entry& e) {
    e.proof = code(Proof::query);
    e.verdict.query = {1.0, 0.0};
  });
  // Proofs of the other answers, and codes that are none.
  for (const Proof proof : {Proof::none, Proof::alone, Proof::weights, Proof::duplicate}) {
    expect_misfit(selectable, [&](Entry& e) {
      e.proof = code(proof);
      e.verdict.query.clear();
    });
  }
  for (const Proof proof :
       {Proof::none, Proof::own_direction, Proof::query, Proof::duplicate, Proof::exact}) {
    expect_misfit(inside, [&](Entry& e) { e.proof = code(proof); });
  }
  expect_misfit(inside, [](Entry& e) { e.answer = static_cast<int>(Selectability::undecided); });
  expect_misfit(inside, [](Entry& e) { e.answer = 3; });
  expect_misfit(inside, [](Entry& e) { e.proof = 200; });
  expect_misfit(inside, [](Entry& e) { e.row = 300; });
}

TEST_F(ForgedState, KeysAreThoseOfTheSearch) {
  const std::string misfit = "keys.state: holds what select did not save; delete it to start again";
  EXPECT_EQ(refusal([](Saved& s) { ++s.blocks; }), misfit);
  EXPECT_EQ(refusal([](Saved& s) { s.blocks = std::numeric_limits<std::uint64_t>::max(); }), misfit);
  EXPECT_EQ(refusal([](Saved& s) { --s.blocks; }), misfit);
  EXPECT_EQ(refusal([](Saved& s) { s.entries.pop_back(); }), misfit);
  EXPECT_EQ(refusal([](Saved& s) { std::swap(s.entries[0], s.entries[1]); }), misfit);
  EXPECT_EQ(refusal([](Saved& s) { s.entries[1] = s.entries[0]; }), misfit);
  EXPECT_EQ(refusal([](Saved& s) { s.front.push_back(300); }), misfit);
  EXPECT_EQ(refusal([](Saved& s) { s.front.clear(); }), "");
}

TEST_F(ForgedState, TheFirstUnprovedKeyIsNamed) {
  std::size_t least = 300;
  const std::string message = refusal([&](Saved& saved) {
    for (Saved::Entry& entry : saved.entries) {
      if (entry.answer != static_cast<int>(Selectability::unselectable)) continue;
      entry.verdict.residual = 0.0;
      entry.verdict.weights[0].weight += 1e-3;
      least = std::min(least, entry.row);
    }
  });
  EXPECT_EQ(message, "keys.state: holds an answer for key " + std::to_string(least) +
                         " that its proof does not support; delete it to start again");
}

}  // namespace
}  // namespace normscope::selectability
