#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/checkpoint/opened_array.hpp>
#include <normscope/core/error.hpp>

#include "bytes/zip_files.hpp"
#include "checkpoint/fixture_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::checkpoint {
namespace {

using test::ZipEntry;

ZipEntry keras_weights() { return ZipEntry(test::fixture_bytes("hdf5_plain.h5"), "model.weights.h5"); }

TEST(Keras, HoldsTheTensorsOfItsWeights) {
  const test::Scratch scratch;
  const Checkpoint expected(test::fixture_file("hdf5_plain.h5"));
  for (const std::vector<ZipEntry>& members :
       {std::vector<ZipEntry>{keras_weights()},
        {ZipEntry("{\"class_name\": 1}", "config.json"), keras_weights()}}) {
    test::put(scratch / "m.keras", test::zip(members));
    const Checkpoint checkpoint(scratch / "m.keras");
    EXPECT_EQ(checkpoint.format(), "keras");
    ASSERT_EQ(checkpoint.tensors().size(), expected.tensors().size());
    const Tensor& tensor = checkpoint.tensors()[0];
    EXPECT_EQ(read(tensor), read(expected.tensors()[0]));
    EXPECT_EQ(checkpoint.metadata().contains("model_config"), members.size() == 2);
    EXPECT_EQ(read_array((scratch / "m.keras").string() + ":" + std::string(tensor.name)).values,
              read(tensor));
  }
}

TEST(Keras, HasNoMembersToName) {
  const test::Scratch scratch;
  test::put(scratch / "m.keras", test::zip({keras_weights()}));
  const std::string path = (scratch / "m.keras").string();
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { const Checkpoint checkpoint(path + ":model"); }),
            "checkpoint: " + path +
                ": is HDF5 or Keras, expected a PyTorch file, whose members have names; found \"model\"");
}

TEST(Keras, NamesTheFileOfWeightsThatAreNotSound) {
  const test::Scratch scratch;
  test::put(scratch / "m.keras", test::zip({ZipEntry("not HDF5 at all", "model.weights.h5")}));
  EXPECT_EQ(test::error_of(ErrorCode::Format, [&] { const Checkpoint checkpoint(scratch / "m.keras"); }),
            "keras: " + (scratch / "m.keras").string() + ": does not begin as HDF5 files do");
}

}  // namespace
}  // namespace normscope::checkpoint
