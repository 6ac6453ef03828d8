#include <limits>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/data.hpp"
#include "taper/io.hpp"

using namespace taper;
using data::Dataset;
using data::SourceOptions;

namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

std::string write_npz(const TempFolder& folder, const Tensor& x, const Tensor& y) {
  const std::string path = folder / "set.npz";
  io::save_npz(path, {{"x", x}, {"y", y}});
  return path;
}

}  // namespace

TEST_CASE("a data set is read from the arrays of an archive") {
  TempFolder folder;
  const std::string path =
      write_npz(folder, tensor({{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}}), tensor({4, 0}));
  const Dataset set = data::load_dataset({.path = path}, true);
  CHECK(set.size() == 2);
  CHECK(set.has_classes());
  CHECK(set.inputs.shape() == Shape{2, 3, 2});
  CHECK(set.inputs.dtype() == DType::float32);
  CHECK(set.inputs.to_vector<float>() == Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(set.targets.to_vector<std::int64_t>() == Ints{4, 0});
  CHECK(set.labels.empty());
  CHECK(set.fingerprint.find('-') != std::string::npos);

  const Dataset numbers = data::load_dataset({.path = path, .format = data::Format::npz}, false);
  CHECK(numbers.targets.dtype() == DType::float32);
  CHECK_FALSE(numbers.has_classes());
}

TEST_CASE("a data set is read from safetensors under other names") {
  TempFolder folder;
  const std::string path = folder / "set.safetensors";
  io::save_safetensors(path, {{"features", tensor({{0.5, 1.5, 2.5}})}, {"speed", tensor({{3.0, -1.0}})}});
  const Dataset set = data::load_dataset({.path = path, .inputs = {"features"}, .targets = "speed"}, false);
  CHECK(set.targets.shape() == Shape{1, 2});
  CHECK(set.inputs.to_vector<float>() == Floats{0.5, 1.5, 2.5});
}

TEST_CASE("a data set is read from two files of one array each") {
  TempFolder folder;
  io::save_npy(folder / "x.npy", tensor({{1, 2, 3}, {4, 5, 6}}, DType::float64));
  io::save_npy(folder / "y.npy", tensor({1, 0}));
  const SourceOptions options{.path = folder / "x.npy", .targets = folder / "y.npy"};
  const Dataset set = data::load_dataset(options, true);
  CHECK(set.inputs.to_vector<float>() == Floats{1, 2, 3, 4, 5, 6});
  CHECK(set.targets.to_vector<std::int64_t>() == Ints{1, 0});
  io::save_npy(folder / "y.npy", tensor({1, 1}));
  CHECK(data::fingerprint(options) != set.fingerprint);
  CHECK_THROWS_AS(data::load_dataset({.path = folder / "x.npy"}, true), Error);
}

TEST_CASE("a data set is read from a table, with text classes in the order of the known labels") {
  TempFolder folder;
  const std::string path = folder.write("set.csv", "a,b,kind\n1,2,pear\n3,4,apple\n5,6,pear\n");
  const Dataset set = data::load_dataset({.path = path, .targets = "kind"}, true);
  CHECK(set.inputs.shape() == Shape{3, 2});
  CHECK(set.labels == std::vector<std::string>{"apple", "pear"});
  CHECK(set.targets.to_vector<std::int64_t>() == Ints{1, 0, 1});

  const Dataset known = data::load_dataset({.path = path, .inputs = {"b"}, .targets = "kind"}, true, {"pear", "apple"});
  CHECK(known.inputs.to_vector<float>() == Floats{2, 4, 6});
  CHECK(known.targets.to_vector<std::int64_t>() == Ints{0, 1, 0});
}

TEST_CASE("a missing array is an error that lists the arrays there are") {
  TempFolder folder;
  const std::string path = folder / "set.npz";
  io::save_npz(path, {{"x_train", tensor({{1, 2}})}, {"y_train", tensor({1})}});
  CHECK(test::message_of([&] { data::load_dataset({.path = path}, true); }) ==
        path + ": no array x: expected one of x_train, y_train");
  CHECK(test::message_of([&] { data::load_dataset({.path = path, .inputs = {"x_trian"}}, true); }) ==
        path + ": no array x_trian: expected one of x_train, y_train; did you mean x_train?");
  CHECK(test::message_of([&] {
          data::load_dataset({.path = path, .inputs = {"x_train", "y_train"}}, true);
        }) == path + ": inputs: expected the name of one array, got 2");
}

TEST_CASE("a path that is not in the working directory is looked for beside the config") {
  TempFolder folder;
  write_npz(folder, tensor({{1, 2}}), tensor({1}));
  SourceOptions options{.path = "set.npz"};
  CHECK(data::resolve_path(options) == "set.npz");
  options.base_directory = folder.path();
  CHECK(data::resolve_path(options) == folder / "set.npz");
  CHECK(data::load_dataset(options, true).size() == 1);
  options.path = "absent.npz";
  CHECK(data::resolve_path(options) == "absent.npz");
  CHECK(test::message_of([&] { data::load_dataset(options, true); }) ==
        "absent.npz: cannot read: No such file or directory");
}

TEST_CASE("inputs that are not finite are refused with sample and position") {
  Tensor x = zeros({3, 2, 5});
  const Tensor y = tensor({0, 1, 2});
  x.data<float>()[2 * 10 + 1 * 5 + 3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(test::message_of([&] { data::make_dataset("set.npz", x, y, true); }) ==
        "set.npz: input of sample 2 at [1, 3]: expected a finite number that float32 can hold, got nan");
  const Tensor wide = tensor({{1.0, 1e39}}, DType::float64);
  CHECK(test::message_of([&] { data::make_dataset("set.npz", wide, tensor({0}), true); }) ==
        "set.npz: input of sample 0 at [1]: expected a finite number that float32 can hold, got 1e+39");
  const Tensor bad = tensor({std::numeric_limits<double>::infinity()});
  CHECK(test::message_of([&] {
          data::make_dataset("set.npz", tensor({{1, 2}}), bad, false);
        }) == "set.npz: target of sample 0: expected a finite number that float32 can hold, got inf");
}

TEST_CASE("classes that are none are refused with their sample") {
  const Tensor x = zeros({3, 2});
  const auto refusal = [&](const Tensor& y) {
    return test::message_of([&] { data::make_dataset("set.npz", x, y, true); });
  };
  CHECK(refusal(tensor({0, -1, 2})) == "set.npz: target of sample 1: expected a class from 0 to 1048575, got -1");
  CHECK(refusal(tensor({0, 1, 1048576})) ==
        "set.npz: target of sample 2: expected a class from 0 to 1048575, got 1048576");
  CHECK(refusal(tensor({0.0, 1.5, 2.0})) == "set.npz: target of sample 1: expected a class from 0 to 1048575, got 1.5");
  CHECK(refusal(tensor({std::numeric_limits<double>::quiet_NaN(), 1.5, 2.0})) ==
        "set.npz: target of sample 0: expected a class from 0 to 1048575, got nan");
  CHECK(refusal(tensor({{0}, {1}, {2}})) == "set.npz: targets: expected one class a sample, shape [N], got [3, 1]");
  CHECK(data::make_dataset("set.npz", x, tensor({0.0, 1.0, 2.0}), true).targets.to_vector<std::int64_t>() ==
        Ints{0, 1, 2});
}

TEST_CASE("inputs and targets that do not fit are refused") {
  CHECK(test::message_of([&] {
          data::make_dataset("set.npz", zeros({3, 2}), tensor({0, 1}), true);
        }) == "set.npz: inputs and targets differ in their number of samples: expected 3 targets, got [2]");
  CHECK(test::message_of([&] {
          data::make_dataset("set.npz", zeros({2}), tensor({0, 1}), true);
        }) == "set.npz: inputs: expected samples with features, [N, ...], got [2]");
  CHECK(test::message_of([&] {
          data::make_dataset("set.npz", zeros({0, 7}), zeros({0}), true);
        }) == "set.npz: inputs are empty: expected at least one sample, got [0, 7]");
}

TEST_CASE("a subset keeps what belongs to the samples it names") {
  Dataset set = data::make_dataset("set", tensor({{1, 2}, {3, 4}, {5, 6}}), tensor({7, 8, 9}), true);
  set.labels = {"a"};
  const Dataset part = set.subset(tensor({2, 0}));
  CHECK(part.inputs.to_vector<float>() == Floats{5, 6, 1, 2});
  CHECK(part.targets.to_vector<std::int64_t>() == Ints{9, 7});
  CHECK(part.labels == set.labels);
}
