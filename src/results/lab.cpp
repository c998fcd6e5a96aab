#include <normscope/results/lab.hpp>

#include "fields.hpp"

namespace normscope::results {

template <class V>
void fields(V& v, const LabRule& rule) {
  v("says", rule.says, "The quantity");
  v("test", rule.test);
  v("seeds", positive(rule.seeds), "With fewer the claim is inconclusive");
  v("least", rule.least, "Least effect for the claim; of an equivalence the largest difference");
  v("absent", rule.absent, "The effect if the claim is wrong");
  v("missing", rule.missing, "What the runs lack to refute the claim; empty if they can");
  v("confidence", rule.confidence);
  v("hash", rule.hash, "SHA-256 of the members before it, as the store has them");
  v("runs", rule.runs, "Runs that the verdict uses");
  v("runs_before", rule.runs_before, "Of these, begun before the rule was stored");
  v("provenance", rule.provenance, "The same in words");
}

template <class V>
void fields(V& v, const LabClaim& claim) {
  v("name", claim.name);
  v("claim", claim.claim);
  v("paper", claim.paper, "The paper's own number, or where it makes the claim");
  v("kind", one_of<"identity", "measurement">(claim.kind),
    "identity: a theorem, an identity or a construction, of which runs can only find an error");
  v("made_by", one_of<"the paper", "us">(claim.made_by), "Whose claim it is");
  v("rule", claim.rule, "The rule that judges the claim");
  v("ours", claim.ours, "The numbers found");
  v("interval", claim.interval,
    "Confidence interval of the effect; null if the rule is about every case or there are too few seeds");
  v("outcome", one_of<"reproduced", "not reproduced", "inconclusive">(claim.outcome), "At our size");
  v("factor", claim.factor, "Above 1: not at the paper's size");
  v("verdict", claim.verdict, "Outcome, reason and size in words");
}

template <class V>
void fields(V& v, const LabExperiment& experiment) {
  const bool has_results = experiment.results.has_value();
  const LabResults& results = or_empty(experiment.results);
  v("name", experiment.name);
  v("paper", experiment.paper, "First author, year");
  v("claim", experiment.claim, "What is to be seen, in a sentence");
  v("quick_seconds", experiment.quick_seconds, "About how long `--quick` takes on one core");
  v("full_minutes", experiment.full_minutes, "About how long the full size takes on one core");
  v("backend", one_of<"own", "torch", "torch or GPU">(experiment.backend),
    "What computes its networks: the lab's own code, libtorch, or libtorch that may use a GPU (`--device`)");
  v.maybe(has_results, "size", one_of<"quick", "full">(results.size),
          "Of `lab run` and `lab show`, as what follows");
  v.maybe(has_results, "scale", object([&](auto& scale) {
            scale("paper", results.paper_size);
            scale("ours", results.our_size);
            scale("factor", results.factor,
                  "The paper's size divided by ours; 1 if ours is not smaller or the paper states none");
          }),
          "Sizes of the paper's experiment and of ours at full size");
  v.maybe(has_results, "runs", object([&](auto& runs) {
            runs("done", results.done);
            runs("planned", positive(results.planned),
                 "Runs that the experiment plans; `done` may be larger, since --runs adds seeds");
          }));
  v.maybe(has_results, "origins", results.origins,
          "Machines, versions and commits of the runs, as far as the store knows them");
  v.maybe(has_results, "claims", results.claims);
  v.maybe(has_results, "ours", results.ours, "Number of claims reproduced, in words");
  v.rule("dependentRequired", R"({"size": ["scale", "runs", "origins", "claims", "ours"]})");
}

struct LabFields {
  const std::vector<LabExperiment>& experiments;
};

template <class V>
void fields(V& v, const LabFields& x) {
  begin(v, "lab");
  v("experiments", at_least_items(1, x.experiments));
}

Json lab(const std::vector<LabExperiment>& experiments) { return json_of(LabFields{experiments}); }
Json describe_lab(SchemaMaker& maker) { return maker.schema_of(LabFields{{}}); }

}  // namespace normscope::results
