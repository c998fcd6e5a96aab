#pragma once

#include <normscope/automata/network.hpp>
#include <normscope/automata/train.hpp>

/// Networks that come with the library, to look at without waiting.
namespace normscope::automata {

/// What a network here was trained with; scripts/train_counters does it again and rounds the weights to five
/// decimals.
/// Errors    Unsupported for cells other than lstm and gru
[[nodiscard]] TrainSpec trained_spec(CellKind cell, Language language);

/// An lstm or a gru of ten units, trained on a^n b^n up to n = 100 or on a^n b^n c^n up to 50: the lstm goes
/// on counting beyond (test: Trained.LstmsCountAndGrusDoNot).
/// Errors    as `trained_spec`
[[nodiscard]] const Network& trained(CellKind cell, Language language);

}  // namespace normscope::automata
