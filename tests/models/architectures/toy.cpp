#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void forward(Builder& b) {
  b.norms({.kind = NormKind::spherical, .placement = Placement::pre, .eps = 0.25});
  b.embedding("token embedding", "table");
  b.each_layer("toy.{}.", [&] {
    b.norm("ball", "mixer input");
    const std::uint64_t inner = b.reads("mixer in", "in");
    b.writes("mixer out", "out", inner);
  });
}

}  // namespace

extern const Architecture toy = {
    .name = "toy",
    .title = "A toy",
    .model_types = {"toy"},
    .signature = {"toy.{}.ball."},
    .without = {},
    .describe = forward,
};

}  // namespace normscope::models::architectures
