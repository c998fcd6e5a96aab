#include <algorithm>
#include <array>
#include <string>

#include "document.hpp"

/// Every member that a result of each kind has, and who derives it. A test compares this with the schemas.
namespace normscope::verify {
namespace {

constexpr auto derived = Basis::derived;
constexpr auto certificate = Basis::certificate;
constexpr auto nothing = Basis::nothing;
constexpr auto unproved = Basis::unproved;

constexpr const char* no_proof = "the result has no proof of it";
constexpr const char* not_asked = "an answer of this kind does not state it";

constexpr std::array of_select = std::to_array<Claim>({
    {"schema", nothing, "read_document"},
    {"version", nothing, ""},
    {"inputs", nothing, "compared by Result::expect_arrays before a check"},
    {"keys", derived, "SelectCheck"},
    {"width", derived, "SelectCheck"},
    {"norm.kind", certificate, "the keys are those after this norm"},
    {"norm.steps", certificate, "the keys are those after this norm"},
    {"norm.groups", certificate, "the keys are those after this norm"},
    {"norm.eps", certificate, "the keys are those after this norm"},
    {"norm.source", unproved, "the values of the gain are compared, not where they come from"},
    {"selectable", derived, "SelectCheck::check_counts"},
    {"unselectable", derived, "SelectCheck::check_counts"},
    {"undecided", derived, "SelectCheck::check_counts"},
    {"proofs", derived, "SelectCheck::check_counts"},
    {"margin", derived, "SelectCheck::check_counts"},
    {"scale", derived, "SelectCheck::check_sizes"},
    {"tolerance", certificate, "what `scale` is multiplied by"},
    {"center", derived, "SelectCheck::check_sizes"},
    {"certificates", nothing, "where they are"},
    {"exact", derived, "SelectCheck::check_exact"},
    {"verdicts[selectable].answer", derived, "SelectCheck::check_selectable"},
    {"verdicts[selectable].proof", derived, "SelectCheck::check_counts"},
    {"verdicts[selectable].margin", derived, "SelectCheck::check_selectable"},
    {"verdicts[selectable].query", certificate, "SelectCheck::check_selectable"},
    {"verdicts[selectable].exact", derived, "SelectCheck::check_exact"},
    {"verdicts[unselectable].answer", derived, "SelectCheck::check_unselectable"},
    {"verdicts[unselectable].proof", derived, "SelectCheck::check_counts"},
    {"verdicts[unselectable].residual", derived, "SelectCheck::check_unselectable"},
    {"verdicts[unselectable].weights", certificate, "SelectCheck::check_unselectable"},
    {"verdicts[unselectable].exact", derived, "SelectCheck::check_exact"},
    {"verdicts[undecided].answer", nothing, "counted by SelectCheck::check_counts"},
    {"verdicts[undecided].proof", derived, "SelectCheck::check_counts"},
    {"verdicts[undecided].exact", derived, "SelectCheck::check_exact"},
    {"verdicts[].margin", unproved, not_asked},
    {"verdicts[].query", unproved, not_asked},
    {"verdicts[].residual", unproved, not_asked},
    {"verdicts[].weights", unproved, not_asked},
});

constexpr std::array of_separate = std::to_array<Claim>({
    {"schema", nothing, "read_document"},
    {"version", nothing, ""},
    {"inputs", nothing, "compared by Result::expect_arrays before a check"},
    {"width", derived, "SeparateCheck"},
    {"rows", derived, "SeparateCheck"},
    {"classes", derived, "SeparateCheck::check_classes"},
    {"ssr", derived, "SeparateCheck::check_ratios"},
    {"lssr", derived, "SeparateCheck::check_ratios, check_least"},
    {"direction", derived, "SeparateCheck::check_ratios"},
    {"rank", derived, "SeparateCheck::check_rank"},
    {"separable", derived, "SeparateCheck::check_exact, check_margin, check_residual"},
    {"margin", derived, "SeparateCheck::check_margin"},
    {"normal", derived, "SeparateCheck::check_margin"},
    {"offset", derived, "SeparateCheck::check_margin"},
    {"a", certificate, "SeparateCheck::check_residual"},
    {"b", certificate, "SeparateCheck::check_residual"},
    {"residual", derived, "SeparateCheck::check_residual"},
    {"scale", derived, "SeparateCheck::check_scale"},
    {"tolerance", certificate, "what `scale` is multiplied by"},
    {"exact", derived, "SeparateCheck::check_exact"},
});

constexpr std::array of_reach = std::to_array<Claim>({
    {"schema", nothing, "read_document"},
    {"version", nothing, ""},
    {"source", derived, "ReachCheck::check_facts"},
    {"inputs", nothing, "compared by Result::expect_arrays before a check"},
    {"tokens", derived, "ReachCheck"},
    {"width", derived, "ReachCheck"},
    {"norm.name", derived, "ReachCheck::check_facts"},
    {"norm.kind", derived, "ReachCheck::check_sizes"},
    {"norm.eps", derived, "ReachCheck::check_sizes"},
    {"unembedding_bias", derived, "ReachCheck::check_facts"},
    {"tied", derived, "ReachCheck::check_facts"},
    {"logit_scale", derived, "ReachCheck::check_sizes"},
    {"soft_cap", derived, "ReachCheck::check_sizes"},
    {"notes", derived, "ReachCheck::check_facts"},
    {"complete", derived, "ReachCheck::check_counts"},
    {"left_out", derived, "ReachCheck::check_counts, check_nearest"},
    {"decided", derived, "ReachCheck::check_counts"},
    {"reachable", derived, "ReachCheck::check_counts"},
    {"unreachable[].token", certificate, "read_token_claims"},
    {"unreachable[].name", derived, "ReachCheck::check_facts"},
    {"unreachable[].lead_at_most", derived, "read_token_claims, ReachCheck::check_upper_ends"},
    {"unreachable[].weights", certificate, "ReachCheck::check_upper_ends"},
    {"unreachable[].without_ball", derived, "ReachCheck::check_without_ball"},
    {"unreachable[].without_ball_weights", certificate, "ReachCheck::check_without_ball"},
    {"unreachable[].without_ball_witness", certificate, "ReachCheck::check_without_ball"},
    {"undecided[].token", certificate, "read_token_claims"},
    {"undecided[].name", derived, "ReachCheck::check_facts"},
    {"undecided[].lead_at_most", derived, "read_token_claims, ReachCheck::check_upper_ends"},
    {"undecided[].weights", certificate, "ReachCheck::check_upper_ends"},
    {"undecided[].without_ball", derived, "ReachCheck::check_without_ball"},
    {"undecided[].without_ball_weights", certificate, "ReachCheck::check_without_ball"},
    {"undecided[].without_ball_witness", certificate, "ReachCheck::check_without_ball"},
    {"undecided[].only_inside", unproved, no_proof},
    {"unreachable_without_ball", derived, "ReachCheck::check_counts"},
    {"nearest", derived, "ReachCheck::check_nearest, check_facts"},
    {"lead.lower", derived, "ReachCheck::check_reachable"},
    {"lead.upper", derived, "ReachCheck::check_upper_ends"},
    {"max_probability.lower", derived, "ReachCheck::check_probabilities"},
    {"max_probability.upper", derived, "ReachCheck::check_probabilities"},
    {"max_probability.refined", derived, "ReachCheck::check_refined"},
    {"scale", derived, "ReachCheck::check_sizes"},
    {"tolerance", certificate, "what `scale` is multiplied by"},
    {"tie", derived, "ReachCheck::check_sizes"},
    {"without_ball", derived, "ReachCheck::check_sizes"},
    {"proofs", derived, "read_token_claims, ReachCheck::check_reachable, check_upper_ends"},
    {"certificates", nothing, "where they are"},
    {"sphere", derived, "ReachCheck::check_sizes"},
});

constexpr std::array of_heads = std::to_array<Claim>({
    {"schema", nothing, "read_document"},
    {"version", nothing, ""},
    {"path", derived, "verify_heads"},
    {"architecture", derived, "verify_heads"},
    {"notes", derived, "verify_heads"},
    {"inputs", nothing, "compared by Result::expect_arrays before a check"},
    {"heads[].stack", derived, "differing_facts"},
    {"heads[].layer", derived, "differing_facts"},
    {"heads[].head", derived, "differing_facts"},
    {"heads[].pass", derived, "differing_facts"},
    {"heads[].key_value_head", derived, "differing_facts"},
    {"heads[].head_dim", derived, "differing_facts"},
    {"heads[].scale", derived, "differing_facts"},
    {"heads[].norm", derived, "differing_facts"},
    {"heads[].between", derived, "differing_facts"},
    {"heads[].query", derived, "differing_facts"},
    {"heads[].key", derived, "differing_facts"},
    {"heads[].value", derived, "differing_facts"},
    {"heads[].rotary", derived, "differing_facts"},
    {"heads[].rotation", derived, "differing_facts"},
    {"heads[].soft_cap", derived, "differing_facts"},
    {"heads[].window", derived, "differing_facts"},
    {"heads[].refused", unproved, no_proof},
    {"heads[refused].uniform_spread", unproved, "a refused head states no bounds"},
    {"heads[refused].sharp_spread", unproved, "a refused head states no bounds"},
    {"heads[refused].uniform_bounds", unproved, "a refused head states no bounds"},
    {"heads[refused].sharp_bounds", unproved, "a refused head states no bounds"},
    {"heads[refused].distances", unproved, "a refused head states no bounds"},
    {"heads[refused].without_projection", unproved, "a refused head states no bounds"},
    {"heads[refused].own_norms", unproved, "a refused head states no bounds"},
    {"heads[refused].uniform_without_scaling", unproved, "a refused head states no bounds"},
    {"heads[refused].certificates", unproved, "a refused head states no bounds"},
    {"heads[].uniform_spread", derived, "HeadCheck::check_narrow"},
    {"heads[].sharp_spread", derived, "HeadCheck::check_narrow"},
    {"heads[].uniform_bounds", derived, "HeadCheck::check_equal_distance, check_most_uniform"},
    {"heads[].sharp_bounds", derived, "HeadCheck::check_equal_distance, check_over_distances"},
    {"heads[].distances.within", derived, "HeadCheck::check_over_distances"},
    {"heads[].distances.enumerated", derived, "HeadCheck::check_over_distances"},
    {"heads[].distances.sharp_at_most_anywhere", derived, "HeadCheck::check_over_distances"},
    {"heads[].distances.uniform_at_most_anywhere", derived, "HeadCheck::check_most_uniform"},
    {"heads[].distances.at_distance_zero", derived, "HeadCheck::check_equal_distance"},
    {"heads[].distances.curve", unproved, no_proof},
    {"heads[].without_projection", derived, "HeadCheck::check_equal_distance"},
    {"heads[].own_norms", derived, "HeadCheck::check_fills"},
    {"heads[].uniform_without_scaling", derived, "HeadCheck::check_without_scaling"},
    {"heads[].uniform_query", unproved, no_proof},
    {"heads[].uniform_row", unproved, no_proof},
    {"heads[].sharp_query", unproved, no_proof},
    {"heads[].sharp_row", unproved, no_proof},
    {"heads[].sharp_multiplier", unproved, no_proof},
    {"heads[].sharp_keys", unproved, no_proof},
    {"heads[].certificates", certificate, "HeadCheck::check_bounds, differing_norms"},
});

constexpr const char* of_forward = "only a forward pass of the model tells";

constexpr std::array of_attribute = std::to_array<Claim>({
    {"schema", nothing, "read_document"},
    {"version", nothing, ""},
    {"inputs", nothing, "the model is read anew"},
    {"path", derived, "AttributionCheck::check_facts"},
    {"architecture", derived, "AttributionCheck::check_facts"},
    {"tokens", unproved, of_forward},
    {"at", unproved, of_forward},
    {"target.token", derived, "AttributionCheck::check_reading"},
    {"target.name", unproved, "names of tokens are not read"},
    {"against.token", derived, "AttributionCheck::check_reading"},
    {"against.name", unproved, "names of tokens are not read"},
    {"removal", unproved, of_forward},
    {"norm", derived, "AttributionCheck::check_facts"},
    {"divisor", derived, "AttributionCheck::check_reading"},
    {"value", derived, "AttributionCheck::check_reading"},
    {"constant", derived, "AttributionCheck::check_reading"},
    {"soft_cap", derived, "AttributionCheck::check_facts"},
    {"miss", unproved, of_forward},
    {"components[].name", unproved, of_forward},
    {"components[].after", unproved, of_forward},
    {"components[].share", derived, "AttributionCheck::check_component"},
    {"components[].shares", unproved, of_forward},
    {"components[].frozen", derived, "AttributionCheck::check_component"},
    {"components[].price", derived, "AttributionCheck::check_component"},
    {"components[].exact", derived, "AttributionCheck::check_component"},
    {"components[].gradient", derived, "AttributionCheck::check_component"},
    {"components[].rules", derived, "AttributionCheck::check_component"},
    {"components[].remainder", derived, "AttributionCheck::check_component"},
    {"components[].cosine", derived, "AttributionCheck::check_component"},
    {"components[].rounding", unproved, no_proof},
    {"components[].rerun", unproved, of_forward},
    {"components[].paths", unproved, of_forward},
    {"components[].anywhere", derived, "AttributionCheck::check_anywhere"},
    {"bounds", derived, "AttributionCheck::check_bound"},
    {"circuit.kept", certificate, "AttributionCheck::check_circuit"},
    {"circuit.frozen", derived, "AttributionCheck::check_circuit"},
    {"circuit.gradient", derived, "AttributionCheck::check_circuit"},
    {"circuit.exact", derived, "AttributionCheck::check_circuit"},
    {"circuit.rounding", unproved, no_proof},
    {"circuit.rerun", unproved, of_forward},
    {"proof.source", derived, "AttributionCheck::check_facts"},
    {"proof.squared_radius", derived, "AttributionCheck::check_facts"},
    {"proof.eps", derived, "AttributionCheck::check_facts"},
    {"proof.row", unproved, of_forward},
    {"proof.direction", derived, "AttributionCheck::check_reading"},
    {"proof.changes", unproved, of_forward},
    {"proof.shares", derived, "AttributionCheck::check_anywhere"},
    {"check", unproved, of_forward},
    {"folds", unproved, of_forward},
    {"notes", derived, "AttributionCheck::check_facts"},
});

/// The claims that name a member or something in it.
class Claims {
 public:
  explicit Claims(std::string_view kind) : claims_(claims_of(kind)) {}

  /// What is said of that path itself; none where nothing is.
  [[nodiscard]] const Claim* find(const std::string& path) const {
    const auto found =
        std::find_if(claims_.begin(), claims_.end(), [&](const Claim& claim) { return claim.path == path; });
    return found == claims_.end() ? nullptr : &*found;
  }
  /// Whether something is said of a member of it.
  [[nodiscard]] bool goes_into(const std::string& path) const {
    return std::any_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
      return claim.path.size() > path.size() && claim.path.substr(0, path.size()) == path &&
             (claim.path[path.size()] == '.' || claim.path[path.size()] == '[');
    });
  }

 private:
  std::span<const Claim> claims_;
};

class Lister {
 public:
  Lister(std::string_view kind, Verification& found) : claims_(kind), found_(found) {}

  /// `any` is the path that says nothing of the kind of an entry, `path` the one that does.
  void list(const Field& field, const std::string& path, const std::string& any) {
    const Json& value = field.json();
    if (value.is_null() || ((value.is_array() || value.is_object()) && value.empty())) return;
    const Claim* claim = claims_.find(path);
    if (claim == nullptr) claim = claims_.find(any);
    if (claim != nullptr) {
      if (claim->basis == Basis::unproved) found_.not_checkable.push_back({field.place(), claim->by});
      return;
    }
    if (!path.empty() && !claims_.goes_into(path) && !claims_.goes_into(any)) {
      found_.not_checkable.push_back({field.place(), no_proof});
      return;
    }
    const std::string dot = path.empty() ? "" : ".";
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      list(field[i], path + '[' + kind_of(value[i]) + ']', any + "[]");
    }
    for (auto member = value.begin(); value.is_object() && member != value.end(); ++member) {
      list(field[member.key().c_str()], path + dot + member.key(), any + dot + member.key());
    }
  }

 private:
  static std::string kind_of(const Json& entry) {
    if (!entry.is_object()) return {};
    if (entry.contains("refused") && !entry["refused"].is_null()) return "refused";
    return entry.contains("answer") && entry["answer"].is_string() ? entry["answer"].get<std::string>() : "";
  }

  Claims claims_;
  Verification& found_;
};

}  // namespace

std::span<const Claim> claims_of(std::string_view kind) {
  if (kind == "select") return of_select;
  if (kind == "separate") return of_separate;
  if (kind == "reach") return of_reach;
  if (kind == "heads") return of_heads;
  if (kind == "attribute") return of_attribute;
  return {};
}

void list_unproved(Verification& found, const Result::Fields& fields) {
  Lister(fields.kind, found).list(fields.root(), "", "");
}

}  // namespace normscope::verify
