#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "architecture.hpp"
#include "models/synthetic.hpp"

namespace normscope::models {

std::vector<const Architecture*> toy_architectures();

namespace {

using test::names;
using test::Synthetic;

TEST(Registry, HoldsOneArchitecturePerFileUnderTheFilesName) {
  std::set<std::string> files;
  const std::filesystem::path folder =
      std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "src/models/architectures";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path().stem());
  std::set<std::string> registered;
  for (const Architecture* architecture : all_architectures()) registered.emplace(architecture->name);
  EXPECT_EQ(registered, files);
  EXPECT_EQ(all_architectures().size(), files.size());
}

TEST(Registry, RecognisesAnArchitectureThatIsOneNewFile) {
  Synthetic toy;
  toy.add("net.table", {5, 4});
  for (const char* layer : {"net.toy.0.", "net.toy.1."}) {
    const std::string prefix = layer;
    toy.add(prefix + "ball.weight", {4}).linear(prefix + "in", 6, 4).linear(prefix + "out", 4, 6);
  }
  const Model model = describe_as_one_of(toy_architectures(), toy.open());
  EXPECT_EQ(model.architecture, "toy");
  EXPECT_EQ(model.evidence, "tensor names toy.*.ball.*");
  EXPECT_EQ(model.layers, 2);
  ASSERT_EQ(model.norms.size(), 2u);
  EXPECT_EQ(model.norms[1].kind, NormKind::spherical);
  EXPECT_EQ(model.norms[1].eps, 0.25);
  EXPECT_EQ(names(model.norms[0].writers), (std::vector<std::string>{"token embedding:net.table"}));
  EXPECT_EQ(names(model.norms[1].writers), (std::vector<std::string>{"mixer out:net.toy.0.out.weight"}));
  EXPECT_EQ(names(model.norms[1].readers), (std::vector<std::string>{"mixer in:net.toy.1.in.weight"}));
}

}  // namespace
}  // namespace normscope::models
