#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/cpu_capability.hpp"
#include "support/catch.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

using namespace taper;

namespace {

constexpr const char* kFlatModel = R"({"input": {"shape": [3, 7]}, "layers": [
  {"type": "Conv1d", "name": "conv", "out_channels": 2, "kernel_size": 3},
  {"type": "Flatten"},
  {"type": "Linear", "name": "fc", "out_features": 2}]})";

/// A folder with a model, and with files that are good and bad in one way each.
struct Files : TempFolder {
  Files() {
    write("m.json", kFlatModel);
    write("bad.json",
          "{\n  \"input\": {\"shape\": [3, 7]},\n  \"layers\": [\n    {\"type\": \"AvgPool1d\", "
          "\"kernal_size\": 2}\n  ]\n}\n");
    write("cut.json", "{\"input\": ");
    write("text.npy", "hello");
    const TempFolder& folder = *this;
    io::save_npy(folder / "x.npy", zeros({2, 3, 7}));
    io::save_npy(folder / "x5.npy", zeros({2, 5, 7}));
    io::save_npy(folder / "short.npy", zeros({2, 3, 2}));
    io::save_npy(folder / "whole.npy", zeros({2, 3, 7}, DType::int64));
    io::save_npy(folder / "gy.npy", zeros({2, 3}));
    const std::string bytes = slurp(folder / "x.npy");
    write("cut.npy", std::string_view(bytes).substr(0, bytes.size() - 5));
    save("w", {}, {});
    save("names", "fc.bais", {2});
    save("shape", "fc.bias", {3});
    io::save_safetensors(folder / "other.safetensors", {{"inputs", zeros({2, 3, 7})}});
  }

 private:
  void save(const std::string& file, const std::string& bias, const Shape& shape) const {
    const bool good = bias.empty();
    io::save_safetensors(*this / (file + ".safetensors"), {{"conv.weight", zeros({2, 3, 3})},
                                                           {"conv.bias", zeros({2})},
                                                           {"fc.weight", zeros({2, 10})},
                                                           {good ? "fc.bias" : bias, zeros(good ? Shape{2} : shape)}});
  }
};

struct Wrong {
  std::vector<std::string> arguments;
  int exit;
  std::string sentence;
};

}  // namespace

TEST_CASE("a wrong command line ends with 2 and a sentence that names what is wrong") {
  const Files folder;
  const std::vector<Wrong> all = {
      {{"trian"}, 2, "unknown verb: expected one of @, got trian; did you mean train?"},
      {{""}, 2, "unknown verb: expected one of @, got "},
      {{"-x"}, 2, "unknown option: expected a verb, -h, --help or --version, got -x"},
      {{"--hlep"}, 2, "unknown option: expected a verb, -h, --help or --version, got --hlep; did you mean --help?"},
      {{"run"}, 2, "run: MODEL is missing: expected it on the command line, got none; taper run -h shows how"},
      {{"run", "m.json"},
       2,
       "run: --input is missing: expected it on the command line, got none; taper run -h shows how"},
      {{"run", "m.json", "--input", "x.npy"},
       2,
       "run: --output is missing: expected it on the command line, got none; taper run -h shows how"},
      {{"run", "m.json", "--input", "x.npy", "--output"},
       2,
       "run: an option without its value: expected a value after --output, got none"},
      {{"run", "m.json", "--input=", "--output", "o"},
       2,
       "run: an option without its value: expected a value after --input=, got none"},
      {{"run", "m.json", "--input", "--output", "o"},
       2,
       "run: --input has no value: expected one after it, got --output"},
      {{"run", "m.json", "--input", "", "--output", "o"},
       2,
       "run: --input has no value: expected one after it, got an empty word"},
      {{"run", "m.json", "--wieghts", "w", "--input", "x.npy", "--output", "o"},
       2,
       "run: unknown option: expected one that taper run -h lists, got --wieghts; did you mean --weights?"},
      {{"run", "m.json", "--qqq=1"}, 2, "run: unknown option: expected one that taper run -h lists, got --qqq"},
      {{"run", "m.json", "--input", "x.npy", "--input", "x.npy", "--output", "o"},
       2,
       "run: --input is given more than once: expected one value, got 2"},
      {{"run", "m.json", "extra", "--input", "x.npy", "--output", "o"},
       2,
       "run: one argument too many: expected what taper run -h says, got extra"},
      {{"run", "m.json", "--input", "x.npy", "--output", "o", "--dtype", "flot64"},
       2,
       "run: --dtype: unknown word: expected float32 or float64, got flot64; did you mean float64?"},
      {{"run", "m.json", "--input", "x.npy", "--output", "o", "--mode", "test"},
       2,
       "run: --mode: unknown word: expected eval or train, got test"},
      {{"run", "m.json", "--input", "x.npy", "--output", "o", "--seed", "-1"},
       2,
       "run: --seed: not a number it takes: expected an integer >= 0, got -1"},
      {{"run", "m.json", "--input", "x.npy", "--output", "o", "--seed", "1.5"},
       2,
       "run: --seed: not a number it takes: expected an integer >= 0, got 1.5"},
      {{"run", "m.json", "--input", "x.npy", "--output", "o", "--threads", "0"},
       2,
       "run: --threads: not a number it takes: expected an integer from 1 to 1024, got 0"},
      {{"run", "m.json", "--input", "x.npy", "--output", "o", "--threads", "99999999999999999999"},
       2,
       "run: --threads: not a number it takes: expected an integer from 1 to 1024, got 99999999999999999999"},
      {{"summary"},
       2,
       "summary: CONFIG is missing: expected it on the command line, got none; taper summary -h shows how"},
      {{"summary", "m.json", "--set"},
       2,
       "summary: an option without its value: expected a value after --set, got none"},
      {{"summary", "m.json", "--set", "layers[0].kernel_size"},
       2,
       "summary: --set takes a key and its value: expected a.b=value, got layers[0].kernel_size"},
      {{"layers", "AvgPool"},
       2,
       "layers: unknown name: expected a layer, loss, optimizer or scheduler, got AvgPool; did you mean AvgPool1d?"},
      {{"layers", "Blorp"},
       2,
       "layers: unknown name: expected a layer, loss, optimizer or scheduler, got Blorp; taper layers lists them"},
      {{"layers", "Add", "Add"}, 2, "layers: one argument too many: expected what taper layers -h says, got Add"},
      {{"env", "x"}, 2, "env: one argument too many: expected what taper env -h says, got x"},
      {{"env", "--jsno"},
       2,
       "env: unknown option: expected one that taper env -h lists, got --jsno; did you mean --json?"},
  };
  for (const Wrong& wrong : all) {
    const Outcome outcome = run_taper(folder.path(), wrong.arguments);
    std::string expected = "taper: " + wrong.sentence + "\n";
    if (const std::size_t at = expected.find('@'); at != std::string::npos)
      expected.replace(at, 1, "train, eval, predict, run, summary, layers, env");
    CHECK(outcome.err == expected);
    CHECK(outcome.exit == wrong.exit);
    CHECK(outcome.out == "");
  }
}

TEST_CASE("a set of instructions that is not one of the library's is ignored, and said to be") {
  if (detail::offered_cpu_capability() == detail::CpuCapability::baseline) return;  // one set of kernels alone
  const TempFolder folder;
  const char* const before = std::getenv("TAPER_CPU_CAPABILITY");
  const std::string kept = before != nullptr ? before : "";
  const auto said_with = [&](const char* name) {
    ::setenv("TAPER_CPU_CAPABILITY", name, 1);
    const Outcome outcome = run_taper(folder.path(), {"--version"});
    CHECK(outcome.exit == 0);
    return outcome.err;
  };
  CHECK(said_with("avx1024") ==
        "TAPER_CPU_CAPABILITY: expected default, avx2 or avx512, got 'avx1024'; it is ignored\n");
  for (const char* name : {"", "default", "avx2", "avx512"}) CHECK(said_with(name).empty());
  before != nullptr ? ::setenv("TAPER_CPU_CAPABILITY", kept.c_str(), 1) : ::unsetenv("TAPER_CPU_CAPABILITY");
}

TEST_CASE("run ends with 2 for what it refuses and with 1 for bad files") {
  const Files folder;
  const std::vector<Wrong> all = {
      {{"none.json", "--input", "x.npy"}, 2, "none.json: cannot read: No such file or directory"},
      {{".", "--input", "x.npy"}, 2, ".: cannot read: Is a directory; give the name of a file"},
      {{"m.json", "--input", "x5.npy"},
       2,
       "conv1d: input does not fit the weight: expected 3 channels, got 5 in [2, 5, 7]; weight [2, 3, 3], groups 1"},
      {{"m.json", "--input", "short.npy"},
       2,
       "conv1d: padded input is smaller than the dilated kernel: expected >= 3, got 2"},
      {{"m.json", "--input", "x.npy", "--grad-output", "gy.npy"},
       2,
       "run: --grad-output has another shape than the output: expected [2, 2], got [2, 3]"},
      {{"m.json", "--input", "none.npy"}, 1, "none.npy: cannot read: No such file or directory"},
      {{"m.json", "--input", "cut.npy"}, 1, "cut.npy: file is cut: expected 168 bytes of elements, got 163"},
      {{"m.json", "--input", "text.npy"},
       1,
       "text.npy: file is cut in its header: expected at least 8 more bytes, got 5"},
      {{"m.json", "--input", "whole.npy"},
       1,
       "whole.npy: wrong element type of input: expected a floating one, got int64"},
      {{"m.json", "--input", "other.safetensors"},
       1,
       "other.safetensors: a tensor is missing: expected input, got inputs"},
      {{"m.json", "--input", "x.npy", "--grad-output", "other.safetensors"},
       1,
       "other.safetensors: a tensor is missing: expected output, got inputs"},
      {{"m.json", "--input", "x.npy", "--weights", "none.safetensors"},
       1,
       "none.safetensors: cannot read: No such file or directory"},
      {{"m.json", "--input", "x.npy", "--weights", "names.safetensors"},
       1,
       "names.safetensors: the parameters' names are not the model's: expected fc.bias, got fc.bais"},
      {{"m.json", "--input", "x.npy", "--weights", "other.safetensors"},
       1,
       "other.safetensors: the parameters' names are not the model's: expected conv.weight, conv.bias, fc.weight, "
       "fc.bias, got inputs"},
      {{"m.json", "--input", "x.npy", "--weights", "shape.safetensors"},
       1,
       "shape.safetensors: load_state_dict: fc.bias has another shape: expected [2], got [3]"},
      {{"m.json", "--input", "x.npy", "--weights", "x.npy"},
       1,
       "x.npy: header length is out of range: expected 2 to 288, got 379676406402707"},
  };
  for (const Wrong& wrong : all) {
    std::vector<std::string> arguments{"run"};
    arguments.insert(arguments.end(), wrong.arguments.begin(), wrong.arguments.end());
    arguments.insert(arguments.end(), {"--output", "o.safetensors"});
    const Outcome outcome = run_taper(folder.path(), arguments);
    CHECK(outcome.err == "taper: " + wrong.sentence + "\n");
    CHECK(outcome.exit == wrong.exit);
    CHECK(outcome.out == "");
  }
  for (const std::string& name : folder.list()) CHECK(name != "o.safetensors");
}

TEST_CASE("a wrong config is shown as compilers show errors") {
  const Files folder;
  const std::string bad =
      R"(bad.json:4:5: error: /layers/0 (layer AvgPool1d 0): missing key: expected kernel_size, got none
    4 |     {"type": "AvgPool1d", "kernal_size": 2}
      |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
bad.json:4:27: error: /layers/0/kernal_size (layer AvgPool1d 0): unknown key; did you mean kernel_size?
    4 |     {"type": "AvgPool1d", "kernal_size": 2}
      |                           ^~~~~~~~~~~~~
2 errors in bad.json
)";
  const std::string cut =
      R"(cut.json:1:10: error: expected a value, got the end of the text; the '{' in line 1, column 1 is not closed
    1 | {"input": 
      |          ^
1 error in cut.json
)";
  for (const auto& [file, expected] : {std::pair{"bad.json", bad}, std::pair{"cut.json", cut}}) {
    const Outcome outcome = run_taper(folder.path(), {"run", file, "--input", "x.npy", "--output", "o"});
    CHECK(outcome.err == expected);
    CHECK(outcome.exit == 2);
  }
}

TEST_CASE("results that cannot be written end with 1 and the system's reason") {
  const Files folder;
  REQUIRE(::symlink("/dev/full", (folder / "full").c_str()) == 0);
  const std::vector<Wrong> all = {
      {{"none/o"}, 1, "none/o: cannot write: No such file or directory; create its folder first"},
      {{"."}, 1, ".: cannot write: Is a directory; give the name of a file"},
      {{"full"}, 1, "full: cannot write: No space left on device; free space and resume"},
      {{"/proc/o"}, 1, "/proc/o: cannot write: No such file or directory; create its folder first"},
  };
  for (const Wrong& wrong : all) {
    const Outcome outcome =
        run_taper(folder.path(), {"run", "m.json", "--input", "x.npy", "--output", wrong.arguments[0]});
    CHECK(outcome.err == "taper: " + wrong.sentence + "\n");
    CHECK(outcome.exit == wrong.exit);
  }
}

TEST_CASE("standard output that takes no more is an error, a closed pipe is not") {
  const Files folder;
  const Outcome full = run_taper(folder.path(), {"layers"}, "/dev/full");
  CHECK(full.err == "taper: standard output: cannot write: No space left on device\n");
  CHECK(full.exit == 1);

  const std::string fifo = folder / "pipe";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  Program program(folder.path(), {"layers"}, fifo);
  ::close(reader);
  const Outcome closed = program.wait();
  CHECK(closed.err == "");
  CHECK(closed.exit == 0);
}

TEST_CASE("names that begin with a dash stand behind two dashes, and names cannot steer the terminal") {
  const Files folder;
  folder.write("--m.json", kFlatModel);
  const Outcome dashed = run_taper(folder.path(), {"run", "--input", "x.npy", "--output", "o", "--", "--m.json"});
  CHECK(dashed.err == "");
  CHECK(dashed.exit == 0);
  const Outcome steering = run_taper(folder.path(), {"summary", "a\x1b[2Jb"});
  CHECK(steering.err == "taper: a?[2Jb: cannot read: No such file or directory\n");
}

TEST_CASE("a model larger than the memory is an error, and its summary takes none") {
  const Files folder;
  folder.write("huge.json", R"({"input": {"shape": [3]}, "layers": [
  {"type": "Linear", "out_features": 10000000000000000}]})");
  io::save_npy(folder / "x3.npy", zeros({2, 3}));
  const Outcome failed = run_taper(folder.path(), {"run", "huge.json", "--input", "x3.npy", "--output", "o"});
  CHECK(failed.exit == 1);
  CHECK(failed.err.starts_with("taper: "));
  const Outcome summary = run_taper(folder.path(), {"summary", "huge.json"});
  CHECK(summary.exit == 0);
  CHECK(summary.out.find("\nparameters   40,000,000,000,000,000 (") != std::string::npos);
  folder.write("table.json", R"({"input": {"shape": [3], "dtype": "int64"}, "layers": [
  {"type": "Embedding", "num_embeddings": 10000000000000000, "embedding_dim": 5}]})");
  const Outcome table = run_taper(folder.path(), {"summary", "table.json"});
  CHECK(table.exit == 0);
  CHECK(table.out.find("\nparameters   50,000,000,000,000,000 (") != std::string::npos);
}
