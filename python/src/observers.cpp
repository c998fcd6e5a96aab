// Observers of live norms for Python.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/in_model.hpp>
#include <normscope/analysis/observer.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "arguments.hpp"
#include "array.hpp"
#include "model.hpp"
#include "module.hpp"
#include "norm_argument.hpp"
#include "work.hpp"

namespace normscope::python {
namespace {

using analysis::Observer;

Observer observer_of(const nb::object& norm, std::size_t axes, std::size_t features, std::size_t sample,
                     std::size_t contexts, std::size_t positions, std::uint64_t seed) {
  return Observer(norm_of("watch", norm), {.axes = axes,
                                           .features = features,
                                           .sample = sample,
                                           .contexts = contexts,
                                           .positions = positions,
                                           .seed = seed});
}

void add(Observer& observer, const nb::object& x) {
  const Array given("watch", "x", x);
  const Array array = given.rows() ? given : given.copy();
  with_type(array.element(), [&]<typename T>(T) {
    const nb::gil_scoped_release others_may_run;
    observer.add(array.rows()->view<const T>());
  });
}

/// `x` holds contexts of `length` rows, one after the other.
void add_contexts(Observer& observer, const nb::object& x, std::size_t length) {
  const Array given("watch", "x", x);
  const Array array = given.rows() ? given : given.copy();
  with_type(array.element(), [&]<typename T>(T) {
    const nb::gil_scoped_release others_may_run;
    observer.add_contexts(array.rows()->view<const T>(), length);
  });
}

nb::bytes packed(const Observer& observer) {
  const std::vector<std::byte> bytes = observer.packed();
  return nb::bytes(bytes.data(), bytes.size());
}

void unpack(Observer& observer, const nb::bytes& bytes) {
  observer.unpack({static_cast<const std::byte*>(bytes.data()), bytes.size()});
}

void merge(Observer& observer, const Observer& other) { observer.merge(other); }

/// The document and its charts; `norms` are (name, calls, observer). `opened` is None, or the model whose
/// heads and logits are asked about, up to `heads` of them and `budget` billion multiplications each.
std::pair<std::string, std::string> observed(
    const std::string& name, const nb::list& norms,
    const std::vector<std::pair<std::string, std::string>>& not_understood, const nb::object& opened,
    std::size_t heads, double budget, unsigned threads, const nb::object& callback) {
  std::vector<analysis::ObservedNorm> found;
  std::vector<analysis::WatchedNorm> watched;
  for (const nb::handle entry : norms) {
    const auto norm = nb::borrow<nb::tuple>(entry);
    const auto& observer = nb::cast<const Observer&>(norm[2]);
    found.push_back({text(norm[0]), observer.spec(), nb::cast<std::uint64_t>(norm[1])});
    watched.push_back({found.back().name, observer});
  }
  const Model* const model = opened.is_none() ? nullptr : &nb::cast<const Model&>(opened);
  return run(callback, [&](const Progress& progress) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      progress("norm", i, found.size());
      found[i].summary = watched[i].observer.summary();
    }
    std::optional<analysis::InModel> within;
    if (model != nullptr) {
      within = analysis::in_model(
          model->checkpoint(), model->described(), watched,
          {.heads = {.most_heads = heads, .budget = selectability::budget_unit * budget, .threads = threads},
           .next = {.budget = selectability::budget_unit * budget, .threads = threads}},
          progress);
    }
    const analysis::InModel* const known = within ? &*within : nullptr;
    return std::pair(json_text(results::activations(name, found, not_understood, known)),
                     json_text(figures::activation_charts(found, known)));
  });
}

}  // namespace

void define_observers(nb::module_& module) {
  const nb::class_<Observer> observer(module, "Observer");
  define(module, "observer_of", &observer_of);
  define(module, "observe", &add);
  define(module, "observe_contexts", &add_contexts);
  define(module, "packed_observer", &packed);
  define(module, "unpack_observer", &unpack);
  define(module, "merge_observer", &merge);
  define(module, "observed", &observed);
}

}  // namespace normscope::python
