#include <normscope/results/documents.hpp>

#include <span>
#include <vector>

#include <normscope/nets/rnn/counting.hpp>
#include <normscope/nets/rnn/theorems.hpp>

#include "shared.hpp"

namespace normscope::results {

namespace rnn = nets::rnn;

template <>
inline constexpr auto last_value<rnn::CellKind> = rnn::CellKind::elman_relu;
template <>
inline constexpr auto last_value<rnn::Language> = rnn::Language::anbncn;
template <>
inline constexpr auto last_value<rnn::Head> = rnn::Head::next_symbol;
template <>
inline constexpr auto last_value<rnn::Space> = rnn::Space::linear;

namespace {

/// Rows of `width` numbers.
auto rows(std::span<const double> values, std::size_t width) {
  std::vector<std::span<const double>> list;
  for (std::size_t at = 0; at < values.size(); at += width) list.push_back(values.subspan(at, width));
  return defined("rows", each(std::move(list),
                              [](const std::span<const double>& row) { return each(row, finite_or_null); }));
}

template <class V>
void add_network(V& v, const rnn::Network& network) {
  v("cell", network.cell.kind);
  v("language", network.language);
  v("head", network.head);
}

}  // namespace

template <class V>
void fields(V& v, const rnn::Drift& block) {
  v("mean", finite_or_null(block.mean), "mean change per letter");
  v("deviation", finite_or_null(block.deviation));
}

template <class V>
void fields(V& v, const rnn::UnitDrift& drift) {
  v.define("drift");
  v("unit", drift.unit);
  v("counts", drift.counts,
    "whether the unit counts: it rises steadily in one block of letters and falls at the same rate in "
    "the next");
  v("blocks", drift.blocks);
}

struct TraceFields {
  const rnn::Network& network;
  std::size_t n = 0;
  std::string letters{};
  bool accepted = false;
  rnn::Trace seen{};
  std::vector<double> probabilities{};
};

template <class V>
void fields(V& v, const TraceFields& x) {
  name_schema(v, "trace");
  add_network(v, x.network);
  v("n", x.n, "repetitions of every letter");
  v("letters", matching("^[abc]*$", x.letters));
  v("accepted", x.accepted);
  v("signals",
    each(x.seen.signals,
         [&](const rnn::Signal& signal) {
           return object([&](auto& item) {
             item("name", signal.name);
             item("values", rows(signal.values, x.seen.width),
                  "one row after the start and one after every letter, with one number per unit");
           });
         }),
    "h, c of an lstm, and the gates");
  v("outputs", rnn::output_names(x.network), "what each column of the probabilities stands for");
  v("probabilities", rows(x.probabilities, x.network.outputs()));
  v("drifts", rnn::drifts_if_long(x.network, x.n), "as in normscope.count/1; none for n below 30");
}

Json trace(const rnn::Network& network, std::size_t n) {
  const rnn::Word word = rnn::member(network.language, n);
  return json_of(TraceFields{network, n, rnn::text(word), rnn::accepts(network, word),
                             rnn::trace(network, word), rnn::probabilities(network, word)});
}
Json describe_trace(SchemaMaker& maker) { return maker.schema_of(TraceFields{{}}); }

template <class V>
void fields(V& v, const TrainingCourse& course) {
  v("epochs", positive(course.loss.size()));
  v("loss", each(course.loss, finite_or_null), "mean loss of every epoch");
  v("accuracy", course.accuracy, "share of the training words classified correctly, in every epoch");
}

template <class V>
void fields(V& v, const CountResult& x) {
  const rnn::TrainSpec& spec = x.spec;
  const auto answers = [](const std::vector<bool>& accepted) { return defined("answers", accepted); };
  const auto share = [](double part) { return defined("share", fraction(part)); };
  begin(v, "count");
  add_network(v, x.network);
  v("width", positive(x.network.cell.width), "units");
  v("spec", object([&](auto& part) {
      part("longest", positive(spec.longest), "largest exponent");
      part("batch", positive(spec.batch));
      part("rate", spec.rate);
      part("decay", spec.decay, "whether the rate falls to 0 in the second half");
      part("clip", spec.clip);
      part("epochs", spec.epochs, "at most");
      part("seed", spec.seed);
    }),
    "how it was trained");
  v("training", x.trained, "null without --train");
  v("exact_to", at_least(4, x.range.exact_to()),
    "largest n such that every word tested from n = 5 on is classified correctly; 4 where n = 5 fails");
  v("accepted", object([&](auto& part) {
      part("member", answers(x.range.member));
      part("one_less", answers(x.range.one_less), "whether the word with one last letter fewer is accepted");
      part("one_more", answers(x.range.one_more));
      part("another", answers(x.range.another),
           "whether some other word is accepted with n of the first letter, n - 3 to n + 3 of a letter "
           "between "
           "and up to n + 10 of the last");
    }),
    "for n = 0, 1, … repetitions of every letter");
  v("near_members", object([&](auto& part) {
      part("words", positive(x.near_members.words));
      part("right", x.near_members.right);
      part("accepted_members", share(x.near_members.accepted_members));
      part("rejected_others", share(x.near_members.rejected_others));
    }),
    "on random words within two letters of a member");
  v("n", x.n, "repetitions of every letter in the word over which drifts are measured");
  v("drifts", x.drifts, "one entry per unit; none for n below 30");
  v("parameters", x.network.cell.parameters,
    "map after map W (width, letters and start), U (width, width), b (width); i f o g of an lstm, z r g "
    "of a gru");
  v("output", x.network.output, "V (outputs, width), v (outputs)");
}

Json count(const CountResult& result) { return json_of(result); }
Json describe_count(SchemaMaker& maker) { return maker.schema_of(CountResult{{}, {}, {}, {}, {}, 0, {}}); }

template <class V>
void fields(V& v, const rnn::EncoderClass& one) {
  v.define("encoder_class", "Architectures that compute the same functions");
  v("id", one.id);
  v("name", one.name);
  v("space", one.space, "T(n) where states number 2^T(n) after at most n letters");
  v("rational", one.rational, "whether all its functions are rational series");
  v("members", one.members, "architectures, separated by \", \"");
  v("says", one.says, "its meaning, in one sentence");
  v("example", one.example,
    "a function or language in this class that is not in the classes below or beside it");
  v("source", one.source);
  v("test", one.test, "a test that shows it; empty if there is none");
}

template <class V>
void fields(V& v, const rnn::Standing& one) {
  v.define("standing", "Whether an architecture with a decoder recognizes a language");
  v("architecture", one.architecture);
  v("decoder", one.decoder, "one threshold, two layers of thresholds, or any");
  v("language", one.language);
  v("recognizes", one.recognizes);
  v("source", one.source);
  v("test", one.test);
}

template <class V>
void fields(V& v, const rnn::Order& one) {
  v.define("order", "An architecture that can do strictly more than another");
  v("more", one.more);
  v("less", one.less);
  v("because", one.because);
  v("source", one.source);
}

struct HierarchyFields {};

template <class V>
void fields(V& v, const HierarchyFields& /*x*/) {
  name_schema(v, "hierarchy");
  v("classes", rnn::encoder_classes());
  v("standings", rnn::standings());
  v("orders", rnn::orders());
}

Json hierarchy() { return json_of(HierarchyFields{}); }
Json describe_hierarchy(SchemaMaker& maker) { return maker.schema_of(HierarchyFields{}); }

}  // namespace normscope::results
