#include <normscope/results/words.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace normscope::results {
namespace {

using analysis::Cause;
using analysis::Measure;
using analysis::Subject;
using analysis::UnusualValue;

/// Layers, or norms outside layers, that a title lists; of more it gives the range or the count.
constexpr std::size_t most_places = 4;

/// Bytes of a name from which a title leaves out its middle.
constexpr std::size_t longest_name = 40;

/// "a, b and c".
std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text;
}

/// A count at the beginning of a sentence.
std::string in_words(std::size_t count) {
  constexpr const char* words[] = {"No",   "One", "Two",   "Three", "Four",
                                   "Five", "Six", "Seven", "Eight", "Nine"};
  return count < std::size(words) ? words[count] : fmt::format("{}", count);
}

/// An unusual value and the limit that it exceeds, with as few digits, three at least, as tell them apart.
/// Both are rounded away from what is claimed: the value to its usual side, so that a proved bound stays one,
/// the limit to the unusual side, so that what is said to be within it is.
std::pair<std::string, std::string> told_apart(double value, double limit, bool large) {
  const auto down = [](double number, int digits) {
    return digits == 3 ? format_at_least(number) : normscope::at_least(number, digits);
  };
  const auto up = [](double number, int digits) {
    return digits == 3 ? format_at_most(number) : normscope::at_most(number, digits);
  };
  for (int digits = 3;; ++digits) {
    std::string shown = large ? down(value, digits) : up(value, digits);
    std::string bound = large ? up(limit, digits) : down(limit, digits);
    const double difference = std::stod(shown) - std::stod(bound);
    if (digits == 15 || (large ? difference > 0.0 : difference < 0.0)) return {shown, bound};
  }
}

/// What a measure is called, and how its values are written after it.
struct MeasureWords {
  const char* name;
  const char* unit;  ///< after a number
  bool is_share;
};

MeasureWords words_of(Measure measure) {
  switch (measure) {
    case Measure::largest_gain: return {"largest gain", " times the norm's median", false};
    case Measure::effective_dimension: return {"effective dimension", " of the dimensions", true};
    case Measure::null_direction: return {"cosine of what is removed to all-ones", "", false};
    case Measure::switched_off: return {"features switched off", " of the features", true};
    case Measure::sign_changes: return {"features that change sign", " of the features", true};
    case Measure::bias: return {"length of the bias", " times the radius of the image", false};
    case Measure::image_change: return {"similarity to the norm before", "", false};
    case Measure::removed_weight: return {"weight without effect", " of a reader's squared weight", true};
    case Measure::unusual_coordinate: return {"norms that single it out", " of the norms", true};
    case Measure::uniform_head: return {"least spread of scores", " nats", false};
    case Measure::sharp_head: return {"largest spread of scores", " nats", false};
  }
  return {"", "", false};
}

/// The value and its limit as text, shares in percent.
std::pair<std::string, std::string> with_limit(const UnusualValue& value) {
  const bool is_share = words_of(value.measure).is_share;
  const double scale = is_share ? 100.0 : 1.0;
  const char* const unit = is_share ? " %" : "";
  const auto [number, limit] =
      told_apart(scale * value.at.value, scale * value.usual.limit, facts(value.measure).large);
  return {number + unit, limit + unit};
}

NumberText number_text(const UnusualValue& value, std::optional<std::size_t> norm) {
  const MeasureWords words = words_of(value.measure);
  const analysis::Usual& usual = value.usual;
  const auto [number, limit] = with_limit(value);
  const bool large = facts(value.measure).large;
  return {.measure = value.measure,
          .name = words.name,
          .text = number + words.unit,
          .usual = large && usual.limit == 0.0 ? "none"
                                               : fmt::format("{} {}{}", large ? "at most" : "at least", limit,
                                                             words.is_share ? words.unit : ""),
          .value = value.at.value,
          .limit = usual.limit,
          .within = usual.within,
          .of = usual.of,
          .norm = norm};
}

/// The words about one cause.
class Words {
 public:
  Words(const Cause& cause, const analysis::Report& report) : cause_(cause), report_(report) {}

  [[nodiscard]] std::string title() const {
    switch (cause_.subject) {
      case Subject::coordinate: return coordinate_title();
      case Subject::norm: return norm_title() + others();
      case Subject::heads: return heads_title();
      case Subject::finding: return stated().text;
    }
    return "";
  }

  /// Why it matters, and what to do about it.
  [[nodiscard]] std::pair<std::string, std::string> consequences() const {
    if (cause_.subject == Subject::finding) return {stated().why, ""};
    if (cause_.switched_off) {
      return {"Where a norm switches a coordinate off, maps that read it hardly see what is written there.",
              "Leave such coordinates out where you probe, prune or quantize what reads such a norm."};
    }
    switch (leading().measure) {
      case Measure::unusual_coordinate:
      case Measure::largest_gain:
        return {fmt::format("It adds most to the dot products of the norm's outputs. With one int8 scale for "
                            "all features, the median feature uses {} of the 127 steps that this one uses.",
                            format_number(127.0 / most_amplified())),
                fmt::format("Quantize this input with a scale for each channel, or move the gain into the "
                            "weights behind it: normscope rewrite {} --fold gains -o OUT (--migrate moves "
                            "powers of two only)",
                            shell_quoted(command_path(report_.path)))};
      case Measure::effective_dimension:
        return {
            "Cosine similarities and random probes of this output measure these directions and little "
            "else.",
            "Divide the output by the gain before you compare outputs or look for neighbours."};
      case Measure::null_direction:
        return {"Nothing that reads this norm can see what varies along that direction.",
                "Where you centre vectors to compare them, subtract this direction and not the mean."};
      case Measure::switched_off:
        return {"Maps that read this norm hardly see these features.",
                "Leave these features out where you probe or prune what reads this norm."};
      case Measure::sign_changes:
        return {"A feature with a negative gain is read with its sign changed.",
                "Compare features across norms by gain times weight."};
      case Measure::bias:
        return {
            "All outputs share this constant: it raises their cosine similarities and shifts attention "
            "scores.",
            "Subtract the bias before you compare outputs."};
      case Measure::image_change:
        return {"A probe trained on the output of one of the two norms reads other directions in the other.",
                "Divide by the gain before you carry a probe from one norm to the next."};
      case Measure::removed_weight:
        return {"The lengths of these weights, and comparisons of them, count a part that changes no output.",
                "Subtract from each row its mean, with the gain folded in, before you compare weights."};
      case Measure::uniform_head:
        return {
            "Whatever the query, some possible key has more weight than another: the head cannot average "
            "over every context.",
            ""};
      case Measure::sharp_head:
        return {"The head mixes many tokens, whatever its query: it cannot copy from one.", ""};
    }
    return {};
  }

  [[nodiscard]] std::string reproduce() const {
    const std::string path = shell_quoted(command_path(report_.path));
    if (cause_.subject == Subject::finding) return stated().reproduce;
    if (cause_.subject == Subject::heads) return "normscope heads " + path;
    std::string command = geometry_command(report_.path, report_.norms[*cause_.norm].norm);
    if (leading().measure == Measure::null_direction) command += " --null-space";
    return command;
  }

  [[nodiscard]] std::vector<std::pair<std::string, analysis::CoordinateReader>> readers() const {
    std::vector<std::pair<std::string, analysis::CoordinateReader>> result;
    for (const analysis::CoordinateReader& reader : cause_.readers) {
      result.emplace_back(reader_name(reader), reader);
    }
    return result;
  }

 private:
  [[nodiscard]] const UnusualValue& leading() const { return cause_.values.front(); }
  [[nodiscard]] FindingText stated() const {
    return describe(report_.findings[cause_.findings.front()], report_);
  }
  [[nodiscard]] std::string name(std::size_t norm) const {
    return shortened(report_.norms[norm].norm.name, longest_name);
  }

  /// |gain| over the median where it is largest, at least 1.
  [[nodiscard]] double most_amplified() const {
    double most = 1.0;
    for (const analysis::MeasuredValue& ratio : cause_.ratios) most = std::max(most, ratio.value);
    for (const UnusualValue& value : cause_.values) {
      if (value.measure == Measure::largest_gain) most = std::max(most, value.at.value);
    }
    return most;
  }

  /// "head 3.7", "MLP 5", "unembedding".
  [[nodiscard]] std::string reader_name(const analysis::CoordinateReader& reader) const {
    const models::Norm& norm = report_.norms[reader.norm].norm;
    const std::string stack = norm.stack.empty() ? "" : norm.stack + " ";
    if (reader.head) {
      const models::Head& head = report_.model.heads[*reader.head];
      return fmt::format("{}head {}.{}", stack, head.layer, head.head);
    }
    const bool is_mlp = reader.role.rfind("mlp", 0) == 0;
    if (!norm.layer) return reader.role;
    return is_mlp ? fmt::format("{}MLP {}", stack, *norm.layer)
                  : fmt::format("{}{} of layer {}", stack, reader.role, *norm.layer);
  }

  /// "layers 4 to 8", "layer 3 and ln_f"; names where no layer is known.
  [[nodiscard]] std::string places() const {
    std::set<int> layers;
    std::vector<std::string> names;
    for (const std::size_t norm : cause_.norms) {
      if (report_.norms[norm].norm.layer) {
        layers.insert(*report_.norms[norm].norm.layer);
      } else {
        names.push_back(name(norm));
      }
    }
    std::vector<std::string> parts;
    const bool consecutive =
        !layers.empty() && static_cast<std::size_t>(*layers.rbegin() - *layers.begin()) + 1 == layers.size();
    if (layers.size() == 1) {
      parts.push_back(fmt::format("layer {}", *layers.begin()));
    } else if (layers.size() > most_places || (consecutive && layers.size() > 2)) {
      parts.push_back(fmt::format("layers {} to {}", *layers.begin(), *layers.rbegin()));
    } else if (!layers.empty()) {
      std::vector<std::string> numbers;
      for (const int layer : layers) numbers.push_back(fmt::format("{}", layer));
      parts.push_back("layers " + listed(numbers));
    }
    if (names.size() > most_places) {
      parts.push_back(counted(names.size(), "norm") + " outside layers");
    } else {
      parts.insert(parts.end(), names.begin(), names.end());
    }
    return listed(parts);
  }

  /// "Coordinate 138", "Coordinates 580, 265 and 3 others".
  [[nodiscard]] std::string coordinates() const {
    std::vector<std::string> parts;
    for (const std::size_t coordinate : cause_.coordinates) {
      if (parts.size() == most_places - 1 && cause_.coordinates.size() > most_places) {
        parts.push_back(counted(cause_.coordinates.size() - parts.size(), "other"));
        break;
      }
      parts.push_back(fmt::format("{}", coordinate));
    }
    return (cause_.coordinates.size() == 1 ? "Coordinate " : "Coordinates ") + listed(parts);
  }

  /// Whether one of the norms amplifies one of the coordinates.
  [[nodiscard]] bool is_amplified() const {
    for (const std::size_t norm : cause_.norms) {
      for (const analysis::Outlier& outlier : report_.norms[norm].outliers) {
        if (std::find(cause_.coordinates.begin(), cause_.coordinates.end(), outlier.coordinate) !=
            cause_.coordinates.end()) {
          return true;
        }
      }
    }
    return false;
  }

  [[nodiscard]] std::string coordinate_title() const {
    std::size_t of = 0;
    const models::Norm& first = report_.norms[cause_.norms.front()].norm;
    for (const analysis::NormReport& norm : report_.norms) {
      of += norm.gain && norm.norm.stack == first.stack && norm.norm.width == first.width &&
                    norm.norm.placement != models::Placement::inside
                ? 1
                : 0;
    }
    std::vector<std::string> readers;
    for (const analysis::CoordinateReader& reader : cause_.readers) readers.push_back(reader_name(reader));
    // Readers are known of the first coordinate alone.
    const std::string first_of_several =
        cause_.coordinates.size() == 1 ? "" : fmt::format("{} ", cause_.coordinates.front());
    const std::string verb = cause_.coordinates.size() == 1 ? "is" : "are";
    const std::string what = verb + (is_amplified() ? " switched off or amplified" : " switched off");
    return fmt::format(
        "{} {} in {} of {}, {}{}", coordinates(), cause_.switched_off ? what : "stands out",
        cause_.norms.size(), counted(of, "norm"), places(),
        readers.empty() ? "" : fmt::format(", {}read most by {}", first_of_several, listed(readers)));
  }

  [[nodiscard]] std::string norm_title() const {
    const std::size_t index = *cause_.norm;
    const analysis::NormReport& norm = report_.norms[index];
    // As beside its limit, so that the two can be compared.
    const std::string value = with_limit(leading()).first;
    switch (leading().measure) {
      case Measure::largest_gain:
        return fmt::format("{} amplifies coordinate {} to {} times its median gain", name(index),
                           norm.largest_gain->coordinate, value);
      case Measure::effective_dimension:
        return fmt::format("The output of {} lies in few directions: effectively {} of {}", name(index),
                           format_number(norm.image->effective_dimension), norm.image->semi_axes);
      case Measure::null_direction:
        return fmt::format("What {} removes is mostly coordinate {} and not the mean: cosine {}", name(index),
                           norm.null_space->top[0].coordinate, value);
      case Measure::switched_off:
        return fmt::format("{} switches off {} of {} features", name(index), norm.switched_off.size(),
                           norm.norm.width);
      case Measure::sign_changes:
        return fmt::format("{} changes the sign of {} of {} features", name(index), norm.sign_changes,
                           norm.norm.width);
      case Measure::bias:
        return fmt::format("The bias of {} is {} times as long as the radius of its image", name(index),
                           value);
      case Measure::image_change:
        return fmt::format("{} stretches other directions than the norm before it: similarity {}",
                           name(index), value);
      case Measure::removed_weight: {
        std::string role = "a reader";
        for (const analysis::Reader& reader : norm.readers) {
          if (reader.removed == leading().at.value) role = "the " + norm.norm.readers[reader.index].role;
        }
        return fmt::format("{} of the squared weight of {} behind {} has no effect", value, role,
                           name(index));
      }
      default: return "";
    }
  }

  /// "; 3 other norms are similar".
  [[nodiscard]] std::string others() const {
    if (cause_.norms.size() < 2) return "";
    const std::size_t others = cause_.norms.size() - 1;
    return fmt::format("; {} {} similar", counted(others, "other norm"), others == 1 ? "is" : "are");
  }

  [[nodiscard]] std::string heads_title() const {
    std::set<std::size_t> different;
    std::set<std::size_t> known;
    for (const std::size_t entry : cause_.heads) different.insert(report_.heads[entry].head);
    for (const heads::HeadReach& head : report_.heads) {
      if (head.attention) known.insert(head.head);
    }
    const models::Head& extreme = report_.model.heads[report_.heads[leading().at.place].head];
    const double spread = leading().at.value;
    if (leading().measure == Measure::uniform_head) {
      return fmt::format(
          "{} of {} can never attend to all keys nearly alike: in head {}.{} some scores always differ by at "
          "least {}, and the weights of their keys by a factor of {}",
          different.size(), counted(known.size(), "head"), extreme.layer, extreme.head,
          format_at_least(spread), format_exp_at_least(spread));
    }
    return fmt::format(
        "{} of {} can hardly prefer one key to another: in head {}.{} no scores differ by more than {}, and "
        "the weights of their keys by more than a factor of {}",
        different.size(), counted(known.size(), "head"), extreme.layer, extreme.head, format_at_most(spread),
        format_at_most(std::exp(spread)));
  }

  const Cause& cause_;
  const analysis::Report& report_;
};

/// What the verdict calls a finding that is about no norm.
std::string subject_of(const analysis::Finding& finding) {
  if (std::holds_alternative<analysis::TiedTokens>(finding.property)) return "tied tokens";
  if (std::holds_alternative<analysis::UnreachableTokens>(finding.property)) return "unreachable tokens";
  return "the whole file";
}

}  // namespace

CauseText describe(const Cause& cause, const analysis::Report& report) {
  const Words words(cause, report);
  CauseText text{.title = words.title(), .reproduce = words.reproduce(), .readers = words.readers()};
  std::tie(text.why, text.advice) = words.consequences();
  for (const UnusualValue& value : cause.values) {
    const bool of_norm = value.measure != Measure::unusual_coordinate &&
                         value.measure != Measure::uniform_head && value.measure != Measure::sharp_head;
    text.numbers.push_back(number_text(value, of_norm ? std::optional(value.at.place) : std::nullopt));
  }
  return text;
}

std::string shortened(const std::string& name, std::size_t most) {
  if (name.size() <= most) return name;
  const auto is_inside = [&](std::size_t at) {
    return (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80;
  };
  std::size_t front = most / 2 - 1;
  std::size_t back = name.size() - most / 2;
  // A character of several bytes stays whole.
  while (front > 0 && is_inside(front)) --front;
  while (back < name.size() && is_inside(back)) ++back;
  return name.substr(0, front) + "…" + name.substr(back);
}

std::string CauseText::line() const {
  if (numbers.empty()) return title;
  return fmt::format("{} (usual: {}, in {} of {} reference models)", title, numbers[0].usual,
                     numbers[0].within, numbers[0].of);
}

std::string verdict(const analysis::Report& report) {
  const std::size_t models = references_for(report).size();
  const std::string beside = fmt::format("beside {}", counted(models, "reference model"));
  if (report.norms.empty()) return "There is nothing to judge: no norm was found.";
  if (report.causes.empty()) return fmt::format("Nothing unusual {}.", beside);
  std::vector<std::string> subjects;
  for (std::size_t i = 0; i < std::min(report.causes.size(), analysis::first_causes); ++i) {
    const Cause& cause = report.causes[i];
    std::string subject;
    switch (cause.subject) {
      case Subject::coordinate:
        subject = cause.coordinates.size() > 1
                      ? fmt::format("a set of {}", counted(cause.coordinates.size(), "coordinate"))
                      : fmt::format("coordinate {}", cause.coordinates.front());
        break;
      case Subject::norm: subject = shortened(report.norms[*cause.norm].norm.name, longest_name); break;
      case Subject::heads: {
        std::set<std::size_t> different;
        for (const std::size_t entry : cause.heads) different.insert(report.heads[entry].head);
        subject = fmt::format("how {} {}", counted(different.size(), "head"),
                              different.size() == 1 ? "attends" : "attend");
        break;
      }
      case Subject::finding:
        subject = cause.norm ? shortened(report.norms[*cause.norm].norm.name, longest_name)
                             : subject_of(report.findings[cause.findings.front()]);
        break;
    }
    subjects.push_back(subject);
  }
  const std::size_t more = report.causes.size() - subjects.size();
  if (more > 0) subjects.push_back(fmt::format("{} more", more));
  return fmt::format(
      "{} unusual {}: {}.",
      report.causes.size() == 1 ? "One thing is" : in_words(report.causes.size()) + " things are", beside,
      listed(subjects));
}

}  // namespace normscope::results
