#include <normscope/results/documents.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "shared.hpp"

namespace normscope::results {

template <>
inline constexpr auto last_value<selectability::Selectability> = selectability::Selectability::undecided;
template <>
inline constexpr auto last_value<selectability::Proof> = selectability::Proof::exact;

namespace {

constexpr const char* integer = "^(0|-?[1-9][0-9]*)$";
constexpr const char* positive_integer = "^[1-9][0-9]*$";

auto integers(const std::vector<std::string>& texts) {
  return each(texts, [](const std::string& text) { return matching(integer, text); });
}

/// Weights on rows or keys; `given_row` says what a row is called in the input, null where it is itself.
auto weights_on(const char* item, const std::vector<proof::PointWeight>& weights,
                const std::size_t* given_row = nullptr) {
  return each(weights, [=](const proof::PointWeight& weight) {
    const std::size_t row = given_row == nullptr ? weight.id : given_row[weight.id];
    return object([=](auto& v) {
      v(item, row);
      v("weight", not_negative(weight.weight));
    });
  });
}

auto exact_weights_on(const char* item, const std::vector<proof::ExactShare>& shares,
                      const std::size_t* given_row = nullptr) {
  const auto share_on = [=](const proof::ExactShare& share) {
    const std::size_t row = given_row == nullptr ? share.row : given_row[share.row];
    return object([=, &share](auto& v) {
      v(item, row);
      v("numerator", matching(positive_integer, share.numerator));
    });
  };
  return at_least_items(1, each(shares, share_on));
}

using selectability::Proof;
using selectability::Selectability;

std::vector<std::size_t> rows_with(const selectability::Selection& selection, Selectability answer) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < selection.keys.size(); ++i) {
    if (selection.keys[i].answer == answer) result.push_back(i);
  }
  return result;
}

/// Number of values in the queries and weights of all keys.
std::size_t numbers_of(const selectability::Selection& selection) {
  std::size_t numbers = 0;
  for (const selectability::Verdict& verdict : selection.keys) {
    numbers += verdict.query.size() + 2 * verdict.weights.size();
  }
  return numbers;
}

const char* about(Proof proof) {
  switch (proof) {
    case Proof::none: break;
    case Proof::alone: return "the only key";
    case Proof::own_direction: return "the query is the key minus the mean of all keys";
    case Proof::query: return "a query that was searched for";
    case Proof::weights: return "a convex combination of other keys, to the tolerance";
    case Proof::duplicate: return "an equal key";
    case Proof::exact: return "integers found in rational arithmetic; 0 without --exact";
  }
  return "";
}

}  // namespace

struct ExactSeparationFields {
  const proof::ExactSeparation& exact;
  const std::size_t* row_of_a;
  const std::size_t* row_of_b;
};

template <class V>
void fields(V& v, const ExactSeparationFields& x) {
  const bool is_yes = x.exact.answer == proof::Answer::yes;
  const bool is_no = x.exact.answer == proof::Answer::no;
  v("separable", x.exact.answer);
  v.maybe(is_yes, "normal", integers(x.exact.normal),
          "yes: integers with normal . a > normal . b for every row a of A and b of B, exactly");
  v.maybe(is_no, "a", exact_weights_on("row", x.exact.a, x.row_of_a),
          "no: sum of numerator * row over a equals that over b, exactly; rows are numbered as in a");
  v.maybe(is_no, "b", exact_weights_on("row", x.exact.b, x.row_of_b), "the same on rows of B");
  v.maybe(is_no, "denominator", matching(positive_integer, x.exact.denominator),
          "no: what the numerators of a, and those of b, sum to");
  v.maybe(!is_yes && !is_no, "reason", x.exact.reason, "undecided: the limit that was met");
  v.rule("oneOf", R"([{"properties": {"separable": {"const": "yes"}}, "required": ["normal"]},
                      {"properties": {"separable": {"const": "no"}}, "required": ["a", "b", "denominator"]},
                      {"properties": {"separable": {"const": "undecided"}}, "required": ["reason"]}])");
}

template <class V>
void fields(V& v, const SeparateResult& x) {
  begin(v, "separate");
  v("inputs", InputsFields{x.inputs, false}, "what this was computed from");
  v("width", positive(x.width));
  v("rows", at_least_items(2, each(x.class_rows, [](const std::size_t& rows) { return positive(rows); })),
    "of A and of B; of each class with --labels");
  v("ssr", finite_or_null(x.ssr), "within-class over total sum of squares; null when all rows are equal");
  v("lssr", finite_or_null(x.linear.ratio),
    "smallest SSR that was found after a linear map, that along `direction`; the search in float64 may "
    "miss a smaller one where columns are nearly dependent");
  v("direction", x.linear.direction, "unit vector whose projection has that SSR");
  v("rank", x.linear.rank, "of the total scatter");
  v.maybe(!x.classes.empty(), "classes", at_least_items(2, x.classes),
          "the label of each class, in the order of rows; present with --labels");
  const bool of_two = x.separation.has_value();
  const proof::Separation& found = or_empty(x.separation);
  const std::size_t* row_of_a = x.given_row.data();
  const std::size_t* row_of_b = of_two ? row_of_a + x.class_rows[0] : nullptr;
  v.maybe(of_two, "separable", found.answer,
          "by a hyperplane, strictly; it and what follows are there for two classes");
  v.maybe(of_two, "margin", finite_or_null(found.margin),
          "proved distance of the sets along normal, rounding taken off; proves nothing unless positive; "
          "null when the sets have the same mean");
  v.maybe(of_two, "normal", found.normal,
          "unit; normal . a > offset > normal . b when separable and margin is positive; empty when the "
          "sets have the same mean");
  v.maybe(of_two, "offset", found.offset,
          "a double between normal . b and normal . a where there is one, the nearest otherwise (margin "
          "is proved without it)");
  v.maybe(of_two, "a", weights_on("row", found.a, row_of_a),
          "weights, with sum 1, on rows of A (of the whole array with --labels): with b, a point both hulls "
          "hold (no) or their nearest points");
  v.maybe(of_two, "b", weights_on("row", found.b, row_of_b), "the same on rows of B");
  v.maybe(of_two, "residual", not_negative(found.residual),
          "distance of the two weighted points, rounding added: how well the hulls meet (no), or the "
          "largest margin there can be");
  v.maybe(of_two, "scale", not_negative(found.scale),
          "largest distance of a coordinate from the mean of all rows");
  v.maybe(of_two, "tolerance", fraction(found.tolerance),
          "hulls count as meeting when residual <= tolerance * scale and, in each column, |sum of weight "
          "* a - sum of weight * b| <= tolerance * (sum of weight * |a - h| + sum of weight * |b - h|), "
          "h the heaviest row of A; what is proved exactly takes no tolerance");
  v.maybe(found.exact.has_value(), "exact", ExactSeparationFields{or_empty(found.exact), row_of_a, row_of_b},
          "with --exact: the decision in rational arithmetic and its certificate; separable is its answer "
          "unless that is undecided");
  v.rule("dependentRequired",
         R"({"separable": ["margin", "normal", "offset", "a", "b", "residual", "scale", "tolerance"]})");
  v.rule("if", R"({"properties": {"rows": {"maxItems": 2}}})");
  v.rule("then", R"({"required": ["separable"]})");
}

template <class V>
void fields(V& v, const verify::Finding& finding) {
  v("item", finding.item, "the statement, by its path in the result");
  v("reason", finding.reason, "why it fails, or cannot be checked");
}

struct VerifyFields {
  const std::string& kind;
  const verify::Verification& found;
};

template <class V>
void fields(V& v, const VerifyFields& x) {
  const std::string schema = "normscope." + x.kind + "/1";
  begin(v, "verify");
  v("result",
    one_of<"normscope.select/1", "normscope.separate/1", "normscope.reach/1", "normscope.heads/1",
           "normscope.ranges/1", "normscope.rewrite/1">(schema),
    "schema of the result");
  v("checked", x.found.checked, "number of statements checked, including those that failed");
  v("failed", x.found.failed, "statements that do not hold");
  v("not_checkable", x.found.not_checkable, "statements without a proof in the result");
}

/// The decision of one key in rational arithmetic.
struct ExactKeyFields {
  const proof::ExactSeparation& exact;
};

template <class V>
void fields(V& v, const ExactKeyFields& x) {
  const bool is_yes = x.exact.answer == proof::Answer::yes;
  const bool is_no = x.exact.answer == proof::Answer::no;
  v("answer", is_yes  ? Selectability::selectable
              : is_no ? Selectability::unselectable
                      : Selectability::undecided);
  v.maybe(is_yes, "query", integers(x.exact.normal),
          "selectable: integers with query . key > query . other for every other key, exactly");
  v.maybe(is_no, "weights", exact_weights_on("key", x.exact.b),
          "unselectable: sum of numerator * other key equals denominator * key, exactly");
  v.maybe(is_no, "denominator", matching(positive_integer, x.exact.denominator),
          "unselectable: what the numerators sum to");
  v.maybe(!is_yes && !is_no, "reason", x.exact.reason, "undecided: the limit that was met");
  v.rule("oneOf",
         R"([{"properties": {"answer": {"const": "selectable"}}, "required": ["query"]},
             {"properties": {"answer": {"const": "unselectable"}}, "required": ["weights", "denominator"]},
             {"properties": {"answer": {"const": "undecided"}}, "required": ["reason"]}])");
}

struct VerdictFields {
  const selectability::Verdict& verdict = empty<selectability::Verdict>();
  const proof::ExactSeparation* exact = nullptr;
  bool with_proof = true;  ///< whether queries and weights are in the result
};

template <class V>
void fields(V& v, const VerdictFields& x) {
  const selectability::Verdict& verdict = x.verdict;
  const bool is_selectable = verdict.answer == Selectability::selectable;
  const bool is_unselectable = verdict.answer == Selectability::unselectable;
  const bool with_query = verdict.proof == Proof::query || verdict.proof == Proof::exact;
  v("answer", verdict.answer);
  v("proof", verdict.proof);
  v.maybe(is_selectable, "margin", nullable(std::isfinite(verdict.margin), std::max(0.0, verdict.margin)),
          "selectable: query . (key - other) >= margin |query| for every other key; null for the only "
          "one; 0, which states nothing, where the query of an exact proof is not that of doubles");
  v.maybe(is_selectable && x.with_proof && with_query, "query", verdict.query,
          "of proof query; of proof exact, its integers rounded");
  v.maybe(is_unselectable, "residual", not_negative(verdict.residual),
          "unselectable: |sum w_j (key - key_j)| / sum w_j is at most this; of proof exact, what "
          "rounding leaves of 0");
  v.maybe(is_unselectable && x.with_proof, "weights", weights_on("key", verdict.weights),
          "on other keys, unselectable; of proof exact, its integers' quotients rounded");
  v.maybe(x.exact != nullptr, "exact",
          ExactKeyFields{x.exact == nullptr ? empty<proof::ExactSeparation>() : *x.exact},
          "with --exact, of a key that floating point does not decide without rounding: the decision in "
          "rational arithmetic and its certificate");
}

template <class V>
void fields(V& v, const selectability::Margins& margins) {
  v("least", not_negative(margins.least), "of all");
  v("median", not_negative(margins.median), "of all");
  v("largest", not_negative(margins.largest), "of all");
}

struct SelectFields {
  const selectability::Selection& selection;
  const SelectDetails& details;
};

template <class V>
void fields(V& v, const SelectFields& x) {
  const selectability::Selection& selection = x.selection;
  const bool here = numbers_of(selection) <= most_inline_numbers;
  std::vector<VerdictFields> verdicts;
  for (const selectability::Verdict& verdict : selection.keys) verdicts.push_back({verdict, nullptr, here});
  std::vector<std::size_t> exact;
  for (const selectability::ExactVerdict& verdict : selection.exact) {
    verdicts[verdict.key].exact = &verdict.separation;
    if (selection.keys[verdict.key].proof == Proof::exact) exact.push_back(verdict.key);
  }
  begin(v, "select");
  v("inputs", InputsFields{x.details.inputs, false}, "what this was computed from");
  v("keys", selection.keys.size(), "rows of the array");
  v("width", positive(x.details.width));
  v("norm", x.details.norm, about_key_norm);
  v("selectable", selection.count(Selectability::selectable),
    "how many keys some query gives the strictly highest score");
  v("unselectable", rows_with(selection, Selectability::unselectable),
    "keys that no query does that for: in the hull of the others, to the tolerance, or exactly with "
    "proof exact");
  v("undecided", rows_with(selection, Selectability::undecided), "keys for which neither is proved");
  v("proofs", object([&](auto& proofs) {
      for (const Proof proof : selectability::every_proof) {
        proofs(to_string(proof), selection.count(proof), about(proof));
      }
    }),
    "number of keys decided by each kind of proof");
  v("margin", selection.margins(),
    "over the selectable keys, the proved distance from the hull of the others along the query; null "
    "where there is none");
  v("scale", not_negative(selection.scale), "largest distance of a coordinate from center");
  v("tolerance", fraction(selection.tolerance),
    "without an exact proof, keys count as in the hull of the others when they are tolerance * scale "
    "away from it, or less, and in each column tolerance times the largest distance of its entries from "
    "center, or less");
  v("center", selection.keys.empty() ? std::vector<double>{} : selection.center,
    "mean of the distinct keys: the query of a key of proof own_direction is the key less this, entry by "
    "entry in float64");
  v("verdicts", verdicts, "one per key, in order; docs/certificates.md says how each is checked");
  v("certificates", certificates(here, x.details.folder),
    "where queries, weights and points are: here, in the folder of --certificates, or nowhere, as there "
    "are more than a million numbers of them; integers of exact proofs are always here");
  v.maybe(x.details.exact, "exact", exact,
          "with --exact: the keys that were decided in rational arithmetic; all others are proved "
          "without rounding by their query, by an equal key or by being alone, or undecided with the "
          "reason");
}

template <class V>
void fields(V& v, const selectability::RandomCell& cell) {
  v("width", positive(cell.width));
  v("count", positive(cell.count), "number of keys in a set");
  v("any", fraction(cell.any), "share of sets with at least one key that cannot be selected");
  v("mean", fraction(cell.mean), "mean share of keys that cannot be selected");
  v("undecided", cell.undecided, "keys for which neither was proved");
}

struct SelectTableFields {
  const selectability::RandomTable& table;
  const std::vector<selectability::RandomCell>& cells;
  const std::optional<KeyNorm>& norm;
};

template <class V>
void fields(V& v, const SelectTableFields& x) {
  begin(v, "select-table");
  v("norm", x.norm, about_key_norm);
  v("runs", positive(x.table.runs), "random key sets per cell");
  v("seed", x.table.seed);
  v("cells", x.cells);
}

Json separate(const SeparateResult& result) { return json_of(result); }
Json describe_separate(SchemaMaker& maker) {
  return maker.schema_of(SeparateResult{1, {}, {}, {}, 0.0, {}, {}, {}});
}

Json verification(const std::string& kind, const verify::Verification& found) {
  return json_of(VerifyFields{kind, found});
}
Json describe_verify(SchemaMaker& maker) { return maker.schema_of(VerifyFields{{}, {}}); }

Json select(const selectability::Selection& selection, const SelectDetails& details) {
  return json_of(SelectFields{selection, details});
}
Json describe_select(SchemaMaker& maker) { return maker.schema_of(SelectFields{{}, {.inputs = {}}}); }

Json random_table(const selectability::RandomTable& table,
                  const std::vector<selectability::RandomCell>& cells, const std::optional<KeyNorm>& norm) {
  return json_of(SelectTableFields{table, cells, norm});
}
Json describe_select_table(SchemaMaker& maker) { return maker.schema_of(SelectTableFields{{}, {}, {}}); }

}  // namespace normscope::results
