#pragma once

#include <normscope/nets/rnn/network.hpp>
#include <normscope/nets/rnn/train.hpp>

/// Trained networks that are part of the library.
namespace normscope::nets::rnn {

/// The training settings of a network here; scripts/train_counters trains it again and rounds the weights to
/// five decimals.
///
/// Errors    Unsupported for cells other than lstm and gru
[[nodiscard]] TrainSpec trained_spec(CellKind cell, Language language);

/// An lstm or a gru of ten units, trained on a^n b^n up to n = 100 or on a^n b^n c^n up to 50. The lstm
/// continues to count beyond that (test: Trained.LstmsCountAndGrusDoNot).
///
/// Errors    as `trained_spec`
[[nodiscard]] const Network& trained(CellKind cell, Language language);

}  // namespace normscope::nets::rnn
