// LN-Nets for Python: constructed, trained, run.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include <normscope/nets/construct.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/nets/rnn/counting.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/nets/train_runs.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "arguments.hpp"
#include "array.hpp"
#include "matrix_argument.hpp"
#include "module.hpp"
#include "results.hpp"
#include "work.hpp"

namespace normscope::python {
namespace {

using Json = nlohmann::ordered_json;
using nets::Net;

/// The document, its charts and the net.
using Made = std::tuple<std::string, std::string, Net>;

Net load_net(const std::string& path) {
  const nb::gil_scoped_release others_may_run;
  return nets::load_net(path);
}

void save_net(const Net& net, const std::string& path) {
  const nb::gil_scoped_release others_may_run;
  nets::save_net(path, net);
}

std::string run_net(const Net& net, const nb::object& x, unsigned threads, const nb::object& callback) {
  const Matrix samples = samples_of("run", "x", x);
  return run(callback, [&](const Progress& progress) {
    return json_text(results::classification(
        net, nets::labels(net, samples.view(), threads, progress, nets::Overflow::error)));
  });
}

/// What each layer gives, (rows, width) each.
nb::list trace_net(const Net& net, const nb::object& x, unsigned threads) {
  const Matrix samples = samples_of("trace", "x", x);
  std::vector<std::vector<double>> layers;
  {
    const nb::gil_scoped_release others_may_run;
    layers = nets::trace(net, samples.view(), threads);
  }
  nb::list result;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    result.append(array_of(layers[l]).attr("reshape")(samples.rows, net.layers[l].out));
  }
  return result;
}

/// Entries of `given` that are not None. Each takes the argument's name, the value that it sets and how to
/// read it.
class Given {
 public:
  Given(std::string_view who, const nb::dict& given) : who_(who), given_(given) {}

  [[nodiscard]] bool has(const char* name) const {
    return given_.contains(name) && !nb::object(given_[name]).is_none();
  }
  void take_seed(std::uint64_t& value) const {
    if (has("seed")) value = integer(who_, "seed", given_["seed"], 0);
  }
  void take_count(const char* name, std::size_t& value, Py_ssize_t least) const {
    constexpr std::size_t largest = std::numeric_limits<std::int32_t>::max();
    if (!has(name)) return;
    value = integer(who_, name, given_[name], least);
    if (value > largest) {
      refuse(PyExc_ValueError,
             fmt::format("{}: {} is {}, expected {} to {}", who_, name, value, least, largest));
    }
  }
  void take(const char* name, double& value) const {
    if (has(name)) value = real(who_, name, given_[name]);
  }
  void take(const char* name, bool& value) const {
    if (has(name)) value = flag(who_, name, given_[name]);
  }
  template <typename Value, typename Named>
  void take_named(const char* name, Value& value, const Named& named) const {
    if (!has(name)) return;
    const nb::object given = given_[name];
    if (!nb::isinstance<nb::str>(given)) {
      refuse(PyExc_TypeError, fmt::format("{}: {} is {}, expected a string", who_, name, shown(given)));
    }
    value = named(text(given));
  }

 private:
  std::string_view who_;
  const nb::dict& given_;
};

Made build(const nb::object& x, const std::vector<std::int64_t>& labels, std::size_t random_labels,
           const nb::dict& given, const std::string& output, const std::string& resume, unsigned threads,
           const nb::object& callback) {
  const Matrix samples = samples_of("build", "x", x);
  const Given options("build", given);
  nets::ConstructOptions how{.first_label_wins = random_labels != 0, .resume = resume, .threads = threads};
  options.take_named("mode", how.mode, [](const std::string& name) {
    if (name != "paper" && name != "stable") {
      refuse(PyExc_ValueError, fmt::format("build: unknown mode \"{}\", expected paper or stable", name));
    }
    return name == "paper" ? nets::Mode::paper : nets::Mode::stable;
  });
  options.take_seed(how.seed);
  if (random_labels == 0) options.take("drop_conflicts", how.first_label_wins);
  options.take_named("precision", how.precision,
                     [](const std::string& name) { return std::optional(nets::precision(name)); });
  options.take("eps", how.eps);
  return run(callback, [&](const Progress& progress) {
    nets::Construction made = nets::construct(
        samples.view(),
        random_labels != 0 ? nets::random_labels(samples.rows, random_labels, how.seed) : labels, how,
        progress);
    if (!output.empty()) nets::save_net(output, made.net);
    std::string document = json_text(results::construction(made, how.mode, output));
    std::string charts = json_text(Json::array({chart_entry("folds", figures::folds(made.folds))}));
    return Made(std::move(document), std::move(charts), std::move(made.net));
  });
}

nets::TrainSpec spec_of(const Given& options, nets::TrainSpec spec) {
  options.take_count("width", spec.width, 1);
  options.take_count("depth", spec.depth, 0);
  options.take_named("activation", spec.activation,
                     [](const std::string& name) { return nets::activation(name); });
  options.take_named("norm", spec.norm, [](const std::string& name) { return norm_kind(name); });
  options.take("eps", spec.eps);
  options.take("affine", spec.affine);
  options.take_named("optimizer", spec.optimizer,
                     [](const std::string& name) { return nets::optimizer(name); });
  options.take("rate", spec.rate);
  options.take_named("schedule", spec.schedule, [](const std::string& name) { return nets::schedule(name); });
  options.take_count("steps", spec.steps, 1);
  options.take_count("batch", spec.batch, 1);
  options.take_named("precision", spec.precision, [](const std::string& name) {
    if (name != "float64" && name != "float32") {
      refuse(PyExc_ValueError,
             fmt::format("train: unknown precision \"{}\", expected float64 or float32", name));
    }
    return name == "float32" ? Dtype::F32 : Dtype::F64;
  });
  options.take_count("record_every", spec.record_every, 1);
  options.take_seed(spec.seed);
  return spec;
}

/// `labels` is None where `what` names a task.
Made train(const nb::object& what, const nb::object& labels, const nb::dict& given,
           const std::vector<std::size_t>& groups, const std::string& output, const std::string& resume,
           unsigned threads, const nb::object& callback) {
  const Given options("train", given);
  std::optional<nets::Task> task;
  results::TrainedOn on{.data = "samples", .output = output};
  nets::TrainData data;
  if (labels.is_none()) {
    on.data = text(what);
    task = nets::find_task(on.data);
    if (!task) {
      throw Error(ErrorCode::Argument,
                  fmt::format("train: no task \"{}\", expected {}", on.data, nets::task_names()));
    }
    on.claim = task->claim;
    std::size_t rows = 0;
    options.take_count("rows", rows, 1);
    data = data_of(*task, rows);
  } else {
    Matrix samples = samples_of("train", "x", what);
    const auto classes = nb::cast<std::vector<std::int64_t>>(labels);
    if (classes.size() != samples.rows) {
      throw Error(ErrorCode::Shape, fmt::format("train: {} labels of {} rows, expected one a row",
                                                classes.size(), samples.rows));
    }
    data = data_of(nets::dataset("train: labels", samples.width, std::move(samples.values),
                                 {classes.begin(), classes.end()}));
  }
  nets::TrainPlan plan{.spec = spec_of(options, task ? task->spec : nets::TrainSpec{}),
                       .groups = groups,
                       .seeds = task && resume.empty() ? task->seeds : 1,
                       .state = resume};
  options.take_count("seeds", plan.seeds, 1);
  return run(callback, [&](const Progress& progress) {
    const std::vector<nets::TrainRun> runs = nets::train_all(plan, data, threads, progress);
    Net net = nets::best_of(runs).trainer.net();
    if (task) net = nets::for_unscaled(std::move(net), task->shift, task->scale);
    if (!output.empty()) nets::save_net(output, net);
    Json charts = Json::array();
    for (auto& [name, specification] : figures::training_charts(runs)) {
      charts.push_back(chart_entry(name, std::move(specification)));
    }
    return Made(json_text(results::training(on, runs)), json_text(charts), std::move(net));
  });
}

/// Counts with a network that is part of the library; the document and its chart.
Illustrated count(const std::string& cell, const std::string& language, std::size_t letters,
                  std::size_t up_to) {
  const nb::gil_scoped_release others_may_run;
  const nets::rnn::CellKind kind = nets::rnn::cell_kind(cell);
  const nets::rnn::Language of = nets::rnn::language(language);
  const nets::rnn::Network& network = nets::rnn::trained(kind, of);
  const nets::rnn::TrainSpec spec = nets::rnn::trained_spec(kind, of);
  const nets::rnn::Range range = nets::rnn::range(network, up_to);
  const nets::rnn::Score score = nets::rnn::score_on_near_members(network);
  const std::vector<nets::rnn::UnitDrift> drifts = nets::rnn::drifts_if_long(network, letters);
  return Illustrated(
      json_text(results::count({.network = network,
                                .spec = spec,
                                .trained = std::nullopt,
                                .range = range,
                                .near_members = score,
                                .n = letters,
                                .drifts = drifts})),
      json_text(Json::array({chart_entry("states", figures::counting_trace(network, letters))})));
}

}  // namespace

void define_nets(nb::module_& module) {
  nb::class_<Net>(module, "Net")
      .def_prop_ro("features", [](const Net& net) { return net.in(); })
      .def_prop_ro("outputs", [](const Net& net) { return net.out(); })
      .def_prop_ro("layers", [](const Net& net) { return net.layers.size(); })
      .def_prop_ro("precision", [](const Net& net) { return std::string(to_string(net.precision)); });
  define(module, "load_net", &load_net);
  define(module, "save_net", &save_net);
  define(module, "run_net", &run_net);
  define(module, "trace_net", &trace_net);
  define(module, "build", &build);
  define(module, "train", &train);
  define(module, "count", &count);
}

}  // namespace normscope::python
