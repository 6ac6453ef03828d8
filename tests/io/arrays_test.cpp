#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

using namespace taper;
using namespace taper::io;

TEST_CASE("arrays are loaded from every kind of file under their names") {
  const TempFolder folder;
  const Tensor values = tensor({{1, 2, 3}, {4, 5, 6}}, DType::float32);
  save_npy(folder / "a.npy", values);
  save_npz(folder / "a.npz", {{"x", values}});
  save_safetensors(folder / "a.safetensors", {{"w", values}});
  folder.write("a.csv", "1,2,3\n4,5,6\n");
  folder.write("a.tsv", "1\t2\t3\n4\t5\t6\n");
  const auto only = [&](const std::string& file, const std::string& name) {
    const auto arrays = load_arrays(folder / file);
    REQUIRE(arrays.size() == 1);
    CHECK(arrays[0].name == name);
    CHECK(npy_to_bytes(arrays[0].tensor) == npy_to_bytes(values));
  };
  only("a.npy", "input");
  only("a.npz", "x");
  only("a.safetensors", "w");
  only("a.csv", "input");
  only("a.tsv", "input");
  // The first bytes decide over the ending.
  folder.write("b.csv", slurp(folder / "a.npy"));
  folder.write("b", slurp(folder / "a.npz"));
  only("b.csv", "input");
  only("b", "x");
}

TEST_CASE("a table with a target gives two arrays") {
  const TempFolder folder;
  const auto arrays = load_arrays(folder.write("a.csv", "1,2,b\n4,5,a\n"), {.target = "-1"});
  REQUIRE(arrays.size() == 2);
  CHECK(arrays[0].tensor.shape() == Shape{2, 2});
  CHECK(arrays[1].name == "target");
  CHECK(arrays[1].tensor.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("a file of an unknown kind is refused") {
  const TempFolder folder;
  const std::string path = folder.write("a.bin", "1,2");
  CHECK(test::message_of([&] { load_arrays(path); }) ==
        path + ": kind of file is not known: expected .npy, .npz, .safetensors, .csv, .tsv or .txt");
  CHECK(test::message_of([&] { load_arrays(folder / "none.npy"); }) ==
        folder / "none.npy: cannot read: No such file or directory");
}
