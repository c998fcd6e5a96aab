// Observers of live norms for Python.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include <normscope/activations/observer.hpp>
#include <normscope/documents/activations.hpp>
#include <normscope/documents/text.hpp>
#include <normscope/figures/activations.hpp>

#include "arguments.hpp"
#include "array.hpp"
#include "module.hpp"
#include "norm_argument.hpp"

namespace normscope::python {
namespace {

using activations::Observer;

Observer observer_of(const nb::object& norm, std::size_t axes, std::size_t features, std::size_t sample,
                     std::uint64_t seed) {
  return Observer(norm_of("watch", norm),
                  {.axes = axes, .features = features, .sample = sample, .seed = seed});
}

void add(Observer& observer, const nb::object& x) {
  const Array given("watch", "x", x);
  const Array array = given.rows() ? given : given.copy();
  with_type(array.element(), [&]<typename T>(T) {
    const nb::gil_scoped_release others_may_run;
    observer.add(array.rows()->view<const T>());
  });
}

/// The document and its charts; `norms` are (name, calls, observer).
std::pair<std::string, std::string> observed(
    const std::string& model, const nb::list& norms,
    const std::vector<std::pair<std::string, std::string>>& not_understood) {
  std::vector<activations::ObservedNorm> found;
  for (const nb::handle entry : norms) {
    const auto norm = nb::borrow<nb::tuple>(entry);
    const auto& observer = nb::cast<const Observer&>(norm[2]);
    found.push_back({text(norm[0]), observer.spec(), nb::cast<std::uint64_t>(norm[1]), observer.summary()});
  }
  return {json_text(documents::activations(model, found, not_understood)),
          json_text(figures::activation_charts(found))};
}

}  // namespace

void define_observers(nb::module_& module) {
  nb::class_<Observer>(module, "Observer");
  define(module, "observer_of", &observer_of);
  define(module, "observe", &add);
  define(module, "observed", &observed);
}

}  // namespace normscope::python
