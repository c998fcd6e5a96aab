#include <normscope/results/documents.hpp>

#include <algorithm>
#include <vector>

#include "shared.hpp"

namespace normscope::results {

using analysis::End;
using analysis::LogitRanges;
using analysis::NormRanges;
using analysis::ReaderRanges;

namespace {

/// Largest number of rows in a list; the count includes all of them.
constexpr std::size_t most_listed = 64;

auto listed(const std::vector<std::size_t>& rows) {
  const std::vector<std::size_t> first(
      rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), most_listed)));
  return object([first, count = rows.size()](auto& v) {
    v.define("range_rows");
    v("count", count);
    v("rows", first, "the first 64");
  });
}

/// The types in which `size` overflows.
auto overflows(double size) {
  std::vector<std::string> names;
  for (const analysis::NumberType& type : analysis::number_types) {
    if (size > type.largest) names.push_back(type.name);
  }
  return defined("number_types",
                 each(std::move(names),
                      [](const std::string& name) {
                        return one_of<"float16", "bfloat16", "float8_e4m3", "float8_e5m2">(name);
                      }),
                 "types whose largest number some input exceeds");
}

/// The scale that holds `size` in 127 steps, and how many of them `typical` takes.
auto int8(double size, double typical) {
  return object([=](auto& v) {
    v.define("int8", "what an int8 quantizer would need, and what it leaves");
    v("scale", size / 127.0, "that holds every input: the largest bound over 127");
    v("typical_steps", nullable(size > 0.0, size > 0.0 ? analysis::int8_steps(size, typical) : 0.0),
      "of that scale in the typical size, of the output in that of its median feature; null where the "
      "bound is 0");
  });
}

constexpr const char* about_refused = "why nothing is known; then the fields below are absent";
constexpr const char* about_sources = "what the ranges were computed from";

}  // namespace

template <class V>
void fields(V& v, const End& end) {
  v.define("range_end", "an end of the range of all rows");
  v("row", end.row, "of the map");
  v("bound", end.bound, "proved: no input of the norm gives more, or less");
  v("attained", finite_or_null(end.attained),
    "what the norm and the row give at an input that approaches it; null beyond the range of double");
}

struct ReaderFields {
  const ReaderRanges& reader = empty<ReaderRanges>();
  const models::Linear* map = nullptr;  ///< the inputs from which ranges were computed, for checkers
};

template <class V>
void fields(V& v, const ReaderFields& x) {
  const ReaderRanges& reader = x.reader;
  const bool known = reader.refused.empty();
  v.define("reader_ranges");
  v("role", reader.role, "query, key, mlp in, ...");
  v("weight", reader.weight, "the tensor");
  v("rows", reader.rows);
  v.maybe(!known, "refused", reader.refused, about_refused);
  v.maybe(known, "lowest", reader.lowest);
  v.maybe(known, "highest", reader.highest);
  v.maybe(known, "typical", finite_or_null(reader.typical),
          "largest root mean square of a row over evenly distributed directions; null beyond the range "
          "of double");
  v.maybe(known, "worst_over_typical", nullable(reader.typical > 0.0, finite_or_null(reader.ratio())),
          "the largest bound over `typical`: the factor by which a scale for the worst case is too wide "
          "for typical inputs; null where typical is 0");
  v.maybe(known, "int8", int8(reader.size(), reader.typical));
  v.maybe(known, "never_positive", listed(reader.never_positive));
  v.maybe(known, "never_negative", listed(reader.never_negative));
  v.maybe(known, "may_overflow", overflows(reader.size()));
  if (x.map == nullptr) return;
  v("source", object([map = x.map](auto& source) { map_source(source, *map); }), about_sources);
}

struct NormFields {
  const NormRanges& ranges = empty<NormRanges>();
  const models::Norm* norm = nullptr;  ///< as for a reader
};

template <class V>
void fields(V& v, const NormFields& x) {
  const NormRanges& ranges = x.ranges;
  const bool known = ranges.refused.empty();
  v.define("norm_ranges");
  v("name", ranges.name);
  v.maybe(!known, "refused", ranges.refused, about_refused);
  v.maybe(known, "output", object([&](auto& output) {
            output("largest", ranges.largest, "proved: of |y| over all features and inputs");
            output("feature", ranges.feature, "where");
            output("median", ranges.median, "of the features' largest |y|");
            output(
                "typical", finite_or_null(ranges.typical),
                "root mean square of that feature over evenly distributed directions; null beyond the range "
                "of double");
            output("median_typical", finite_or_null(ranges.median_typical),
                   "of the features' root mean squares; null beyond the range of double");
            output("int8", int8(ranges.largest, ranges.median_typical));
            output("may_overflow", overflows(ranges.largest));
          }),
          "of the norm itself");
  v.maybe(known, "readers", each(ranges.readers, [&](const ReaderRanges& reader, std::size_t index) {
            if (x.norm == nullptr) return ReaderFields{reader};
            const bool stated = index < x.norm->readers.size();
            return ReaderFields{reader, stated ? &x.norm->readers[index] : &empty<models::Linear>()};
          }));
  if (x.norm == nullptr) return;
  v("source", object([norm = x.norm](auto& source) { norm_source(source, *norm); }), about_sources);
}

template <class V>
void fields(V& v, const LogitRanges& logits) {
  v("norm", logits.norm, "that the head reads");
  v("tokens", logits.tokens);
  v("lowest", logits.lowest);
  v("highest", logits.highest);
  v("scale", logits.scale, "what the configuration multiplies logits by; in the ends already");
  v("soft_cap", logits.soft_cap, "0 without one; in the ends already");
}

/// `norms` are those that the ranges were computed from, null to leave them out.
template <class V>
void add_ranges(V& v, const analysis::ModelRanges& found, const std::vector<models::Norm>* norms) {
  v("norms",
    each(found.norms,
         [&](const NormRanges& ranges, std::size_t index) {
           if (norms == nullptr) return NormFields{ranges};
           return NormFields{ranges, index < norms->size() ? &(*norms)[index] : &empty<models::Norm>()};
         }),
    "in the order of the forward pass");
  v("logits", found.logits, "null where they are not known");
  v("logits_refused", found.logits_refused, "why logits are not known, or empty");
}

template <class V>
void fields(V& v, const RangesFields& x) {
  v.define("ranges", "of the numbers behind each norm, as `normscope ranges` writes them");
  add_ranges(v, x.found, nullptr);
}

Json RangesFields::json() const {
  JsonWriter writer;
  fields(writer, *this);
  return writer.take();
}
Json RangesFields::schema(SchemaMaker& maker) const {
  return maker.object_of([this](SchemaMaker& inner) { fields(inner, *this); });
}

struct RangesDocument {
  std::string path;
  const models::Model& model;
  const analysis::ModelRanges& found;
};

template <class V>
void fields(V& v, const RangesDocument& x) {
  std::vector<std::string> notes = x.model.notes;
  for (std::string& sentence : analysis::not_covered(x.model)) notes.push_back(std::move(sentence));
  begin(v, "ranges");
  v("path", x.path);
  v("architecture", x.model.architecture);
  add_ranges(v, x.found, &x.model.norms);
  v("notes", notes, "what the model's description had to assume, or could not tell");
}

Json ranges(const files::Checkpoint& checkpoint, const models::Model& model,
            const analysis::ModelRanges& found) {
  return json_of(RangesDocument{checkpoint.path().string(), model, found});
}
Json describe_ranges(SchemaMaker& maker) { return maker.schema_of(RangesDocument{{}, {}, {}}); }

}  // namespace normscope::results
