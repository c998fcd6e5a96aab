#pragma once

#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/exact_separation.hpp>
#include <normscope/selectability/select.hpp>

/// Decides selectability in rational arithmetic where floating point cannot.
namespace normscope::selectability {

/// Decides exactly, for the keys as stored, each key that is undecided in `selection` or unselectable by
/// weights with a residual, starting from those weights. Keys with a proved margin, equal keys and a single
/// key are skipped, since their proofs do not depend on rounding. An exact answer replaces that of the key,
/// with Proof::exact. `Selection::exact` lists every key that was tried, those beyond `limits` with the
/// reason.
///
/// Source    [Dantzig 1963] as in `proof::separate_exactly`, one key against all others
///
/// Shapes    keys: those that `selection` is of
///
/// Errors    Unsupported where built without GMP; Cancelled
///
/// Accuracy  exact (tests: ExactSelect.AgreesWithPlanarHulls, ExactSelect.OneBitDecides,
///           test_exact_answers_hold_in_integers)
///
/// Cost      a key inside the hull of the keys that carry it: one system of their order; others as
///           `proof::separate` and from there `proof::separate_exactly`, with all keys
void decide_exactly(MatrixView<const double> keys, Selection& selection,
                    const proof::ExactLimits& limits = {}, unsigned threads = 0,
                    const Progress& progress = {});

}  // namespace normscope::selectability
