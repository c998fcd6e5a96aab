#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/convex/separate.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/version.hpp>
#include <normscope/separability/scatter.hpp>

#include "command.hpp"
#include "matrix_input.hpp"

namespace normscope::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  double tolerance = 1e-12;
  bool check = false;
};

separability::LinearRatio linear_ratio(const MatrixInput& a, const MatrixInput& b, double& plain) {
  std::vector<double> all = a.values;
  all.insert(all.end(), b.values.begin(), b.values.end());
  std::vector<std::size_t> labels(a.rows, 0);
  labels.resize(a.rows + b.rows, 1);
  const MatrixView<const double> x(all.data(), labels.size(), a.width);
  plain = separability::sum_of_squares_ratio(x, labels);
  return separability::linear_ratio(x, labels);
}

nlohmann::ordered_json to_json(const std::vector<convex::Share>& shares) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const convex::Share& share : shares) list.push_back({{"row", share.id}, {"weight", share.weight}});
  return list;
}

std::string proof(const convex::Separation& separation) {
  switch (separation.answer) {
    case convex::Answer::yes:
      return fmt::format("yes, by a hyperplane with margin {:.6g}", separation.margin);
    case convex::Answer::no:
      return fmt::format("no, {} rows of A and {} of B have a common point, to {:.2g}", separation.a.size(),
                         separation.b.size(), separation.residual);
    case convex::Answer::undecided: break;
  }
  return fmt::format("undecided: the hulls come within {:.2g}, no hyperplane is proved", separation.residual);
}

int run(const Session& session, const Options& options) {
  const MatrixInput a = read_matrix(options.a);
  const MatrixInput b = read_matrix(options.b);
  if (a.width != b.width) {
    throw Error(ErrorCode::Shape, fmt::format("{} has width {}, {} has width {}, expected the same",
                                              printable(options.a), a.width, printable(options.b), b.width));
  }
  double ssr = 0.0;
  const separability::LinearRatio linear = linear_ratio(a, b, ssr);
  const convex::Separation separation = convex::separate(a.view(), b.view(), options.tolerance);

  const nlohmann::ordered_json json = {{"schema", "normscope.separate/1"},
                                       {"version", version},
                                       {"width", a.width},
                                       {"rows", {a.rows, b.rows}},
                                       {"ssr", ssr},
                                       {"lssr", linear.ratio},
                                       {"direction", linear.direction},
                                       {"rank", linear.rank},
                                       {"separable", std::string(to_string(separation.answer))},
                                       {"margin", separation.margin},
                                       {"normal", separation.normal},
                                       {"offset", separation.offset},
                                       {"a", to_json(separation.a)},
                                       {"b", to_json(separation.b)},
                                       {"residual", separation.residual},
                                       {"scale", separation.scale},
                                       {"tolerance", separation.tolerance}};
  session.write_json(json.dump());
  session.say(
      fmt::format("{} and {} rows of width {}, scatter of rank {}", a.rows, b.rows, a.width, linear.rank));
  session.say(fmt::format("SSR {:.6g}, the least of any linear map (LSSR) {:.6g}", ssr, linear.ratio));
  session.say("linearly separable: " + proof(separation));
  return options.check && separation.answer != convex::Answer::yes ? negative : ok;
}

}  // namespace

void add_separate(CLI::App& root, Session& session) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(root, session, "separate",
                                  "How well two sets of rows are separated, and whether a hyperplane does it",
                                  [&session, options] { return run(session, *options); });
  command->add_option("A", options->a, "Rows of one class")->required();
  command->add_option("B", options->b, "Rows of the other, of the same width")->required();
  command
      ->add_option("--tolerance", options->tolerance,
                   "Hulls this near, relative to the data's size, count as meeting (default 1e-12)")
      ->type_name("T")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--check", options->check, "Exit with 1 unless they are linearly separable");
}

}  // namespace normscope::cli
